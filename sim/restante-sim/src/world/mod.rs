//! The world: nodes, a store, a network and signals, all in flight as data, all differences decided by key.
//!
//! One [`World`] is one run. It executes the production machines' [`Io`](restante_core::machine::Io) and decides nothing
//! that they decide; faults are alternatives at named sites, and end at `heal_at`.

pub(crate) mod alias;
pub(crate) mod build;
mod canon;
mod choices;
mod client;
mod event;
mod explored;
mod faults;
mod incidents;
mod legacy;
mod network;
mod node;
mod nodes;
mod order;
mod setup;
mod store;
mod workload;

pub use client::SimulatedKv;
pub(crate) use event::{Origin, Task};
pub(crate) use explored::Move;
pub(crate) use faults::{fault_alternatives, fault_sums};
pub(crate) use incidents::CLOCK_STEP;
pub(crate) use node::EPOCH_MS;

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::sync::Arc;

use restante_core::Env;
use restante_core::keys::Kind;
use restante_engine::{
    Alternative, Decider, DecisionLog, Digest, FaultCounts, Marks, Quantity, SimTime, Tape, Timeline, Trace, TraceRow, Violation,
};
use restante_kv::{Model, StoreTime};

use crate::audit::Auditor;
use crate::audit::judged::judged;
use crate::mutant::Mutant;
use crate::scenario::{Scenario, Span, swarm};
use choices::Choices;
use event::Event;
use faults::{FaultSite, FaultSites};
use node::Node;
use order::Order;
use workload::SendState;

/// What can be asked of the backlog, how somebody works for it, and in which order things can happen: what a set of runs may or
/// may not have reached.
pub const OPERATIONS: [&str; 26] = [
    "send.direct",
    "send.keyed",
    "send.staged",
    "send.fanout",
    "send.several-recipients",
    "send.handed-over-again",
    "send.repeated",
    "send.misused",
    "operator.depth",
    "operator.wake",
    "operator.close-intake",
    "operator.open-intake",
    "operator.hold",
    "operator.hold-without-end",
    "operator.hold-extended",
    "operator.hold-released",
    "operator.revive",
    "old-queue.message",
    "worker.serve",
    "worker.run-once",
    "worker.stop",
    "listener.serve",
    "listener.run-once",
    "schedule.timed",
    "schedule.pct",
    "schedule.pos",
];

/// A change of the code under test or of the simulator, for measuring what survives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Perturbation {
    /// A decision more at a site of its own, with every event.
    ExtraDecision,
    /// Every settle reads once more than it needs.
    ExtraRead,
    /// The commit site has an alternative that it did not have.
    NewAlternative,
    /// Actions that do not depend on each other are issued in the other order, and keys are read in the other order.
    SwappedReads,
}

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Overrides of single decisions.
    pub tape: Tape,
    /// A planted bug.
    pub mutant: Option<Mutant>,
    /// Keep the trace.
    pub trace: bool,
    /// Keep the log of decisions.
    pub record: bool,
    /// A change to simulate.
    pub perturbation: Option<Perturbation>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The first property found violated.
    pub violation: Option<Violation>,
    /// Chain over everything that happened.
    pub digest: u128,
    /// Events handled: deliveries to an actor of a reply, message, timer or fault.
    pub events: u64,
    /// Entries the backlog accepted.
    pub entries: u64,
    /// Deliveries settled as delivered.
    pub delivered: u64,
    /// Within how many milliseconds 99 of 100 deliveries were done to hosts that nothing was wrong with.
    pub healthy_p99_ms: Option<u64>,
    /// Simulated time of the run.
    pub sim_time: SimTime,
    /// `sometimes` states reached.
    pub marks: Marks,
    /// How often each property that must hold was judged where it could have been found violated.
    pub judged: Marks,
    /// How often each of the [`OPERATIONS`] was reached.
    pub operations: Marks,
    /// Faults asked for and delivered.
    pub faults: FaultCounts,
    /// The trace, if it was kept.
    pub trace: Trace,
    /// The decisions, if they were kept; what became of the tape, always.
    pub log: DecisionLog,
}

