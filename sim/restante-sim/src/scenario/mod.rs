//! Scenario files: what world to build, what load to put on it, which faults to ask for. See `docs/scenario-format.md`.

mod families;
mod kinds;
mod load;
pub(crate) mod swarm;
mod units;

pub use families::families;
pub use kinds::{RecordKinds, kind_name};
pub use load::{ScenarioError, builtin_names, general_names, load, parse, suite_names};
pub use units::{Ms, Share, Size, Span};

use restante_core::Config;
use restante_core::machine::LegacyMode;
use serde::{Deserialize, Serialize};

/// A scenario, as its file says it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Folder and file name without the ending; not part of the file.
    #[serde(skip)]
    pub name: String,
    /// Why this scenario exists, in one or two sentences.
    pub why: String,
    /// A planted bug to run with: the scenario is there to see it found.
    pub planted: Option<String>,
    /// Who is there, and for how long.
    #[serde(default)]
    pub world: World,
    /// What is asked of the backlog.
    #[serde(default)]
    pub workload: Workload,
    /// Settings of the backlog.
    #[serde(default)]
    pub config: ConfigTable,
    /// How long things take.
    #[serde(default)]
    pub latency: Latency,
    /// The old queue beside the backlog, if there is one.
    #[serde(default)]
    pub legacy: Legacy,
    /// What goes wrong until the world heals.
    #[serde(default)]
    pub faults: Faults,
    /// What a set of runs of this scenario must have seen.
    #[serde(default)]
    pub expect: Expect,
    /// The bound within which `check` explores every order of events.
    #[serde(default)]
    pub bound: Bound,
    /// What each seed takes its choice of; none if every seed takes all.
    pub swarm: Option<Swarm>,
}

/// What each seed takes its choice of.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Swarm {
    /// Fault families.
    pub families: bool,
    /// What is asked of the backlog, beyond plain sends.
    pub operations: bool,
    /// Settings that go with any others: as the scenario has them, or at their defaults.
    pub settings: bool,
    /// How many workers, cron callers, destinations, producers, sends and order keys there are, up to the scenario's own number.
    pub scale: bool,
    /// In which order events happen that are close to each other: one of these.
    pub schedules: Vec<Schedule>,
}

/// In which order events happen that lie close to each other in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// The earliest first, as latencies have it.
    #[default]
    Timed,
    /// By a priority of whoever is at work, which changes a few times a run.
    Pct,
    /// By a priority of each event, drawn anew when it loses a race.
    Pos,
}

impl Schedule {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Timed, Self::Pct, Self::Pos];

    /// Its name in a scenario's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timed => "timed",
            Self::Pct => "pct",
            Self::Pos => "pos",
        }
    }
}

/// The bound of an exploration, beside what `world`, `workload`, `config` and `faults` say.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bound {
    /// Most commits whose answer says "unknown".
    pub ambiguous_count: u32,
    /// Most times that time passes a deadline although somebody could have acted before.
    pub pauses_count: u32,
    /// Whether the scans of discovery can be overtaken like any other operation, instead of being read at once.
    pub hints_are_moves: bool,
    /// Whether the sends happen while the workers run, instead of before.
    pub sends_meet_workers: bool,
    /// Whether workers sweep, and index rows may vanish at any time: as many as the faults of the store say.
    pub sweeps: bool,
}

/// Who is there, and for how long.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct World {
    /// Workers that serve for good.
    pub workers: u32,
    /// Cron callers: each runs one bounded run, again and again, under a new owner id each time.
    pub cron_callers: u32,
    /// Time between the runs of a cron caller.
    pub cron_every: Span,
    /// Most deliveries of one cron run.
    pub cron_limit_count: u64,
    /// Destinations, one host each.
    pub destinations: u32,
    /// Whether the store has a clock of its own; without one every node judges by its own.
    pub store_clock: bool,
    /// When faults end.
    pub heal_at: Ms,
    /// How long after that everything must be drained.
    pub settle_within: Ms,
    /// Most events of a run; more is a livelock.
    pub events_max: u64,
    /// Within which time 99 of 100 deliveries to hosts that nothing is wrong with are done; no bound if not given.
    pub healthy_p99: Option<Ms>,
    /// In which order events happen that lie close to each other.
    pub schedule: Schedule,
    /// How close that is: how much later than its time an event may happen, if another schedule than `timed` says so.
    pub reorder_within: Ms,
}

