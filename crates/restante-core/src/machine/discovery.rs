//! One pass over the due index: every shard to its end, every due destination, due rows to hand out.
//!
//! Scans are hints. A pass proves "nothing due" only when every range was read to its end ([`PassEnd::proved_empty`]).

use restante_core_derive::VisitAtoms;
use std::collections::VecDeque;
use std::sync::Arc;

use restante_kv::{Key, KeyRange, StoreError, StoreTime, Version, Versioned};

use super::transact::{Transact, TransactStep};
use super::{About, DueHint, Io, LocalTime, Reply};
use crate::atoms::{AtomVisitor, Fence, OwnerId, VisitAtoms};
use crate::plan::{Command, Env, Subject, TidyPointer};
use crate::record::{Destination, DueRow, Record, look_again_at};

/// A due pointer to look behind.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Found {
    key: Key,
    version: Version,
    destination: Arc<str>,
    /// When to look again, if its work is kept back now.
    look_again_at: Option<StoreTime>,
    /// How many deliveries to it may be under way.
    share: usize,
}

/// What the worker has under way.
pub(super) struct Load<'w> {
    /// How many deliveries it can begin.
    pub(super) capacity: usize,
    /// Whether it is at this delivery already.
    pub(super) busy: &'w dyn Fn(&DueHint) -> bool,
    /// How many deliveries to a destination it has under way.
    pub(super) under_way: &'w dyn Fn(&str) -> usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
enum State {
    ScanPointers,
    ReadDestinations,
    ScanDue,
    Tidy(Box<Transact>),
    /// Waiting for capacity before the next scan of due rows.
    Full,
    Ended,
}

/// One pass under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub(super) struct Discovery {
    state: State,
    shards_left: VecDeque<u64>,
    pointers: KeyRange,
    pointers_next: Option<Key>,
    found: VecDeque<Found>,
    due_rows: KeyRange,
    found_due: u64,
    unproved: bool,
    /// Destinations whose share was taken when their turn came.
    crowded: Vec<Arc<str>>,
    next_at: Option<StoreTime>,
    at: StoreTime,
}

/// What a pass came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub(super) struct PassEnd {
    /// Whether every range was read to its end with nothing due.
    pub(super) proved_empty: bool,
    /// Due rows seen.
    pub(super) found_due: u64,
    /// When the earliest known work vests.
    pub(super) next_at: Option<StoreTime>,
    /// The store time that was read last.
    pub(super) at: StoreTime,
    /// Whether the store refused a read.
    pub(super) interrupted: bool,
}

/// What a pass wants next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum DiscoveryStep {
    Do(Io),
    /// Deliver these, then go on with [`Discovery::resume`] once there is capacity.
    Deliver(Vec<DueHint>),
    Ended(PassEnd),
}

/// Pointers read at once, so that their destinations fit one snapshot.
const POINTERS_AT_ONCE: usize = 8;

impl Discovery {
    /// Begins a pass; each owner visits the shards in its own order.
    pub(super) fn begin(env: &Env, owner: OwnerId) -> (Self, DiscoveryStep) {
        let shards = env.keys.pointer_shards();
        let first = u64::from(owner.as_bytes()[0]) % shards;
        let mut shards_left: VecDeque<u64> = (0..shards).map(|n| (first + n) % shards).collect();
        let range = env.keys.pointers(shards_left.pop_front().unwrap_or_default());
        let mut discovery = Self {
            state: State::ScanPointers,
            shards_left,
            due_rows: range.clone(),
            pointers: range,
            pointers_next: None,
            found: VecDeque::new(),
            found_due: 0,
            unproved: false,
            crowded: Vec::new(),
            next_at: None,
            at: StoreTime::default(),
        };
        let step = discovery.scan_pointers();
        (discovery, step)
    }

    pub(super) fn about(&self) -> About {
        let (what, subject) = match &self.state {
            State::Tidy(transact) => return transact.about(),
            State::ScanPointers => ("scan-pointers", Subject::Backlog),
            State::ReadDestinations => ("read-destinations", Subject::Backlog),
            State::ScanDue | State::Full | State::Ended => {
                ("scan-due", self.found.front().map_or(Subject::Backlog, |found| Subject::Destination(found.destination.clone())))
            }
        };
        About { what, subject, fence: Fence::default(), tries: 0 }
    }

