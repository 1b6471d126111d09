//! What the threads of an exploration share: states to expand, states seen, counts, the first violation.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use restante_engine::{SimTime, Violation};

use super::{Exploration, ExploreError, ScheduledMove};
use crate::campaign::Panic;
use crate::scenario::Scenario;
use crate::world::World;

/// The moves that lead to a state, sharing their beginnings.
#[derive(Clone)]
pub(super) struct Path(Option<Arc<Link>>);

struct Link {
    scheduled: ScheduledMove,
    before: Path,
    length: u64,
}

impl Path {
    pub(super) fn root() -> Self {
        Self(None)
    }
    pub(super) fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, |link| link.length)
    }
    pub(super) fn then(&self, scheduled: ScheduledMove) -> Self {
        Self(Some(Arc::new(Link { scheduled, before: self.clone(), length: self.len() + 1 })))
    }
    fn schedule(&self) -> Vec<ScheduledMove> {
        let mut schedule = Vec::new();
        let mut path = self;
        while let Some(link) = &path.0 {
            schedule.push(link.scheduled.clone());
            path = &link.before;
        }
        schedule.reverse();
        schedule
    }
}

struct Shared<'s> {
    open: Vec<(World<'s>, Path)>,
    busy: usize,
    violation: Option<(Violation, Vec<ScheduledMove>)>,
    harness_error: Option<ExploreError>,
}

/// Shards of the set of states seen, so that threads rarely wait for each other.
const SHARDS: usize = 64;

pub(super) struct Queue<'s> {
    scenario: &'s Scenario,
    shared: Mutex<Shared<'s>>,
    changed: Condvar,
    seen: Vec<Mutex<BTreeSet<u128>>>,
    states: AtomicU64,
    states_max: u64,
    transitions: AtomicU64,
    depth_max: AtomicU64,
    drained: AtomicU64,
    is_cut: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'s> Queue<'s> {
    pub(super) fn new(scenario: &'s Scenario, states_max: u64) -> Self {
        Self {
            scenario,
            shared: Mutex::new(Shared { open: Vec::new(), busy: 0, violation: None, harness_error: None }),
            changed: Condvar::new(),
            seen: (0..SHARDS).map(|_| Mutex::new(BTreeSet::new())).collect(),
            states: AtomicU64::new(0),
            states_max,
            transitions: AtomicU64::new(0),
            depth_max: AtomicU64::new(0),
            drained: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
        }
    }

    /// Opens a state unless it was seen before.
    pub(super) fn visit(&self, fingerprint: u128, state: impl FnOnce() -> (World<'s>, Path)) {
        if !lock(&self.seen[(fingerprint % SHARDS as u128) as usize]).insert(fingerprint) {
            return;
        }
        if self.states.fetch_add(1, Ordering::Relaxed) >= self.states_max {
            self.is_cut.store(true, Ordering::Relaxed);
            return;
        }
        lock(&self.shared).open.push(state());
        self.changed.notify_one();
    }

    /// A state to expand; nothing when all is done, a violation was found, or the bound on states was reached.
    pub(super) fn take(&self) -> Option<(World<'s>, Path)> {
        let mut shared = lock(&self.shared);
        loop {
            let is_ended = shared.violation.is_some() || shared.harness_error.is_some();
            if is_ended || self.is_cut.load(Ordering::Relaxed) {
                self.changed.notify_all();
                return None;
            }
            if let Some(state) = shared.open.pop() {
                shared.busy += 1;
                return Some(state);
            }
            if shared.busy == 0 {
                self.changed.notify_all();
                return None;
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The state taken last is expanded.
    pub(super) fn done(&self) {
        lock(&self.shared).busy -= 1;
        self.changed.notify_all();
    }

    pub(super) fn found(&self, violation: Violation, path: &Path) {
        lock(&self.shared).violation.get_or_insert_with(|| (violation, path.schedule()));
    }

    /// A move, or a look at a state, panicked.
    pub(super) fn panicked(&self, panic: Panic, at: SimTime, path: &Path) {
        match panic.violation(at) {
            Ok(violation) => self.found(violation, path),
            Err(panic) => {
                let error = ExploreError::new(self.scenario, path.len(), panic);
                lock(&self.shared).harness_error.get_or_insert(error);
            }
        }
    }

    pub(super) fn count_transition(&self, depth: u64) {
        self.transitions.fetch_add(1, Ordering::Relaxed);
        self.depth_max.fetch_max(depth, Ordering::Relaxed);
    }

    pub(super) fn count_drained(&self) {
        self.drained.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn into_exploration(self) -> Exploration {
        let shared = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        Exploration {
            states: self.states.into_inner().min(self.states_max),
            transitions: self.transitions.into_inner(),
            depth_max: self.depth_max.into_inner(),
            drained: self.drained.into_inner(),
            is_complete: shared.violation.is_none() && shared.harness_error.is_none() && !self.is_cut.into_inner(),
            violation: shared.violation,
            harness_error: shared.harness_error,
        }
    }
}
