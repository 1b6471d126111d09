//! Random programs: the store answers as the model does, whatever was done before.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use restante_kv::{
    AtomicKv, Check, Committed, Expect, Guard, Key, KeyRange, Model, Mutation, Page, StoreError, Txn, Value, Version, Versioned,
    Write,
};

use crate::bed::Bed;
use crate::breach::{Breach, Held, breach, ensure, equal};
use crate::random::Random;

/// Keys that are near each other in order.
const KEYS: [&[u8]; 10] = [b"", b"\0", b"\0\0", b"A", b"a", b"a\0", b"a\xFF", b"b", b"\xFF", b"\xFF\xFF"];

/// What a check of a program expects of its key.
#[derive(Clone, Copy, Debug)]
enum Believed {
    Absent,
    /// What the key has now.
    Current,
    /// A version that some transaction had.
    Past(usize),
    Foreign,
}

#[derive(Clone, Debug)]
enum Act {
    Commit { checks: Vec<(usize, Believed)>, writes: Vec<(usize, Option<Vec<u8>>)> },
    Get(Vec<usize>),
    Scan { start: usize, end: Option<usize>, limit: usize },
    ScanAll { limit: usize },
}

/// One act through one of two handles.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    handle: usize,
    act: Act,
}

/// For a reader who wants to do it again by hand.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = |i: &usize| format!("\"{}\"", KEYS[*i].escape_ascii());
        write!(f, "handle {}: ", self.handle)?;
        match &self.act {
            Act::Commit { checks, writes } => {
                let checks: Vec<String> = checks.iter().map(|(i, believed)| format!("{} {believed:?}", key(i))).collect();
                let write = |(i, value): &(usize, Option<Vec<u8>>)| match value {
                    Some(value) => format!("put {} \"{}\"", key(i), value.escape_ascii()),
                    None => format!("delete {}", key(i)),
                };
                let writes: Vec<String> = writes.iter().map(write).collect();
                write!(f, "commit [{}] [{}]", checks.join(", "), writes.join(", "))
            }
            Act::Get(keys) => write!(f, "get [{}]", keys.iter().map(key).collect::<Vec<_>>().join(", ")),
            Act::Scan { start, end, limit } => {
                write!(f, "page from {} to {}, limit {limit}", key(start), end.as_ref().map_or("the end".to_owned(), key))
            }
            Act::ScanAll { limit } => write!(f, "scan all, limit {limit}"),
        }
    }
}

/// A program of up to 60 steps.
pub(crate) fn program(random: &mut Random) -> Vec<Step> {
    let steps = 1 + random.below(60);
    (0..steps).map(|_| Step { handle: random.below(2), act: act(random) }).collect()
}

fn act(random: &mut Random) -> Act {
    match random.below(20) {
        0..12 => {
            let checks = (0..random.below(4)).map(|_| (random.below(KEYS.len()), believed(random))).collect();
            let writes = (0..random.below(5)).map(|_| (random.below(KEYS.len()), value(random))).collect();
            Act::Commit { checks, writes }
        }
        12..15 => Act::Get((0..random.below(6)).map(|_| random.below(KEYS.len())).collect()),
        15..19 => {
            let end = (random.below(2) == 0).then(|| random.below(KEYS.len()));
            Act::Scan { start: random.below(KEYS.len()), end, limit: random.below(5) }
        }
        _ => Act::ScanAll { limit: 1 + random.below(12) },
    }
}

fn believed(random: &mut Random) -> Believed {
    match random.below(7) {
        0..3 => Believed::Current,
        3..5 => Believed::Absent,
        5 => Believed::Past(random.below(64)),
        _ => Believed::Foreign,
    }
}

fn value(random: &mut Random) -> Option<Vec<u8>> {
    let len = random.below(20);
    (random.below(4) > 0).then(|| random.bytes(len))
}

/// The model and the store side by side.
struct Pair<'b> {
    bed: &'b Bed,
    handles: [Arc<dyn AtomicKv>; 2],
    place: Vec<u8>,
    model: Model,
    /// Versions of the model's transactions, oldest first, and what the store calls them.
    history: Vec<(Version, Version)>,
    store_version: BTreeMap<u128, Version>,
    /// What was given to each key already.
    given: BTreeSet<(usize, u128)>,
}

/// Runs a program on a part of the prefix that nothing has used.
pub(crate) fn run(bed: &Bed, steps: &[Step]) -> Held {
    let mut pair = Pair {
        bed,
        handles: [bed.kv(), bed.another()?],
        place: bed.place(),
        model: Model::new(bed.limits()),
        history: Vec::new(),
        store_version: BTreeMap::new(),
        given: BTreeSet::new(),
    };
    steps.iter().try_for_each(|step| pair.step(step))?;
    pair.scan_all(0, 7)
}

