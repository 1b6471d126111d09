//! One lease owner at work: discovery, deliveries and the sweep, each a task of its own.

use restante_core_derive::VisitAtoms;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use restante_kv::StoreTime;
use serde::{Deserialize, Serialize};

use super::delivery::DeliveryEnd;
use super::discovery::{Discovery, DiscoveryStep, Load, PassEnd};
use super::expansion::ExpansionEnd;
use super::job::{Job, JobEnd, JobStep};
use super::sweep::{Sweep, SweepEnd, SweepStep};
use super::{About, DueHint, Io, LocalTime, Reply};
use crate::atoms::{AtomVisitor, EntryId, Fence, OwnerId, SendId, VisitAtoms};
use crate::effect::Effect;
use crate::plan::{Env, Subject};

/// A task of a worker. A task has one action under way at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(u32);

impl TaskId {
    /// From its number, as a journal names it.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }
    /// Its number.
    pub const fn get(self) -> u32 {
        self.0
    }
    const DISCOVERY: Self = Self(0);
    const SWEEP: Self = Self(1);
    const FIRST_DELIVERY: Self = Self(2);
}

/// The counter slots of a worker. Two transactions in flight on one slot conflict, so each task takes a slot of its own while
/// there are enough.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slots {
    /// All slots, beginning at one that the owner's id picks: for workers that know nothing of each other.
    All,
    /// These, counted modulo `counter_slots`: for an executor that knows who else is in its process.
    Range {
        /// The first one.
        first: u64,
        /// How many, at least 1.
        count: u64,
    },
}

/// What [`Worker::once`] came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RunReport {
    /// Deliveries and intents claimed and brought to an end of their claim.
    pub processed: u64,
    /// `false` exactly when every pointer shard was read to its end with nothing due and a full sweep was completed within
    /// the sweep interval.
    pub more: bool,
    /// When the next known work vests; `None` when none is known.
    pub next_at: Option<StoreTime>,
}

/// What a worker wants next.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct WorkerStep {
    /// Actions to execute, at once and side by side; each reply goes back with its task.
    pub actions: Vec<(TaskId, About, Io)>,
    /// What to tell the world.
    pub effects: Vec<Effect>,
    /// Deliveries whose claim ended.
    pub ended: Vec<(EntryId, DeliveryEnd)>,
    /// Intents whose claim ended.
    pub expanded: Vec<(SendId, ExpansionEnd)>,
    /// The report of [`Worker::once`], or the end of a stopped worker.
    pub finished: Option<RunReport>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
enum Mode {
    Once { limit: u64 },
    Serve,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
enum Finding {
    Passing(Box<Discovery>),
    /// Until the poll interval, the next known work, or a wake.
    Idle,
    /// A pass of [`Mode::Once`] ended; its deliveries have not.
    Draining(PassEnd),
    /// [`Mode::Once`] has delivered what it will and waits for its sweep; `more` if it is known that work is left.
    Proving {
        end: PassEnd,
        more: bool,
    },
}

/// One lease owner at work. Its owner id is used by no other worker, ever.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Worker {
    env: Arc<Env>,
    owner: OwnerId,
    slots: Slots,
    mode: Mode,
    finding: Finding,
    sweep: Option<Box<Sweep>>,
    deliveries: BTreeMap<TaskId, Job>,
    /// Destinations whose share was taken when their turn came: the end of a delivery to one is a reason to look again.
    crowded: BTreeSet<Arc<str>>,
    processed: u64,
    handed_out: u64,
    fruitless_passes: u32,
    progressed: bool,
    /// A wake arrived in the middle of a pass, which may be past the place it is about.
    woken: bool,
    stopping: bool,
}

/// Passes in a row without progress after which a run gives up on contended work, and a serving worker sleeps.
const FRUITLESS_PASSES_MAX: u32 = 3;

impl Worker {
    fn new(env: Arc<Env>, owner: OwnerId, slots: Slots, mode: Mode, local: LocalTime) -> (Self, WorkerStep) {
        let (discovery, step) = Discovery::begin(&env, owner);
        let mut worker = Self {
            env,
            owner,
            slots,
            mode,
            finding: Finding::Passing(Box::new(discovery)),
            sweep: None,
            deliveries: BTreeMap::new(),
            crowded: BTreeSet::new(),
            processed: 0,
            handed_out: 0,
            fruitless_passes: 0,
            progressed: false,
            woken: false,
            stopping: false,
        };
        let mut out = WorkerStep::default();
        worker.follow_discovery(step, &mut out, local);
        (worker, out)
    }

