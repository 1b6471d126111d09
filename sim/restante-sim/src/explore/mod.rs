//! Exploration: every order of events of a small bound, over the same world and the same production code.
//!
//! 1. A state is a [`World`]; what it can do next are its moves (see `world/explored.rs`).
//! 2. A move asks questions (does this commit's answer say "unknown"? does the worker crash here?); every answer within the
//!    bound is tried.
//! 3. Two states with one canonical fingerprint (`world/canon.rs`) are one state; with symmetry, states that differ in which
//!    worker does what are one state too.
//! 4. Every commit, POST and answer is audited as in a seeded run; where nobody can act, depth is recounted and something must
//!    be left to wait for.
//! 5. A panic of the code under test is a violation of `does-not-panic`, by the move in which it happened; one of the simulator
//!    itself ends the exploration without a finding ([`ExploreError`]).
//! 6. The schedule that leads to a violation can be taken again, move by move ([`retake`]).

mod queue;
mod schedule;

pub use schedule::{Retaken, ScheduledMove, retake};

use std::num::NonZeroUsize;

use restante_engine::{SimTime, Violation};
use thiserror::Error;

use crate::campaign::{Panic, caught};
use crate::mutant::Mutant;
use crate::scenario::Scenario;
use crate::world::{Move, World};
use queue::{Path, Queue};

/// How to explore.
#[derive(Clone, Debug)]
pub struct ExploreOptions {
    /// Threads.
    pub jobs: NonZeroUsize,
    /// Whether workers are interchangeable.
    pub symmetry: bool,
    /// Most states to visit; more is "not finished".
    pub states_max: u64,
    /// A planted bug.
    pub mutant: Option<Mutant>,
}

/// The simulator failed within an exploration; this says nothing about the code under test.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{bound}, after {moves} moves: {message} ({place}); the simulator is at fault, not the code under test")]
pub struct ExploreError {
    /// Name of the bound.
    pub bound: String,
    /// Moves that led there.
    pub moves: u64,
    /// What it says of itself.
    pub message: String,
    /// Where it noticed: file and line.
    pub place: String,
}

impl ExploreError {
    fn new(scenario: &Scenario, moves: u64, Panic { message, place }: Panic) -> Self {
        Self { bound: scenario.name.clone(), moves, message, place }
    }
}

/// What an exploration came to.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Canonical states visited.
    pub states: u64,
    /// Moves taken, each answer a move of its own.
    pub transitions: u64,
    /// Longest schedule taken.
    pub depth_max: u64,
    /// States in which everything is delivered or given up and nothing is in flight.
    pub drained: u64,
    /// Whether every state of the bound was visited.
    pub is_complete: bool,
    /// The first violation found, and the schedule that leads to it.
    pub violation: Option<(Violation, Vec<ScheduledMove>)>,
    /// A mistake of the simulator.
    pub harness_error: Option<ExploreError>,
}

/// Explores `scenario` within its bound.
pub fn explore(scenario: &Scenario, options: &ExploreOptions) -> Exploration {
    let queue = Queue::new(scenario, options.states_max);
    let root = caught(|| {
        let permutations = permutations(scenario, options.symmetry);
        let root = World::explored(scenario, options.mutant, false);
        (root.fingerprint(&permutations), root, permutations)
    });
    let (fingerprint, root, permutations) = match root {
        Ok(root) => root,
        Err(panic) => {
            queue.panicked(panic, SimTime::ZERO, &Path::root());
            return queue.into_exploration();
        }
    };
    queue.visit(fingerprint, || (root, Path::root()));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.get() {
            scope.spawn(|| {
                while let Some((world, path)) = queue.take() {
                    expand(&queue, world, &path, &permutations);
                    queue.done();
                }
            });
        }
    });
    queue.into_exploration()
}

/// Tries every move of a state with every answer.
fn expand<'s>(queue: &Queue<'s>, mut world: World<'s>, path: &Path, permutations: &[Vec<u8>]) {
    let moves = caught(|| {
        let moves = world.moves();
        world.check_at_rest(&moves);
        moves
    });
    let moves = match moves {
        Ok(moves) => moves,
        Err(panic) => return queue.panicked(panic, world.instant(), path),
    };
    if let Some(violation) = world.violation() {
        queue.found(violation.clone(), path);
        return;
    }
    if world.is_drained() {
        queue.count_drained();
        return;
    }
    for a_move in moves {
        let name = world.name_of_move(a_move);
        let mut untried: Vec<Vec<usize>> = vec![Vec::new()];
        while let Some(answers) = untried.pop() {
            let mut next = world.clone();
            // Bringing a state to its canonical form decodes and encodes records: production code too.
            let fingerprint = caught(|| {
                next.take(a_move, &answers);
                next.violation().is_none().then(|| next.fingerprint(permutations))
            });
            let asked = next.asked();
            branch(&mut untried, &answers, &asked);
            let chosen = answers.iter().zip(&asked).filter(|(answer, _)| **answer > 0);
            let chosen = chosen.map(|(answer, names)| names[*answer].to_owned()).collect();
            let scheduled = ScheduledMove {
                name: name.clone(),
                answers: answers.clone(),
                chosen,
                is_tick: matches!(a_move, Move::Tick { .. }),
            };
            let next_path = path.then(scheduled);
            queue.count_transition(next_path.len());
            match (fingerprint, next.violation()) {
                (Err(panic), _) => return queue.panicked(panic, next.instant(), &next_path),
                (Ok(_), Some(violation)) => return queue.found(violation.clone(), &next_path),
                (Ok(fingerprint), None) => queue.visit(fingerprint.unwrap_or_default(), || (next, next_path)),
            }
        }
    }
}

/// The answers to try besides `answers`: at each question past its end, every other alternative.
fn branch(untried: &mut Vec<Vec<usize>>, answers: &[usize], asked: &[Vec<&'static str>]) {
    for (at, alternatives) in asked.iter().enumerate().skip(answers.len()) {
        for alternative in 1..alternatives.len() {
            let mut other = answers.to_vec();
            other.resize(at, 0);
            other.push(alternative);
            untried.push(other);
        }
    }
}

/// The names that nodes may go by: as they are, and with symmetry every permutation of the workers.
fn permutations(scenario: &Scenario, symmetry: bool) -> Vec<Vec<u8>> {
    let nodes = World::explored(scenario, None, false).node_count();
    let identity: Vec<u8> = (0..nodes as u8).collect();
    let workers = scenario.world.workers as usize;
    if !symmetry {
        return vec![identity];
    }
    let mut all = vec![identity];
    for last in 1..workers {
        // Heap's idea, written plainly: put each earlier worker in the place of the last one.
        let with_last: Vec<Vec<u8>> = all
            .iter()
            .flat_map(|names| {
                (0..last).map(move |other| {
                    let mut swapped = names.clone();
                    swapped.swap(other, last);
                    swapped
                })
            })
            .collect();
        all.extend(with_last);
    }
    all
}
