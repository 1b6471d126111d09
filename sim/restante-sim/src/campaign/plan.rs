//! What a campaign is asked for, and what it came to.

use std::time::Duration;

use restante_engine::{Trace, Violation};

use super::{Planted, Tally, Vacuity, Verdict, Workload};
use crate::capsule::Capsule;
use crate::scenario::Scenario;

/// A scenario to run, with its text for capsules.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// What the user calls it: a name or a path.
    pub source: String,
    /// Its text.
    pub text: String,
    /// The scenario.
    pub scenario: Scenario,
}

/// What to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// What seeds are run of.
    pub workloads: Vec<Workload>,
    /// The first seed of each.
    pub first_seed: u64,
    /// How many seeds of each; as many as the time budget allows when not given.
    pub seeds_count: Option<u64>,
    /// Threads.
    pub jobs: usize,
    /// When to begin no further run.
    pub time_budget: Option<Duration>,
    /// How many failing seeds stop a scenario.
    pub failures_max: u32,
    /// A planted bug, of the world of every workload.
    pub planted: Option<Planted>,
}

/// What a campaign came to.
#[derive(Debug)]
pub struct Outcome {
    /// Every scenario, in the order of the plan.
    pub scenarios: Vec<ScenarioOutcome>,
    /// Whether everything ran that was asked for.
    pub is_finished: bool,
    /// Real time of the runs.
    pub wall: Duration,
}

/// What the runs of a scenario came to.
#[derive(Debug)]
pub struct ScenarioOutcome {
    /// The workload.
    pub workload: Workload,
    /// The sums.
    pub tally: Tally,
    /// The violations.
    pub failures: Vec<Failure>,
    /// Why its runs proved less than they were meant to.
    pub vacuities: Vec<Vacuity>,
}

/// A violation with all that is needed to see it again.
#[derive(Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The violation.
    pub violation: Violation,
    /// The run's trace.
    pub trace: Trace,
    /// The capsule.
    pub capsule: Capsule,
}

impl Outcome {
    /// The verdict over all scenarios.
    pub fn verdict(&self) -> Verdict {
        let unfinished = if self.is_finished { Verdict::Pass } else { Verdict::Unfinished };
        self.scenarios.iter().map(ScenarioOutcome::verdict).chain([unfinished]).collect()
    }
}

impl ScenarioOutcome {
    /// The verdict over this scenario's runs.
    pub fn verdict(&self) -> Verdict {
        let is_found = [
            (self.tally.harness_error.is_some(), Verdict::Harness),
            (self.tally.divergence.is_some(), Verdict::Nondeterminism),
            (!self.tally.failed.is_empty(), Verdict::Violated),
            (!self.vacuities.is_empty(), Verdict::Vacuous),
        ];
        is_found.into_iter().filter(|(is_found, _)| *is_found).map(|(_, verdict)| verdict).collect()
    }
}