    /// Delivers what is due, at most `limit` deliveries, sweeps if a sweep is due, and reports.
    pub fn once(env: Arc<Env>, owner: OwnerId, slots: Slots, limit: u64, local: LocalTime) -> (Self, WorkerStep) {
        Self::new(env, owner, slots, Mode::Once { limit }, local)
    }

    /// Delivers and sweeps until it is stopped.
    pub fn serve(env: Arc<Env>, owner: OwnerId, slots: Slots, local: LocalTime) -> (Self, WorkerStep) {
        let (mut worker, mut out) = Self::new(env, owner, slots, Mode::Serve, local);
        worker.begin_sweep(&mut out, local);
        (worker, out)
    }

    /// Who it is.
    pub fn owner(&self) -> OwnerId {
        self.owner
    }

    /// Deliveries whose claim has not ended.
    pub fn deliveries_under_way(&self) -> usize {
        self.deliveries.len()
    }

    /// Notes a wake that found no wakeable wait to end: the pass under way is followed by another one at once.
    pub fn note_wake(&mut self) {
        self.woken = true;
    }

    /// Takes nothing new; finishes when the deliveries under way have ended.
    pub fn stop(&mut self) -> WorkerStep {
        self.stopping = true;
        let mut out = WorkerStep::default();
        self.finish_if_stopped(&mut out);
        out
    }

    /// The next step of a task.
    pub fn step(&mut self, task: TaskId, reply: Reply, local: LocalTime) -> WorkerStep {
        let mut out = WorkerStep::default();
        match task {
            TaskId::DISCOVERY if self.stopping => {}
            TaskId::SWEEP if self.stopping => {}
            TaskId::DISCOVERY => self.on_discovery(reply, &mut out, local),
            TaskId::SWEEP => self.on_sweep(reply, &mut out, local),
            task => {
                let Some(delivery) = self.deliveries.get_mut(&task) else { return out };
                let was_claimed = delivery.was_claimed();
                let step = delivery.step(&self.env, reply, &mut out.effects, local);
                self.progressed |= !was_claimed && delivery.was_claimed();
                self.follow_delivery(task, step, &mut out, local);
            }
        }
        self.finish_if_stopped(&mut out);
        out
    }

    fn finish_if_stopped(&self, out: &mut WorkerStep) {
        if self.stopping && self.deliveries.is_empty() {
            out.finished = Some(RunReport { processed: self.processed, more: true, next_at: None });
        }
    }

    fn capacity(&self) -> usize {
        let free = self.env.config.concurrency.saturating_sub(self.deliveries.len());
        match self.mode {
            _ if self.stopping => 0,
            Mode::Serve => free,
            Mode::Once { limit } => {
                let begun = self.processed + self.deliveries.len() as u64;
                free.min(usize::try_from(limit.saturating_sub(begun)).unwrap_or(usize::MAX))
            }
        }
    }

    /// The lowest task that is free: an ended delivery has nothing under way that could reach its successor.
    fn free_task(&self) -> TaskId {
        let mut task = TaskId::FIRST_DELIVERY;
        while self.deliveries.contains_key(&task) {
            task = TaskId(task.0 + 1);
        }
        task
    }

    fn slot(&self, task: TaskId) -> u64 {
        let (first, count) = match self.slots {
            Slots::All => (u64::from(self.owner.as_bytes()[1]), u64::MAX),
            Slots::Range { first, count } => (first, count.max(1)),
        };
        first.saturating_add(u64::from(task.0) % count) % self.env.config.counter_slots
    }

    // Discovery.

    fn on_discovery(&mut self, reply: Reply, out: &mut WorkerStep, local: LocalTime) {
        let capacity = self.capacity();
        let deliveries = &self.deliveries;
        match &mut self.finding {
            Finding::Passing(discovery) => {
                let step = with_load(capacity, deliveries, |load| discovery.step(&self.env, reply, load, local));
                self.follow_discovery(step, out, local);
            }
            Finding::Idle => self.begin_pass(out, local),
            Finding::Draining(_) | Finding::Proving { .. } => debug_assert!(false, "discovery is not under way"),
        }
    }

    fn begin_pass(&mut self, out: &mut WorkerStep, local: LocalTime) {
        let (discovery, step) = Discovery::begin(&self.env, self.owner);
        self.finding = Finding::Passing(Box::new(discovery));
        self.handed_out = 0;
        self.progressed = false;
        self.woken = false;
        self.crowded.clear();
        self.follow_discovery(step, out, local);
    }

