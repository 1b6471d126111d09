//! Swarm: what a seed takes of a scenario that has everything.
//!
//! A scenario with every fault and every kind of load at once hides more than it shows: one fault ends what another would have
//! led to. So each seed takes a subset. Which one, is decided like everything else, by site and key: a switch more or less
//! shifts no other, a tape can name one, and what a seed took can be [written](Taken::edits) as an ordinary scenario.

use std::borrow::Cow;

use restante_engine::{Alternative, Decider, Quantity};
use toml::Value;

use super::families::{Amount, families_mut, section_of};
use super::{ConfigTable, Legacy, RecordKinds, Scenario, Schedule, Workload, World};

/// How much of a table a seed takes: the chance of each of its switches, in percent. Nothing is the benign answer.
const SHARES: [(Alternative, u32); 4] = [
    (Alternative::new("none", 15), 0),
    (Alternative::new("few", 25), 20),
    (Alternative::new("half", 40), 50),
    (Alternative::new("most", 20), 85),
];

/// What may go wrong at all, with the chance in percent: nothing; hosts that ail for as long as faults last; whatever lies
/// outside, hosts and the way to them; everything. What holds in a calm world is judged only there.
const KINDS: [Alternative; 4] =
    [Alternative::new("none", 5), Alternative::new("hosts", 7), Alternative::new("outside", 8), Alternative::new("all", 80)];

/// Whether a fault family is of one of the [`KINDS`].
fn is_of_kind(family: &str, kind: &str) -> bool {
    match kind {
        "none" => false,
        "hosts" => matches!(family, "receiver.dead-host" | "receiver.flapping-host" | "receiver.slow-host"),
        "outside" => family.starts_with("receiver.") || family.starts_with("network."),
        _ => true,
    }
}

/// A change of a scenario's file: section, key, and the new value; none if the key goes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Edit {
    pub(crate) section: &'static str,
    pub(crate) key: &'static str,
    pub(crate) value: Option<Value>,
}

/// What a seed took.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) scenario: Scenario,
    /// What makes the file of the swarm one of what was taken.
    pub(crate) edits: Vec<Edit>,
    /// The same in words, for a trace.
    pub(crate) note: String,
}

/// What is asked of the backlog, as switches. The table is taken apart whole, so that nothing can be forgotten here.
fn operations(workload: &mut Workload) -> Vec<(&'static str, &'static str, Amount<'_>)> {
    let Workload {
        producers: _,
        sends_count: _,
        gap: _,
        recipients_max: _,
        keyed,
        order_keys: _,
        large,
        fanout,
        fanout_recipients_min: _,
        fanout_recipients_max: _,
        deadlined,
        deadline: _,
        repeated,
        misused,
        wakes_count,
        depths_count,
        revives: _,
        close_intake_at: _,
        open_intake_at: _,
        holds_count,
        hold_length: _,
        hold_unknown_end,
        hold_extended,
        hold_released,
    } = workload;
    vec![
        ("keyed", "keyed", Amount::Share(keyed)),
        ("large", "large", Amount::Share(large)),
        ("fanout", "fanout", Amount::Share(fanout)),
        ("deadlined", "deadlined", Amount::Share(deadlined)),
        ("repeated", "repeated", Amount::Share(repeated)),
        ("misused", "misused", Amount::Share(misused)),
        ("wakes", "wakes_count", Amount::Count(wakes_count)),
        ("depths", "depths_count", Amount::Count(depths_count)),
        ("holds", "holds_count", Amount::Count(holds_count)),
        ("hold-unknown-end", "hold_unknown_end", Amount::Share(hold_unknown_end)),
        ("hold-extended", "hold_extended", Amount::Share(hold_extended)),
        ("hold-released", "hold_released", Amount::Share(hold_released)),
    ]
}

