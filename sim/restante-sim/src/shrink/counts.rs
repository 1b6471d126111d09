//! How large a run was.

use std::collections::BTreeSet;

use restante_engine::TapeEntry;
use serde::Serialize;

use crate::RunResult;
use crate::scenario::Scenario;

/// The site that asks whether the tape leaves something out.
pub(super) const SKIP: &str = "load.skip";

/// The size of a run. After a panic, what the run itself had counted is lost and 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Counts {
    /// Processes that send.
    pub producers: u32,
    /// Workers and cron callers.
    pub workers: u32,
    /// Destinations.
    pub destinations: u32,
    /// Sends that were begun before the violation.
    pub sends: u64,
    /// Acts of operators and incidents before the violation.
    pub operations: u64,
    /// Faults that happened, incidents aside.
    pub faults: u64,
    /// Events before the violation.
    pub events: u64,
    /// Decisions before the violation.
    pub decisions: u64,
    /// Simulated time until the violation, in microseconds.
    pub sim_us: u64,
}

impl Counts {
    pub(super) fn of(scenario: &Scenario, run: &RunResult) -> Self {
        let (sends, operations): (Vec<_>, Vec<_>) = asked(run).into_iter().partition(|key| is_send(key));
        let fired = faults(run).count();
        Self {
            producers: scenario.workload.producers,
            workers: scenario.world.workers + scenario.world.cron_callers,
            destinations: scenario.world.destinations,
            sends: sends.len() as u64,
            operations: operations.len() as u64,
            faults: fired as u64,
            events: run.events,
            decisions: run.log.len() as u64,
            sim_us: run.sim_time.as_us(),
        }
    }
}

/// The faults of a recorded run, as a tape would say them.
pub(super) fn faults(run: &RunResult) -> impl Iterator<Item = &TapeEntry> {
    run.log.fired().iter().filter(|entry| !["load.", "swarm."].iter().any(|site| entry.site.starts_with(site)))
}

/// The keys of the sends, operations and incidents that a recorded run did not leave out, in order, each once.
pub(super) fn asked(run: &RunResult) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let done = run.log.entries().filter(|entry| entry.site == SKIP && entry.choice == "do");
    done.map(|entry| entry.key).filter(|key| seen.insert(key.clone())).collect()
}

/// Whether the key is that of a send: `A3`.
pub(super) fn is_send(key: &str) -> bool {
    let mut chars = key.chars();
    chars.next().is_some_and(|producer| producer.is_ascii_uppercase()) && chars.all(|c| c.is_ascii_digit())
}
