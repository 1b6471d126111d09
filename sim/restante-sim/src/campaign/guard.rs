//! Single runs, guarded: a panic becomes a violation, and the same seed can be asked whether it does the same again.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use restante_engine::{Decider, Digest, FaultCounts, Marks, SimTime, Trace, TraceRow, Violation};
use thiserror::Error;

use super::{SeedOptions, Workload};
use crate::scenario::Scenario;
use crate::{RunOptions, RunResult, World};

/// How the message of a panic begins that is the simulator's own fault.
const HARNESS: &str = "harness error:";

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The simulator failed; this says nothing about the code under test.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{scenario}, seed {seed}: {message} ({place}); the simulator is at fault, not the code under test")]
pub struct HarnessError {
    /// Name of the scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// What it says of itself.
    pub message: String,
    /// Where it noticed: file and line.
    pub place: String,
}

/// Runs `scenario` with `seed`. A panic is a violation of `does-not-panic`; what the run had counted and traced until then is
/// lost.
///
/// # Errors
///
/// [`HarnessError`] when the simulator notices a mistake of its own.
pub fn run_guarded(scenario: &Scenario, seed: u64, options: &RunOptions) -> Result<RunResult, HarnessError> {
    guarded(&scenario.name, seed, options, || World::run(scenario, seed, options))
}

/// What `run` comes to, which runs `seed` of `name` with `options`.
pub(super) fn guarded(
    name: &str,
    seed: u64,
    options: &RunOptions,
    run: impl FnOnce() -> RunResult,
) -> Result<RunResult, HarnessError> {
    caught(run).or_else(|panic| {
        let violation = panic.violation(SimTime::ZERO).map_err(|Panic { message, place }| {
            let scenario = name.to_owned();
            HarnessError { scenario, seed, message, place }
        })?;
        Ok(panicked(seed, options, violation, &panic))
    })
}

/// A panic that was caught.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Panic {
    pub(crate) message: String,
    /// File, from its crate's folder on, and line.
    pub(crate) place: String,
}

impl Panic {
    /// The violation that it is; or the panic itself if it was the simulator that noticed a mistake of its own. The line is no
    /// evidence: it changes with every change of the file.
    pub(crate) fn violation(&self, at: SimTime) -> Result<Violation, Self> {
        if self.message.starts_with(HARNESS) {
            return Err(self.clone());
        }
        let file = self.place.rsplit_once(':').map_or(self.place.as_str(), |(file, _)| file);
        let evidence = vec![("in", file.to_owned()), ("message", self.message.clone())];
        Ok(Violation { property: "does-not-panic", at, evidence })
    }
}

/// What `run` comes to. A panic in it says nothing on standard error.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    quieten_guarded_panics();
    let was_guarded = IS_GUARDED.replace(true);
    // What a run works on dies with it; nothing half-changed is left to be seen.
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    IS_GUARDED.set(was_guarded);
    outcome.map_err(|payload| Panic { message: message_of(payload.as_ref()), place: PLACE.take() })
}

/// Panics of guarded runs say nothing on standard error; all others say what they always do.
fn quieten_guarded_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_GUARDED.get() {
                let place = info.location().map_or(String::new(), |at| format!("{}:{}", short(at.file()), at.line()));
                PLACE.replace(place);
            } else {
                usual(info);
            }
        }));
    });
}

/// The path from the crate's folder on: the rest differs from machine to machine.
fn short(file: &str) -> String {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let from = parts.iter().rposition(|part| *part == "src").map_or(0, |src| src.saturating_sub(1));
    parts[from..].join("/")
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".into()).replace('\n', " ")
}

pub(super) fn panicked(seed: u64, options: &RunOptions, violation: Violation, Panic { message, place }: &Panic) -> RunResult {
    let mut digest = Digest::new();
    digest.u64(seed);
    digest.str(&violation.fingerprint());
    let mut trace = if options.trace { Trace::all() } else { Trace::off() };
    trace.row(|| TraceRow {
        at: SimTime::ZERO,
        actor: "unknown".into(),
        event: "panic",
        subject: String::new(),
        detail: format!("{place}: {message} (the rows before it are lost)"),
    });
    RunResult {
        violation: Some(violation),
        digest: digest.value(),
        events: 0,
        entries: 0,
        delivered: 0,
        healthy_p99_ms: None,
        sim_time: SimTime::ZERO,
        marks: Marks::new(),
        judged: Marks::new(),
        operations: Marks::new(),
        faults: FaultCounts::new(),
        trace,
        log: Decider::with_tape(seed, &options.tape).log().clone(),
    }
}

/// The same seed did two different things.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{scenario}, seed {seed}: two runs in one process differ ({first:032x} and {second:032x}); {difference}")]
pub struct Divergence {
    /// Name of the scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Digest of the one run.
    pub first: u128,
    /// Digest of the other.
    pub second: u128,
    /// Where they part.
    pub difference: Difference,
}

/// Where two runs of a seed part.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Difference {
    /// At this row of the trace.
    #[error("they part at row {number}:\n  one   {one}\n  other {other}")]
    Row {
        /// Number of the row, from 1.
        number: usize,
        /// The row in the one run.
        one: String,
        /// The row in the other.
        other: String,
    },
    /// Their traces are alike.
    #[error("their traces are alike when run again: the difference is in what rows do not show, or comes and goes")]
    NotInTrace,
}

