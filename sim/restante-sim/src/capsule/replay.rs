//! Seeing a violation again.

use restante_engine::{Match, Violation};
use thiserror::Error;

use super::{Capsule, Environment};
use crate::RunResult;
use crate::campaign::{HarnessError, KeyedBound, Planted, SeedOptions, Simulated, Target, Verdict, Workload};
use crate::explore::{ExploreError, Retaken, retake};
use crate::scenario::{self, ScenarioError};

/// What became of a capsule's violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replay {
    /// It came back.
    Reproduced,
    /// Another one came.
    Other,
    /// Nothing was violated, or something else, and another build made the capsule.
    Stale,
    /// Nothing was violated although this very build made the capsule.
    Vanished,
}

/// A replayed capsule.
#[derive(Debug)]
pub struct Replayed {
    /// What became of its violation.
    pub replay: Replay,
    /// What this run violated.
    pub violation: Option<Violation>,
    /// How the decisions compare.
    pub decisions: Match,
    /// Whether the run was the same in everything.
    pub is_digest_same: bool,
    /// How this environment differs from the capsule's.
    pub environment_differences: Vec<String>,
    /// The run.
    pub run: RunResult,
}

impl Replayed {
    /// The verdict of the replay.
    pub fn verdict(&self) -> Verdict {
        match self.replay {
            Replay::Reproduced | Replay::Other => Verdict::Violated,
            Replay::Stale => Verdict::Stale,
            Replay::Vanished => Verdict::Nondeterminism,
        }
    }
}

/// Why a capsule could not be run at all.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// This version does not read its scenario.
    #[error("the capsule's scenario is not one for this version: {0}")]
    Scenario(#[from] ScenarioError),
    /// This version does not read its bound.
    #[error("the capsule's bound is not one for this version: {0}")]
    Bound(String),
    /// This version does not have its planted bug.
    #[error("the capsule's planted bug {0} does not exist in this version; `restante-sim list` shows those that do")]
    Mutant(String),
    /// The simulator failed.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// The simulator failed on the way of a schedule.
    #[error(transparent)]
    Explore(#[from] ExploreError),
}

impl ReplayError {
    /// The verdict it stands for.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Scenario(_) | Self::Bound(_) | Self::Mutant(_) => Verdict::Stale,
            Self::Harness(_) | Self::Explore(_) => Verdict::Harness,
        }
    }
}

/// Runs `capsule` again, recorded and traced.
///
/// # Errors
///
/// [`ReplayError`]
pub fn replay(capsule: &Capsule) -> Result<Replayed, ReplayError> {
    let planted = planted_of(capsule)?;
    let environment_differences = capsule.environment.differences(&Environment::current());
    let (run, decisions) = if capsule.schedule.is_empty() {
        let options = SeedOptions { tape: capsule.tape.clone(), planted, trace: true, record: true };
        let run = workload_of(capsule)?.run(capsule.seed, &options)?;
        let decisions = run.log.compare(&capsule.decisions);
        (run, decisions)
    } else {
        let Retaken { run, moves_taken, first_difference } = retaken(capsule, planted)?;
        let recorded = capsule.schedule.len();
        (run, Match { matched: moves_taken, recorded, made: moves_taken, first_difference })
    };
    let found = run.violation.as_ref().map(Violation::fingerprint);
    let replay = match found {
        Some(found) if found == capsule.failure.fingerprint => Replay::Reproduced,
        _ if !environment_differences.is_empty() => Replay::Stale,
        Some(_) => Replay::Other,
        None => Replay::Vanished,
    };
    Ok(Replayed {
        replay,
        violation: run.violation.clone(),
        decisions,
        is_digest_same: format!("{:032x}", run.digest) == capsule.digest,
        environment_differences,
        run,
    })
}

/// The planted bug, which has to be one of the capsule's world.
fn planted_of(capsule: &Capsule) -> Result<Option<Planted>, ReplayError> {
    let by_name = |name: &String| {
        let planted = Planted::by_name(name).filter(|planted| planted.simulated() == capsule.world);
        planted.ok_or_else(|| ReplayError::Mutant(name.clone()))
    };
    capsule.mutant.as_ref().map(by_name).transpose()
}

fn workload_of(capsule: &Capsule) -> Result<Workload, ReplayError> {
    Ok(match capsule.world {
        Simulated::Backlog => {
            let scenario = scenario::parse(&capsule.scenario, &capsule.scenario_text)?;
            Target { source: capsule.scenario.clone(), text: capsule.scenario_text.clone(), scenario }.into()
        }
        Simulated::Keyed => Workload::Keyed,
    })
}

fn retaken(capsule: &Capsule, planted: Option<Planted>) -> Result<Retaken, ReplayError> {
    let (name, text) = (&capsule.scenario, &capsule.scenario_text);
    Ok(match capsule.world {
        Simulated::Backlog => retake(&scenario::parse(name, text)?, planted.and_then(Planted::of_backlog), &capsule.schedule)?,
        Simulated::Keyed => {
            let bound = KeyedBound::parse(name, text).map_err(ReplayError::Bound)?;
            bound.retake(planted.and_then(Planted::of_keyed), &capsule.schedule)
        }
    })
}
