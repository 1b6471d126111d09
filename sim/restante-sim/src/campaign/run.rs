//! From a plan to an outcome.

use std::time::Instant;

use super::sweep::{Sweep, is_complete};
use super::{Failure, Outcome, Plan, Planted, ScenarioOutcome, Sums, Tally, Workload, pool, vacuities};
use crate::capsule::{Capsule, CaptureError};

/// What somebody who waits may want to know.
pub trait Watch: Sync {
    /// Another run has ended.
    fn on_run(&self);
    /// All runs of a scenario have ended.
    fn on_scenario(&self, workload: &Workload, tally: &Tally);
}

/// Does what `plan` says.
pub fn run(plan: Plan, watch: &dyn Watch) -> Outcome {
    let sweep = Sweep::new(&plan);
    let began_at = Instant::now();
    let deadline = plan.time_budget.and_then(|budget| began_at.checked_add(budget));
    pool::work(plan.jobs, || sweep.next(deadline), |(scenario, index)| sweep.run_one(scenario, index, watch));
    let wall = began_at.elapsed();
    let tallies = sweep.into_tallies();
    let runs_needed = plan.seeds_count.unwrap_or(1).max(1);
    let is_finished = !tallies.is_empty() && tallies.iter().all(|tally| tally.is_stopped || tally.runs >= runs_needed);
    let scenarios = plan
        .workloads
        .into_iter()
        .zip(tallies)
        .map(|(workload, tally)| {
            if !is_complete(&tally, plan.seeds_count) {
                watch.on_scenario(&workload, &tally);
            }
            conclude(workload, tally, plan.planted)
        })
        .collect();
    Outcome { scenarios, is_finished, wall }
}

/// Makes capsules of the failures, or judges runs without any as a set.
fn conclude(workload: Workload, mut tally: Tally, planted: Option<Planted>) -> ScenarioOutcome {
    let mut failures = Vec::new();
    for failed in &tally.failed {
        match Capsule::capture(&workload, failed, planted) {
            Ok((capsule, run, violation)) => {
                failures.push(Failure { seed: failed.seed, violation, trace: run.trace, capsule });
            }
            Err(CaptureError::Diverged(divergence)) => tally.divergence = Some(divergence),
            Err(CaptureError::Harness(error)) => tally.harness_error = Some(error),
        }
    }
    let is_clean = tally.failed.is_empty() && tally.divergence.is_none() && tally.harness_error.is_none();
    let vacuities = match planted {
        None if is_clean && tally.runs > 0 => {
            let sums = Sums {
                runs: tally.runs,
                events: tally.events,
                delivered: tally.delivered,
                expected: tally.expected_count,
                counted: tally.counted(),
            };
            vacuities(&workload, sums)
        }
        _ => Vec::new(),
    };
    ScenarioOutcome { workload, tally, failures, vacuities }
}