impl Default for World {
    fn default() -> Self {
        Self {
            workers: 2,
            cron_callers: 0,
            cron_every: Span::ms(2_000, 5_000),
            cron_limit_count: 20,
            destinations: 3,
            store_clock: true,
            heal_at: Ms(30_000),
            settle_within: Ms(300_000),
            events_max: 200_000,
            healthy_p99: None,
            schedule: Schedule::Timed,
            reorder_within: Ms(25),
        }
    }
}

/// What is asked of the backlog.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Processes that send.
    pub producers: u32,
    /// Sends of each producer.
    pub sends_count: u32,
    /// Time between the sends of a producer.
    pub gap: Span,
    /// Most recipients of a send, at most the number of destinations.
    pub recipients_max: u32,
    /// Share of sends with an order key.
    pub keyed: Share,
    /// Number of order keys.
    pub order_keys: u32,
    /// Share of sends with a payload that must be staged.
    pub large: Share,
    /// Share of sends that become intents.
    pub fanout: Share,
    /// Least recipients of a send that becomes an intent.
    pub fanout_recipients_min: u32,
    /// Most recipients of a send that becomes an intent.
    pub fanout_recipients_max: u32,
    /// Share of sends whose deliveries are of no use after an instant of their own.
    pub deadlined: Share,
    /// When that instant is, from the beginning of the run.
    pub deadline: Span,
    /// Share of sends that are repeated under their idempotency key although they were accepted.
    pub repeated: Share,
    /// Share of sends whose idempotency key is used again for another request.
    pub misused: Share,
    /// Wakes of single entries by an operator.
    pub wakes_count: u32,
    /// Depth queries by an operator.
    pub depths_count: u32,
    /// Whether an operator brings back, once faults have ended, whatever lies aside.
    pub revives: bool,
    /// When an operator closes intake.
    pub close_intake_at: Option<Ms>,
    /// When an operator opens it again.
    pub open_intake_at: Option<Ms>,
    /// Hold notices that an operator passes on.
    pub holds_count: u32,
    /// How long a hold lasts.
    pub hold_length: Span,
    /// Share of notices that do not say when the hold ends.
    pub hold_unknown_end: Share,
    /// Share of holds that are extended half-way.
    pub hold_extended: Share,
    /// Share of holds that are released before they end.
    pub hold_released: Share,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            producers: 2,
            sends_count: 12,
            gap: Span::ms(50, 1_500),
            recipients_max: 2,
            keyed: Share(400_000),
            order_keys: 2,
            large: Share(0),
            fanout: Share(0),
            fanout_recipients_min: 5,
            fanout_recipients_max: 9,
            deadlined: Share(0),
            deadline: Span::ms(5_000, 40_000),
            repeated: Share(0),
            misused: Share(0),
            wakes_count: 0,
            depths_count: 4,
            revives: false,
            close_intake_at: None,
            open_intake_at: None,
            holds_count: 0,
            hold_length: Span::ms(2_000, 12_000),
            hold_unknown_end: Share(0),
            hold_extended: Share(0),
            hold_released: Share(0),
        }
    }
}

