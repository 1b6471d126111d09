//! Schedules: the moves of an exploration by name, taken again.

use serde::{Deserialize, Serialize};

use super::ExploreError;
use crate::campaign::{Panic, caught};
use crate::mutant::Mutant;
use crate::scenario::Scenario;
use crate::world::{Move, RunResult, World};

/// A move of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduledMove {
    /// Its name.
    pub name: String,
    /// Answers to its questions, as indices; past their end benign.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<usize>,
    /// The answers that were not benign, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<String>,
    /// Whether it lets time pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_tick: bool,
}

/// What a schedule came to when it was taken again.
#[derive(Clone, Debug)]
pub struct Retaken {
    /// The run, traced.
    pub run: RunResult,
    /// How many of its moves were taken.
    pub moves_taken: usize,
    /// The first move that is not possible here, if there is one: the schedule is then of another version.
    pub first_difference: Option<String>,
}

/// Takes a schedule again, as far as its moves are possible.
///
/// # Errors
///
/// [`ExploreError`] when the simulator notices a mistake of its own.
pub fn retake(scenario: &Scenario, mutant: Option<Mutant>, schedule: &[ScheduledMove]) -> Result<Retaken, ExploreError> {
    let error = |moves: usize, panic| ExploreError::new(scenario, moves as u64, panic);
    let mut world = caught(|| World::explored(scenario, mutant, true)).map_err(|panic| error(0, panic))?;
    let mut moves_taken = 0;
    let mut first_difference = None;
    for scheduled in schedule {
        let fits = |a_move: &Move| {
            world.name_of_move(*a_move) == scheduled.name && matches!(a_move, Move::Tick { .. }) == scheduled.is_tick
        };
        let Some(a_move) = world.moves().into_iter().find(fits) else {
            first_difference = Some(format!("move {}, {}: not possible here", moves_taken + 1, scheduled.name));
            break;
        };
        moves_taken += 1;
        if let Err(panic) = caught(|| world.take(a_move, &scheduled.answers)) {
            note(&mut world, panic).map_err(|panic| error(moves_taken, panic))?;
        }
        if world.violation().is_some() {
            break;
        }
    }
    if world.violation().is_none() {
        let at_rest = caught(|| {
            let moves = world.moves();
            world.check_at_rest(&moves);
        });
        if let Err(panic) = at_rest {
            note(&mut world, panic).map_err(|panic| error(moves_taken, panic))?;
        }
    }
    Ok(Retaken { run: world.into_result(), moves_taken, first_difference })
}

/// Notes a panic of the code under test as the violation that it is.
fn note(world: &mut World<'_>, panic: Panic) -> Result<(), Panic> {
    let violation = panic.violation(world.instant())?;
    world.panicked(violation, &panic.place, &panic.message);
    Ok(())
}
