//! Campaigns: many seeds over some scenarios, on some threads, with one verdict.
//!
//! # Contract
//!
//! 1. The seeds of a scenario are `first_seed`, `first_seed + 1`, ... Results are merged in that order, and a scenario is
//!    stopped by its failures in that order. So without a time budget the outcome is the same whatever the number of threads.
//! 2. A panic is a violation of `does-not-panic`, unless its message says that the simulator is at fault.
//! 3. The first seed of each scenario, and every 16th after it, is run twice and compared: [`Divergence`].
//! 4. Every seed that violates a property is run once more, recorded, and becomes a [`Capsule`]. If that run does something
//!    else, it is a [`Divergence`] too.
//! 5. Under a time budget, no new seed is begun once it is over; scenarios take turns, so that all get their share. With an
//!    explicit number of seeds every one of them has to run. Without, the floor is one run of every scenario.
//! 6. A set of runs that proved less than its scenario is for is [`vacuous`](Vacuity).
//!
//! What the wall clock showed is in [`Outcome::wall`] and nowhere else.

mod budget;
mod families;
mod guard;
mod hunt;
mod pool;
mod tally;
mod vacuity;
mod verdict;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use restante_engine::{Trace, Violation};

pub use self::budget::parse_budget;
pub use self::families::families;
pub use self::guard::{Difference, Divergence, HarnessError, divergence, run_guarded};
pub use self::hunt::{Hunt, RATED_SEEDS, hunt};
pub use self::pool::map;
use self::tally::SeedResult;
pub use self::tally::{FailedSeed, Tally};
pub use self::vacuity::{JUDGED_RUNS_MIN, Sums, Vacuity, vacuities};
pub use self::verdict::Verdict;
use crate::capsule::{Capsule, CaptureError};
use crate::scenario::Scenario;
use crate::{Mutant, RunOptions};

/// One in how many seeds is run twice.
const CHECKED_EVERY: u64 = 16;

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
    /// The scenarios.
    pub targets: Vec<Target>,
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
    /// A planted bug.
    pub mutant: Option<Mutant>,
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
    /// The scenario.
    pub target: Target,
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

/// What somebody who waits may want to know.
pub trait Watch: Sync {
    /// Another run has ended.
    fn on_run(&self);
    /// All runs of a scenario have ended.
    fn on_scenario(&self, target: &Target, tally: &Tally);
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
        .targets
        .into_iter()
        .zip(tallies)
        .map(|(target, tally)| {
            if !is_complete(&tally, plan.seeds_count) {
                watch.on_scenario(&target, &tally);
            }
            conclude(target, tally, plan.mutant)
        })
        .collect();
    Outcome { scenarios, is_finished, wall }
}

/// Whether nothing of the scenario is left to run.
fn is_complete(tally: &Tally, seeds_count: Option<u64>) -> bool {
    tally.is_stopped || seeds_count == Some(tally.runs)
}

/// Makes capsules of the failures, or judges runs without any as a set.
fn conclude(target: Target, mut tally: Tally, mutant: Option<Mutant>) -> ScenarioOutcome {
    let mut failures = Vec::new();
    for failed in &tally.failed {
        match Capsule::capture(&target, failed, mutant) {
            Ok((capsule, run, violation)) => {
                failures.push(Failure { seed: failed.seed, violation, trace: run.trace, capsule });
            }
            Err(CaptureError::Diverged(divergence)) => tally.divergence = Some(divergence),
            Err(CaptureError::Harness(error)) => tally.harness_error = Some(error),
        }
    }
    let is_clean = tally.failed.is_empty() && tally.divergence.is_none() && tally.harness_error.is_none();
    let vacuities = match mutant {
        None if is_clean && tally.runs > 0 => {
            let (marks, faults) = (&tally.marks, &tally.faults);
            let sums = Sums { runs: tally.runs, events: tally.events, delivered: tally.delivered, marks, faults };
            vacuities(&target.scenario, sums)
        }
        _ => Vec::new(),
    };
    ScenarioOutcome { target, tally, failures, vacuities }
}

/// The state that the threads share.
struct Sweep<'p> {
    plan: &'p Plan,
    cursor: AtomicU64,
    scenarios: Vec<(AtomicBool, Mutex<Tally>)>,
}

impl<'p> Sweep<'p> {
    fn new(plan: &'p Plan) -> Self {
        let scenario = |_: &Target| {
            let tally = Tally::new(plan.first_seed, plan.failures_max);
            (AtomicBool::new(false), Mutex::new(tally))
        };
        Self { plan, cursor: AtomicU64::new(0), scenarios: plan.targets.iter().map(scenario).collect() }
    }

    /// The next scenario and index of its seed; nothing when all is taken or the time is over.
    fn next(&self, deadline: Option<Instant>) -> Option<(usize, u64)> {
        loop {
            let all_stopped = self.scenarios.iter().all(|(is_stopped, _)| is_stopped.load(Ordering::Relaxed));
            if all_stopped || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return None;
            }
            let (scenario, index) = self.place(self.cursor.fetch_add(1, Ordering::Relaxed))?;
            if !self.scenarios[scenario].0.load(Ordering::Relaxed) {
                return Some((scenario, index));
            }
        }
    }

    /// One scenario after the other; by turns under a time budget.
    fn place(&self, item: u64) -> Option<(usize, u64)> {
        let scenarios = self.scenarios.len() as u64;
        if self.plan.seeds_count == Some(0) {
            return None;
        }
        let (scenario, index) = match self.plan.seeds_count {
            Some(count) if self.plan.time_budget.is_none() => (item / count, item % count),
            _ => (item % scenarios, item / scenarios),
        };
        let is_wanted = scenario < scenarios && self.plan.seeds_count.is_none_or(|count| index < count);
        is_wanted.then_some((scenario as usize, index))
    }

    fn run_one(&self, scenario: usize, index: u64, watch: &dyn Watch) {
        let target = &self.plan.targets[scenario];
        let seed = self.plan.first_seed.wrapping_add(index);
        let options = RunOptions { mutant: self.plan.mutant, ..RunOptions::default() };
        let result = run_checked(&target.scenario, seed, &options, index.is_multiple_of(CHECKED_EVERY));
        watch.on_run();
        let (is_stopped, tally) = &self.scenarios[scenario];
        let mut tally = tally.lock().expect("no worker panics while it holds a tally");
        let was_complete = is_complete(&tally, self.plan.seeds_count);
        tally.add(index, result);
        is_stopped.store(tally.is_stopped, Ordering::Relaxed);
        if !was_complete && is_complete(&tally, self.plan.seeds_count) {
            watch.on_scenario(target, &tally);
        }
    }

    fn into_tallies(self) -> Vec<Tally> {
        let tally = |(_, tally): (AtomicBool, Mutex<Tally>)| tally.into_inner().expect("no worker panicked");
        self.scenarios.into_iter().map(tally).collect()
    }
}

fn run_checked(scenario: &Scenario, seed: u64, options: &RunOptions, is_checked: bool) -> SeedResult {
    let run = match run_guarded(scenario, seed, options) {
        Ok(run) => run,
        Err(error) => return SeedResult::Harness(Box::new(error)),
    };
    let repeated = if is_checked { divergence(scenario, seed, options, &run) } else { Ok(None) };
    match repeated {
        Ok(None) => SeedResult::Ran(run.into()),
        Ok(Some(divergence)) => SeedResult::Diverged(Box::new(divergence)),
        Err(error) => SeedResult::Harness(Box::new(error)),
    }
}