    fn follow_discovery(&mut self, step: DiscoveryStep, out: &mut WorkerStep, local: LocalTime) {
        if let Finding::Passing(discovery) = &mut self.finding {
            self.crowded.extend(discovery.take_crowded());
        }
        match step {
            DiscoveryStep::Do(io) => {
                if let Finding::Passing(discovery) = &self.finding {
                    out.actions.push((TaskId::DISCOVERY, discovery.about(), io));
                }
            }
            DiscoveryStep::Deliver(due) => {
                for hint in due {
                    self.begin_delivery(hint, out, local);
                }
                self.resume_discovery(out, local);
            }
            DiscoveryStep::Ended(end) => self.on_pass_end(end, out, local),
        }
    }

    /// Goes on with a pass that waits for capacity, if there is some.
    fn resume_discovery(&mut self, out: &mut WorkerStep, local: LocalTime) {
        let capacity = self.capacity();
        // A run that reached its limit ends its pass here: it cannot prove that nothing is left.
        let limit_reached = matches!(self.mode, Mode::Once { limit } if self.processed >= limit) && self.deliveries.is_empty();
        let Finding::Passing(discovery) = &mut self.finding else { return };
        if !discovery.is_waiting_for_capacity() {
            return;
        }
        if limit_reached {
            let end = discovery.so_far();
            self.sweep_and_report(end, true, out, local);
        } else if capacity > 0 {
            let step = with_load(capacity, &self.deliveries, |load| discovery.resume(&self.env, load, local));
            self.follow_discovery(step, out, local);
        }
    }

    fn on_pass_end(&mut self, end: PassEnd, out: &mut WorkerStep, local: LocalTime) {
        let serves = self.mode == Mode::Serve && !end.interrupted;
        let again = serves && (self.woken || self.handed_out > 0 && !self.is_fruitless());
        match self.mode {
            Mode::Serve if again => self.begin_pass(out, local),
            Mode::Serve => {
                self.fruitless_passes = 0;
                let poll_ms = self.env.config.poll_interval_ms;
                let ms = end.next_at.map_or(poll_ms, |at| at.since_ms(end.at).clamp(1, poll_ms));
                self.finding = Finding::Idle;
                self.push_sleep(TaskId::DISCOVERY, "idle", Io::Sleep { ms, jitter_ms: 0, wakeable: true }, out);
            }
            Mode::Once { .. } => {
                self.finding = Finding::Draining(end);
                self.go_on_once(out, local);
            }
        }
    }

    /// Counts the pass that ended; whether too many in a row made no progress.
    fn is_fruitless(&mut self) -> bool {
        self.fruitless_passes = if self.progressed { 0 } else { self.fruitless_passes + 1 };
        self.fruitless_passes > FRUITLESS_PASSES_MAX
    }

    fn push_sleep(&self, task: TaskId, what: &'static str, io: Io, out: &mut WorkerStep) {
        out.actions.push((task, About { what, subject: Subject::Backlog, fence: Fence::default(), tries: 0 }, io));
    }

    /// The end of a pass of a single run: again, prove, or report.
    fn go_on_once(&mut self, out: &mut WorkerStep, local: LocalTime) {
        let (Mode::Once { limit }, Finding::Draining(end)) = (&self.mode, &self.finding) else { return };
        if !self.deliveries.is_empty() {
            return;
        }
        let (limit, end) = (*limit, *end);
        let exhausted = self.is_fruitless() || self.processed >= limit || end.interrupted;
        if end.proved_empty && !end.interrupted {
            self.sweep_and_report(end, false, out, local);
        } else if exhausted {
            self.sweep_and_report(end, true, out, local);
        } else {
            self.begin_pass(out, local);
        }
    }

    /// Every run sweeps if a sweep is due, also one that leaves work behind: cron alone must find lost index rows.
    fn sweep_and_report(&mut self, end: PassEnd, more: bool, out: &mut WorkerStep, local: LocalTime) {
        self.finding = Finding::Proving { end, more };
        self.begin_sweep(out, local);
    }

    fn report(&self, more: bool, end: PassEnd, out: &mut WorkerStep) {
        out.finished = Some(RunReport { processed: self.processed, more, next_at: end.next_at });
    }

    // The sweep.

    fn begin_sweep(&mut self, out: &mut WorkerStep, local: LocalTime) {
        let (sweep, step) = Sweep::begin(&self.env, self.owner, self.slot(TaskId::SWEEP), local);
        self.sweep = Some(Box::new(sweep));
        self.follow_sweep(step, out, local);
    }

