//! Building a world and putting its first events on the timeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use restante_core::keys::Kind;
use restante_core::plan::{Depth, HoldNotice, SetHold, SetIntake};
use restante_core::{Command, Env};
use restante_engine::{Decider, Digest, FaultCounts, Marks, SimTime, Timeline, Trace};
use restante_kv::{Limits, Model, StoreTime};

use super::choices::Choices;
use super::event::{Event, Incident, Operation};
use super::faults::FaultSites;
use super::node::{Clock, Node, Role};
use super::order::Order;
use super::{EPOCH_MS, Perturbation, RunOptions, World};
use crate::Mutant;
use crate::audit::Auditor;
use crate::scenario::{Ms, RecordKinds, Scenario, Schedule, Share, Span, kind_name};

/// Where an incident is decided, how many there are, and what it is.
type IncidentRow = (&'static str, u32, fn(u32) -> Incident);

impl<'s> World<'s> {
    pub(super) fn new(scenario: &'s Scenario, decider: Decider, options: &RunOptions) -> Self {
        let mutant = options.mutant.or_else(|| Mutant::by_name(scenario.planted.as_ref()?));
        // The auditor goes by the scenario's settings, whatever a planted bug makes the others believe.
        let honest = Arc::new(Env::new(scenario.config.to_config()));
        let env = match mutant.and_then(|mutant| mutant.on_config(&honest.config)) {
            Some(config) => Arc::new(Env::new(config)),
            None => honest.clone(),
        };
        let mut sites = FaultSites::new(&scenario.faults);
        if options.perturbation == Some(Perturbation::NewAlternative) {
            sites = sites.with_new_commit_alternative();
        }
        let decider = Choices::Seeded(Box::new(decider));
        let trace = if options.trace { Trace::all() } else { Trace::off() };
        let mut world = Self {
            scenario,
            auditor: Auditor::new(&honest, scenario),
            env,
            sites: Arc::new(sites),
            decider,
            timeline: Timeline::new(),
            order: Order::Timed,
            store: Model::new(Limits { has_clock: scenario.world.store_clock, ..Limits::FLOOR }),
            nodes: Vec::new(),
            sends: BTreeMap::new(),
            old: super::legacy::OldQueue::default(),
            trace,
            digest: Digest::new(),
            faults: FaultCounts::new(),
            operations: Marks::new(),
            mutant,
            perturbation: options.perturbation,
            occurrences: BTreeMap::new(),
            events: 0,
            healed: false,
            outage_until: SimTime::ZERO,
            last_start: SimTime::ZERO,
            crashes_left: scenario.faults.process.crashes_max,
            ambiguous_left: u32::MAX,
            pauses_left: 0,
            commands_issued: 0,
            newer_kinds: Vec::new(),
            answers: BTreeMap::new(),
            intake_wanted: None,
            ending: false,
            ended: false,
        };
        world.add_nodes();
        world
    }

    fn add_nodes(&mut self) {
        let (world, load) = (&self.scenario.world, &self.scenario.workload);
        let workers = (1..=world.workers).map(|n| (format!("worker-{n}"), Role::Worker));
        let crons = (1..=world.cron_callers).map(|n| (format!("cron-{n}"), Role::Cron));
        let producers = (0..load.producers as u8).map(|n| (format!("producer-{}", char::from(b'A' + n)), Role::Producer(n)));
        let legacy = &self.scenario.legacy;
        let (listeners, cron_listeners) = if legacy.mode.is_some() { (legacy.listeners, legacy.cron_listeners) } else { (0, 0) };
        let listeners = (1..=listeners).map(|n| (format!("listener-{n}"), Role::Listener));
        let cron_listeners = (1..=cron_listeners).map(|n| (format!("cron-listener-{n}"), Role::CronListener));
        let operator = [("operator".to_owned(), Role::Operator)];
        let roles: Vec<_> =
            workers.chain(crons).chain(producers).chain(listeners).chain(cron_listeners).chain(operator).collect();
        for (name, role) in roles {
            let clock = self.clock_of(&name);
            self.nodes.push(Node::new(name, role, clock));
        }
    }

    /// A clock within the scenario's skew and drift.
    fn clock_of(&mut self, name: &str) -> Clock {
        let clocks = &self.scenario.faults.clocks;
        let (skew, drift) = (clocks.skew.0, u64::from(clocks.drift.0));
        let mut either_way = |site, max: u64| match max {
            0 => 0,
            max => self.span(site, format_args!("{name}"), Span { min: Ms(0), max: Ms(2 * max) }) as i64 - max as i64,
        };
        let clock = Clock { offset_ms: either_way("clock.skew", skew), drift_millionths: either_way("clock.drift", drift) };
        for (family, max, off) in [("clocks.skew", skew, clock.offset_ms), ("clocks.drift", drift, clock.drift_millionths)] {
            if max > 0 {
                self.faults.requested(family);
                if off != 0 {
                    self.faults.delivered(family);
                }
            }
        }
        clock
    }

    pub(super) fn begin(&mut self) {
        self.order = self.draw_order();
        self.reached(match self.scenario.world.schedule {
            Schedule::Timed => "schedule.timed",
            Schedule::Pct => "schedule.pct",
            Schedule::Pos => "schedule.pos",
        });
        for node in 0..self.nodes.len() {
            self.push_in(0, node as u64, Event::Start { node });
        }
        let load = &self.scenario.workload;
        let heal_at = self.scenario.world.heal_at;
        for number in 0..load.depths_count {
            self.push_within("operator.depth", number, heal_at, |_| Event::Operate {
                number,
                what: Operation::Run(Box::new(Command::Depth(Depth {}))),
            });
        }
        for number in 0..load.wakes_count {
            self.push_within("operator.wake", number, heal_at, |_| Event::Operate { number, what: Operation::WakeSome });
        }
        for (open, at) in [(false, load.close_intake_at), (true, load.open_intake_at)] {
            if let Some(at) = at {
                let what = Operation::Run(Box::new(Command::SetIntake(SetIntake { open })));
                self.push_in(at.0, 0, Event::Operate { number: 0, what });
            }
        }
        for number in 0..load.holds_count {
            self.push_hold(number, heal_at);
        }
        self.push_incidents(heal_at);
        if self.scenario.legacy.mode.is_some() {
            self.begin_legacy();
        }
        self.push_in(heal_at.0, u64::MAX, Event::Heal);
    }

    /// A destination says that it is held, perhaps that it will be for longer, perhaps that it is not any more.
    fn push_hold(&mut self, number: u32, heal_at: Ms) {
        let load = &self.scenario.workload;
        let (length, unknown, extended, released) =
            (load.hold_length, load.hold_unknown_end, load.hold_extended, load.hold_released);
        let destinations = u64::from(self.scenario.world.destinations);
        let label = format!("hold {number}");
        let which = self.span("hold.destination", format_args!("{label}"), Span::ms(0, destinations - 1));
        let begins_ms = self.span("hold.begins", format_args!("{label}"), Span::ms(1, heal_at.0.saturating_sub(1).max(1)));
        let length_ms = self.span("hold.length", format_args!("{label}"), length);
        // A notice may come late, or ahead of its time.
        let shift_ms = self.span("hold.shift", format_args!("{label}"), Span::ms(0, 6_000));
        let is_open = self.chance("hold.unknown-end", format_args!("{label}"), unknown);
        let instant = |ms: u64| StoreTime::from_ms(EPOCH_MS + ms);
        let from_ms = (begins_ms + shift_ms).saturating_sub(3_000);
        let until = |ms: u64| (!is_open).then(|| instant(ms));
        let from = if shift_ms.is_multiple_of(3) { None } else { Some(instant(from_ms)) };
        let end_ms = begins_ms.max(from_ms) + length_ms;
        let mut acts = vec![(begins_ms, HoldNotice::Hold { from, until: until(end_ms) })];
        if self.chance("hold.extended", format_args!("{label}"), extended) {
            acts.push((begins_ms + length_ms / 2, HoldNotice::Hold { from: None, until: until(end_ms + length_ms / 2) }));
        }
        if self.chance("hold.released", format_args!("{label}"), released) {
            acts.push((begins_ms + length_ms * 3 / 4, HoldNotice::Release { from: None }));
        }
        for (step, (at_ms, notice)) in acts.into_iter().enumerate() {
            let destination = super::alias::destination(which as u32);
            let is_extension = at_ms == begins_ms + length_ms / 2 && matches!(notice, HoldNotice::Hold { .. });
            let command = Box::new(Command::SetHold(SetHold { destination, notice }));
            let what = if is_extension { Operation::Extend(command) } else { Operation::Run(command) };
            let (number, tie) = (number * 4 + step as u32, u64::from(number));
            self.push_in(at_ms, tie, Event::Operate { number, what });
        }
    }

    fn push_incidents(&mut self, heal_at: Ms) {
        let faults = &self.scenario.faults;
        let outage = faults.store.outage.unwrap_or(Span::ms(1_000, 5_000));
        for number in 0..faults.store.outages_count {
            let length_ms = self.span("store.outage-length", format_args!("outage {number}"), outage);
            self.push_within("store.outage", number, heal_at, |_| Event::Incident(Incident::OutageBegins { length_ms }));
        }
        let incidents: [IncidentRow; 9] = [
            ("store.lose-due-row", faults.store.lost_due_rows_count, |number| Incident::LoseDueRow { number }),
            ("store.lose-pointer", faults.store.lost_pointers_count, |number| Incident::LosePointer { number }),
            ("store.foreign-record", faults.store.foreign_records_count, |number| Incident::ForeignRecord { number }),
            ("store.damaged-record", faults.store.damaged_records_count, |number| Incident::DamagedRecord { number }),
            ("store.foreign-intent", faults.store.foreign_intents_count, |number| Incident::ForeignIntent { number }),
            ("store.conflicting-entry", faults.store.conflicting_entries_count, |number| Incident::ConflictingEntry { number }),
            ("clock.step", faults.clocks.steps_count, |number| Incident::ClockStep { number }),
            ("process.graceful-restart", faults.process.graceful_restarts_count, |number| Incident::GracefulRestart { number }),
            ("process.downtime", faults.process.downtimes_count, |number| Incident::Downtime { number }),
        ];
        if faults.process.upgrade_at.0 > 0 {
            self.push_upgrade(faults.process.upgrade_at, faults.process.upgrade_within.unwrap_or(Ms(10_000)));
        }
        for (site, count, incident) in incidents {
            for number in 0..count {
                self.push_within(site, number, heal_at, |number| Event::Incident(incident(number)));
            }
        }
    }

    /// Everybody is replaced within a while; the operator, who brings back what was put aside, at its end. Where other records than
    /// entries are of the newer build's format, it takes its turn like everybody else: nobody else writes some of them.
    fn push_upgrade(&mut self, begins_at: Ms, within: Ms) {
        self.newer_kinds = self.draw_newer_kinds();
        let names: Vec<String> = self.newer_kinds.iter().map(|kind| kind_name(*kind)).collect();
        self.note("newer-formats", format_args!("{}", names.join(", ")));
        let operator_is_last = self.scenario.faults.process.upgrade_kinds == RecordKinds::default();
        let last = self.nodes.len() - 1;
        for node in 0..=last {
            let name = self.nodes[node].name.clone();
            let after_ms = match operator_is_last && node == last {
                true => within.0,
                false => self.span("process.upgrade", format_args!("{name}"), Span { min: Ms(0), max: within }),
            };
            self.push_in(begins_at.0 + after_ms, node as u64, Event::Incident(Incident::Upgrade { node }));
        }
    }

    /// What the newer build writes in its own format: one of the kinds that the scenario names for certain, each of the others in
    /// half of all runs. With all of them at once, the first one that the older build meets would hide the others.
    fn draw_newer_kinds(&mut self) -> Vec<Kind> {
        let kinds = self.scenario.faults.process.upgrade_kinds.0.clone();
        let Some(last) = kinds.len().checked_sub(1).filter(|last| *last > 0) else { return kinds };
        let certain = self.span("process.upgrade-which-kind", format_args!("certain"), Span::ms(0, last as u64));
        let mut taken = Vec::new();
        for (index, kind) in (0..).zip(kinds) {
            let is_taken = self.chance("process.upgrade-kind", format_args!("{}", kind_name(kind)), Share(500_000));
            if is_taken || index == certain {
                taken.push(kind);
            }
        }
        taken
    }

    /// Puts something on the timeline at a decided instant of the faulty part of the run.
    pub(super) fn push_within(&mut self, site: &'static str, number: u32, end: Ms, event: impl FnOnce(u32) -> Event) {
        let at = self.span(site, format_args!("{site} {number}"), Span { min: Ms(1), max: Ms(end.0.saturating_sub(1).max(1)) });
        let tie = self.decider.tie(format_args!("{site} {number}"));
        self.push_in(at, tie, event(number));
    }
}
