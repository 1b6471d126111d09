//! What a set of runs was meant to prove, and did not.

use std::fmt;

use super::{About, Counted, Row, Simulated, Workload, rows};
use crate::keyed;
use crate::scenario::Scenario;
use crate::scenario::families;

/// The fewest runs of a scenario that are judged as a set.
pub const JUDGED_RUNS_MIN: u64 = 50;

/// One reason why runs proved less than they were meant to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Vacuity {
    /// Nothing happened at all.
    NoEvents,
    /// Nothing was delivered.
    NoDeliveries,
    /// No task of the keyed queue completed.
    NoCompletions,
    /// The scenario enables a fault family that no run asked for.
    NeverRequested(String),
    /// Faults of a family were asked for, and never happened to anybody.
    NeverDelivered(String),
    /// A state was expected that no run reached.
    NeverReached(String),
    /// An operation was expected that no run reached.
    NeverDone(String),
    /// A property was to be judged, and in no run it could have been found violated.
    NeverJudged(String),
    /// A planted bug was to violate a property, and no run did.
    NeverViolated(String),
}

impl fmt::Display for Vacuity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEvents => f.write_str("no event ever happened"),
            Self::NoDeliveries => f.write_str("nothing was ever delivered"),
            Self::NoCompletions => f.write_str("no task ever completed"),
            Self::NeverRequested(family) => write!(f, "the fault {family} is enabled and was never asked for"),
            Self::NeverDelivered(family) => write!(f, "the fault {family} was asked for and never happened to anybody"),
            Self::NeverViolated(property) => write!(f, "{property} was to be violated by the planted bug, and no run did"),
            Self::NeverDone(operation) => write!(f, "the operation {operation} was expected and never reached"),
            Self::NeverJudged(property) => write!(f, "{property} was never judged where it could have been found violated"),
            Self::NeverReached(mark) => write!(f, "the state {mark} was expected and never reached"),
        }
    }
}

/// The sums that are judged.
#[derive(Clone, Copy, Debug)]
pub struct Sums<'t> {
    /// How many runs.
    pub runs: u64,
    /// Their events.
    pub events: u64,
    /// Their deliveries, or tasks that completed.
    pub delivered: u64,
    /// How many violated the property that the scenario expects to see violated.
    pub expected: u64,
    /// What was counted in them.
    pub counted: Counted<'t>,
}

/// What the runs did not prove. Fewer than [`JUDGED_RUNS_MIN`] are judged only for having done anything.
pub fn vacuities(workload: &Workload, sums: Sums<'_>) -> Vec<Vacuity> {
    if sums.runs == 0 || sums.events == 0 {
        return vec![Vacuity::NoEvents];
    }
    if sums.runs < JUDGED_RUNS_MIN {
        return Vec::new();
    }
    match workload {
        Workload::Backlog(target) => of_scenario(&target.scenario, sums),
        Workload::Keyed => of_keyed(sums),
    }
}

fn of_scenario(scenario: &Scenario, sums: Sums<'_>) -> Vec<Vacuity> {
    if let Some(property) = &scenario.expect.violation {
        // Such runs end at their violation: what they would have reached after it is nobody's concern.
        return if sums.expected == 0 { vec![Vacuity::NeverViolated(property.clone())] } else { Vec::new() };
    }
    let mut found = Vec::new();
    if sums.delivered == 0 {
        found.push(Vacuity::NoDeliveries);
    }
    let Counted { faults, marks, .. } = sums.counted;
    // Of a swarm, a seed takes a part: how many runs it takes until all has been there, the scenario says.
    if scenario.swarm.is_none() {
        for (family, _) in families(&scenario.faults).into_iter().filter(|(_, is_enabled)| *is_enabled) {
            if faults.count(family).requested == 0 {
                found.push(Vacuity::NeverRequested(family.to_owned()));
            }
        }
        found.extend(faults.vacuous().map(|family| Vacuity::NeverDelivered(family.to_owned())));
    }
    if scenario.expect.no_empty_row_from.is_some_and(|from| sums.runs >= from) {
        found.extend(rows(Simulated::Backlog, sums.counted).iter().filter(|row| row.is_empty()).map(of_row));
    }
    let missing = scenario.expect.sometimes.iter().filter(|mark| marks.count(mark) == 0);
    found.extend(missing.map(|mark| Vacuity::NeverReached(mark.clone())));
    found
}

/// What an empty row says.
fn of_row(row: &Row) -> Vacuity {
    let name = row.name.to_owned();
    match row.about {
        About::Fault { requested: 0, .. } => Vacuity::NeverRequested(name),
        About::Fault { .. } => Vacuity::NeverDelivered(name),
        About::Operation { .. } => Vacuity::NeverDone(name),
        About::Property { .. } => Vacuity::NeverJudged(name),
        About::State { .. } => Vacuity::NeverReached(name),
    }
}

/// Too rare for the fewest runs that are judged: one set in fifty would not reach it.
const KEYED_RARE: &str = "cancel-came-too-late";

