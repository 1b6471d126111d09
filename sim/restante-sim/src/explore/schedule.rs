//! Schedules: the moves of an exploration by name, taken again.

use serde::{Deserialize, Serialize};

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
pub fn retake(scenario: &Scenario, mutant: Option<Mutant>, schedule: &[ScheduledMove]) -> Retaken {
    let mut world = World::explored(scenario, mutant, true);
    let mut moves_taken = 0;
    let mut first_difference = None;
    for scheduled in schedule {
        let fits =
            |(name, a_move): &(String, Move)| *name == scheduled.name && matches!(a_move, Move::Tick { .. }) == scheduled.is_tick;
        match world.named_moves().into_iter().find(fits) {
            Some((_, a_move)) => world.take(a_move, &scheduled.answers),
            None => {
                first_difference = Some(format!("move {}, {}: not possible here", moves_taken + 1, scheduled.name));
                break;
            }
        };
        moves_taken += 1;
        if world.violation().is_some() {
            break;
        }
    }
    let moves = world.moves();
    world.check_at_rest(&moves);
    Retaken { run: world.into_result(), moves_taken, first_difference }
}