    pub(super) fn is_waiting_for_capacity(&self) -> bool {
        self.state == State::Full
    }

    fn scan_pointers(&mut self) -> DiscoveryStep {
        self.state = State::ScanPointers;
        DiscoveryStep::Do(Io::Scan { range: self.pointers.clone(), limit: POINTERS_AT_ONCE })
    }

    pub(super) fn step(&mut self, env: &Env, reply: Reply, load: &Load<'_>, local: LocalTime) -> DiscoveryStep {
        if let Reply::Page { at, .. } = &reply {
            self.at = *at;
        }
        match (&mut self.state, reply) {
            (State::ScanPointers, Reply::Page { result: Ok(page), at, .. }) => {
                self.pointers_next = page.next;
                self.on_pointers(env, page.entries, at)
            }
            (State::ReadDestinations, Reply::Snapshot { result: Ok(records), at }) => {
                self.on_destinations(env, &records, at, load, local)
            }
            (State::ScanDue, Reply::Page { result: Ok(page), at, entropy }) => self.on_due(env, page, at, entropy, load, local),
            (State::Tidy(transact), reply) => {
                let step = transact.step(env, reply, local);
                self.follow_tidy(env, step, load, local)
            }
            (_, Reply::Page { result: Err(error), .. } | Reply::Snapshot { result: Err(error), .. }) => self.interrupted(&error),
            (state, reply) => {
                debug_assert!(false, "discovery in {state:?} cannot use {reply:?}");
                self.end(true)
            }
        }
    }

    fn interrupted(&mut self, _error: &StoreError) -> DiscoveryStep {
        self.unproved = true;
        self.end(true)
    }

    fn end(&mut self, interrupted: bool) -> DiscoveryStep {
        self.state = State::Ended;
        let proved_empty = !self.unproved && !interrupted && self.found_due == 0;
        DiscoveryStep::Ended(PassEnd { proved_empty, interrupted, ..self.so_far() })
    }

    /// What a pass that is cut short came to: it proves nothing.
    pub(super) fn so_far(&self) -> PassEnd {
        PassEnd { proved_empty: false, found_due: self.found_due, next_at: self.next_at, at: self.at, interrupted: false }
    }

    fn note_next(&mut self, at: StoreTime) {
        self.next_at = Some(self.next_at.map_or(at, |known| known.min(at)));
    }

    fn on_pointers(&mut self, env: &Env, entries: Vec<(Key, Versioned)>, at: StoreTime) -> DiscoveryStep {
        for (key, record) in entries {
            let Ok(pointer) = env.keys.read_pointer(&key) else { continue };
            if pointer.bucket_at > at {
                // Buckets ascend: nothing behind this one is due either.
                self.note_next(pointer.bucket_at);
                self.pointers_next = None;
                break;
            }
            let (version, destination) = (record.version, pointer.destination);
            self.found.push_back(Found { key, version, destination, look_again_at: None, share: 0 });
        }
        if self.found.is_empty() {
            return self.next_pointers(env);
        }
        self.state = State::ReadDestinations;
        DiscoveryStep::Do(Io::Read(self.found.iter().map(|found| env.keys.destination(&found.destination)).collect()))
    }

    /// The next page of this shard, the next shard, or the end of the pass.
    fn next_pointers(&mut self, env: &Env) -> DiscoveryStep {
        if let Some(next) = self.pointers_next.take() {
            self.pointers.start = next;
            return self.scan_pointers();
        }
        match self.shards_left.pop_front() {
            Some(shard) => {
                self.pointers = env.keys.pointers(shard);
                self.scan_pointers()
            }
            None => self.end(false),
        }
    }

    fn on_destinations(
        &mut self,
        env: &Env,
        records: &[Option<Versioned>],
        at: StoreTime,
        load: &Load<'_>,
        local: LocalTime,
    ) -> DiscoveryStep {
        for (found, record) in self.found.iter_mut().zip(records) {
            let known = record.as_ref().and_then(|record| Destination::decode(&record.value).ok()).unwrap_or_default();
            let block = known.block_at(at, &env.config);
            found.look_again_at = block.map(|(_, until)| look_again_at(&found.destination, until, &env.config));
            found.share = known.share_at(at, &env.config);
        }
        self.scan_next_due(env, load, local)
    }