/// Runs `seed` again, without recording, and compares with what it did before.
///
/// # Errors
///
/// [`HarnessError`] when a repetition meets one.
pub fn divergence(
    workload: &Workload,
    seed: u64,
    options: &SeedOptions,
    before: &RunResult,
) -> Result<Option<Divergence>, HarnessError> {
    let again = workload.run(seed, options)?;
    if is_same(before, &again) {
        return Ok(None);
    }
    let traced = SeedOptions { trace: true, ..options.clone() };
    let (one, other) = (workload.run(seed, &traced)?, workload.run(seed, &traced)?);
    let difference = first_difference(&one.trace, &other.trace);
    Ok(Some(Divergence { scenario: workload.name().to_owned(), seed, first: before.digest, second: again.digest, difference }))
}

/// Whether the two did the same, as far as one can tell from outside.
pub(crate) fn is_same(one: &RunResult, other: &RunResult) -> bool {
    let summary = |run: &RunResult| (run.digest, run.events, run.entries, run.delivered, run.sim_time);
    let found = |run: &RunResult| run.violation.as_ref().map(Violation::fingerprint);
    let counts = |run: &RunResult| [run.marks.clone(), run.judged.clone(), run.operations.clone()];
    summary(one) == summary(other) && found(one) == found(other) && counts(one) == counts(other) && one.faults == other.faults
}

fn first_difference(one: &Trace, other: &Trace) -> Difference {
    let (mut ones, mut others) = (one.rows(), other.rows());
    for number in 1.. {
        let pair = (ones.next(), others.next());
        match pair {
            (None, None) => break,
            (one, other) if one != other => {
                let show = |row: Option<&TraceRow>| row.map_or("(ended)".into(), ToString::to_string);
                return Difference::Row { number, one: show(one), other: show(other) };
            }
            _ => {}
        }
    }
    Difference::NotInTrace
}

#[cfg(test)]
mod tests {
    use restante_engine::{SimTime, Trace, TraceRow};

    use super::{
        Difference, Divergence, HARNESS, Panic, SeedOptions, Workload, caught, divergence, first_difference, message_of,
        panicked, short,
    };
    use crate::campaign::Target;
    use crate::{RunOptions, scenario};

    #[test]
    fn a_panic_is_caught_and_placed() {
        assert_eq!(caught(|| 7), Ok(7));
        let panic = caught(|| panic!("{HARNESS} it is {}", "mine")).expect_err("it panics");
        assert_eq!(panic.message, "harness error: it is mine");
        assert!(
            panic.place.starts_with("src/campaign/guard.rs:") || panic.place.contains("/src/campaign/guard.rs:"),
            "{}",
            panic.place
        );
        let nested = caught(|| caught(|| panic!("inner")).is_err());
        assert_eq!(nested, Ok(true));
    }

    #[test]
    fn a_panic_is_a_violation_whose_fingerprint_has_no_line() {
        let options = RunOptions { trace: true, ..RunOptions::default() };
        let panic = Panic { message: "index out of bounds".into(), place: "restante-core/src/lane.rs:31".into() };
        let run = panicked(7, &options, panic.violation(SimTime::ZERO).expect("not the simulator's own"), &panic);
        let fingerprint = run.violation.expect("a violation").fingerprint();
        assert_eq!(fingerprint, "does-not-panic in=restante-core/src/lane.rs message=index out of bounds");
        assert!(run.trace.render().contains("restante-core/src/lane.rs:31: index out of bounds"));
    }

    #[test]
    fn a_run_that_does_something_else_is_noticed() {
        let text = "why = \"w\"\n[workload]\nproducers = 1\nsends_count = 1";
        let scenario = scenario::parse("small", text).expect("it is a scenario");
        let small = Workload::from(Target { source: "small.toml".into(), text: text.into(), scenario });
        for (workload, name) in [(small, "small"), (Workload::Keyed, "keyed/small")] {
            let options = SeedOptions::default();
            let mut run = workload.run(3, &options).expect("it runs");
            assert_eq!(divergence(&workload, 3, &options, &run), Ok(None));
            run.digest ^= 1;
            let found = divergence(&workload, 3, &options, &run).expect("it runs").expect("it differs");
            let (first, second) = (run.digest, run.digest ^ 1);
            let difference = Difference::NotInTrace;
            assert_eq!(found, Divergence { scenario: name.into(), seed: 3, first, second, difference });
        }
    }

    fn trace(details: &[&str]) -> Trace {
        let mut trace = Trace::all();
        for detail in details {
            trace.row(|| TraceRow {
                at: SimTime::ZERO,
                actor: "w".into(),
                event: "e",
                subject: "s".into(),
                detail: (*detail).into(),
            });
        }
        trace
    }

    #[test]
    fn the_first_row_that_differs_is_named() {
        assert_eq!(first_difference(&trace(&["a", "b"]), &trace(&["a", "b"])), Difference::NotInTrace);
        let differs = |one: &[&str], other: &[&str]| match first_difference(&trace(one), &trace(other)) {
            Difference::Row { number, one, other } => (number, one.ends_with("(ended)"), other.ends_with("(ended)")),
            Difference::NotInTrace => panic!("they differ"),
        };
        assert_eq!(differs(&["a", "b", "c"], &["a", "x", "c"]), (2, false, false));
        assert_eq!(differs(&["a"], &["a", "b"]), (2, true, false));
    }

    #[test]
    fn panics_are_named_without_the_machine() {
        assert_eq!(short("/home/someone/checkout/crates/restante-core/src/plan/settle.rs"), "restante-core/src/plan/settle.rs");
        assert_eq!(short("lib.rs"), "lib.rs");
        assert_eq!(message_of(&"two\nlines"), "two lines");
        assert_eq!(message_of(&7_u8), "a panic without a message");
    }
}
