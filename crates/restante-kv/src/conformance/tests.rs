//! Stores that are wrong on purpose: each must be caught by a trial made for its fault.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{TRIALS, block_on, failures};
use crate::{
    AtomicKv, BoxFuture, Committed, Expect, Key, KeyRange, Limits, MemoryKv, Mutation, Page, Snapshot, StoreError, StoreTime,
    Txn, Version,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    FirstCheckOnly,
    WrittenKeysOnly,
    FirstWriteDespiteConflict,
    FirstOfDuplicates,
    EmptyTxnAccepted,
    VersionsOf64Bits,
    VersionsComeBack,
    EmptyIsAbsent,
    KeysTrimmed,
    AnswersSorted,
    PageIsTheEnd,
    EndIncluded,
    LimitOf0,
    OneByteMore,
    OneKeyMore,
    ClockRunsBackwards,
    Torn,
    CheckedBeforehand,
}

/// The right store with one fault.
struct Mutant {
    fault: Fault,
    kv: MemoryKv,
}

impl Mutant {
    fn new(fault: Fault) -> Self {
        let ms = AtomicU64::new(1_000_000);
        let step = if fault == Fault::ClockRunsBackwards { u64::MAX } else { 1 };
        let limits = match fault {
            Fault::OneByteMore => Limits { value_bytes_max: Limits::FLOOR.value_bytes_max + 1, ..Limits::FLOOR },
            Fault::OneKeyMore => Limits { get_keys_max: Limits::FLOOR.get_keys_max + 1, ..Limits::FLOOR },
            _ => Limits::FLOOR,
        };
        let clock = move || StoreTime::from_ms(ms.fetch_add(step, Ordering::Relaxed));
        Self { fault, kv: MemoryKv::new(limits, Arc::new(clock)) }
    }

    fn key(&self, key: Key) -> Key {
        match (self.fault, key.as_bytes()) {
            (Fault::KeysTrimmed, [trimmed @ .., 0]) => Key::from(trimmed),
            _ => key,
        }
    }

    async fn conflict(&self, txn: &Txn) -> Result<(), StoreError> {
        let checks = Txn { checks: txn.checks.clone(), writes: vec![] };
        if checks.checks.is_empty() { Ok(()) } else { self.kv.cas_many(checks).await.map(|_| ()) }
    }

    async fn commit(&self, mut txn: Txn) -> Result<Committed, StoreError> {
        txn.writes.iter_mut().for_each(|write| write.key = self.key(write.key.clone()));
        txn.checks.iter_mut().for_each(|check| check.key = self.key(check.key.clone()));
        match self.fault {
            Fault::FirstCheckOnly => txn.checks.truncate(1),
            Fault::WrittenKeysOnly if !txn.writes.is_empty() => {
                txn.checks.retain(|check| txn.writes.iter().any(|write| write.key == check.key));
            }
            Fault::FirstWriteDespiteConflict if txn.writes.len() > 1 && self.conflict(&txn).await.is_err() => {
                self.kv.cas_many(Txn { checks: vec![], writes: vec![txn.writes[0].clone()] }).await?;
            }
            Fault::FirstOfDuplicates => {
                let mut seen = HashSet::new();
                txn.writes.retain(|write| seen.insert(write.key.clone()));
            }
            Fault::EmptyTxnAccepted if txn == Txn::default() => return Ok(Committed { version: Version::from_raw(0) }),
            Fault::VersionsOf64Bits => {
                for check in &mut txn.checks {
                    if let Expect::Version(version) = check.expect {
                        check.expect = Expect::Version(Version::from_raw(version.to_raw() & u128::from(u64::MAX)));
                    }
                }
            }
            Fault::EmptyIsAbsent => {
                for write in &mut txn.writes {
                    if matches!(&write.mutation, Mutation::Put(value) if value.is_empty()) {
                        write.mutation = Mutation::Delete;
                    }
                }
            }
            Fault::CheckedBeforehand => {
                self.conflict(&txn).await?;
                std::thread::sleep(Duration::from_micros(50));
                txn.checks.clear();
            }
            _ => {}
        }
        let mut committed = self.kv.cas_many(txn).await?;
        if self.fault == Fault::VersionsComeBack {
            committed.version = Version::from_raw(committed.version.to_raw() % 3);
        }
        Ok(committed)
    }
}