impl Pair<'_> {
    fn key(&self, i: usize) -> Key {
        self.bed.key([&self.place, KEYS[i]].concat())
    }

    fn all(&self) -> KeyRange {
        self.bed.range_of(&self.place)
    }

    /// A record of the model as the store would show it.
    fn as_stored(&self, record: &Versioned) -> Versioned {
        let version = self.store_version.get(&record.version.to_raw()).copied().unwrap_or(record.version);
        Versioned { version, value: record.value.clone() }
    }

    fn step(&mut self, step: &Step) -> Held {
        match &step.act {
            Act::Commit { checks, writes } => self.commit(step.handle, checks, writes),
            Act::Get(keys) => {
                let max = self.model.limits().get_keys_max;
                let keys: Vec<Key> = keys.iter().take(max).map(|i| self.key(*i)).collect();
                let expected: Vec<_> = keys.iter().map(|key| self.model.get(key).map(|r| self.as_stored(r))).collect();
                equal("a snapshot", self.bed.snapshot_on(&*self.handles[step.handle], &keys)?.values, expected)
            }
            Act::Scan { start, end, limit } => self.page(step.handle, *start, *end, *limit),
            Act::ScanAll { limit } => self.scan_all(step.handle, *limit),
        }
    }

    fn scan_all(&self, handle: usize, limit: usize) -> Held {
        let expected: Vec<_> = self.model.iter().map(|(key, record)| (key.clone(), self.as_stored(record))).collect();
        equal("all records", self.bed.scan_on(&*self.handles[handle], &self.all(), limit)?, expected)
    }

    fn page(&self, handle: usize, start: usize, end: Option<usize>, limit: usize) -> Held {
        let end = end.map_or_else(|| self.all().end, |end| Some(self.key(end)));
        let range = KeyRange { start: self.key(start), end };
        let answer = self.bed.wait(self.handles[handle].scan(range.clone(), limit))?;
        let page = match (self.model.scan(&range, limit), answer) {
            (Err(StoreError::InvalidRequest(_)), Err(StoreError::InvalidRequest(_))) => return Ok(()),
            (Ok(_), Ok(page)) => page,
            (expected, found) => return Err(breach(format!("{expected:?}"), format!("{found:?}"))),
        };
        let expected: Vec<_> = self
            .model
            .iter()
            .filter(|(key, _)| range.contains(key) && range.end.as_ref().is_none_or(|end| range.start < *end))
            .map(|(key, record)| (key.clone(), self.as_stored(record)))
            .collect();
        page_of(&range, limit, &page, &expected)
    }

    fn commit(&mut self, handle: usize, checks: &[(usize, Believed)], writes: &[(usize, Option<Vec<u8>>)]) -> Held {
        let (model, store) = self.txns(checks, writes);
        let answer = self.bed.wait(self.handles[handle].cas_many(store))?;
        let expected = self.model.commit(&model);
        match (expected, answer) {
            (Ok(expected), Ok(found)) => self.committed(writes, expected, found),
            // A store names the failed checks that it knows of.
            (Err(StoreError::Conflict { failed: all }), Err(StoreError::Conflict { failed })) => {
                ensure(failed.iter().all(|i| all.contains(i)), format!("failed checks among {all:?}"), format!("{failed:?}"))
            }
            (Err(StoreError::InvalidRequest(_)), Err(StoreError::InvalidRequest(_))) => Ok(()),
            (expected, found) => equal("the answer", found, expected),
        }
    }

    fn committed(&mut self, writes: &[(usize, Option<Vec<u8>>)], expected: Committed, found: Committed) -> Held {
        let mut has_put = false;
        for (key, _) in writes.iter().filter(|(_, value)| value.is_some()) {
            has_put = true;
            let is_new = self.given.insert((*key, found.version.to_raw()));
            ensure(is_new, "a version that the key never had", format!("{:?} again", found.version))?;
        }
        if has_put {
            self.history.push((expected.version, found.version));
            self.store_version.insert(expected.version.to_raw(), found.version);
        }
        Ok(())
    }

    /// The transaction as the model and as the store is asked for it.
    fn txns(&self, checks: &[(usize, Believed)], writes: &[(usize, Option<Vec<u8>>)]) -> (Txn, Txn) {
        let foreign = (Version::from_raw(u128::MAX - 1), Version::from_raw(u128::MAX - 1));
        let versions = |i: usize, believed: Believed| match believed {
            Believed::Absent => None,
            Believed::Current => self.model.get(&self.key(i)).map(|r| (r.version, self.as_stored(r).version)),
            Believed::Past(_) if self.history.is_empty() => Some(foreign),
            Believed::Past(n) => Some(self.history[n % self.history.len()]),
            Believed::Foreign => Some(foreign),
        };
        let (mut of_model, mut of_store) = (Vec::new(), Vec::new());
        for (i, believed) in checks {
            let versions = versions(*i, *believed);
            let check =
                |version: Option<Version>| Check { key: self.key(*i), expect: version.map_or(Expect::Absent, Expect::Version) };
            of_model.push(check(versions.map(|(model, _)| model)));
            of_store.push(check(versions.map(|(_, store)| store)));
        }
        let is_checked = |i: usize| checks.iter().any(|(checked, _)| *checked == i);
        let writes: Vec<Write> = writes
            .iter()
            // A store may enforce that deletes are checked; what is left out here is left out for both.
            .filter(|(i, value)| value.is_some() || is_checked(*i))
            .map(|(i, value)| Write {
                key: self.key(*i),
                mutation: value.clone().map_or(Mutation::Delete, |value| Mutation::Put(Value::from(value))),
                guard: if is_checked(*i) { Guard::Checked } else { Guard::Idempotent },
            })
            .collect();
        (Txn { checks: of_model, writes: writes.clone() }, Txn { checks: of_store, writes })
    }
}

