//! The seeds of a plan, handed out to threads and added up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::tally::SeedResult;
use super::{Plan, SeedOptions, Tally, Watch, Workload, divergence};

/// One in how many seeds is run twice.
const CHECKED_EVERY: u64 = 16;

/// The state that the threads share.
pub(super) struct Sweep<'p> {
    plan: &'p Plan,
    cursor: AtomicU64,
    scenarios: Vec<(AtomicBool, Mutex<Tally>)>,
}

impl<'p> Sweep<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        let scenario = |workload: &Workload| {
            // Whoever plants a bug by hand wants to see it: then no violation is an expected one.
            let expected = workload.expected().filter(|_| plan.planted.is_none()).map(str::to_owned);
            let tally = Tally::new(plan.first_seed, plan.failures_max, expected);
            (AtomicBool::new(false), Mutex::new(tally))
        };
        Self { plan, cursor: AtomicU64::new(0), scenarios: plan.workloads.iter().map(scenario).collect() }
    }

    /// The next scenario and index of its seed; nothing when all is taken or the time is over.
    pub(super) fn next(&self, deadline: Option<Instant>) -> Option<(usize, u64)> {
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

    pub(super) fn run_one(&self, scenario: usize, index: u64, watch: &dyn Watch) {
        let workload = &self.plan.workloads[scenario];
        let seed = self.plan.first_seed.wrapping_add(index);
        let options = SeedOptions { planted: self.plan.planted, ..SeedOptions::default() };
        let result = run_checked(workload, seed, &options, index.is_multiple_of(CHECKED_EVERY));
        watch.on_run();
        let (is_stopped, tally) = &self.scenarios[scenario];
        let mut tally = tally.lock().expect("no worker panics while it holds a tally");
        let was_complete = is_complete(&tally, self.plan.seeds_count);
        tally.add(index, result);
        is_stopped.store(tally.is_stopped, Ordering::Relaxed);
        if !was_complete && is_complete(&tally, self.plan.seeds_count) {
            watch.on_scenario(workload, &tally);
        }
    }

    pub(super) fn into_tallies(self) -> Vec<Tally> {
        let tally = |(_, tally): (AtomicBool, Mutex<Tally>)| tally.into_inner().expect("no worker panicked");
        self.scenarios.into_iter().map(tally).collect()
    }
}

fn run_checked(workload: &Workload, seed: u64, options: &SeedOptions, is_checked: bool) -> SeedResult {
    let run = match workload.run(seed, options) {
        Ok(run) => run,
        Err(error) => return SeedResult::Harness(Box::new(error)),
    };
    let repeated = if is_checked { divergence(workload, seed, options, &run) } else { Ok(None) };
    match repeated {
        Ok(None) => SeedResult::Ran(run.into()),
        Ok(Some(divergence)) => SeedResult::Diverged(Box::new(divergence)),
        Err(error) => SeedResult::Harness(Box::new(error)),
    }
}

/// Whether nothing of the scenario is left to run.
pub(super) fn is_complete(tally: &Tally, seeds_count: Option<u64>) -> bool {
    tally.is_stopped || seeds_count == Some(tally.runs)
}
