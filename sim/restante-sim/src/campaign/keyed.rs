//! The keyed queue's world, as campaigns, capsules and reports see worlds.

use restante_engine::{Decider, FaultCounts, Marks, SimTime, Violation};

use super::guard::{Panic, caught, panicked};
use crate::RunResult;
use crate::explore::{Exploration, Retaken, ScheduledMove};
use crate::keyed::{self, Bound, Mutant};

/// Name of the keyed queue's workload.
pub const KEYED: &str = "keyed/small";
/// Why it is there.
pub const KEYED_WHY: &str = "The keyed queue: some tasks of some keys, retried, cancelled, paused and stopped at any moment.";

/// What a campaign adds up is the same of both worlds: tasks stand where the backlog has entries, and those that completed
/// where it has deliveries.
pub(super) fn run(seed: u64, options: &keyed::RunOptions) -> RunResult {
    let run = keyed::run(seed, options);
    RunResult {
        violation: run.violation,
        digest: run.digest,
        events: run.events,
        entries: run.tasks,
        delivered: run.completed,
        healthy_p99_ms: None,
        sim_time: run.sim_time,
        marks: run.marks,
        judged: run.judged,
        operations: Marks::new(),
        faults: FaultCounts::new(),
        trace: run.trace,
        log: run.log,
    }
}

/// A bound of the keyed queue, by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyedBound {
    /// What the user calls it.
    pub name: String,
    /// What may happen.
    pub bound: Bound,
}

/// The exploration met a panic of the code under test.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{bound}: does-not-panic: {message} ({place}); which moves lead there is not known")]
pub struct ExplorationPanicked {
    bound: String,
    message: String,
    place: String,
}

impl KeyedBound {
    /// Why bounds are there.
    pub const WHY: &str = "A bound of the keyed queue: three tasks of two keys, with cancels, pauses and stops anywhere.";

    /// The bounds that come with the command: one for each width.
    pub fn all() -> [Self; 2] {
        [1, 2].map(|width| Self { name: format!("keyed/width-{width}"), bound: Bound::small(width) })
    }

    /// The bound, as a capsule keeps it.
    pub fn text(&self) -> String {
        toml::to_string(&self.bound).expect("a bound is a table of numbers")
    }

    /// What [`text`](Self::text) has made, or a sentence that says what is wrong with it.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let bound: Bound = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        if bound.width == 0 || bound.attempts_max == 0 {
            return Err("its width and attempts_max have to be 1 at least".into());
        }
        Ok(Self { name: name.to_owned(), bound })
    }

    /// Tries every order of events, on one thread.
    ///
    /// # Errors
    ///
    /// [`ExplorationPanicked`]
    pub fn explore(&self, mutant: Option<Mutant>, states_max: u64) -> Result<Exploration, ExplorationPanicked> {
        let explored = caught(|| keyed::explore(&self.bound, mutant, states_max));
        let found = explored.map_err(|Panic { message, place }| {
            let bound = self.name.clone();
            ExplorationPanicked { bound, message, place }
        })?;
        let violation = found.violation.map(|(violation, names)| (violation, names.into_iter().map(named).collect()));
        let moves_to = |found: &(Violation, Vec<ScheduledMove>)| found.1.len() as u64;
        Ok(Exploration {
            states: found.states,
            transitions: found.moves,
            depth_max: found.depth_max.max(violation.as_ref().map_or(0, moves_to)),
            drained: found.ended,
            is_complete: found.is_complete,
            violation,
            harness_error: None,
        })
    }

    /// Takes a schedule again, as far as its moves are possible.
    pub fn retake(&self, mutant: Option<Mutant>, schedule: &[ScheduledMove]) -> Retaken {
        let names: Vec<String> = schedule.iter().map(|scheduled| scheduled.name.clone()).collect();
        let again = match caught(|| keyed::retake(&self.bound, mutant, &names)) {
            Ok(again) => again,
            Err(panic) => {
                let Panic { message, place } = &panic;
                let evidence = vec![("in", place.clone()), ("message", message.clone())];
                let violation = Violation { property: "does-not-panic", at: SimTime::ZERO, evidence };
                let run = panicked(0, &crate::RunOptions { trace: true, ..Default::default() }, violation, &panic);
                return Retaken { run, moves_taken: 0, first_difference: None };
            }
        };
        let missed = names.get(again.moves_taken).filter(|_| again.violation.is_none());
        Retaken {
            first_difference: missed.map(|name| format!("move {}, {name}: not possible here", again.moves_taken + 1)),
            moves_taken: again.moves_taken,
            run: RunResult {
                sim_time: again.violation.as_ref().map_or(SimTime::ZERO, |violation| violation.at),
                violation: again.violation,
                digest: again.digest,
                events: again.moves_taken as u64,
                entries: again.tasks,
                delivered: again.completed,
                healthy_p99_ms: None,
                marks: again.marks,
                judged: Marks::new(),
                operations: Marks::new(),
                faults: FaultCounts::new(),
                trace: again.trace,
                log: Decider::new(0).log().clone(),
            },
        }
    }
}

/// A move of the keyed queue's world asks nothing: its name says all.
fn named(name: String) -> ScheduledMove {
    ScheduledMove { name, answers: Vec::new(), chosen: Vec::new(), is_tick: false }
}

#[cfg(test)]
mod tests {
    use super::KeyedBound;

    #[test]
    fn a_bound_is_read_as_it_was_written() {
        for bound in KeyedBound::all() {
            assert_eq!(KeyedBound::parse(&bound.name, &bound.text()), Ok(bound.clone()));
            let other = |from: &str, to: &str| KeyedBound::parse(&bound.name, &bound.text().replace(from, to));
            assert!(other("pauses_max", "naps_max").is_err());
            assert!(other("attempts_max = 2", "attempts_max = 0").is_err());
        }
    }
}