impl AtomicKv for Mutant {
    fn limits(&self) -> Limits {
        Limits::FLOOR
    }

    fn get_many(&self, mut keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            keys.iter_mut().for_each(|key| *key = self.key(key.clone()));
            if self.fault == Fault::AnswersSorted {
                keys.sort();
            }
            if self.fault != Fault::Torn {
                return self.kv.get_many(keys).await;
            }
            let mut snapshot = Snapshot { values: vec![], at: None };
            for key in keys {
                let one = self.kv.get_many(vec![key]).await?;
                snapshot.at = one.at;
                snapshot.values.extend(one.values);
                std::thread::sleep(Duration::from_micros(50));
            }
            Ok(snapshot)
        })
    }

    fn scan(&self, mut range: KeyRange, mut limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            if self.fault == Fault::LimitOf0 {
                limit = limit.max(1);
            }
            if self.fault == Fault::EndIncluded {
                range.end = range.end.map(|end| Key::from([end.as_bytes(), b"\0"].concat()));
            }
            let mut page = self.kv.scan(range, limit).await?;
            if self.fault == Fault::PageIsTheEnd {
                page.next = None;
            }
            Ok(page)
        })
    }

    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(self.commit(txn))
    }
}

#[test]
fn every_fault_is_caught_by_the_trial_made_for_it() {
    for (fault, trial) in [
        (Fault::FirstCheckOnly, "all_or_nothing_whichever_check_fails"),
        (Fault::WrittenKeysOnly, "a_check_only_key_blocks_the_writes"),
        (Fault::FirstWriteDespiteConflict, "all_or_nothing_whichever_check_fails"),
        (Fault::FirstOfDuplicates, "a_key_twice_is_refused"),
        (Fault::EmptyTxnAccepted, "an_empty_transaction_is_refused"),
        (Fault::VersionsOf64Bits, "a_version_from_elsewhere_conflicts"),
        (Fault::VersionsComeBack, "every_put_changes_the_version"),
        (Fault::EmptyIsAbsent, "an_empty_value_is_not_absence"),
        (Fault::KeysTrimmed, "similar_keys_are_different_keys"),
        (Fault::AnswersSorted, "answers_stand_in_request_order"),
        (Fault::PageIsTheEnd, "every_limit_gives_the_same_records"),
        (Fault::EndIncluded, "the_end_is_not_in_the_range"),
        (Fault::LimitOf0, "a_limit_of_0_is_refused"),
        (Fault::OneByteMore, "the_longest_value_works_and_one_more_byte_does_not"),
        (Fault::OneKeyMore, "the_most_keys_are_read_and_one_more_is_not"),
        (Fault::ClockRunsBackwards, "the_clock_does_not_run_backwards"),
        (Fault::Torn, "no_snapshot_or_page_is_torn"),
        (Fault::CheckedBeforehand, "no_increment_is_lost"),
    ] {
        let failed: Vec<&str> = failures(|_| Mutant::new(fault)).into_iter().map(|failure| failure.name).collect();
        assert!(failed.contains(&trial), "{fault:?} is not caught by {trial}, only by {failed:?}");
    }
}

#[test]
fn trials_have_names_of_their_own() {
    let names: HashSet<&str> = TRIALS.iter().map(|trial| trial.name).collect();
    assert_eq!(names.len(), TRIALS.len());
    assert!(names.contains("one_of_64_creators_wins"));
}

#[test]
fn waiting_without_a_runtime_ends_when_woken_from_elsewhere() {
    let mut polls = 0;
    let future = std::future::poll_fn(|context| {
        polls += 1;
        if polls > 1 {
            return std::task::Poll::Ready(polls);
        }
        let waker = context.waker().clone();
        std::thread::spawn(move || waker.wake());
        std::task::Poll::Pending
    });
    assert!(block_on(future) > 1);
}