    fn tidy(
        &mut self,
        env: &Env,
        found: Found,
        next_vest_at: Option<StoreTime>,
        load: &Load<'_>,
        local: LocalTime,
    ) -> DiscoveryStep {
        let Found { key, version, destination, .. } = found;
        let command = TidyPointer { key, version, destination, next_vest_at };
        let (transact, step) = Transact::begin(env, Command::TidyPointer(command), Fence::default(), local);
        self.state = State::Tidy(Box::new(transact));
        self.follow_tidy(env, step, load, local)
    }

    fn follow_tidy(&mut self, env: &Env, step: TransactStep, load: &Load<'_>, local: LocalTime) -> DiscoveryStep {
        match step {
            TransactStep::Do(io) => DiscoveryStep::Do(io),
            // Whether the pointer moved or a producer was faster does not matter: it is a pointer.
            TransactStep::Done(_) => self.scan_next_due(env, load, local),
        }
    }

    /// Goes on when deliveries have ended.
    pub(super) fn resume(&mut self, env: &Env, load: &Load<'_>, local: LocalTime) -> DiscoveryStep {
        self.scan_next_due(env, load, local)
    }

    fn scan_next_due(&mut self, env: &Env, load: &Load<'_>, local: LocalTime) -> DiscoveryStep {
        while let Some(found) = self.found.pop_front() {
            if let Some(until) = found.look_again_at {
                // A destination whose work is kept back: one pointer moves, its entries stay where they are.
                self.note_next(until);
                return self.tidy(env, found, Some(until), load, local);
            }
            let is_crowded = (load.under_way)(&found.destination) >= found.share;
            if load.capacity > 0 && is_crowded {
                // The others' turn comes at once, its own when a delivery of its has ended.
                self.unproved = true;
                self.crowded.push(found.destination);
                continue;
            }
            let due_rows = env.keys.due_rows(&found.destination);
            self.found.push_front(found);
            if load.capacity == 0 {
                self.state = State::Full;
                return DiscoveryStep::Deliver(Vec::new());
            }
            self.due_rows = due_rows;
            return self.scan_due(env);
        }
        self.next_pointers(env)
    }

    /// Takes the destinations that were passed over since this was asked last.
    pub(super) fn take_crowded(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.crowded)
    }

    fn scan_due(&mut self, env: &Env) -> DiscoveryStep {
        self.state = State::ScanDue;
        DiscoveryStep::Do(Io::Scan { range: self.due_rows.clone(), limit: env.config.window })
    }

    fn on_due(
        &mut self,
        env: &Env,
        page: restante_kv::Page,
        at: StoreTime,
        entropy: u64,
        load: &Load<'_>,
        local: LocalTime,
    ) -> DiscoveryStep {
        let Some(found) = self.found.front().cloned() else { return self.next_pointers(env) };
        let mut due = Vec::new();
        let mut next_vest_at = None;
        for (key, record) in &page.entries {
            let Ok(row) = env.keys.read_due(key) else { continue };
            if row.vest_at > at {
                next_vest_at = Some(row.vest_at);
                break;
            }
            let lane = DueRow::decode(&record.value).ok().and_then(|row| row.lane);
            due.push(DueHint { key: row, version: record.version, lane });
        }
        if let Some(at) = next_vest_at {
            self.note_next(at);
        }
        if due.is_empty() {
            return match page.next {
                // Short and empty pages are legal: only the end, or a row of the future, proves that nothing is due.
                Some(next) if next_vest_at.is_none() => {
                    self.due_rows.start = next;
                    self.scan_due(env)
                }
                _ => {
                    self.found.pop_front();
                    self.tidy(env, found, next_vest_at, load, local)
                }
            };
        }
        self.found_due += due.len() as u64;
        self.unproved = true;
        self.found.pop_front();
        due.retain(|hint| !(load.busy)(hint));
        if !due.is_empty() {
            // From a window at random, so that workers do not all reach for the same row.
            let first = (entropy % due.len() as u64) as usize;
            due.rotate_left(first);
            let room = found.share.saturating_sub((load.under_way)(&found.destination));
            if room < due.len().min(load.capacity) {
                self.crowded.push(found.destination);
            }
            due.truncate(load.capacity.min(room));
        }
        self.state = State::Full;
        DiscoveryStep::Deliver(due)
    }
}

impl VisitAtoms for Found {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        visitor.version_of(&self.key, &mut self.version);
        self.key.visit_atoms(visitor);
    }
}
