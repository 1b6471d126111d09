//! Collects the reads, checks and writes of one plan.

use restante_kv::{Check, Expect, Guard, Key, Mutation, StoreTime, Txn, Version, Versioned, Write};

use super::{Env, Outcome, Plan, Stop, View};
use crate::atoms::EntryId;
use crate::effect::Effect;
use crate::record::{Class, Counters, DueRow, Entry, Pointer, Record};

/// Predicates that, once true of a key, are true for ever: the only ones a `Planner::peek` may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stable {
    /// A dead letter with this delivery's token exists: written once, by the settle that dropped it.
    DeadLetterWritten,
    /// The stage record of a send whose chunks exist is gone: published or collected, never written again.
    StageGone,
    /// A send whose stage is gone has no intent and no quarantined one, read in one snapshot with the stage: whatever it was,
    /// it is expanded, dropped, or was never accepted, and never gets another.
    IntentGone,
}

/// Collects reads, checks and writes of one plan.
pub(crate) struct Planner<'p> {
    pub(crate) env: &'p Env,
    pub(crate) attempted: bool,
    view: &'p View,
    checks: Vec<Check>,
    writes: Vec<Write>,
    effects: Vec<Effect>,
    delta: Counters,
    counter_slot: u64,
    snapshot_only: bool,
}

impl<'p> Planner<'p> {
    pub(super) fn new(env: &'p Env, view: &'p View, attempted: bool) -> Self {
        Self {
            env,
            attempted,
            view,
            checks: Vec::new(),
            writes: Vec::new(),
            effects: Vec::new(),
            delta: Counters::default(),
            counter_slot: 0,
            snapshot_only: false,
        }
    }

    /// Store time of the snapshot.
    pub(crate) fn now(&self) -> StoreTime {
        self.view.at
    }

    /// Asks for all of `keys` at once, so that one round of reading is the normal case.
    pub(crate) fn need(&self, keys: &[Key]) -> Result<(), Stop> {
        let missing: Vec<Key> = keys.iter().filter(|key| self.view.get(key).is_none()).cloned().collect();
        if missing.is_empty() { Ok(()) } else { Err(Stop::Need(missing)) }
    }