/// A setting that a seed takes as the scenario has it, or leaves at its default.
type Setting = (&'static str, &'static str, &'static str, fn(&mut Scenario));

/// Settings that go with any others.
const SETTINGS: [Setting; 16] = [
    ("store-without-clock", "world", "store_clock", |taken| taken.world.store_clock = World::default().store_clock),
    ("network", "latency", "network", |taken| taken.latency.network = super::Latency::default().network),
    ("retention", "config", "max_retention", |taken| taken.config.max_retention = ConfigTable::default().max_retention),
    ("attempts", "config", "attempts_max", |taken| taken.config.attempts_max = ConfigTable::default().attempts_max),
    ("sweep", "config", "sweep_interval", |taken| taken.config.sweep_interval = ConfigTable::default().sweep_interval),
    ("counter-slots", "config", "counter_slots", |taken| taken.config.counter_slots = ConfigTable::default().counter_slots),
    ("tries", "config", "tries_max", |taken| taken.config.tries_max = ConfigTable::default().tries_max),
    ("window", "config", "window", |taken| taken.config.window = ConfigTable::default().window),
    ("concurrency", "config", "concurrency", |taken| taken.config.concurrency = ConfigTable::default().concurrency),
    ("share", "config", "concurrency_per_destination", |taken| {
        taken.config.concurrency_per_destination = ConfigTable::default().concurrency_per_destination;
    }),
    ("ramp", "config", "ramp_step", |taken| taken.config.ramp_step = ConfigTable::default().ramp_step),
    ("resume-jitter", "config", "resume_jitter", |taken| taken.config.resume_jitter = ConfigTable::default().resume_jitter),
    ("retry-age", "config", "retry_age_max", |taken| taken.config.retry_age_max = ConfigTable::default().retry_age_max),
    ("breaker", "config", "breaker_failures", |taken| {
        taken.config.breaker_failures = ConfigTable::default().breaker_failures;
    }),
    ("circuit-held", "config", "circuit_held_max", |taken| {
        taken.config.circuit_held_max = ConfigTable::default().circuit_held_max;
    }),
    ("backoff", "config", "backoff_max", |taken| {
        taken.config.backoff_max = ConfigTable::default().backoff_max;
    }),
];

/// What `decider` takes of `scenario`; all of it if it is no swarm. Asked before anything else of a run.
pub(crate) fn taken<'s>(scenario: &'s Scenario, decider: &mut Decider) -> (Cow<'s, Scenario>, Option<String>) {
    match &scenario.swarm {
        None => (Cow::Borrowed(scenario), None),
        Some(_) => {
            let taken = take(scenario, decider);
            (Cow::Owned(taken.scenario), Some(taken.note))
        }
    }
}

/// What `decider` takes of `scenario`, with all there is to say of it.
pub(crate) fn take(scenario: &Scenario, decider: &mut Decider) -> Taken {
    let mut taken = Taken { scenario: scenario.clone(), edits: Vec::new(), note: String::new() };
    let Some(swarm) = taken.scenario.swarm.take() else { return taken };
    let mut taking = Taking { decider, taken, on: Vec::new(), kind: "all", share: ("", 0) };
    if swarm.families {
        taking.families();
    }
    if swarm.operations {
        taking.operations();
    }
    if swarm.settings {
        taking.settings();
    }
    if swarm.scale {
        taking.scale();
    }
    taking.schedule(&swarm.schedules);
    taking.bounds();
    let Taking { mut taken, on, .. } = taking;
    taken.note = if on.is_empty() { "nothing but sends".to_owned() } else { on.join(", ") };
    taken
}

struct Taking<'d> {
    decider: &'d mut Decider,
    taken: Taken,
    /// What was taken, in words.
    on: Vec<String>,
    /// What may go wrong at all.
    kind: &'static str,
    /// The table asked for last, and the chance of its switches in percent.
    share: (&'static str, u32),
}

