//! Random programs: the store answers as the model does, whatever was done before.

use proptest::prelude::*;
use restante_kv::{
    AtomicKv, Check, Expect, Guard, Key, KeyRange, Model, Mutation, StoreError, Txn, Value, Version, Versioned, Write,
};
use restante_kv_conformance::block_on;

use super::{Temp, assert_sound, key};

/// Keys that are near each other in order, and empty.
const KEYS: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\xFF", b"b", b"\xFF\xFF"];

#[derive(Clone, Debug)]
enum Believed {
    Absent,
    /// The version that the key has now.
    Current,
    /// A version that some transaction had.
    Past(prop::sample::Index),
    Foreign,
}

#[derive(Clone, Debug)]
enum Step {
    Commit { checks: Vec<(usize, Believed)>, writes: Vec<(usize, Option<Vec<u8>>)> },
    Get(Vec<usize>),
    Scan { start: usize, end: Option<usize>, limit: usize },
    Reopen,
}

fn a_key() -> std::ops::Range<usize> {
    0..KEYS.len()
}

fn believed() -> impl Strategy<Value = Believed> {
    prop_oneof![
        3 => Just(Believed::Current),
        2 => Just(Believed::Absent),
        1 => any::<prop::sample::Index>().prop_map(Believed::Past),
        1 => Just(Believed::Foreign),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![1 => Just(None), 3 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Some)];
    let checks = prop::collection::vec((a_key(), believed()), 0..3);
    let writes = prop::collection::vec((a_key(), value), 0..4);
    prop_oneof![
        12 => (checks, writes).prop_map(|(checks, writes)| Step::Commit { checks, writes }),
        3 => prop::collection::vec(a_key(), 0..5).prop_map(Step::Get),
        5 => (a_key(), prop::option::of(a_key()), 0usize..5).prop_map(|(start, end, limit)| Step::Scan { start, end, limit }),
        1 => Just(Step::Reopen),
    ]
}

/// The model, the store, and which of their versions are the same.
struct Pair {
    model: Model,
    temp: Temp,
    history: Vec<(Version, Version)>,
}

impl Pair {
    /// The store's version for one of the model.
    fn translated(&self, version: Version) -> Version {
        self.history.iter().find(|(model, _)| *model == version).map_or(version, |(_, store)| *store)
    }

    fn record(&self, record: Versioned) -> Versioned {
        Versioned { version: self.translated(record.version), ..record }
    }

    /// The transaction as the model and as the store is asked for it.
    fn txns(&self, checks: &[(usize, Believed)], writes: &[(usize, Option<Vec<u8>>)]) -> (Txn, Txn) {
        let foreign = Version::from_raw(u128::MAX);
        let expect = |i: usize, believed: &Believed| match believed {
            Believed::Absent => Expect::Absent,
            Believed::Current => self.model.get(&key(KEYS[i])).map_or(Expect::Absent, |record| Expect::Version(record.version)),
            Believed::Past(_) if self.history.is_empty() => Expect::Version(foreign),
            Believed::Past(index) => Expect::Version(index.get(&self.history).0),
            Believed::Foreign => Expect::Version(foreign),
        };
        let checks: Vec<Check> = checks.iter().map(|(i, b)| Check { key: key(KEYS[*i]), expect: expect(*i, b) }).collect();
        let mutation = |value: &Option<Vec<u8>>| value.clone().map_or(Mutation::Delete, |v| Mutation::Put(Value::from(v)));
        let writes: Vec<Write> = writes
            .iter()
            .map(|(i, value)| Write { key: key(KEYS[*i]), mutation: mutation(value), guard: Guard::Checked })
            .collect();
        let translate = |check: &Check| match check.expect {
            Expect::Absent => check.clone(),
            Expect::Version(version) => Check { key: check.key.clone(), expect: Expect::Version(self.translated(version)) },
        };
        let translated = Txn { checks: checks.iter().map(translate).collect(), writes: writes.clone() };
        (Txn { checks, writes }, translated)
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Commit { checks, writes } => {
                let (model, store) = self.txns(&checks, &writes);
                let is_writing = !model.writes.is_empty();
                match (self.model.commit(&model), block_on(self.temp.cas_many(store))) {
                    (Ok(model), Ok(store)) if is_writing => self.history.push((model.version, store.version)),
                    (Ok(_), Ok(_)) => {}
                    (model, store) => prop_assert_eq!(model, store),
                }
            }
            Step::Get(keys) => {
                let keys: Vec<Key> = keys.into_iter().map(|i| key(KEYS[i])).collect();
                let expected: Vec<_> =
                    self.model.get_many(&keys).unwrap().into_iter().map(|r| r.map(|r| self.record(r))).collect();
                prop_assert_eq!(block_on(self.temp.get_many(keys)).unwrap().values, expected);
            }
            Step::Scan { start, end, limit } => {
                let range = KeyRange { start: key(KEYS[start]), end: end.map(|end| key(KEYS[end])) };
                let answer = block_on(self.temp.scan(range.clone(), limit)).map(|page| (page.entries, page.next));
                let expected = self.model.scan(&range, limit).map(|page| {
                    let entries: Vec<_> = page.entries.into_iter().map(|(key, record)| (key, self.record(record))).collect();
                    (entries, page.next)
                });
                prop_assert_eq!(answer, expected);
            }
            Step::Reopen => {
                self.temp.kv.close();
                self.temp.kv = self.temp.another();
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn store_answers_as_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        let temp = Temp::new();
        let mut pair = Pair { model: Model::new(temp.limits()), temp, history: vec![] };
        for step in steps {
            pair.step(step)?;
        }
        let all: Vec<_> = pair.model.iter().map(|(key, record)| (key.clone(), pair.record(record.clone()))).collect();
        let range = KeyRange { start: key(b""), end: None };
        prop_assert_eq!(block_on(pair.temp.scan(range, 100)).unwrap().entries, all);
        let mut versions: Vec<u128> = pair.history.iter().map(|(_, store)| store.to_raw()).collect();
        versions.sort_unstable();
        versions.dedup();
        prop_assert_eq!(versions.len(), pair.history.len(), "a version came twice");
        assert_sound(&pair.temp.path());
    }
}

#[test]
fn a_refused_request_is_refused_alike() {
    let temp = Temp::new();
    let mut model = Model::new(temp.limits());
    let refused = block_on(temp.cas_many(Txn::default()));
    assert!(matches!(refused, Err(StoreError::InvalidRequest(_))));
    assert_eq!(model.commit(&Txn::default()), refused);
}
