//! Building a world and putting its first events on the timeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use restante_core::plan::{Depth, SetIntake};
use restante_core::{Command, Env};
use restante_engine::{Decider, Digest, FaultCounts, SimTime, Timeline, Trace};
use restante_kv::{Limits, Model};

use super::choices::Choices;
use super::event::{Event, Incident, Operation};
use super::faults::FaultSites;
use super::node::{Clock, Node, Role};
use super::{Perturbation, RunOptions, World};
use crate::Mutant;
use crate::audit::Auditor;
use crate::scenario::{Ms, Scenario, Span};

/// Where an incident is decided, how many there are, and what it is.
type IncidentRow = (&'static str, u32, fn(u32) -> Incident);

impl<'s> World<'s> {
    pub(super) fn new(scenario: &'s Scenario, seed: u64, options: &RunOptions) -> Self {
        let env = Arc::new(Env::new(scenario.config.to_config()));
        let mut sites = FaultSites::new(&scenario.faults);
        if options.perturbation == Some(Perturbation::NewAlternative) {
            sites = sites.with_new_commit_alternative();
        }
        let decider = Decider::with_tape(seed, &options.tape);
        let decider = if options.record { decider.recording() } else { decider };
        let decider = Choices::Seeded(Box::new(decider));
        let trace = if options.trace { Trace::all() } else { Trace::off() };
        let mut world = Self {
            scenario,
            auditor: Auditor::new(&env, scenario),
            env,
            sites: Arc::new(sites),
            decider,
            timeline: Timeline::new(),
            store: Model::new(Limits { has_clock: scenario.world.store_clock, ..Limits::FLOOR }),
            nodes: Vec::new(),
            sends: BTreeMap::new(),
            trace,
            digest: Digest::new(),
            faults: FaultCounts::new(),
            mutant: options.mutant.or_else(|| Mutant::by_name(scenario.planted.as_ref()?)),
            perturbation: options.perturbation,
            occurrences: BTreeMap::new(),
            events: 0,
            healed: false,
            outage_until: SimTime::ZERO,
            crashes_left: scenario.faults.process.crashes_max,
            ambiguous_left: u32::MAX,
            pauses_left: 0,
            commands_issued: 0,
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
        let roles: Vec<_> = workers.chain(crons).chain(producers).chain([("operator".to_owned(), Role::Operator)]).collect();
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
        self.push_incidents(heal_at);
        self.push_in(heal_at.0, u64::MAX, Event::Heal);
    }

    fn push_incidents(&mut self, heal_at: Ms) {
        let faults = &self.scenario.faults;
        let outage = faults.store.outage.unwrap_or(Span::ms(1_000, 5_000));
        for number in 0..faults.store.outages_count {
            let length_ms = self.span("store.outage-length", format_args!("outage {number}"), outage);
            self.push_within("store.outage", number, heal_at, |_| Event::Incident(Incident::OutageBegins { length_ms }));
        }
        let incidents: [IncidentRow; 8] = [
            ("store.lose-due-row", faults.store.lost_due_rows_count, |number| Incident::LoseDueRow { number }),
            ("store.lose-pointer", faults.store.lost_pointers_count, |number| Incident::LosePointer { number }),
            ("store.foreign-record", faults.store.foreign_records_count, |number| Incident::ForeignRecord { number }),
            ("store.damaged-record", faults.store.damaged_records_count, |number| Incident::DamagedRecord { number }),
            ("store.foreign-intent", faults.store.foreign_intents_count, |number| Incident::ForeignIntent { number }),
            ("store.conflicting-entry", faults.store.conflicting_entries_count, |number| Incident::ConflictingEntry { number }),
            ("clock.step", faults.clocks.steps_count, |number| Incident::ClockStep { number }),
            ("process.graceful-restart", faults.process.graceful_restarts_count, |number| Incident::GracefulRestart { number }),
        ];
        for (site, count, incident) in incidents {
            for number in 0..count {
                self.push_within(site, number, heal_at, |number| Event::Incident(incident(number)));
            }
        }
    }

    /// Puts something on the timeline at a decided instant of the faulty part of the run.
    fn push_within(&mut self, site: &'static str, number: u32, end: Ms, event: impl FnOnce(u32) -> Event) {
        let at = self.span(site, format_args!("{site} {number}"), Span { min: Ms(1), max: Ms(end.0.saturating_sub(1).max(1)) });
        let tie = self.decider.tie(format_args!("{site} {number}"));
        self.push_in(at, tie, event(number));
    }
}
