//! The auditor: it sees every commit, POST and answer, knows what really happened, and checks the properties.

mod commits;
mod destinations;
mod fanout;
mod ghost;
pub(crate) mod judged;
mod legacy;
mod posts;
mod properties;

pub use properties::PROPERTIES;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use restante_core::atoms::{EntryId, Fence, SendId};
use restante_core::keys::Kind;
use restante_core::machine::{About, DeliveryEnd, Failure, RunReport, SendRequest};
use restante_core::plan::{DepthReport, HoldNotice, Recipient, Settled};
use restante_core::record::{
    Block, CircuitState, Class, Counters, Destination, DropReason, Entry, Intent, Quarantined, Unreadable,
};
use restante_core::{CircuitChange, Env, Observation, Rejection};
use restante_engine::{Marks, Quantifier, SimTime, Violation};
use restante_kv::{Model, StoreTime};

use crate::scenario::{Scenario, Schedule};
use crate::world::alias::{EntryAlias, SendAlias, SendKey, owner_id, read_send_id};
use crate::world::build::{is_newer_format, read};
use crate::world::{CLOCK_STEP, EPOCH_MS, Origin, Task};
use destinations::GhostDestination;
use ghost::{End, GhostEntry, GhostIntent, GhostLane, GhostSend};
use judged::{Judged, judged};

