//! Isolation between callers that run at once.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::bed::{Bed, absent, bytes, is, put, put_blind};
use crate::{Check, Committed, Key, StoreError, Versioned, Write};

/// Runs `caller` in `count` threads that start together; answers in thread order.
fn at_once<T: Send>(count: usize, caller: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(count);
    let run = |i| {
        start.wait();
        caller(i)
    };
    thread::scope(|scope| {
        let callers: Vec<_> = (0..count).map(|i| scope.spawn(move || run(i))).collect();
        callers.into_iter().map(|caller| caller.join().expect("a caller does not panic")).collect()
    })
}

fn won(answer: Result<Committed, StoreError>) -> bool {
    match answer {
        Ok(_) => true,
        Err(StoreError::Conflict { .. }) => false,
        Err(other) => panic!("expected a commit or a conflict, got {other}"),
    }
}

pub(super) fn one_of_64_creators_wins(bed: &Bed<'_>) {
    let key = bed.key("k");
    let answers = at_once(64, |i| won(bed.commit(vec![absent(&key)], vec![put(&key, [i as u8])])));
    let winners: Vec<usize> = (0..64).filter(|i| answers[*i]).collect();
    assert_eq!(winners.len(), 1, "winners: {winners:?}");
    assert_eq!(bytes(bed.get(&key)), [winners[0] as u8]);
}

pub(super) fn no_increment_is_lost(bed: &Bed<'_>) {
    const CALLERS: usize = 8;
    const INCREMENTS: u64 = 25;
    let key = bed.key("k");
    let number = |record: Versioned| u64::from_be_bytes(record.value.as_bytes().try_into().expect("8 bytes"));
    bed.put(&key, 0u64.to_be_bytes());
    at_once(CALLERS, |_| {
        let mut done = 0;
        while done < INCREMENTS {
            let record = bed.get(&key).expect("there");
            let check = is(&key, record.version);
            done += u64::from(won(bed.commit(vec![check], vec![put(&key, (number(record) + 1).to_be_bytes())])));
        }
    });
    assert_eq!(number(bed.get(&key).expect("there")), CALLERS as u64 * INCREMENTS);
}

/// Two callers each check both keys and write their own: at most one may commit.
fn assert_no_skew(bed: &Bed<'_>, round: u8, arm: impl Fn(&Key) -> Check) {
    let keys = [bed.key([round, 0]), bed.key([round, 1])];
    let checks: Vec<Check> = keys.iter().map(arm).collect();
    let write = |i: usize| -> Vec<Write> { vec![put(&keys[i], "mine")] };
    let answers = at_once(2, |i| won(bed.commit(checks.clone(), write(i))));
    assert_eq!(answers.iter().filter(|won| **won).count(), 1, "round {round}");
}

pub(super) fn check_only_versions_prevent_write_skew(bed: &Bed<'_>) {
    (0..50).for_each(|round| assert_no_skew(bed, round, |key| is(key, bed.put(key, "armed"))));
}

pub(super) fn check_only_absences_prevent_write_skew(bed: &Bed<'_>) {
    (0..50).for_each(|round| assert_no_skew(bed, round, absent));
}

pub(super) fn no_snapshot_or_page_is_torn(bed: &Bed<'_>) {
    const READERS: usize = 2;
    /// Counts a reader that is done, or that found something and panics.
    struct Done<'a>(&'a AtomicUsize);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Release);
        }
    }
    let keys: Vec<Key> = (0..4).map(|i| bed.key([i])).collect();
    let put_all = |i: u32| bed.commit(vec![], keys.iter().map(|key| put_blind(key, i.to_be_bytes())).collect());
    put_all(0).expect("the first commit");
    let done = AtomicUsize::new(0);
    let write_meanwhile = || {
        (1..).take_while(|_| done.load(Ordering::Acquire) < READERS).for_each(|i| {
            put_all(i).expect("a put without checks commits");
        });
    };
    let read = || {
        let _done = Done(&done);
        let mut latest = Vec::new();
        for _ in 0..100 {
            let snapshot = bed.snapshot(&keys.iter().collect::<Vec<_>>()).values;
            let page = bed.page(&bed.range(), keys.len()).entries;
            // A store may answer with shorter pages; within a page, everything is from one commit.
            for records in [snapshot.into_iter().flatten().collect(), page.into_iter().map(|(_, r)| r).collect::<Vec<_>>()] {
                assert!(records.windows(2).all(|pair| pair[0] == pair[1]), "torn: {records:?}");
                let value = bytes(records.into_iter().next());
                assert!(value >= latest, "{value:?} read after {latest:?}");
                latest = value;
            }
        }
    };
    at_once(1 + READERS, |caller| if caller == 0 { write_meanwhile() } else { read() });
}