impl Taking<'_> {
    /// Whether a switch of a table is on.
    fn is_on(&mut self, table: &'static str, name: &str) -> bool {
        if self.share.0 != table {
            let shares = SHARES.map(|(share, _)| share);
            let index = self.decider.choose("swarm.share", format_args!("{table}"), &shares);
            self.share = (table, SHARES[index].1);
        }
        let percent = self.share.1;
        // A tape may switch on what the seed leaves off.
        let switch = [Alternative::new("off", 100 - percent), Alternative::new("on", percent)];
        let is_on = self.decider.choose("swarm.switch", format_args!("{name}"), &switch) == 1;
        if is_on {
            self.on.push(name.to_owned());
        }
        is_on
    }

    fn edit(&mut self, section: &'static str, key: &'static str, value: Option<Value>) {
        self.taken.edits.push(Edit { section, key, value });
    }

    fn families(&mut self) {
        self.kind = KINDS[self.decider.choose("swarm.faults", format_args!("kind"), &KINDS)].name;
        let mut faults = std::mem::take(&mut self.taken.scenario.faults);
        for family in families_mut(&mut faults) {
            let section = family.section();
            if family.amount.is_some() && !(is_of_kind(family.name, self.kind) && self.is_on(section, family.name)) {
                self.edit(section, family.key, None);
                family.amount.clear();
            }
        }
        self.taken.scenario.faults = faults;
        self.helpers();
    }

    /// Settings that only say how a fault happens go with it: a world in which nobody crashes is steady.
    fn helpers(&mut self) {
        let faults = &mut self.taken.scenario.faults;
        let (store, process, clocks) = (&mut faults.store, &mut faults.process, &mut faults.clocks);
        let mut gone: Vec<(&'static str, &'static str)> = Vec::new();
        let mut forget = |family: &'static str, key: &'static str| gone.push((section_of(family), key));
        if store.outages_count == 0 && store.outage.take().is_some() {
            forget("store", "outage");
        }
        let old_queue_crashes = faults.legacy.crash_before_complete.0 + faults.legacy.crash_after_complete.0 > 0;
        if !process.can_crash() && !old_queue_crashes {
            if std::mem::take(&mut process.crashes_max) > 0 {
                forget("process", "crashes_max");
            }
            if process.restart_after.take().is_some() {
                forget("process", "restart_after");
            }
        }
        if process.pause.0 == 0 && process.pause_before_post.0 == 0 && process.pause_length.take().is_some() {
            forget("process", "pause_length");
        }
        if process.downtimes_count == 0 && process.downtime.take().is_some() {
            forget("process", "downtime");
        }
        if process.upgrade_at.0 == 0 && process.upgrade_within.take().is_some() {
            forget("process", "upgrade_within");
        }
        if process.upgrade_at.0 == 0 && std::mem::take(&mut process.upgrade_kinds) != RecordKinds::default() {
            forget("process", "upgrade_kinds");
        }
        if clocks.steps_count == 0 && clocks.step.take().is_some() {
            forget("clocks", "step");
        }
        for (section, key) in gone {
            self.edit(section, key, None);
        }
    }

    fn operations(&mut self) {
        let mut workload = std::mem::take(&mut self.taken.scenario.workload);
        for (name, key, amount) in operations(&mut workload) {
            if amount.is_some() && !self.is_on("workload", name) {
                self.edit("workload", key, Some(amount.none_text()));
                amount.clear();
            }
        }
        if workload.recipients_max > 1 && !self.is_on("workload", "several-recipients") {
            self.edit("workload", "recipients_max", Some(1.into()));
            workload.recipients_max = 1;
        }
        if workload.revives && !self.is_on("workload", "revives") {
            self.edit("workload", "revives", None);
            workload.revives = false;
        }
        if workload.close_intake_at.is_some() && !self.is_on("workload", "intake") {
            self.edit("workload", "close_intake_at", None);
            self.edit("workload", "open_intake_at", None);
            (workload.close_intake_at, workload.open_intake_at) = (None, None);
        }
        if self.taken.scenario.world.cron_callers > 0 && !self.is_on("workload", "cron") {
            self.edit("world", "cron_callers", Some(0.into()));
            self.taken.scenario.world.cron_callers = 0;
        }
        self.taken.scenario.workload = workload;
        if self.taken.scenario.legacy.mode.is_some() && !self.is_on("workload", "old-queue") {
            self.without_old_queue();
        }
    }

    /// No old queue, and nothing that could go wrong with it.
    fn without_old_queue(&mut self) {
        let keys = [
            "mode",
            "listeners",
            "cron_listeners",
            "messages_count",
            "fanout",
            "keyed",
            "others",
            "visible",
            "poll",
            "concurrency",
        ];
        for key in keys {
            self.edit("legacy", key, None);
        }
        self.taken.scenario.legacy = Legacy::default();
        let mut faults = std::mem::take(&mut self.taken.scenario.faults);
        for family in families_mut(&mut faults) {
            if family.section() == "faults.legacy" && family.amount.is_some() {
                self.edit(family.section(), family.key, None);
                family.amount.clear();
            }
        }
        self.taken.scenario.faults = faults;
        self.helpers();
    }

    fn settings(&mut self) {
        for (name, section, key, default) in SETTINGS {
            let mut without = self.taken.scenario.clone();
            default(&mut without);
            if without != self.taken.scenario && !self.is_on("config", name) {
                self.edit(section, key, None);
                self.taken.scenario = without;
            }
        }
    }

    fn scale(&mut self) {
        let (world, load) = (&self.taken.scenario.world, &self.taken.scenario.workload);
        let (crons, workers, hosts) = (world.cron_callers, world.workers, world.destinations);
        let (producers, sends, keys, recipients) = (load.producers, load.sends_count, load.order_keys, load.recipients_max);
        let crons = if crons > 0 { self.number("world", "cron_callers", 1, crons) } else { 0 };
        let workers = self.number("world", "workers", u32::from(crons == 0), workers);
        let hosts = self.number("world", "destinations", 1, hosts);
        let producers = self.number("workload", "producers", 1, producers);
        let sends = self.number("workload", "sends_count", 1, sends);
        let keys = self.number("workload", "order_keys", 1, keys);
        let most = recipients.min(hosts);
        if most < recipients {
            self.edit("workload", "recipients_max", Some(most.into()));
        }
        let (world, load) = (&mut self.taken.scenario.world, &mut self.taken.scenario.workload);
        (world.cron_callers, world.workers, world.destinations) = (crons, workers, hosts);
        (load.producers, load.sends_count, load.order_keys, load.recipients_max) = (producers, sends, keys, most);
        self.listeners();
    }

    /// Whoever works the old queue off does so for good, in bounded runs, or both beside each other.
    fn listeners(&mut self) {
        let legacy = &self.taken.scenario.legacy;
        if legacy.mode.is_none() {
            return;
        }
        let (serving, bounded) = (legacy.listeners, legacy.cron_listeners);
        let bounded = self.number("legacy", "cron_listeners", u32::from(serving == 0), bounded);
        let serving = self.number("legacy", "listeners", u32::from(bounded == 0), serving);
        let legacy = &mut self.taken.scenario.legacy;
        (legacy.listeners, legacy.cron_listeners) = (serving, bounded);
    }

    /// A number from `least` to the scenario's own.
    fn number(&mut self, section: &'static str, key: &'static str, least: u32, most: u32) -> u32 {
        if most <= least {
            return most;
        }
        let range = Quantity::uniform(least.into(), most.into(), 1);
        let number = self.decider.quantity("swarm.scale", format_args!("{key}"), range) as u32;
        self.on.push(format!("{key} {number}"));
        if number != most {
            self.edit(section, key, Some(number.into()));
        }
        number
    }

    /// Healthy hosts are served in time beside those that ail if each has its share of the workers, and nothing else keeps
    /// anything back: no hold, no closed intake, no lane in which one waits for the other.
    fn bounds(&mut self) {
        let Scenario { world, workload, config, .. } = &mut self.taken.scenario;
        let is_shared = config.concurrency_per_destination < config.concurrency && world.workers > 0;
        let is_free = workload.holds_count == 0 && workload.close_intake_at.is_none() && workload.keyed.0 == 0;
        let is_fair = self.kind == "hosts" && is_shared && is_free;
        if !is_fair && world.healthy_p99.take().is_some() {
            self.edit("world", "healthy_p99", None);
        }
    }

    fn schedule(&mut self, schedules: &[Schedule]) {
        if schedules.is_empty() {
            return;
        }
        let alternatives: Vec<Alternative> = schedules.iter().map(|schedule| Alternative::new(schedule.name(), 1)).collect();
        let schedule = schedules[self.decider.choose("swarm.schedule", format_args!("schedule"), &alternatives)];
        self.taken.scenario.world.schedule = schedule;
        if schedule == Schedule::Timed {
            self.edit("world", "schedule", None);
        } else {
            self.edit("world", "schedule", Some(schedule.name().into()));
            self.on.push(format!("schedule {}", schedule.name()));
        }
    }
}