/// Settings of the backlog; what is not given is a default that suits a short run.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each is the setting of the same name in restante_core::Config")]
pub struct ConfigTable {
    pub max_retention: Ms,
    pub lease: Ms,
    pub request_timeout: Ms,
    pub lease_margin: Ms,
    pub gate_freshness: Ms,
    pub max_clock_skew: Ms,
    pub attempts_max: u32,
    pub backoff_initial: Ms,
    pub backoff_max: Ms,
    pub inline_max: Size,
    pub chunk: Size,
    pub stage_deadline: Ms,
    pub poll_interval: Ms,
    pub sweep_interval: Ms,
    pub marker_retention: Ms,
    pub dead_letter_retention: Ms,
    pub quarantine_retention: Ms,
    pub window: usize,
    pub concurrency: usize,
    pub counter_slots: u64,
    pub pointer_shards: u64,
    pub tries_max: u32,
    pub expand_entries_max: usize,
    pub expand_lanes_max: usize,
    pub concurrency_per_destination: usize,
    pub ramp_step: Ms,
    pub resume_jitter: Ms,
    pub held_recheck_interval: Ms,
    pub hold_cap: Ms,
    pub retry_age_max: Ms,
    pub breaker_failures: usize,
    pub breaker_window: Ms,
    pub breaker_recovery: Ms,
    pub circuit_held_max: Ms,
}

impl Default for ConfigTable {
    fn default() -> Self {
        Self {
            max_retention: Ms(120_000),
            lease: Ms(6_000),
            request_timeout: Ms(2_000),
            lease_margin: Ms(1_000),
            gate_freshness: Ms(1_000),
            max_clock_skew: Ms(0),
            attempts_max: 11,
            backoff_initial: Ms(500),
            backoff_max: Ms(8_000),
            inline_max: Size(512),
            chunk: Size(256),
            stage_deadline: Ms(20_000),
            poll_interval: Ms(2_000),
            sweep_interval: Ms(15_000),
            marker_retention: Ms(24 * 3_600_000),
            dead_letter_retention: Ms(7 * 24 * 3_600_000),
            quarantine_retention: Ms(20_000),
            window: 8,
            concurrency: 4,
            counter_slots: 8,
            pointer_shards: 4,
            tries_max: 8,
            expand_entries_max: 3,
            expand_lanes_max: 2,
            concurrency_per_destination: usize::MAX,
            ramp_step: Ms(0),
            resume_jitter: Ms(0),
            held_recheck_interval: Ms(5_000),
            hold_cap: Ms(20_000),
            retry_age_max: Ms(0),
            breaker_failures: 0,
            breaker_window: Ms(20_000),
            breaker_recovery: Ms(5_000),
            circuit_held_max: Ms(60_000),
        }
    }
}

impl ConfigTable {
    /// The backlog's settings.
    pub fn to_config(&self) -> Config {
        Config {
            prefix: "r/".into(),
            lease_ms: self.lease.0,
            request_timeout_ms: self.request_timeout.0,
            lease_margin_ms: self.lease_margin.0,
            gate_freshness_ms: self.gate_freshness.0,
            max_clock_skew_ms: self.max_clock_skew.0,
            attempts_max: self.attempts_max,
            backoff_initial_ms: self.backoff_initial.0,
            backoff_max_ms: self.backoff_max.0,
            inline_bytes_max: self.inline_max.0,
            chunk_bytes: self.chunk.0,
            stage_deadline_ms: self.stage_deadline.0,
            poll_interval_ms: self.poll_interval.0,
            sweep_interval_ms: self.sweep_interval.0,
            marker_retention_ms: self.marker_retention.0,
            dead_letter_retention_ms: self.dead_letter_retention.0,
            quarantine_retention_ms: self.quarantine_retention.0,
            window: self.window,
            concurrency: self.concurrency,
            counter_slots: self.counter_slots,
            pointer_shards: self.pointer_shards,
            tries_max: self.tries_max,
            expand_entries_max: self.expand_entries_max,
            expand_lanes_max: self.expand_lanes_max,
            concurrency_per_destination: self.concurrency_per_destination,
            ramp_step_ms: self.ramp_step.0,
            resume_jitter_ms: self.resume_jitter.0,
            held_recheck_interval_ms: self.held_recheck_interval.0,
            hold_cap_ms: self.hold_cap.0,
            retry_age_max_ms: self.retry_age_max.0,
            breaker_failures: self.breaker_failures,
            breaker_window_ms: self.breaker_window.0,
            breaker_recovery_ms: self.breaker_recovery.0,
            circuit_held_max_ms: self.circuit_held_max.0,
            ..Config::new(self.max_retention.0)
        }
    }
}

