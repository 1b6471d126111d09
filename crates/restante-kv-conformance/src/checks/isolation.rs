//! Isolation: no caller sees, or relies on, half of another's transaction.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use restante_kv::{AtomicKv, Check as Condition, Key, Versioned};

use crate::Check;
use crate::bed::{Bed, absent, is, number, put, put_blind};
use crate::breach::{Breach, Held, ensure, equal, won};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "no-snapshot-is-torn",
        "A read of several keys is from one point in time.",
        "a plan never mixes before and after",
        no_snapshot_is_torn,
    ),
    Check::required(
        "no-page-is-torn",
        "A page is from one point in time.",
        "a sweep never sees an entry without its pointer in one page",
        no_page_is_torn,
    ),
    Check::required(
        "no-intermediate-state-is-seen",
        "What every transaction keeps constant is constant for every reader.",
        "depth is a true sum",
        no_intermediate_state_is_seen,
    ),
    Check::required(
        "reads-do-not-go-backwards",
        "Who read a commit never again reads a state before it, through the same handle or another.",
        "what was seen settled stays settled",
        reads_do_not_go_backwards,
    ),
    Check::required(
        "check-only-versions-prevent-write-skew",
        "Of two transactions that each check a key which the other writes, one commits.",
        "an accept and the closing of the intake do not both win",
        check_only_versions_prevent_write_skew,
    ),
    Check::required(
        "check-only-absences-prevent-write-skew",
        "Of two transactions that each check the absence of what the other creates, one commits.",
        "an operation and its abort do not both win",
        check_only_absences_prevent_write_skew,
    ),
];