    fn raw(&self, key: &Key) -> Result<Option<&'p Versioned>, Stop> {
        match self.view.get(key) {
            Some(record) => Ok(record.as_ref()),
            None => Err(Stop::Need(vec![key.clone()])),
        }
    }

    fn decode<R: Record>(key: &Key, record: Option<&Versioned>) -> Result<Option<R>, Stop> {
        record.map(|found| R::decode(&found.value)).transpose().map_err(|why| Stop::Inconsistent { key: key.clone(), why })
    }

    /// Reads bytes that the commit will check.
    pub(crate) fn guard_raw(&mut self, key: &Key) -> Result<Option<&'p Versioned>, Stop> {
        let record = self.raw(key)?;
        if !self.checks.iter().any(|check| check.key == *key) {
            let expect = record.map_or(Expect::Absent, |found| Expect::Version(found.version));
            self.checks.push(Check { key: key.clone(), expect });
        }
        Ok(record)
    }

    /// Reads a record that the commit will check.
    pub(crate) fn guard<R: Record>(&mut self, key: &Key) -> Result<Option<R>, Stop> {
        let record = self.guard_raw(key)?;
        Self::decode(key, record)
    }

    /// Reads a record without a check, for a stable predicate.
    pub(crate) fn peek<R: Record>(&self, key: &Key, _predicate: Stable) -> Result<Option<R>, Stop> {
        Self::decode(key, self.raw(key)?)
    }

    /// Reads a record without a check of its own: whoever writes it checks and writes `guard`, which this plan guards too.
    pub(crate) fn under<R: Record>(&self, key: &Key, guard: &Key) -> Result<Option<R>, Stop> {
        debug_assert!(self.checks.iter().any(|check| check.key == *guard), "{guard:?} is not guarded");
        Self::decode(key, self.raw(key)?)
    }

    /// Reads a record without a check, for an answer that commits nothing.
    pub(crate) fn snapshot<R: Record>(&mut self, key: &Key) -> Result<Option<R>, Stop> {
        self.snapshot_only = true;
        Self::decode(key, self.raw(key)?)
    }

    /// Reads a record without a check, as a scan would have shown it: it proves nothing and may only steer idempotent puts.
    pub(crate) fn hint<R: Record>(&self, key: &Key) -> Result<Option<R>, Stop> {
        Ok(self.raw(key)?.and_then(|found| R::decode(&found.value).ok()))
    }

    /// The version of a record that was read.
    pub(crate) fn version(&self, key: &Key) -> Option<Version> {
        self.view.get(key)?.as_ref().map(|found| found.version)
    }

    fn write(&mut self, key: Key, mutation: Mutation, guard: Guard) {
        match self.writes.iter_mut().find(|write| write.key == key) {
            Some(write) => (write.mutation, write.guard) = (mutation, guard),
            None => self.writes.push(Write { key, mutation, guard }),
        }
    }

    pub(crate) fn put<R: Record>(&mut self, key: Key, record: &R, guard: Guard) {
        self.write(key, Mutation::Put(record.encode()), guard);
    }

    pub(crate) fn delete(&mut self, key: Key, guard: Guard) {
        self.write(key, Mutation::Delete, guard);
    }

    /// Whether the plan writes anything so far.
    pub(crate) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Adds to the counters; the change is written to `slot` with the rest.
    pub(crate) fn count(&mut self, slot: u64, delta: Counters) {
        self.counter_slot = slot;
        self.delta = self.delta.plus(delta);
    }

    /// Counts an entry that is now of another class.
    pub(crate) fn recount(&mut self, slot: u64, before: Class, after: Class) {
        self.count(slot, after.counted().minus(before.counted()));
    }

    /// Puts the due row and the pointer that make `entry` discoverable at its `vest_at`.
    pub(crate) fn put_due(&mut self, id: EntryId, entry: &Entry, guard: Guard) {
        self.put_due_row(id, entry, guard);
        self.put_pointer(&entry.destination, entry.vest_at);
    }

    /// Puts the due row of an entry that nobody needs to find before the pointer leads to it.
    pub(crate) fn put_due_row(&mut self, id: EntryId, entry: &Entry, guard: Guard) {
        let due = self.env.keys.due(&entry.destination, entry.vest_at, id);
        self.put(due, &DueRow { lane: entry.lane.clone() }, guard);
    }

    /// Puts the pointer by which a destination is looked at from `at` on.
    pub(crate) fn put_pointer(&mut self, destination: &str, at: StoreTime) {
        self.put(self.env.keys.pointer(destination, at), &Pointer {}, Guard::Idempotent);
    }

    /// Removes the due row that stands for `entry` as it was read.
    pub(crate) fn delete_due(&mut self, id: EntryId, entry: &Entry, guard: Guard) {
        self.delete(self.env.keys.due(&entry.destination, entry.vest_at, id), guard);
    }

    /// Writes an entry back that was read (and checked) as `before`, moving its due row if its instant changed.
    pub(crate) fn update_entry(&mut self, key: &Key, id: EntryId, before: &Entry, after: &Entry) {
        self.put(key.clone(), after, Guard::Checked);
        if before.active && before.vest_at == after.vest_at {
            return;
        }
        if before.active {
            self.delete_due(id, before, Guard::Under(key.clone()));
        }
        self.put_due(id, after, Guard::Under(key.clone()));
    }

    pub(super) fn finish(mut self, outcome: Outcome) -> Result<Plan, Stop> {
        if self.delta != Counters::default() {
            let key = self.env.keys.counters(self.counter_slot);
            let counters: Counters = self.guard(&key)?.unwrap_or_default();
            self.put(key, &counters.plus(self.delta), Guard::Checked);
        }
        debug_assert!(!self.snapshot_only || self.writes.is_empty(), "a plan that writes must guard what it read");
        if self.writes.is_empty() {
            // Nothing to commit: the answer is the snapshot, which was read at one point in time.
            self.checks.clear();
        }
        Ok(Plan { txn: Txn { checks: self.checks, writes: self.writes }, outcome, effects: self.effects })
    }
}