/// Evidence of a violation: role and alias.
pub(crate) type Evidence = Vec<(&'static str, String)>;

/// How long a commit takes from its snapshot on, while nobody stands still.
const PLAN_SLACK_MS: u64 = 3_000;

fn longest_pause_ms(scenario: &Scenario) -> u64 {
    let process = &scenario.faults.process;
    if process.pause.0 > 0 { process.pause_length.map_or(10_000, |length| length.max.0) } else { 0 }
}

/// How much later than its time an event may happen, because another is preferred.
fn held_back_ms(scenario: &Scenario) -> u64 {
    if scenario.world.schedule == Schedule::Timed { 0 } else { scenario.world.reorder_within.0 }
}

/// Two rounds of one worker with everything it can have under way, if every destination has something for it.
fn longest_round_ms(scenario: &Scenario) -> u64 {
    let longest_ms = scenario.latency.network.max.0.min(scenario.config.request_timeout.0);
    2 * u64::from(scenario.world.destinations) * longest_ms / scenario.config.concurrency.max(1) as u64
}

/// Two passes over everything, one destination after the other, each of which waits for a delivery to end before it goes on.
fn longest_pass_ms(scenario: &Scenario) -> u64 {
    const OPERATIONS: u64 = 4;
    let ranges = u64::from(scenario.world.destinations) + scenario.config.pointer_shards + 1;
    2 * (ranges * OPERATIONS * scenario.latency.store.max.0 + scenario.config.request_timeout.0)
}

/// A limit that no run of a scenario reaches.
const UNLIMITED: u64 = 1_000;

/// How long nobody looks between two runs, where nobody serves for good.
fn between_runs_ms(scenario: &Scenario) -> u64 {
    if scenario.world.workers == 0 { scenario.world.cron_every.max.0 } else { 0 }
}

/// How long anything takes that is not in the settings: store operations, deliveries under way, a sweep itself.
const LOOK_SLACK_MS: u64 = 10_000;

/// Checks the properties against what really happened.
#[derive(Clone)]
pub(crate) struct Auditor {
    env: Arc<Env>,
    pub(crate) violation: Option<Violation>,
    pub(crate) marks: Marks,
    /// How often each property was judged where it could have been violated.
    pub(crate) judged: Judged,
    pub(crate) accepted_count: u64,
    pub(crate) delivered_count: u64,
    /// Entries that are terminal.
    ended_count: u64,
    /// Recipients of committed sends, as their markers say.
    recipient_count: i64,
    entries: BTreeMap<EntryId, GhostEntry>,
    sends: BTreeMap<SendKey, GhostSend>,
    lanes: BTreeMap<(Arc<str>, Arc<str>), GhostLane>,
    intents: BTreeMap<SendId, GhostIntent>,
    /// What was asked for: recipients and order key, a send id.
    requests: BTreeMap<SendId, (Vec<Recipient>, Option<Arc<str>>)>,
    /// Intents of an order key that have not ended, in accepted order.
    queues: BTreeMap<Arc<str>, VecDeque<SendId>>,
    /// Entries that somebody else put where an expansion goes.
    intruders: BTreeSet<EntryId>,
    intake_open: bool,
    /// Messages of the old queue that are deliveries or fanouts, by id.
    old: BTreeMap<Arc<str>, legacy::GhostOld>,
    /// Which message is adopted as which send, if it is.
    old_sends: BTreeMap<SendId, Arc<str>>,
    /// What the latest look of each task at an old message saw.
    old_seen: BTreeMap<(usize, Task), legacy::OldSeen>,
    old_runs: BTreeMap<usize, legacy::OldRun>,
    /// Somebody was told that the backlog is drained, and intake has been closed since.
    is_drained: bool,
    /// When a pause was committed, and until when, a destination.
    paced: BTreeMap<Arc<str>, (StoreTime, StoreTime)>,
    /// What a recount said at the latest snapshot of each depth query.
    recounts: BTreeMap<Task, DepthReport>,
    /// How far clocks that judge one lease may lie apart in this scenario.
    tolerance_ms: u64,
    index_lost_at_all: bool,
    /// When the due row of an entry or intent was lost last.
    due_rows_lost: BTreeMap<EntryId, SimTime>,
    /// When the sweep began that is under way, whoever is at it now.
    sweep_began_at: SimTime,
    /// When the latest complete sweep began.
    swept_from: Option<SimTime>,
    destinations: BTreeMap<Arc<str>, GhostDestination>,
    /// When each life of a node read last what is known of destinations: what its pass goes by.
    passes: BTreeMap<(usize, u32), StoreTime>,
    /// Notices by the command that passes them on.
    notices: BTreeMap<Task, HoldNotice>,
    /// Claims that were admitted as probes.
    probes: BTreeSet<(EntryId, Fence)>,
    /// How long deliveries to hosts took that nothing is wrong with.
    pub(crate) healthy_ms: Vec<u64>,
    /// Hosts that something is wrong with: those of the lowest numbers.
    ailing_count: u32,
    /// Whether nobody ever stands still, no store operation takes long, and everybody judges by one clock.
    is_steady: bool,
    /// Whether nothing hinders anybody here from doing what is due, also before faults end.
    is_calm: bool,
    /// How much later than its snapshot anybody may believe it is. A store without a clock leaves that to who uses the answer.
    ahead_ms: u64,
    /// How far the instant at which something was planned may lie from its commit.
    plan_slack_ms: u64,
    /// How much longer than its settings say a look at something may take to happen.
    look_slack_ms: u64,
    /// How long a look at everything may take.
    pass_ms: u64,
    /// Whether nobody ever stands still: what somebody looked at a moment ago is as it was.
    is_prompt: bool,
    /// Whether somebody delivers for good.
    is_served: bool,
}

impl Auditor {
    pub(crate) fn new(env: &Arc<Env>, scenario: &Scenario) -> Self {
        let clocks = &scenario.faults.clocks;
        let step_ms = clocks.step.unwrap_or(CLOCK_STEP).max.0 * u64::from(clocks.steps_count);
        let drift_ms = scenario.world.heal_at.0 * u64::from(clocks.drift.0) / 1_000_000;
        // With a store clock, only drift between asking and beginning matters; without one, nodes judge by their own clocks.
        let tolerance_ms =
            if scenario.world.store_clock { 1 + drift_ms } else { 1 + 2 * (clocks.skew.0 + step_ms + drift_ms * 20) };
        Self {
            env: env.clone(),
            violation: None,
            marks: Marks::new(),
            judged: Judged::default(),
            accepted_count: 0,
            delivered_count: 0,
            ended_count: 0,
            recipient_count: 0,
            entries: BTreeMap::new(),
            sends: BTreeMap::new(),
            lanes: BTreeMap::new(),
            intents: BTreeMap::new(),
            requests: BTreeMap::new(),
            queues: BTreeMap::new(),
            intruders: BTreeSet::new(),
            intake_open: true,
            old: BTreeMap::new(),
            old_sends: BTreeMap::new(),
            old_seen: BTreeMap::new(),
            old_runs: BTreeMap::new(),
            is_drained: false,
            paced: BTreeMap::new(),
            recounts: BTreeMap::new(),
            tolerance_ms,
            index_lost_at_all: false,
            due_rows_lost: BTreeMap::new(),
            sweep_began_at: SimTime::ZERO,
            swept_from: None,
            destinations: BTreeMap::new(),
            passes: BTreeMap::new(),
            notices: BTreeMap::new(),
            probes: BTreeSet::new(),
            healthy_ms: Vec::new(),
            ailing_count: scenario.faults.receiver.ailing_count(),
            is_steady: scenario.faults.process == Default::default()
                && scenario.faults.store.slow.0 == 0
                && scenario.world.store_clock,
            ahead_ms: tolerance_ms
                + if scenario.world.store_clock { 0 } else { longest_pause_ms(scenario) + held_back_ms(scenario) },
            plan_slack_ms: PLAN_SLACK_MS + longest_pause_ms(scenario),
            is_calm: {
                let faults = &scenario.faults;
                let (store, process) = (faults.store == Default::default(), faults.process == Default::default());
                store && process && faults.signals == Default::default() && faults.clocks == Default::default()
            },
            look_slack_ms: LOOK_SLACK_MS + longest_round_ms(scenario) + between_runs_ms(scenario),
            pass_ms: longest_pass_ms(scenario),
            is_prompt: longest_pause_ms(scenario) == 0,
            // A bounded run that reached its limit looks no further, and the next one comes when it has swept.
            is_served: scenario.world.workers > 0 || scenario.world.cron_limit_count >= UNLIMITED,
        }
    }

    pub(crate) fn mark(&mut self, name: &'static str) {
        debug_assert!(
            PROPERTIES.iter().any(|property| property.name == name && property.quantifier == Quantifier::Sometimes),
            "{name} is not a `sometimes` property"
        );
        self.marks.mark(name);
    }

    /// Notes a violation; the first one counts.
    pub(crate) fn violate(&mut self, at: SimTime, property: &'static str, evidence: Evidence) {
        debug_assert!(PROPERTIES.iter().any(|known| known.name == property), "{property} is not a property");
        if self.violation.is_none() {
            self.violation = Some(Violation { property, at, evidence });
        }
    }

    pub(crate) fn harness_error(&mut self, what: &str) {
        // A mistake of the harness must not pass for a finding, nor for a pass.
        panic!("harness error: {what}");
    }

    // Callers.

    pub(crate) fn on_send(&mut self, request: &SendRequest) {
        self.remember_request(request);
        let (key, _) = read_send_id(request.send);
        let send = self.sends.entry(key).or_default();
        if send.payload.is_empty() {
            send.payload = request.payload.clone();
        }
    }

    pub(crate) fn on_told_owned(&mut self, key: SendKey, told: SendId, duplicate: bool, at: SimTime) {
        let owned = self.sends.get(&key).and_then(|send| send.owned);
        judged!(self, "told-owned-is-owned");
        if owned != Some(told) {
            self.violate(at, "told-owned-is-owned", vec![("send", key.to_string())]);
        }
        if duplicate {
            judged!(self, "one-send-per-key");
            self.mark("repetition-found-the-send-owned");
        }
    }

    pub(crate) fn on_told_not_owned(&mut self, key: SendKey, id: SendId, failure: &Failure, at: SimTime) {
        self.on_failure(failure);
        match failure {
            Failure::Rejected(Rejection::IntakeClosed) => {
                judged!(self, "closed-intake-accepts-nothing");
                self.mark("closed-intake-refused");
            }
            Failure::Rejected(Rejection::IdempotencyConflict(_)) => self.mark("misused-key-was-refused"),
            _ => {}
        }
        judged!(self, "told-not-owned-is-not-owned");
        let send = self.sends.entry(key).or_default();
        send.told_not_owned.insert(id);
        if send.owned == Some(id) {
            self.violate(at, "told-not-owned-is-not-owned", vec![("send", SendAlias(id).to_string())]);
        }
    }

    /// Somebody gave something up. If it was for a record of a newer version, then that one was left.
    pub(crate) fn on_failure(&mut self, failure: &Failure) {
        if let Failure::Inconsistent { why: Unreadable::UnknownFormat(format), .. } = failure
            && is_newer_format(*format)
        {
            judged!(self, "unknown-version-is-left");
            self.mark("newer-record-was-refused");
        }
    }

    // Workers.

    pub(crate) fn on_ended(&mut self, entry: EntryId, end: &DeliveryEnd, at: SimTime) {
        let is_terminal = matches!(end, DeliveryEnd::Settled(Settled::Delivered | Settled::Dropped(_) | Settled::Gone));
        if is_terminal {
            judged!(self, "settled-is-settled");
        }
        if is_terminal && self.entries.get(&entry).is_some_and(|ghost| ghost.end.is_none()) {
            self.violate(at, "settled-is-settled", vec![("entry", EntryAlias(entry).to_string())]);
        }
        if let DeliveryEnd::Yielded(failure) = end {
            self.on_failure(failure);
        }
        match end {
            DeliveryEnd::LeaseLost => {
                judged!(self, "settle-holds-the-fence");
                self.mark("lease-lost-before-settle");
            }
            DeliveryEnd::Settled(Settled::Gone) => self.mark("ambiguous-settle-had-happened"),
            DeliveryEnd::Settled(Settled::Deferred) => self.mark("gate-deferred"),
            DeliveryEnd::Settled(Settled::Parked(Block::Held)) => self.mark("gate-parked-held"),
            DeliveryEnd::Settled(Settled::Parked(Block::Circuit)) => self.mark("gate-parked-circuit"),
            DeliveryEnd::Settled(_) | DeliveryEnd::NotClaimed | DeliveryEnd::Quarantined | DeliveryEnd::Yielded(_) => {}
        }
    }

    pub(crate) fn on_observed(&mut self, observation: &Observation, at: SimTime) {
        match observation {
            Observation::Dropped { reason: DropReason::Permanent(_), .. } => self.mark("dropped-permanent"),
            Observation::Dropped { reason: DropReason::Expired, .. } => self.mark("dropped-expired"),
            Observation::Dropped { reason: DropReason::AttemptsExhausted, .. } => self.mark("dropped-exhausted"),
            Observation::Quarantined { entry, .. } if entry.is_intent() => {}
            Observation::Quarantined { .. } => self.mark("quarantined"),
            Observation::QuarantineDropped { .. } => self.mark("quarantine-ended"),
            Observation::IndexRepaired { .. } => self.mark("index-was-repaired"),
            Observation::LaneRepaired { .. } => self.mark("lane-was-repaired"),
            Observation::Dropped { reason: DropReason::PayloadUnreadable, entry } => {
                self.violate(at, "payload-outlives-its-entries", vec![("entry", EntryAlias(*entry).to_string())]);
            }
            Observation::Accepted { .. }
            | Observation::Delivered { .. }
            | Observation::Expanded { .. }
            | Observation::IntentDropped { .. } => {}
            Observation::QueueRepaired { .. } => self.mark("queue-was-repaired"),
            Observation::CircuitChanged { change, .. } => match change {
                CircuitChange::Opened => self.mark("circuit-opened"),
                CircuitChange::HalfOpened => self.mark("circuit-half-opened"),
                CircuitChange::Closed => self.mark("circuit-closed"),
            },
            Observation::HoldSet { .. } => self.mark("hold-was-set"),
            Observation::HoldReleased { .. } => self.mark("hold-was-released"),
            Observation::Dropped { reason: DropReason::CircuitHeld, .. } => self.mark("dropped-circuit-held"),
            Observation::Dropped { reason: DropReason::RetryAge, entry } => {
                self.mark("dropped-for-age");
                judged!(self, "hold-credit-is-the-union");
                if self.dropped_for_age_too_early(*entry) {
                    self.violate(at, "hold-credit-is-the-union", vec![("entry", EntryAlias(*entry).to_string())]);
                }
            }
        }
    }

    pub(crate) fn on_index_lost(&mut self, row_of: Option<EntryId>, at: SimTime) {
        self.index_lost_at_all = true;
        self.due_rows_lost.extend(row_of.map(|entry| (entry, at)));
    }

    // Answers.

    /// A node reads: what a depth query reads is recounted at the same point in time, what a gate reads is timed.
    pub(crate) fn on_read(&mut self, origin: Origin, about: &About, store: &Model, at: SimTime) {
        match (about.what, &about.subject) {
            // A claim of unknown outcome finds its own lease, and with it every wake that came since: none is pending.
            ("claim", restante_core::Subject::Entry(id)) if about.tries > 0 => {
                let stored = store.get(&self.env.keys.entry(*id)).and_then(|found| read::<Entry>(&found.value).ok());
                let owner = owner_id(origin.node, origin.life);
                if stored.and_then(|entry| entry.lease).is_some_and(|lease| lease.owner == owner)
                    && let Some(ghost) = self.entries.get_mut(id)
                {
                    ghost.wake_pending = false;
                }
            }
            ("read-destinations", _) => {
                self.passes.insert((origin.node, origin.life), StoreTime::from_ms(EPOCH_MS + at.as_ms()));
            }
            ("depth", _) => {
                let recount = self.recount(store);
                self.recounts.insert(origin.task, recount);
                self.check_conservation(&recount, at);
                if self.is_calm {
                    let now = StoreTime::from_ms(EPOCH_MS + at.as_ms());
                    self.check_bounds(store, StoreTime::from_ms(EPOCH_MS), at, now);
                }
            }
            ("legacy-gate", _) => {
                let now = StoreTime::from_ms(EPOCH_MS + at.as_ms());
                self.on_legacy_gate_read(origin, about, store, now);
            }
            ("gate", restante_core::Subject::Entry(id)) => {
                let now = StoreTime::from_ms(EPOCH_MS + at.as_ms());
                self.on_gate_read(*id, about, store, now);
                if let Some(ghost) = self.entries.get_mut(id) {
                    ghost.gate_read_at = Some((about.fence, now));
                }
            }
            _ => {}
        }
    }

    fn recount(&self, store: &Model) -> DepthReport {
        let keys = &self.env.keys;
        let mut sum = Counters::default();
        let remaining = |bytes: &[u8]| Intent::remaining_of(bytes).map_or(0, i64::from);
        for (key, record) in store.iter() {
            match keys.kind_of(key) {
                Some(Kind::Entry) => sum = sum.plus(Class::counted_of(&record.value)),
                Some(Kind::Quarantined) => {
                    sum.quarantined += 1;
                    if keys.read_entry(Kind::Quarantined, key).is_ok_and(|id| id.is_intent()) {
                        let aside = read::<Quarantined>(&record.value);
                        sum.pending_recipients += aside.map_or(0, |aside| remaining(aside.record.as_slice()));
                    }
                }
                Some(Kind::Intent) => {
                    sum.intents += 1;
                    sum.pending_recipients += remaining(record.value.as_bytes());
                }
                _ => {}
            }
        }
        DepthReport::new(sum, self.intake_open)
    }

    fn check_conservation(&mut self, recount: &DepthReport, at: SimTime) {
        if self.recipient_count > 0 {
            judged!(self, "recipients-are-conserved");
        }
        let ended = |end| self.entries.values().filter(|ghost| ghost.end == end).count() as i64;
        let (alive, quarantined) = (ended(None), ended(Some(End::Quarantined)));
        let unexpanded = |end| {
            let ghosts = self.intents.values().filter(|ghost| ghost.end == end);
            ghosts.fold((0, 0), |(count, left), ghost| (count + 1, left + i64::from(ghost.left())))
        };
        let (intents, pending) = unexpanded(None);
        let (parked, parked_left) = unexpanded(Some(End::Quarantined));
        let (_, dropped_left) = unexpanded(Some(End::Dropped));
        let sum = alive + quarantined + ended(Some(End::Delivered)) + ended(Some(End::Dropped));
        let sum = sum + pending + parked_left + dropped_left;
        let entries = recount.entries - self.intruders.len() as i64;
        let is_accounted = intents == recount.intents
            && (pending..=pending + parked_left).contains(&recount.pending_recipients)
            && recount.quarantined <= quarantined + parked;
        if alive != entries || !is_accounted || sum != self.recipient_count {
            let what = if alive < entries || sum > self.recipient_count { "surplus" } else { "missing" };
            self.violate(at, "recipients-are-conserved", vec![("recipients", what.to_owned())]);
        }
    }

    pub(crate) fn on_depth(&mut self, task: Task, report: DepthReport, at: SimTime) {
        let Some(recount) = self.recounts.remove(&task) else { return };
        if report.is_drained() {
            self.on_told_drained(&recount, at);
        }
        self.compare_depth(report, recount, at);
    }

    fn compare_depth(&mut self, report: DepthReport, recount: DepthReport, at: SimTime) {
        judged!(self, "depth-is-the-recount");
        let differing = [
            ("entries", report.entries != recount.entries),
            ("leased", report.leased != recount.leased),
            ("quarantined", report.quarantined != recount.quarantined),
            ("held", report.held != recount.held),
            ("circuit-held", report.circuit_held != recount.circuit_held),
            ("intake", report.intake_open != recount.intake_open),
            ("intents", report.intents != recount.intents),
            ("pending-recipients", report.pending_recipients != recount.pending_recipients),
        ];
        if report != recount {
            let names = differing.iter().filter(|(_, differs)| *differs).map(|(name, _)| ("counter", (*name).to_owned()));
            self.violate(at, "depth-is-the-recount", names.collect());
        }
    }

    /// A depth that was read while nothing changed, against a recount.
    pub(crate) fn check_depth(&mut self, store: &Model, report: DepthReport, at: SimTime) {
        let recount = self.recount(store);
        self.check_conservation(&recount, at);
        self.compare_depth(report, recount, at);
    }

    /// When entries vest: the deadlines that time passes to.
    pub(crate) fn vests(&self, store: &Model) -> Vec<StoreTime> {
        let all = |kind| store.scan(&self.env.keys.all(kind), usize::MAX).map_or_else(|_| Vec::new(), |page| page.entries);
        let entries = all(Kind::Entry).into_iter().filter_map(|(_, record)| Some(read::<Entry>(&record.value).ok()?.vest_at));
        let intents = all(Kind::Intent).into_iter().filter_map(|(_, record)| Some(read::<Intent>(&record.value).ok()?.vest_at));
        entries.chain(intents).collect()
    }

    /// Folds what really happened into a fingerprint of the state: what the properties will look at later.
    pub(crate) fn hash_truth(&self, hasher: &mut impl Hasher, now: StoreTime) {
        for (id, ghost) in &self.entries {
            let end = ghost.end.map(|end| end as u8);
            let lease = ghost.lease.map(|lease| (lease.fence, lease.expires_at.since_ms(now)));
            (id.send, id.index, end, ghost.fence_max, lease, ghost.wake_pending).hash(hasher);
            if end.is_none() {
                let gate = ghost.gate_read_at.map(|(fence, _)| fence);
                (&ghost.posted, &ghost.accepted, &ghost.told, gate).hash(hasher);
            }
        }
        for (id, ghost) in &self.intents {
            let end = ghost.end.map(|end| end as u8);
            let lease = ghost.lease.map(|lease| (lease.fence, lease.expires_at.since_ms(now)));
            (id, end, ghost.cursor, ghost.fence_max, lease).hash(hasher);
        }
        for (key, send) in &self.sends {
            (key, send.owned, &send.told_not_owned).hash(hasher);
        }
        for (destination, (_, until)) in &self.paced {
            (destination, until.since_ms(now)).hash(hasher);
        }
        for (id, lost_at) in &self.due_rows_lost {
            let is_before = self.last_change_of(*id).is_some_and(|changed_at| changed_at < self.sweep_began_at);
            (id.send, id.index, *lost_at < self.sweep_began_at, is_before).hash(hasher);
        }
        self.intake_open.hash(hasher);
        self.hash_destinations(hasher, now);
    }

    /// Whether a destination is one that nothing is wrong with in this scenario.
    fn is_healthy(&self, destination: &str) -> bool {
        crate::world::alias::destination_index(destination) >= self.ailing_count
    }

    /// How long the slowest of a hundred deliveries to healthy hosts took.
    pub(crate) fn healthy_p99_ms(&self) -> Option<u64> {
        let mut sorted = self.healthy_ms.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * 99).div_ceil(100).checked_sub(1)?;
        sorted.get(at).copied()
    }

    /// A run has ended as it should: was every healthy host served in time?
    pub(crate) fn check_healthy(&mut self, bound: Option<crate::scenario::Ms>, at: SimTime) {
        if let (Some(bound), Some(p99_ms)) = (bound, self.healthy_p99_ms()) {
            let property = if self.ailing_count > 0 { "a-dead-host-starves-nobody" } else { "polling-keeps-up" };
            match self.ailing_count {
                0 => judged!(self, "polling-keeps-up"),
                _ => judged!(self, "a-dead-host-starves-nobody"),
            }
            if p99_ms > bound.0 {
                self.violate(at, property, vec![("hosts", "healthy".to_owned())]);
            }
        }
    }

    /// A single run reports. What was discoverable and due when it began, and nobody touched since, it must have found.
    pub(crate) fn on_run_report(&mut self, store: &Model, report: RunReport, began_at: SimTime, at: SimTime) {
        if report.more {
            return;
        }
        self.mark("run-proved-empty");
        judged!(self, "no-more-means-none", "no-more-means-swept");
        let recent_ms = self.env.config.sweep_interval_ms + self.tolerance_ms;
        if self.swept_from.is_none_or(|from| from.as_ms() + recent_ms < began_at.as_ms()) {
            self.violate(at, "no-more-means-swept", vec![("sweep", "old".to_owned())]);
            return;
        }
        let began = StoreTime::from_ms(EPOCH_MS + began_at.as_ms());
        let limit = began.minus_ms(self.tolerance_ms);
        let keys = &self.env.keys;
        for (send, ghost) in &self.intents {
            let Some(found) = store.get(&keys.intent(*send)) else { continue };
            let Ok(intent) = read::<Intent>(&found.value) else { continue };
            let is_due = ghost.changed_at <= began_at && intent.active && intent.vest_at <= limit;
            if is_due && store.get(&keys.intent_due(*send, intent.vest_at)).is_some() && !self.index_lost_at_all {
                self.violate(at, "no-more-means-none", vec![("send", SendAlias(*send).to_string())]);
                return;
            }
        }
        for (key, record) in store.iter() {
            let (Some(Kind::Entry), Ok(entry)) = (keys.kind_of(key), read::<Entry>(&record.value)) else { continue };
            let Ok(id) = keys.read_entry(Kind::Entry, key) else { continue };
            let due_key = keys.due(&entry.destination, entry.vest_at, id);
            let is_untouched = self.entries.get(&id).is_some_and(|ghost| ghost.changed_at <= began_at);
            let is_due = is_untouched && entry.active && entry.vest_at <= limit && store.get(&due_key).is_some();
            if is_due && !self.index_lost_at_all && !is_blocked(store, &self.env, &entry.destination, limit) {
                self.violate(at, "no-more-means-none", vec![("entry", EntryAlias(id).to_string())]);
                return;
            }
        }
    }

    /// The first thing that is not drained: an entry, an intent, or, `with_chunks`, something staged that nobody needs any more.
    pub(crate) fn first_left(&self, store: &Model, with_chunks: bool) -> Option<(&'static str, String)> {
        let keys = &self.env.keys;
        for (kind, role) in [
            (Kind::Entry, "entry"),
            (Kind::Intent, "intent"),
            (Kind::Stage, "stage"),
            (Kind::PayloadChunk, "chunk"),
            (Kind::RecipientChunk, "recipients"),
            (Kind::Member, "member"),
        ] {
            if !with_chunks && matches!(kind, Kind::PayloadChunk | Kind::RecipientChunk) {
                continue;
            }
            let page = store.scan(&keys.all(kind), 1).ok()?;
            if let Some((key, _)) = page.entries.first() {
                let alias = match (keys.read_entry(kind, key), keys.read_send(kind, key)) {
                    (Ok(id), _) if !matches!(kind, Kind::PayloadChunk | Kind::RecipientChunk) => EntryAlias(id).to_string(),
                    (_, Ok(send)) => SendAlias(send).to_string(),
                    _ => String::new(),
                };
                return Some((role, alias));
            }
        }
        None
    }
}

/// Whether a destination's pause, hold or open circuit lasted until `at` at least: what it kept back then was not due.
fn is_blocked(store: &Model, env: &Env, destination: &str, at: StoreTime) -> bool {
    let record = store.get(&env.keys.destination(destination));
    let known = record.and_then(|found| read::<Destination>(&found.value).ok());
    // What was released since was kept back until then; it is found by whoever looks next.
    let lasted = |known: &Destination| {
        // Each destination is looked at a little later than it is released, by its own measure.
        let ends = known.holds.iter().map(|hold| hold.until).chain([known.paced_until, known.resumed_at]);
        let ends = ends.map(|end| end.plus_ms(env.config.resume_jitter_ms));
        known.block_at(at, &env.config).is_some() || known.circuit_at(at) != CircuitState::Closed || ends.max() >= Some(at)
    };
    known.is_some_and(|known| lasted(&known))
}