/// Counts a reader that is done, or that gave up.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Two readers, each with a handle of its own, read at least `rounds` times and while a writer makes at least as many commits.
fn read_while_writing(
    bed: &Bed,
    rounds: usize,
    write: impl Fn(u64) -> Held + Sync,
    read: impl Fn(&dyn AtomicKv) -> Held + Sync,
) -> Held {
    const READERS: usize = 2;
    let (done, written) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let deadline = bed.deadline();
    let write_meanwhile = || -> Held {
        for i in 1.. {
            if done.load(Ordering::Acquire) == READERS {
                break;
            }
            deadline.check("readers come to an end beside a writer")?;
            write(i)?;
            written.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    };
    let read_all = || -> Held {
        let _done = Done(&done);
        let kv = bed.another()?;
        let mut round = 0;
        while round < rounds || written.load(Ordering::Acquire) < rounds {
            deadline.check("a writer comes on beside readers")?;
            read(&*kv)?;
            round += 1;
        }
        Ok(())
    };
    deadline.at_once(1 + READERS, |caller| if caller == 0 { write_meanwhile() } else { read_all() }).map(|_| ())
}

fn one_commit(what: &str, records: &[Versioned]) -> Held {
    let numbers: Vec<u64> = records.iter().map(number).collect::<Result<_, _>>()?;
    let is_one = records.windows(2).all(|pair| pair[0] == pair[1]);
    ensure(is_one, format!("{what} from one commit"), format!("records of commits {numbers:?}"))
}

fn four_keys(bed: &Bed) -> Result<Vec<Key>, Breach> {
    let keys: Vec<Key> = (0..4).map(|i| bed.key([i])).collect();
    put_all(bed, &keys, 0)?;
    Ok(keys)
}

fn put_all(bed: &Bed, keys: &[Key], i: u64) -> Held {
    let writes = keys.iter().map(|key| put_blind(key, i.to_be_bytes())).collect();
    bed.must("puts without checks", vec![], writes).map(|_| ())
}

fn no_snapshot_is_torn(bed: &Bed) -> Held {
    let keys = four_keys(bed)?;
    read_while_writing(
        bed,
        60,
        |i| put_all(bed, &keys, i),
        |kv| {
            let records: Vec<Versioned> = bed.snapshot_on(kv, &keys)?.values.into_iter().flatten().collect();
            equal("the number of records", records.len(), keys.len())?;
            one_commit("a snapshot", &records)
        },
    )
}

fn no_page_is_torn(bed: &Bed) -> Held {
    let keys = four_keys(bed)?;
    read_while_writing(
        bed,
        60,
        |i| put_all(bed, &keys, i),
        |kv| {
            // A store may answer with a shorter page.
            let page = bed.page_on(kv, &bed.range(), keys.len())?.entries;
            one_commit("a page", &page.into_iter().map(|(_, record)| record).collect::<Vec<_>>())
        },
    )
}

fn no_intermediate_state_is_seen(bed: &Bed) -> Held {
    const TOTAL: u64 = 1000;
    let keys: Vec<Key> = (0..3).map(|i| bed.key([i])).collect();
    for (key, amount) in keys.iter().zip([TOTAL, 0, 0]) {
        bed.put(key, amount.to_be_bytes())?;
    }
    let transfer = |i: u64| -> Held {
        let i = i as usize;
        let (from, to) = (&keys[i % 3], &keys[(i + 1) % 3]);
        let (a, b) = (bed.record(from)?, bed.record(to)?);
        let amount = number(&a)?.div_ceil(2);
        let writes = vec![put(from, (number(&a)? - amount).to_be_bytes()), put(to, (number(&b)? + amount).to_be_bytes())];
        bed.must("only this caller writes", vec![is(from, a.version), is(to, b.version)], writes).map(|_| ())
    };
    read_while_writing(bed, 60, transfer, |kv| {
        let records = bed.snapshot_on(kv, &keys)?.values;
        let amounts: Vec<u64> = records.iter().flatten().map(number).collect::<Result<_, _>>()?;
        ensure(amounts.iter().sum::<u64>() == TOTAL, format!("amounts that sum to {TOTAL}"), format!("{amounts:?}"))
    })
}

fn reads_do_not_go_backwards(bed: &Bed) -> Held {
    let key = bed.key("k");
    bed.put(&key, 0u64.to_be_bytes())?;
    // By hand first: after each commit, some reads through one handle and the other.
    let handles = [bed.kv(), bed.another()?];
    for i in 1..=10u64 {
        bed.put(&key, i.to_be_bytes())?;
        for read in 0..8 {
            let found = bed.get_on(&*handles[read % 2], &key)?.as_ref().map(number).transpose()?;
            equal("the newest commit, read again and again", found, Some(i))?;
        }
    }
    bed.put(&key, 0u64.to_be_bytes())?;
    // The newest commit that any reader saw.
    let newest = AtomicU64::new(0);
    // A mark taken before a read begins must not be undone by it.
    let after = |mark: u64, what: &str, record: Option<&Versioned>| -> Held {
        let found = record.map(number).transpose()?.unwrap_or_default();
        ensure(found >= mark, format!("{what}: commit {mark}, which a reader saw, or later"), format!("commit {found}"))?;
        newest.fetch_max(found, Ordering::AcqRel);
        Ok(())
    };
    read_while_writing(
        bed,
        60,
        |i| bed.put(&key, i.to_be_bytes()).map(|_| ()),
        |kv| {
            let mark = newest.load(Ordering::Acquire);
            after(mark, "a read", bed.get_on(kv, &key)?.as_ref())?;
            let mark = newest.load(Ordering::Acquire);
            after(mark, "a scan", bed.scan_on(kv, &bed.range(), 2)?.first().map(|(_, record)| record))
        },
    )
}

/// Two callers each check both keys and write their own: one commits.
fn no_skew(bed: &Bed, arm: impl Fn(&Key) -> Result<Condition, Breach>) -> Held {
    let handles = [bed.kv(), bed.another()?];
    for round in 0..40u8 {
        let keys = [bed.key([round, 0]), bed.key([round, 1])];
        let checks: Vec<Condition> = keys.iter().map(&arm).collect::<Result<_, _>>()?;
        let answers = bed
            .deadline()
            .at_once(2, |i| won("one of two", &bed.commit_on(&*handles[i], checks.clone(), vec![put(&keys[i], "mine")])?))?;
        let winners = answers.iter().filter(|won| **won).count();
        equal(&format!("commits of two that rule each other out, in round {round}"), winners, 1)?;
    }
    Ok(())
}

fn check_only_versions_prevent_write_skew(bed: &Bed) -> Held {
    no_skew(bed, |key| Ok(is(key, bed.put(key, "armed")?)))
}

fn check_only_absences_prevent_write_skew(bed: &Bed) -> Held {
    no_skew(bed, |key| Ok(absent(key)))
}
