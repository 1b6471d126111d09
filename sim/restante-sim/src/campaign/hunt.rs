//! Looking for a planted bug: how soon is it caught, by what, and how often.

use std::collections::BTreeMap;

use restante_engine::Violation;
use serde::Serialize;

use super::{HarnessError, Planted, SeedOptions, Target, Verdict, Workload, map, run_guarded};
use crate::{Mutant, RunOptions};

/// Over how many of the first seeds the hit rate is taken.
pub const RATED_SEEDS: u64 = 200;
/// How many seeds are run between two looks at whether one was caught.
const CHUNK: u64 = 100;
/// The same, of each general workload: most planted bugs are caught early.
const GENERAL_CHUNK: u64 = 10;

/// What looking for a planted bug came to. Seeds begin at 1, so the number of a seed is how many it took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Hunt {
    /// The first seed in which the property caught it that is there for it.
    pub caught_at_seed: Option<u64>,
    /// Fingerprint of that violation.
    pub fingerprint: Option<String>,
    /// The first seed in which any property caught it.
    pub first_violation_at_seed: Option<u64>,
    /// The property that did.
    pub first_violated: Option<&'static str>,
    /// How many seeds were looked at, at most.
    pub seeds_max: u64,
    /// Over how many of the first seeds the rates are taken.
    pub rated_runs: u64,
    /// In how many of these each property was the first to be violated.
    pub hits: BTreeMap<&'static str, u64>,
    /// Whether the seed that caught it passes without it.
    pub passes_without: Option<bool>,
}

impl Hunt {
    /// The verdict: a planted bug has to be caught by its own property, in a seed that passes without it.
    pub fn verdict(&self) -> Verdict {
        match (self.caught_at_seed, self.passes_without) {
            (Some(_), Some(true)) => Verdict::Pass,
            _ => Verdict::Violated,
        }
    }
}

/// Looks for `planted` in the seeds 1 to `seeds_max` of `workload`, on `jobs` threads. The outcome does not depend on `jobs`.
///
/// # Errors
///
/// [`HarnessError`] of the first seed that meets one.
pub fn hunt(workload: &Workload, planted: Planted, seeds_max: u64, jobs: usize) -> Result<Hunt, HarnessError> {
    let run = |seed: u64, planted: Option<Planted>| {
        let options = SeedOptions { planted, ..SeedOptions::default() };
        workload.run(seed, &options).map(|run| run.violation)
    };
    let rated_runs = seeds_max.min(RATED_SEEDS);
    let mut found = Hunt {
        caught_at_seed: None,
        fingerprint: None,
        first_violation_at_seed: None,
        first_violated: None,
        seeds_max,
        rated_runs,
        hits: BTreeMap::new(),
        passes_without: None,
    };
    let mut done = 0;
    while done < rated_runs || (done < seeds_max && found.caught_at_seed.is_none()) {
        let count = if done < rated_runs { rated_runs - done } else { CHUNK.min(seeds_max - done) };
        let first = done + 1;
        for (index, violation) in map(jobs, count, |index| run(first + index, Some(planted))).into_iter().enumerate() {
            if let Some(violation) = violation? {
                found.note(planted, first + index as u64, &violation);
            }
        }
        done += count;
    }
    let control_seed = found.caught_at_seed.or(found.first_violation_at_seed);
    found.passes_without = control_seed.map(|seed| run(seed, None)).transpose()?.map(|violation| violation.is_none());
    Ok(found)
}

impl Hunt {
    fn note(&mut self, planted: Planted, seed: u64, violation: &Violation) {
        if self.first_violated.is_none() {
            (self.first_violation_at_seed, self.first_violated) = (Some(seed), Some(violation.property));
        }
        if self.caught_at_seed.is_none() && violation.property == planted.property() {
            (self.caught_at_seed, self.fingerprint) = (Some(seed), Some(violation.fingerprint()));
        }
        if seed <= self.rated_runs {
            *self.hits.entry(violation.property).or_default() += 1;
        }
    }
}

/// What a general workload noticed of a planted bug.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InGeneral {
    /// The scenario.
    pub scenario: String,
    /// The first seed in which anything was violated.
    pub seed: u64,
    /// The property that was.
    pub property: &'static str,
    /// Whether it is the one that is there for the bug.
    pub is_own: bool,
    /// Fingerprint of the violation.
    pub fingerprint: String,
    /// Whether the seed passes without the bug.
    pub passes_without: bool,
}

/// Looks for `mutant` in the seeds 1 to `seeds_max` of scenarios that were not written for it, on `jobs` threads: seed 1 of each
/// scenario, then seed 2 of each, until anything is violated. The outcome does not depend on `jobs`.
///
/// # Errors
///
/// [`HarnessError`] of the first seed that meets one.
pub fn hunt_in_general(
    targets: &[Target],
    mutant: Mutant,
    seeds_max: u64,
    jobs: usize,
) -> Result<Option<InGeneral>, HarnessError> {
    let scenarios = targets.len() as u64;
    let place = |index: u64| (&targets[(index % scenarios) as usize], 1 + index / scenarios);
    let run = |(target, seed): (&Target, u64), mutant: Option<Mutant>| {
        let options = RunOptions { mutant, ..RunOptions::default() };
        run_guarded(&target.scenario, seed, &options).map(|run| run.violation)
    };
    let (count, mut done) = (seeds_max.saturating_mul(scenarios), 0);
    while done < count {
        let chunk = (GENERAL_CHUNK * scenarios).min(count - done);
        let violations = map(jobs, chunk, |index| run(place(done + index), Some(mutant)));
        for (index, violation) in violations.into_iter().enumerate() {
            let Some(violation) = violation? else { continue };
            let (target, seed) = place(done + index as u64);
            return Ok(Some(InGeneral {
                scenario: target.source.clone(),
                seed,
                property: violation.property,
                is_own: violation.property == mutant.property(),
                fingerprint: violation.fingerprint(),
                passes_without: run((target, seed), None)?.is_none(),
            }));
        }
        done += chunk;
    }
    Ok(None)
}
