//! Shrinking: from a capsule to a smaller one with the same violation.
//!
//! # Contract
//!
//! 1. The result violates the same property with the same evidence: its fingerprint is the capsule's. It was seen twice.
//! 2. **Smaller** means, in this order: fewer faults, fewer sends and operations, fewer actors, shorter times, fewer settings
//!    that differ from their defaults.
//! 3. At first, every fault that happened is written on the tape, and every chance of a fault is lowered until the seed
//!    leaves it alone. From then on a candidate can lose faults, and no other faults come into it by chance.
//! 4. With a planted bug, a candidate that violates something *without* the bug is no smaller form of its violation, unless the
//!    capsule's own run does so too. Without one, the bounds that an `eventually` property is judged by stay as they are.
//! 5. Where nothing can be left out any more, the failure is put together anew from no fault, one or two, at the send that the
//!    violation names. Whatever has the same fingerprint and fewer faults is smaller, even if it comes about in another way.
//! 6. The result depends on the capsule alone, not on the number of threads, as long as the time suffices.
//!
//! Every pass offers candidates in a fixed order; the first that still fails is the next to be shrunk. Passes are repeated until
//! none of them finds anything.

mod candidate;
mod changes;
mod counts;
mod essence;
mod judge;
mod passes;
mod settings;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use restante_engine::{TapeEntry, Violation};
use thiserror::Error;

use self::candidate::Candidate;
use self::judge::Judge;
use self::passes::Shrinker;
use crate::RunResult;
use crate::campaign::{Difference, Divergence, HarnessError, Verdict, run_guarded};
use crate::capsule::{Capsule, Replay, ReplayError, Replayed, replay};
use crate::scenario::ScenarioError;

pub use self::counts::Counts;

/// How much to spend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// When to begin no further run.
    pub time_budget: Option<Duration>,
    /// Threads.
    pub jobs: usize,
}

/// What shrinking came to.
#[derive(Debug)]
pub struct Shrunk {
    /// The smaller capsule.
    pub capsule: Capsule,
    /// Its run, recorded and traced.
    pub run: RunResult,
    /// Its violation.
    pub violation: Violation,
    /// The run of the capsule that was shrunk.
    pub before: Counts,
    /// The run of the smaller one.
    pub after: Counts,
    /// What was removed or changed, one sentence each.
    pub changes: Vec<String>,
    /// The faults that are left.
    pub faults: Vec<TapeEntry>,
    /// Candidates that were tried.
    pub candidates: u64,
    /// Candidates that were smaller and failed alike.
    pub accepted: u64,
    /// Whether nothing smaller is left to try; if not, the time was over.
    pub is_finished: bool,
}

/// Why a capsule was not shrunk.
#[derive(Debug, Error)]
pub enum ShrinkError {
    /// It cannot be run.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// It holds a schedule, which has neither seed nor tape.
    #[error("the capsule's violation was found by `check`, move by move; `shrink` takes those that a seed found")]
    Scheduled,
    /// Its violation does not come back.
    #[error("the capsule's violation did not come back, so there is nothing to shrink")]
    NotReproduced(Box<Replayed>),
    /// The smaller capsule did something else when it ran again.
    #[error(transparent)]
    Diverged(#[from] Box<Divergence>),
}

impl ShrinkError {
    /// The verdict it stands for; the same as that of a replay.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Replay(error) => error.verdict(),
            Self::Scheduled => Verdict::Usage,
            Self::NotReproduced(replayed) => replayed.verdict(),
            Self::Diverged(_) => Verdict::Nondeterminism,
        }
    }
}

impl From<ScenarioError> for ShrinkError {
    fn from(error: ScenarioError) -> Self {
        Self::Replay(error.into())
    }
}

impl From<HarnessError> for ShrinkError {
    fn from(error: HarnessError) -> Self {
        Self::Replay(error.into())
    }
}

/// Shrinks `capsule`. `on_run` is called after every candidate, on any thread.
///
/// # Errors
///
/// [`ShrinkError`]
pub fn shrink(capsule: &Capsule, limits: Limits, on_run: &(dyn Fn() + Sync)) -> Result<Shrunk, ShrinkError> {
    // A budget beyond the end of the clock is none.
    let deadline = limits.time_budget.and_then(|budget| Instant::now().checked_add(budget));
    if !capsule.schedule.is_empty() {
        return Err(ShrinkError::Scheduled);
    }
    let replayed = replay(capsule)?;
    if replayed.replay != Replay::Reproduced {
        return Err(ShrinkError::NotReproduced(Box::new(replayed)));
    }
    let judge = Judge::new(capsule, limits.jobs.max(1), deadline, on_run)?;
    let original = Candidate::of(capsule)?;
    let before = Counts::of(&judge.taken(&judge.scenario_of(&original)?, &original).scenario, &replayed.run);
    let mut shrinker = Shrinker::new(judge, original.clone(), replayed.run)?;
    shrinker.shrink();
    let Shrinker { judge, current, candidates, accepted, is_over, .. } = shrinker;

    let scenario = judge.scenario_of(&current.candidate)?;
    let (text, tape) = (current.candidate.text(), current.candidate.tape());
    let run = run_guarded(&scenario, capsule.seed, &judge.options(&current.candidate, true, true))?;
    let violation = match &run.violation {
        Some(violation) if run.digest == current.run.digest && judge.is_wanted(&run) => violation.clone(),
        _ => {
            return Err(ShrinkError::Diverged(Box::new(Divergence {
                scenario: capsule.scenario.clone(),
                seed: capsule.seed,
                first: current.run.digest,
                second: run.digest,
                difference: Difference::NotInTrace,
            })));
        }
    };
    let after = Counts::of(&scenario, &run);
    Ok(Shrunk {
        capsule: capsule.with_run(text, tape, &run, &violation),
        changes: changes::changes(&original, &current.candidate, &before, &after),
        faults: counts::faults(&run).cloned().collect(),
        run,
        violation,
        before,
        after,
        candidates,
        accepted,
        is_finished: !is_over,
    })
}
