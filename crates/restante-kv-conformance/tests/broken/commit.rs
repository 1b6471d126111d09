//! Faults of transactions.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use restante_kv::{
    AtomicKv, Check, Committed, Expect, Guard, Key, KeyRange, Limits, Mutation, StoreError, Txn, Value, Version, Write,
};

use super::{Broken, Fault};

const A_WHILE: Duration = Duration::from_micros(50);

fn conflict() -> StoreError {
    StoreError::Conflict { failed: vec![] }
}

fn blind(key: &Key, value: &Value) -> Write {
    Write { key: key.clone(), mutation: Mutation::Put(value.clone()), guard: Guard::Idempotent }
}

/// Applies, blindly and late, a transaction whose future was dropped.
struct Late<'a> {
    broken: &'a Broken,
    txn: Option<Txn>,
}

impl Drop for Late<'_> {
    fn drop(&mut self) {
        if let Some(txn) = self.txn.take() {
            self.broken.state().late.push(Txn { checks: vec![], ..txn });
        }
    }
}

/// Pending once.
pub(super) async fn later() {
    let mut is_first = true;
    std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::take(&mut is_first) { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
}

impl Broken {
    pub(super) fn forget(&self) {
        let all: Vec<Key> = self.shared.kv.model().iter().map(|(key, _)| key.clone()).collect();
        for chunk in all.chunks(100) {
            let delete = |key: &Key| Write { key: key.clone(), mutation: Mutation::Delete, guard: Guard::Idempotent };
            let _ = self.plain(Txn { checks: vec![], writes: chunk.iter().map(delete).collect() });
        }
    }

    /// What the model says.
    pub(super) fn plain(&self, txn: Txn) -> Result<Committed, StoreError> {
        restante_kv_conformance::block_on(self.shared.kv.cas_many(txn))
    }

    fn check_alone(&self, txn: &Txn) -> Result<(), StoreError> {
        if txn.checks.is_empty() { Ok(()) } else { self.plain(Txn { checks: txn.checks.clone(), writes: vec![] }).map(|_| ()) }
    }

    fn is_there(&self, key: &Key) -> bool {
        self.shared.kv.model().get(key).is_some()
    }

    pub(super) async fn commit(&self, mut txn: Txn) -> Result<Committed, StoreError> {
        txn.writes.iter_mut().for_each(|write| write.key = self.fault.key(write.key.clone()));
        txn.checks.iter_mut().for_each(|check| check.key = self.fault.key(check.key.clone()));
        match self.fault {
            Fault::VersionsOfAKey | Fault::VersionsOfAHandle | Fault::VersionsOfTheBytes => return self.named(txn),
            Fault::OppositeOrdersWait => self.wait_for_opposites(&txn).await,
            Fault::ReadersHoldUpWriters => {
                while self.state().readers > 0 {
                    later().await;
                    thread::sleep(A_WHILE);
                }
            }
            Fault::HalfWhenDropped if txn.writes.len() > 1 && self.check_alone(&txn).is_ok() => {
                self.plain(Txn { checks: vec![], writes: vec![txn.writes[0].clone()] })?;
                later().await;
                return self.plain(Txn { checks: vec![], writes: txn.writes });
            }
            Fault::LateWithoutChecks => return self.late(txn).await,
            Fault::WritesOneByOne if self.check_alone(&txn).is_ok() && !txn.writes.is_empty() => {
                let mut answer = Err(conflict());
                for write in txn.writes {
                    answer = self.plain(Txn { checks: vec![], writes: vec![write] });
                    thread::sleep(A_WHILE);
                }
                return answer;
            }
            _ => self.change(&mut txn)?,
        }
        if matches!(self.fault, Fault::OldReads | Fault::ReadsGoBackwards) {
            self.state().before = Some(self.shared.kv.model());
        }
        let has_writes = !txn.writes.is_empty();
        let checks = txn.checks.len();
        let answer = self.plain(txn);
        *self.seen.lock().expect("nobody panics while holding this") = Some(self.shared.kv.model());
        self.change_answer(answer, has_writes, checks)
    }

    fn change(&self, txn: &mut Txn) -> Result<(), StoreError> {
        let written: HashSet<Key> = txn.writes.iter().map(|write| write.key.clone()).collect();
        let deleted: HashSet<Key> =
            txn.writes.iter().filter(|write| write.mutation == Mutation::Delete).map(|write| write.key.clone()).collect();
        match self.fault {
            Fault::FirstCheckOnly => txn.checks.truncate(1),
            Fault::CheckOnlyKeysIgnored if !written.is_empty() => txn.checks.retain(|check| written.contains(&check.key)),
            Fault::AbsenceIgnored => {
                txn.checks.retain(|check| check.expect != Expect::Absent || written.is_empty());
            }
            Fault::VersionOfAbsentHolds => {
                let holds = |check: &Check| check.expect != Expect::Absent && !self.is_there(&check.key);
                txn.checks.retain(|check| !holds(check));
            }
            Fault::FirstWriteDespiteConflict if txn.writes.len() > 1 && self.check_alone(txn).is_err() => {
                self.plain(Txn { checks: vec![], writes: vec![txn.writes[0].clone()] })?;
            }
            Fault::DirtyThenRolledBack if self.check_alone(txn).is_err() => {
                let model = self.shared.kv.model();
                let old = txn.writes.iter().filter_map(|write| Some(blind(&write.key, &model.get(&write.key)?.value)));
                let writes: Vec<Write> = old.collect();
                if !writes.is_empty() {
                    self.plain(Txn { checks: vec![], writes })?;
                }
            }
            Fault::ConfirmsAnything if txn.writes.is_empty() && !txn.checks.is_empty() => txn.checks.truncate(0),
            Fault::CheckedKeysTouched => {
                let model = self.shared.kv.model();
                let only = txn.checks.iter().filter(|check| !written.contains(&check.key));
                let touched = only.filter_map(|check| Some(blind(&check.key, &model.get(&check.key)?.value)));
                let touched: Vec<Write> = touched.collect();
                txn.writes.extend(touched);
            }
            Fault::DeleteOfAbsentRefused if deleted.iter().any(|key| !self.is_there(key)) => return Err(conflict()),
            Fault::DeletesUnchecked => txn.checks.retain(|check| !deleted.contains(&check.key) || check.expect == Expect::Absent),
            Fault::DeletesBesidePutsForgotten if deleted.len() < written.len() => {
                txn.writes.retain(|write| write.mutation != Mutation::Delete);
            }
            Fault::FirstOfDuplicates => {
                let mut seen = HashSet::new();
                txn.writes.retain(|write| seen.insert(write.key.clone()));
            }
            Fault::CheckedBeforehand => {
                self.check_alone(txn)?;
                thread::sleep(A_WHILE);
                if !txn.writes.is_empty() {
                    txn.checks.clear();
                }
            }
            Fault::ConflictSpreads => {
                let is_conflict = self.check_alone(txn).is_err();
                if std::mem::replace(&mut self.state().conflicted, is_conflict) {
                    return Err(conflict());
                }
            }
            Fault::PutTouchesNeighbour => {
                let model = self.shared.kv.model();
                let before = txn.writes.first().and_then(|first| model.iter().take_while(|(key, _)| **key < first.key).last());
                if let Some((key, record)) = before.filter(|(key, _)| !written.contains(*key)) {
                    txn.writes.push(blind(key, &record.value));
                }
            }
            Fault::LaterHandlesStarve if self.handle > 3 && !txn.checks.is_empty() => return Err(conflict()),
            Fault::VersionsOf64Bits => {
                for check in &mut txn.checks {
                    if let Expect::Version(version) = check.expect {
                        check.expect = Expect::Version(Version::from_raw(version.to_raw() & u128::from(u64::MAX)));
                    }
                }
            }
            Fault::EmptyIsAbsent | Fault::ValuesAreText => {
                for write in &mut txn.writes {
                    let Mutation::Put(value) = &write.mutation else { continue };
                    if self.is(Fault::ValuesAreText) {
                        let mut text = String::from_utf8_lossy(value.as_bytes()).into_owned().into_bytes();
                        text.truncate(Limits::FLOOR.value_bytes_max);
                        write.mutation = Mutation::Put(Value::from(text));
                    } else if value.is_empty() {
                        write.mutation = Mutation::Delete;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn change_answer(
        &self,
        answer: Result<Committed, StoreError>,
        has_writes: bool,
        checks: usize,
    ) -> Result<Committed, StoreError> {
        match (self.fault, answer) {
            (Fault::EmptyTxnAccepted | Fault::ConfirmsAnything, Err(StoreError::InvalidRequest(_))) if !has_writes => {
                Ok(Committed { version: Version::from_raw(0) })
            }
            (Fault::ConflictNamesAll, Err(StoreError::Conflict { .. })) => {
                Err(StoreError::Conflict { failed: (0..checks).collect() })
            }
            (Fault::AnswersAnotherVersion, Ok(committed)) => {
                Ok(Committed { version: Version::from_raw(committed.version.to_raw() + 1) })
            }
            (Fault::CommittedAsConflict, Ok(_)) if has_writes && self.call() % 7 == 6 => Err(conflict()),
            (_, answer) => answer,
        }
    }

    /// Waits for ever when a transaction with the same keys in another order is under way.
    async fn wait_for_opposites(&self, txn: &Txn) {
        let Some(first) = txn.checks.first().filter(|_| txn.checks.len() > 1).map(|check| check.key.clone()) else { return };
        let is_met = |keys: &std::collections::BTreeSet<Key>| {
            txn.checks.iter().any(|check| check.key != first && keys.contains(&check.key))
        };
        self.state().under_way.insert(first.clone());
        for _ in 0..20 {
            thread::sleep(A_WHILE);
            if is_met(&self.state().under_way) {
                std::future::pending::<()>().await;
            }
        }
        self.state().under_way.remove(&first);
    }

    async fn late(&self, txn: Txn) -> Result<Committed, StoreError> {
        let mut late = Late { broken: self, txn: Some(txn.clone()) };
        later().await;
        late.txn = None;
        let answer = self.plain(txn);
        let waiting = std::mem::take(&mut self.state().late);
        waiting.into_iter().for_each(|txn| drop(self.plain(txn)));
        answer
    }

    /// Counts what this handle gave.
    pub(super) fn next_of_handle(&self) -> u64 {
        1 + self.given.fetch_add(1, Ordering::Relaxed)
    }

    /// The first pages of the model, for faults of scans.
    pub(super) fn all_of(&self, range: &KeyRange) -> Vec<(Key, restante_kv::Versioned)> {
        let model = self.shared.kv.model();
        model.iter().filter(|(key, _)| range.contains(key)).map(|(key, record)| (key.clone(), record.clone())).collect()
    }
}