/// An old queue beside the backlog.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Legacy {
    /// What becomes of its messages; without it, there is no old queue.
    pub mode: Option<LegacyMode>,
    /// Processes that work it off for good.
    pub listeners: u32,
    /// Processes that work it off in bounded runs, as often and as much as cron callers.
    pub cron_listeners: u32,
    /// Messages that the old server puts into it before the world heals.
    pub messages_count: u32,
    /// Share of them that go to two inboxes.
    pub fanout: Share,
    /// Share of those that have an order key.
    pub keyed: Share,
    /// Share of the others that are none of ours.
    pub others: Share,
    /// How long a received message is kept from other listeners.
    pub visible: Ms,
    /// How long a listener waits when there is nothing.
    pub poll: Ms,
    /// How many messages a listener has under way at most.
    pub concurrency: usize,
}

impl Default for Legacy {
    fn default() -> Self {
        Self {
            mode: None,
            listeners: 2,
            cron_listeners: 0,
            messages_count: 0,
            fanout: Share(0),
            keyed: Share(0),
            others: Share(0),
            visible: Ms(6_000),
            poll: Ms(500),
            concurrency: 3,
        }
    }
}

/// How long things take.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    /// A store operation, there and back.
    pub store: Span,
    /// A POST and its answer, there and back.
    pub network: Span,
    /// A wake signal.
    pub signal: Span,
}

impl Default for Latency {
    fn default() -> Self {
        Self { store: Span::ms(2, 20), network: Span::ms(10, 200), signal: Span::ms(1, 10) }
    }
}

/// What goes wrong until the world heals.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each is the family of the same name")]
pub struct Faults {
    pub store: StoreFaults,
    pub network: NetworkFaults,
    pub receiver: ReceiverFaults,
    pub process: ProcessFaults,
    pub signals: SignalFaults,
    pub clocks: ClockFaults,
    pub legacy: LegacyFaults,
}

/// Faults of the store.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreFaults {
    /// An operation is refused; nothing happens.
    pub unavailable: Share,
    /// A commit meets a conflict although its checks hold.
    pub conflict: Share,
    /// A commit happens and its answer says "unknown".
    pub ambiguous_committed: Share,
    /// A commit does not happen and its answer says "unknown".
    pub ambiguous_lost: Share,
    /// A commit's answer says "unknown" and it happens later.
    pub ambiguous_late: Share,
    /// A scan's page ends early, with more to come.
    pub short_page: Share,
    /// An operation takes much longer.
    pub slow: Share,
    /// Outages: every operation is refused.
    pub outages_count: u32,
    /// Length of an outage.
    pub outage: Option<Span>,
    /// Due rows that vanish.
    pub lost_due_rows_count: u32,
    /// Pointers that vanish.
    pub lost_pointers_count: u32,
    /// Entries that turn out to be of another version.
    pub foreign_records_count: u32,
    /// Entries whose bytes are damaged.
    pub damaged_records_count: u32,
    /// Intents that turn out to be of another version.
    pub foreign_intents_count: u32,
    /// Entries that somebody else puts where an intent would be expanded; they go when the world heals.
    pub conflicting_entries_count: u32,
}

/// Faults on the way to a destination.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkFaults {
    /// The request never arrives; the sender does not know.
    pub lost_request: Share,
    /// The request arrives; its answer is lost.
    pub lost_response: Share,
    /// The request arrives twice.
    pub duplicated: Share,
    /// The connection is reset after the request was sent.
    pub reset: Share,
    /// No connection.
    pub refused: Share,
    /// The name does not resolve.
    pub dns: Share,
    /// The TLS handshake fails.
    pub tls: Share,
    /// The request arrives long after the sender gave up on it.
    pub late: Share,
}

/// What destinations answer besides "accepted".
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReceiverFaults {
    /// 500 or 502.
    pub server_error: Share,
    /// 429 or 503 with Retry-After.
    pub rate_limited: Share,
    /// 404 or 410.
    pub gone: Share,
    /// 401 or a redirect.
    pub refused: Share,
    /// Hosts that answer nothing until the world heals.
    pub dead_hosts_count: u32,
    /// Hosts, after the dead ones, that answer nothing for a while, then everything, again and again until the world heals.
    pub flapping_hosts_count: u32,
    /// How long they do either.
    pub flap_every: Option<Ms>,
    /// Hosts, after those, whose answers take nearly as long as a request may, until the world heals.
    pub slow_hosts_count: u32,
}