/// What answers the questions of a run.
fn decider_of(seed: u64, options: &RunOptions) -> Decider {
    let decider = Decider::with_tape(seed, &options.tape);
    if options.record { decider.recording() } else { decider }
}

/// One run.
#[derive(Clone)]
pub struct World<'s> {
    scenario: &'s Scenario,
    env: Arc<Env>,
    sites: Arc<FaultSites>,
    decider: Choices,
    timeline: Timeline<Event>,
    order: Order,
    store: Model,
    nodes: Vec<Node>,
    sends: BTreeMap<alias::SendKey, SendState>,
    old: legacy::OldQueue,
    auditor: Auditor,
    trace: Trace,
    digest: Digest,
    faults: FaultCounts,
    operations: Marks,
    mutant: Option<Mutant>,
    perturbation: Option<Perturbation>,
    /// How often an action without a token was issued, within a time bucket.
    occurrences: BTreeMap<u64, (u64, u32)>,
    events: u64,
    healed: bool,
    outage_until: SimTime,
    /// When somebody who delivers started last.
    last_start: SimTime,
    crashes_left: u32,
    /// Commits that may still be answered "unknown": a bound of explorations.
    ambiguous_left: u32,
    /// Times that somebody may still stand still while time passes a deadline: a bound of explorations.
    pauses_left: u32,
    commands_issued: u32,
    /// Kinds of records that the newer build writes in its own format.
    newer_kinds: Vec<Kind>,
    /// Of callers from outside ([`SimulatedKv`]), by number: the answer, once it is there.
    answers: BTreeMap<u64, Option<restante_core::machine::Reply>>,
    /// What the operator wanted of intake last.
    intake_wanted: Option<bool>,
    ending: bool,
    ended: bool,
}

impl<'s> World<'s> {
    /// Runs `scenario` with `seed` to its end.
    pub fn run(scenario: &'s Scenario, seed: u64, options: &RunOptions) -> RunResult {
        let mut decider = decider_of(seed, options);
        let (taken, note) = swarm::taken(scenario, &mut decider);
        let mut world = World::new(&taken, decider, options);
        if let Some(note) = note {
            world.note("swarm", format_args!("{note}"));
        }
        judged!(world.auditor, "does-not-panic");
        world.begin();
        while !world.ended && world.auditor.violation.is_none() {
            let Some((at, event)) = world.next_event() else { break };
            world.events += 1;
            judged!(world.auditor, "ends-within-its-events");
            world.digest.u64(at.as_us());
            if world.events > world.scenario.world.events_max {
                world.auditor.violate(at, "ends-within-its-events", vec![]);
                break;
            }
            world.handle(event);
        }
        world.into_result()
    }

    pub(crate) fn into_result(self) -> RunResult {
        let healthy_p99_ms = self.auditor.healthy_p99_ms();
        RunResult {
            violation: self.auditor.violation,
            digest: self.digest.value(),
            events: self.events,
            entries: self.auditor.accepted_count,
            delivered: self.auditor.delivered_count,
            healthy_p99_ms,
            sim_time: self.timeline.now(),
            judged: self.auditor.judged.by_name(crate::PROPERTIES),
            operations: self.operations,
            marks: self.auditor.marks,
            faults: self.faults,
            trace: self.trace,
            log: self.decider.log(),
        }
    }

    fn handle(&mut self, event: Event) {
        if self.perturbation == Some(Perturbation::ExtraDecision) {
            let events = self.events;
            self.decider.draw("perturbation", format_args!("{events}"));
        }
        match event {
            Event::Store { origin, act, op, fate, back_ms } => self.on_store(origin, act, op, fate, back_ms),
            Event::LateCommit { origin, act, txn } => self.on_late_commit(origin, &act, &txn),
            Event::Reply { origin, act, reply, resumed } => self.on_reply(origin, act, reply, resumed),
            Event::PostBegin { origin, act, post } => self.on_post_begin(origin, act, post),
            Event::Arrive { entry, fence, destination, payload, answer_to } => {
                self.on_arrive(entry, fence, destination, &payload, answer_to);
            }
            Event::Wake { node, life } => self.on_wake(node, life),
            Event::Start { node } => self.on_start(node),
            Event::Cron { node, life } => self.on_cron(node, life),
            Event::Produce { node, number, attempt } => self.on_produce(node, number, attempt),
            Event::Operate { number, what } => self.on_operate(number, what),
            Event::Incident(incident) => self.on_incident(incident),
            Event::OldMessage { number } => self.on_old_message(number),
            Event::OldQueue { origin, act, op, fate, back_ms } => self.on_old_queue(origin, act, op, fate, back_ms),
            Event::OldReply { origin, act, reply, in_hand } => self.on_old_reply(origin, act, reply, in_hand),
            Event::OldExposed { receipt } => self.on_old_exposed(&receipt),
            Event::Heal => self.on_heal(),
            Event::Check => self.on_check(),
        }
    }