/// Whether a page is the beginning of what is expected, and says truthfully whether and where it goes on.
fn page_of(range: &KeyRange, limit: usize, page: &Page, expected: &[(Key, Versioned)]) -> Held {
    let count = page.entries.len();
    ensure(count <= limit, format!("at most {limit} records"), format!("{count} records"))?;
    equal("the records of a page", &page.entries[..], &expected[..count.min(expected.len())])?;
    let rest = &expected[count..];
    match &page.next {
        None => equal("records after the last page", rest.len(), 0),
        Some(next) => {
            let moved = page.entries.last().map_or(*next > range.start, |(last, _)| next > last);
            ensure(moved, "a next page after this one", format!("one at {next:?}"))?;
            let skipped = rest.first().filter(|(key, _)| key < next);
            ensure(skipped.is_none(), "a next page that skips nothing", format!("{skipped:?} is before {next:?}"))
        }
    }
}

/// Runs random programs; the first that fails is made as small as it gets, and told step by step.
pub(crate) fn run_many(bed: &Bed, mut random: Random, programs: usize) -> Held {
    for _ in 0..programs {
        let steps = program(&mut random);
        if let Err(first) = run(bed, &steps) {
            let (steps, last) = shrink(steps, first, |steps| run(bed, steps).err());
            let told: Vec<String> = steps.iter().map(|step| format!("\n    {step}")).collect();
            return Err(breach(last.expected, format!("{}; after:{}", last.found, told.concat())));
        }
    }
    Ok(())
}

/// Leaves out steps, then parts of transactions, for as long as the program still fails.
fn shrink(mut steps: Vec<Step>, mut breach: Breach, fails: impl Fn(&[Step]) -> Option<Breach>) -> (Vec<Step>, Breach) {
    const TRIES_MAX: usize = 500;
    let mut tries = 0;
    let mut attempt = |candidate: &[Step]| {
        tries += 1;
        if tries > TRIES_MAX { None } else { fails(candidate) }
    };
    let mut size = steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut candidate = steps.clone();
            candidate.drain(at..(at + size).min(steps.len()));
            match attempt(&candidate) {
                Some(found) => (steps, breach) = (candidate, found),
                None => at += size,
            }
        }
        size /= 2;
    }
    for at in 0..steps.len() {
        while let Some((smaller, found)) = parts_less(&steps[at]).into_iter().find_map(|step| {
            let mut candidate = steps.clone();
            candidate[at] = step;
            attempt(&candidate).map(|found| (candidate, found))
        }) {
            (steps, breach) = (smaller, found);
        }
    }
    (steps, breach)
}

/// The step with one check, one write or one key less.
fn parts_less(step: &Step) -> Vec<Step> {
    fn one_less<T: Clone>(items: &[T]) -> impl Iterator<Item = Vec<T>> {
        (0..items.len()).map(move |i| [&items[..i], &items[i + 1..]].concat())
    }
    let acts: Vec<Act> = match &step.act {
        Act::Commit { checks, writes } => {
            let less_checks = one_less(checks).map(|checks| Act::Commit { checks, writes: writes.clone() });
            let less_writes = one_less(writes).map(|writes| Act::Commit { checks: checks.clone(), writes });
            less_checks.chain(less_writes).collect()
        }
        Act::Get(keys) => one_less(keys).map(Act::Get).collect(),
        Act::Scan { .. } | Act::ScanAll { .. } => vec![],
    };
    acts.into_iter().map(|act| Step { handle: step.handle, act }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_function_of_its_seed() {
        let told = |seed| program(&mut Random::new(seed)).iter().map(Step::to_string).collect::<Vec<_>>();
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn shrinking_leaves_what_matters() {
        let fails = |steps: &[Step]| {
            let deletes =
                steps.iter().any(|step| matches!(&step.act, Act::Commit { writes, .. } if writes.iter().any(|w| w.1.is_none())));
            let gets = steps.iter().any(|step| matches!(&step.act, Act::Get(keys) if keys.len() > 1));
            (deletes && gets).then(|| breach("", ""))
        };
        let mut random = Random::new(1);
        let steps =
            std::iter::repeat_with(|| program(&mut random)).find(|steps| fails(steps).is_some()).expect("some program fails");
        let (smallest, _) = shrink(steps, breach("", ""), fails);
        assert_eq!(smallest.len(), 2);
        let is_small = |step: &Step| match &step.act {
            Act::Commit { checks, writes } => checks.is_empty() && writes.len() == 1,
            Act::Get(keys) => keys.len() == 2,
            Act::Scan { .. } | Act::ScanAll { .. } => false,
        };
        assert!(smallest.iter().all(is_small), "{smallest:?}");
    }
}