impl ReceiverFaults {
    /// Hosts that something is wrong with for good until the world heals.
    pub fn ailing_count(&self) -> u32 {
        self.dead_hosts_count + self.flapping_hosts_count + self.slow_hosts_count
    }
}

/// Faults of processes.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessFaults {
    /// Chance of a crash before each commit.
    pub crash_before_commit: Share,
    /// Chance of a crash after each commit, before its answer is used.
    pub crash_after_commit: Share,
    /// Chance of a crash before each POST.
    pub crash_before_post: Share,
    /// Chance of a crash after each POST, before its answer is used.
    pub crash_after_post: Share,
    /// Chance of a crash before each wake.
    pub crash_before_wake: Share,
    /// Chance of a crash after each wake.
    pub crash_after_wake: Share,
    /// Most crashes of a run.
    pub crashes_max: u32,
    /// Time until a crashed process is back, under another owner id.
    pub restart_after: Option<Span>,
    /// Chance that a process stands still before it executes a POST it decided on.
    pub pause_before_post: Share,
    /// Chance that a process stands still before it uses an answer.
    pub pause: Share,
    /// How long it stands still.
    pub pause_length: Option<Span>,
    /// Graceful restarts of workers: what is under way ends, nothing new is taken.
    pub graceful_restarts_count: u32,
    /// Times at which nobody delivers: all workers and cron callers are gone at once.
    pub downtimes_count: u32,
    /// How long nobody does.
    pub downtime: Option<Span>,
    /// When processes begin to be replaced, one after another, by a build some of whose records the older one cannot read; never
    /// if 0.
    pub upgrade_at: Ms,
    /// Within how long all of them are.
    pub upgrade_within: Option<Ms>,
    /// Kinds of records of which the newer build has a format of its own.
    pub upgrade_kinds: RecordKinds,
}

impl ProcessFaults {
    /// Whether any crash is asked for.
    pub fn can_crash(&self) -> bool {
        [
            self.crash_before_commit,
            self.crash_after_commit,
            self.crash_before_post,
            self.crash_after_post,
            self.crash_before_wake,
            self.crash_after_wake,
        ]
        .iter()
        .any(|share| share.0 > 0)
    }
}

/// Faults of wake signals.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignalFaults {
    /// A signal never arrives.
    pub lost: Share,
    /// A signal arrives twice.
    pub duplicated: Share,
    /// A signal arrives late.
    pub late: Share,
}

/// Faults of clocks. Each node has its own.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockFaults {
    /// How far a node's wall clock is off at most, either way.
    pub skew: Ms,
    /// How much a node's clock is too fast or too slow at most, written as a share.
    pub drift: Share,
    /// Steps of wall clocks, forward or backward.
    pub steps_count: u32,
    /// Size of a step.
    pub step: Option<Span>,
}

/// Faults of the old queue, and of who works it off.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LegacyFaults {
    /// An operation is refused; nothing happens.
    pub unavailable: Share,
    /// An operation happens and its answer says "unknown".
    pub ambiguous_done: Share,
    /// An operation does not happen and its answer says "unknown".
    pub ambiguous_lost: Share,
    /// A message may be received by others while it is worked on.
    pub redelivered: Share,
    /// Chance of a crash before a message is completed.
    pub crash_before_complete: Share,
    /// Chance of a crash after a message was completed, before its answer is used.
    pub crash_after_complete: Share,
}

/// What a set of runs of this scenario must have seen.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Names of `sometimes` properties.
    pub sometimes: Vec<String>,
    /// The property that the planted bug must violate; its violation is then no failure, and its absence is one.
    pub violation: Option<String>,
    /// From how many runs on a set leaves no row of the vacuity report empty.
    pub no_empty_row_from: Option<u64>,
}