/// The keyed queue's workload has to reach every state that is not rare.
fn of_keyed(sums: Sums<'_>) -> Vec<Vacuity> {
    let none = (sums.delivered == 0).then_some(Vacuity::NoCompletions);
    let missing = sums.counted.marks.missing(keyed::PROPERTIES).filter(|property| property.name != KEYED_RARE);
    let missing = missing.map(|property| Vacuity::NeverReached(property.name.to_owned()));
    none.into_iter().chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use restante_engine::{FaultCounts, Marks};

    use super::{Counted, JUDGED_RUNS_MIN, Simulated, Sums, Vacuity, Workload, rows, vacuities};
    use crate::campaign::Target;
    use crate::scenario;

    fn workload(text: &str) -> Workload {
        let scenario = scenario::parse("test", text).expect("it is a scenario");
        Target { source: "test".into(), text: text.into(), scenario }.into()
    }

    /// As if nothing else had been counted.
    fn counted<'t>(faults: &'t FaultCounts, marks: &'t Marks) -> Counted<'t> {
        Counted { faults, operations: marks, judged: marks, marks }
    }

    fn judge(runs: u64, events: u64, delivered: u64, faults: &FaultCounts, marks: &Marks) -> Vec<Vacuity> {
        let text = "why = \"test\"\n[faults.network]\nlost_request = \"1%\"\n[expect]\nsometimes = [\"posted-twice\"]";
        vacuities(&workload(text), Sums { runs, events, delivered, expected: 0, counted: counted(faults, marks) })
    }

    #[test]
    fn a_set_of_runs_has_to_prove_what_its_scenario_is_for() {
        let (mut faults, mut marks) = (FaultCounts::new(), Marks::new());
        let all = [Vacuity::NeverRequested("network.lost-request".into()), Vacuity::NeverReached("posted-twice".into())];
        assert_eq!(judge(JUDGED_RUNS_MIN, 9, 9, &faults, &marks), all);
        faults.requested("network.lost-request");
        assert_eq!(
            judge(JUDGED_RUNS_MIN, 9, 9, &faults, &marks),
            [Vacuity::NeverDelivered("network.lost-request".into()), Vacuity::NeverReached("posted-twice".into())]
        );
        faults.delivered("network.lost-request");
        marks.mark("posted-twice");
        assert_eq!(judge(JUDGED_RUNS_MIN, 9, 9, &faults, &marks), []);
        assert_eq!(judge(JUDGED_RUNS_MIN, 9, 0, &faults, &marks), [Vacuity::NoDeliveries]);
    }

    #[test]
    fn a_set_that_claims_everything_is_told_every_empty_row() {
        let workload = workload("why = \"test\"\n[expect]\nno_empty_row_from = 70");
        let (faults, marks) = (FaultCounts::new(), Marks::new());
        let judge = |workload: &Workload, runs| {
            vacuities(workload, Sums { runs, events: 9, delivered: 9, expected: 0, counted: counted(&faults, &marks) })
        };
        assert_eq!(judge(&workload, 69), []);
        let all = judge(&workload, 70);
        assert_eq!(all.len(), rows(Simulated::Backlog, counted(&faults, &marks)).len());
        for expected in [
            Vacuity::NeverRequested("store.slow".into()),
            Vacuity::NeverDone("schedule.pos".into()),
            Vacuity::NeverJudged("lane-order".into()),
            Vacuity::NeverReached("posted-twice".into()),
        ] {
            assert!(all.contains(&expected), "{expected}");
        }
        // What a swarm enables, not every set of its seeds has to have.
        let text = "why = \"test\"\n[faults.store]\nslow = \"1%\"";
        assert_eq!(judge(&self::workload(text), 60), [Vacuity::NeverRequested("store.slow".into())]);
        assert_eq!(judge(&self::workload(&format!("{text}\n[swarm]\nfamilies = true")), 60), []);
    }

    #[test]
    fn a_planted_bug_that_nothing_finds_is_vacuous() {
        let text = "why = \"test\"\nplanted = \"panics\"\n[expect]\nviolation = \"does-not-panic\"";
        let workload = workload(text);
        let (faults, marks) = (FaultCounts::new(), Marks::new());
        let sums = |expected| Sums { runs: 50, events: 9, delivered: 9, expected, counted: counted(&faults, &marks) };
        assert_eq!(vacuities(&workload, sums(0)), [Vacuity::NeverViolated("does-not-panic".into())]);
        assert_eq!(vacuities(&workload, sums(1)), []);
    }

    #[test]
    fn few_runs_are_judged_only_for_having_done_anything() {
        let (faults, marks) = (FaultCounts::new(), Marks::new());
        assert_eq!(judge(JUDGED_RUNS_MIN - 1, 9, 0, &faults, &marks), []);
        assert_eq!(judge(1, 0, 0, &faults, &marks), [Vacuity::NoEvents]);
        assert_eq!(judge(0, 0, 0, &faults, &marks), [Vacuity::NoEvents]);
    }

    #[test]
    fn the_keyed_queue_has_to_reach_its_states() {
        let (faults, marks) = (FaultCounts::new(), Marks::new());
        let judge = |runs| {
            let sums = Sums { runs, events: 9, delivered: 0, expected: 0, counted: counted(&faults, &marks) };
            vacuities(&Workload::Keyed, sums)
        };
        assert_eq!(judge(JUDGED_RUNS_MIN - 1), []);
        let found = judge(JUDGED_RUNS_MIN);
        assert!(found.contains(&Vacuity::NoCompletions), "{found:?}");
        assert!(found.contains(&Vacuity::NeverReached("width-was-full".into())), "{found:?}");
        assert!(!found.contains(&Vacuity::NeverReached(super::KEYED_RARE.into())), "{found:?}");
    }
}