    // What every part of the world uses.

    fn now(&self) -> SimTime {
        self.timeline.now()
    }

    /// True store time: what a perfect clock at the store shows.
    fn store_now(&self) -> StoreTime {
        StoreTime::from_ms(EPOCH_MS + self.now().as_ms())
    }

    fn push_in(&mut self, ms: u64, tie: u64, event: Event) -> restante_engine::EventId {
        let at = self.now().plus_ms(ms);
        self.timeline.push(at, tie, event)
    }

    /// A duration within `span`, in milliseconds.
    fn span(&mut self, site: &'static str, key: Arguments<'_>, span: Span) -> u64 {
        self.decider.quantity(site, key, Quantity::uniform(span.min.0, span.max.0, 1))
    }

    /// Whether something with this chance happens: part of the workload, so it happens healed or not.
    fn chance(&mut self, site: &'static str, key: Arguments<'_>, share: crate::scenario::Share) -> bool {
        share.0 > 0 && {
            let yes = Alternative::new("yes", share.0);
            self.decider.choose(site, key, &[Alternative::new("no", 1_000_000 - share.0), yes]) == 1
        }
    }

    /// Whether a tape leaves out this send, operation or incident; a seed never does.
    fn is_skipped(&mut self, key: Arguments<'_>) -> bool {
        const DO: [Alternative; 2] = [Alternative::new("do", 1), Alternative::new("skip", 0)];
        self.decider.choose("load.skip", key, &DO) == 1
    }

    /// Which fault happens at a site: the name of its family, or "ok". Nothing is asked once the world has healed.
    fn fault(&mut self, site: fn(&FaultSites) -> &FaultSite, key: Arguments<'_>) -> &'static str {
        let sites = self.sites.clone();
        let site = site(&sites);
        if self.healed || !site.is_armed() {
            return "ok";
        }
        // In an exploration everybody may stand still anywhere: that needs no fault.
        let is_explored = matches!(self.decider, Choices::Explored(_));
        let is_possible = |fault: &&Alternative| {
            let is_spent = self.ambiguous_left == 0 && fault.name.starts_with("store.ambiguous");
            !(is_spent || is_explored && fault.name.starts_with("process.pause"))
        };
        let within_budget: Vec<Alternative> = site.alternatives.iter().filter(is_possible).copied().collect();
        let index = self.decider.choose(site.site, key, &within_budget);
        let name = within_budget[index].name;
        if index > 0 {
            self.faults.requested(name);
        }
        if name.starts_with("store.ambiguous") {
            self.ambiguous_left -= 1;
        }
        name
    }

    /// Something that is asked of the backlog was reached.
    fn reached(&mut self, operation: &'static str) {
        debug_assert!(OPERATIONS.contains(&operation), "{operation} is no operation");
        self.operations.mark(operation);
    }

    /// A row about the run itself: nothing that happens in it, so the digest does not know it.
    fn note(&mut self, event: &'static str, detail: Arguments<'_>) {
        let at = self.timeline.now();
        let (actor, detail) = ("world".to_owned(), detail.to_string());
        self.trace.row(|| TraceRow { at, actor, event, subject: String::new(), detail });
    }

    fn row(&mut self, actor: &str, event: &'static str, subject: Arguments<'_>, detail: Arguments<'_>) {
        self.digest.str(event);
        let at = self.timeline.now();
        self.trace.row(|| TraceRow {
            at,
            actor: actor.to_owned(),
            event,
            subject: subject.to_string(),
            detail: detail.to_string(),
        });
    }
}