/// What is wrong with a swarm, in words.
pub(super) fn contradiction(scenario: &Scenario) -> Option<String> {
    let swarm = scenario.swarm.as_ref()?;
    let is_empty = !swarm.families && !swarm.operations && !swarm.settings && !swarm.scale && swarm.schedules.is_empty();
    if is_empty {
        return Some("swarm says of nothing that seeds take their choice of it".into());
    }
    // What was taken last is what lies furthest from the scenario: every setting at its default, alone and with all the others.
    let limits = |taken: &Scenario| restante_kv::Limits { has_clock: taken.world.store_clock, ..restante_kv::Limits::FLOOR };
    let mut all = scenario.clone();
    for (name, .., default) in SETTINGS {
        let mut alone = scenario.clone();
        default(&mut alone);
        default(&mut all);
        for taken in [&alone, &all] {
            if let Err(error) = taken.config.to_config().validate(&limits(taken)) {
                return Some(format!("a seed of the swarm may leave {name} at its default, and then: config: {error}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use restante_engine::{Decider, Tape, TapeEntry};
    use toml::{Table, Value};

    use super::{Edit, take};
    use crate::scenario::{self, Schedule};

    fn edited(text: &str, edits: &[Edit]) -> String {
        let mut table: Table = toml::from_str(text).expect("a table");
        table.remove("swarm");
        for Edit { section, key, value } in edits {
            let mut inner = &mut table;
            for part in section.split('.') {
                inner = inner.entry(part).or_insert_with(|| Value::Table(Table::new())).as_table_mut().expect("a table");
            }
            match value {
                Some(value) => inner.insert((*key).to_owned(), value.clone()),
                None => inner.remove(*key),
            };
        }
        toml::to_string(&table).expect("a table that was read can be written")
    }

    #[test]
    fn what_a_seed_takes_can_be_written_as_a_scenario() {
        let (full, text) = scenario::load("swarm/full").expect("it comes with the command");
        let mut seen = std::collections::BTreeSet::new();
        for seed in 1..=300 {
            let taken = take(&full, &mut Decider::new(seed));
            let written = scenario::parse("swarm/full", &edited(&text, &taken.edits)).expect("a scenario");
            assert_eq!(written, taken.scenario, "seed {seed}: {}", taken.note);
            seen.insert(taken.note);
        }
        assert!(seen.len() > 290, "{} different subsets", seen.len());
    }

    #[test]
    fn a_tape_switches_one_thing_and_nothing_else() {
        let (full, _) = scenario::load("swarm/full").expect("it comes with the command");
        let entry = |site: &str, key: &str, choice: &str| TapeEntry { site: site.into(), key: key.into(), choice: choice.into() };
        for seed in 1..=20 {
            let with = |choice| {
                let tape = vec![entry("swarm.faults", "kind", "all"), entry("swarm.switch", "network.late", choice)];
                take(&full, &mut Decider::with_tape(seed, &Tape::from(tape))).scenario
            };
            let (on, mut off) = (with("on"), with("off"));
            assert!(on.faults.network.late.0 > 0 && off.faults.network.late.0 == 0);
            off.faults.network.late = on.faults.network.late;
            assert_eq!(on, off);
        }
    }

    #[test]
    fn every_schedule_and_every_number_is_taken_by_some_seed() {
        let (full, _) = scenario::load("swarm/full").expect("it comes with the command");
        let taken: Vec<_> = (1..=200).map(|seed| take(&full, &mut Decider::new(seed)).scenario).collect();
        for schedule in Schedule::ALL {
            assert!(taken.iter().any(|taken| taken.world.schedule == schedule), "{schedule:?}");
        }
        for workers in 0..=full.world.workers {
            assert!(taken.iter().any(|taken| taken.world.workers == workers), "{workers} workers");
        }
        assert!(taken.iter().all(|taken| taken.world.workers + taken.world.cron_callers > 0));
    }
}