    fn on_sweep(&mut self, reply: Reply, out: &mut WorkerStep, local: LocalTime) {
        match &mut self.sweep {
            Some(sweep) => {
                let step = sweep.step(&self.env, reply, &mut out.effects, local);
                self.follow_sweep(step, out, local);
            }
            None => self.begin_sweep(out, local),
        }
    }

    fn follow_sweep(&mut self, step: SweepStep, out: &mut WorkerStep, local: LocalTime) {
        let end = match step {
            SweepStep::Do(io) => {
                if let Some(sweep) = &self.sweep {
                    out.actions.push((TaskId::SWEEP, sweep.about(), io));
                }
                return;
            }
            SweepStep::Ended(end) => end,
        };
        self.sweep = None;
        if let Finding::Proving { end: pass, more } = self.finding {
            match end {
                _ if more => self.report(true, pass, out),
                SweepEnd::Fresh | SweepEnd::Completed { repaired: 0, taken_over: false } => self.report(false, pass, out),
                // What was put back is looked for; and what somebody else saw of the sweep may be long ago: then another is due.
                // Where every look finds another repair to make (a sweep that takes longer than its interval, beside a paced
                // destination), the run ends all the same.
                SweepEnd::Completed { .. } if self.fruitless_passes <= FRUITLESS_PASSES_MAX => self.begin_pass(out, local),
                SweepEnd::Completed { .. } => self.report(true, pass, out),
                SweepEnd::NotProved => self.report(true, pass, out),
            }
        } else if let SweepEnd::Completed { taken_over: true, .. } = end {
            // What lies before its place was seen any time ago.
            self.begin_sweep(out, local);
        } else {
            let half_ms = self.env.config.sweep_interval_ms / 2;
            self.push_sleep(TaskId::SWEEP, "sweep-idle", Io::Sleep { ms: half_ms, jitter_ms: half_ms / 2, wakeable: false }, out);
        }
    }

    // Deliveries.

    /// A delivery has ended: if its destination's share was taken when its turn came, there is room for the next one now.
    fn look_again_at_crowded(&mut self, destination: &Arc<str>, out: &mut WorkerStep) {
        if !self.crowded.remove(destination) {
            return;
        }
        match self.finding {
            Finding::Passing(_) => self.woken = true,
            // The wait between two passes ends by a signal only; one of its own is one like any other, and may be lost as well.
            Finding::Idle => out.effects.push(Effect::Wake { destination: destination.clone() }),
            Finding::Draining(_) | Finding::Proving { .. } => {}
        }
    }

    fn begin_delivery(&mut self, hint: DueHint, out: &mut WorkerStep, local: LocalTime) {
        let task = self.free_task();
        self.handed_out += 1;
        let (delivery, step) = Job::begin(&self.env, hint, self.owner, self.slot(task), local);
        self.deliveries.insert(task, delivery);
        self.follow_delivery(task, step, out, local);
    }

    fn follow_delivery(&mut self, task: TaskId, step: JobStep, out: &mut WorkerStep, local: LocalTime) {
        match step {
            JobStep::Do(io) => {
                if let Some(delivery) = self.deliveries.get(&task) {
                    out.actions.push((task, delivery.about(), io));
                }
            }
            JobStep::Ended(end) => {
                if let Some(delivery) = self.deliveries.remove(&task) {
                    self.look_again_at_crowded(delivery.destination(), out);
                    if !end.is_fruitless(delivery.was_claimed()) {
                        self.processed += 1;
                        self.progressed = true;
                    }
                    match end {
                        JobEnd::Delivery(end) => out.ended.push((delivery.id(), end)),
                        JobEnd::Expansion(end) => out.expanded.push((delivery.id().send, end)),
                    }
                }
                self.resume_discovery(out, local);
                self.go_on_once(out, local);
            }
        }
    }
}

/// Tells discovery what the worker has under way.
fn with_load<T>(capacity: usize, deliveries: &BTreeMap<TaskId, Job>, ask: impl FnOnce(&Load<'_>) -> T) -> T {
    let busy = |hint: &DueHint| deliveries.values().any(|delivery| delivery.id() == hint.key.entry);
    let under_way = |to: &str| deliveries.values().filter(|delivery| **delivery.destination() == *to).count();
    ask(&Load { capacity, busy: &busy, under_way: &under_way })
}

impl VisitAtoms for Worker {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        self.owner.visit_atoms(visitor);
        self.mode.visit_atoms(visitor);
        self.finding.visit_atoms(visitor);
        self.sweep.visit_atoms(visitor);
        self.deliveries.values_mut().for_each(|delivery| delivery.visit_atoms(visitor));
        if self.mode == Mode::Serve {
            visitor.tally(&mut self.processed);
        }
    }
}
