//! The report of `run`, as JSON.

use restante_engine::{FaultCounts, Marks};
use restante_sim::campaign::{Counted, Failure, Outcome, Planted, ScenarioOutcome, Simulated, Verdict};
use restante_sim::capsule::{Capsule, sentence_of};
use serde::Serialize;

use super::{VacuityReport, Written, quoted};

/// How many rows of the trace a failure shows.
const ROWS_MAX: usize = 15;

/// `restante-sim/run/1`.
#[derive(Debug, Serialize)]
pub(crate) struct RunReport {
    schema: &'static str,
    pub(crate) verdict: Verdict,
    exit_code: u8,
    pub(crate) is_finished: bool,
    pub(crate) mutant: Option<&'static str>,
    pub(crate) scenarios: Vec<ScenarioReport>,
    pub(crate) totals: Totals,
    pub(crate) faults: FaultCounts,
    pub(crate) sometimes_reached: Marks,
    pub(crate) sometimes_missing: Vec<&'static str>,
    pub(crate) vacuity: VacuityReport,
    pub(crate) failures: Vec<FailureReport>,
    /// The only part that differs from one time to the next.
    pub(crate) timing: Timing,
}

#[derive(Debug, Serialize)]
pub(crate) struct ScenarioReport {
    pub(crate) name: String,
    pub(crate) world: Simulated,
    verdict: Verdict,
    pub(crate) runs: u64,
    pub(crate) events_median: u64,
    /// Of the keyed queue, its tasks.
    pub(crate) entries_median: u64,
    pub(crate) faults_median: u64,
    events: u64,
    entries: u64,
    /// Of the keyed queue, the tasks that completed.
    delivered: u64,
    sim_us: u64,
    pub(crate) digest: String,
    failing_seeds: Vec<u64>,
    /// What the scenario's own planted bug was to violate, and in how many runs it did.
    pub(crate) expected: Option<ExpectedReport>,
    pub(crate) vacuous: Vec<String>,
    pub(crate) nondeterminism: Option<String>,
    pub(crate) harness_error: Option<String>,
    marks: Marks,
    judged: Marks,
    operations: Marks,
    faults: FaultCounts,
}

#[derive(Debug, Serialize)]
pub(crate) struct ExpectedReport {
    pub(crate) planted: Option<String>,
    pub(crate) property: String,
    pub(crate) runs: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Totals {
    pub(crate) runs: u64,
    pub(crate) events: u64,
    pub(crate) entries: u64,
    pub(crate) delivered: u64,
    /// Tasks of the keyed queue: no entries.
    pub(crate) tasks: u64,
    /// Those of them that completed.
    pub(crate) completed: u64,
    pub(crate) sim_us: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct FailureReport {
    pub(crate) scenario: String,
    pub(crate) seed: u64,
    mutant: Option<&'static str>,
    property: &'static str,
    sentence: &'static str,
    fingerprint: String,
    at_us: u64,
    /// Where the capsule is; none when it could not be written.
    pub(crate) capsule_path: Option<String>,
    /// The capsule itself, when it could not be written.
    capsule: Option<Capsule>,
    /// Why it could not be written.
    capsule_error: Option<String>,
    /// The commands that show it again.
    pub(crate) replay: Vec<String>,
    pub(crate) last_rows: Vec<String>,
    pub(crate) rows: usize,
}

/// What the wall clock showed.
#[derive(Debug, Serialize)]
pub(crate) struct Timing {
    pub(crate) wall_ms: u64,
    pub(crate) events_per_second: u64,
    pub(crate) deliveries_per_second: u64,
    /// Simulated time per wall time.
    pub(crate) times_real_time: u64,
}

impl RunReport {
    pub(crate) fn new(outcome: &Outcome, written: &[Written], planted: Option<Planted>, verdict: Verdict) -> Self {
        let (mut faults, mut marks) = (FaultCounts::new(), Marks::new());
        let (mut judged, mut operations) = (Marks::new(), Marks::new());
        let mut totals = Totals { runs: 0, events: 0, entries: 0, delivered: 0, tasks: 0, completed: 0, sim_us: 0 };
        for (workload, tally) in outcome.scenarios.iter().map(|scenario| (&scenario.workload, &scenario.tally)) {
            faults.merge(&tally.faults);
            marks.merge(&tally.marks);
            judged.merge(&tally.judged);
            operations.merge(&tally.operations);
            totals.runs += tally.runs;
            totals.events += tally.events;
            let (taken, done) = match workload.simulated() {
                Simulated::Backlog => (&mut totals.entries, &mut totals.delivered),
                Simulated::Keyed => (&mut totals.tasks, &mut totals.completed),
            };
            *taken += tally.entries;
            *done += tally.delivered;
            totals.sim_us += tally.sim_us;
        }
        let failures = outcome.scenarios.iter().flat_map(|scenario| scenario.failures.iter().map(move |found| (scenario, found)));
        Self {
            schema: "restante-sim/run/1",
            verdict,
            exit_code: verdict.code(),
            is_finished: outcome.is_finished,
            mutant: planted.map(Planted::name),
            scenarios: outcome.scenarios.iter().map(scenario_report).collect(),
            timing: Timing::of(&totals, outcome.wall),
            totals,
            sometimes_missing: missing(outcome, &marks),
            vacuity: {
                let counted = Counted { faults: &faults, operations: &operations, judged: &judged, marks: &marks };
                VacuityReport::new(worlds(outcome), counted)
            },
            faults,
            sometimes_reached: marks,
            failures: failures.zip(written).map(|((of, found), written)| failure_report(of, found, planted, written)).collect(),
        }
    }
}

/// What no run reached, of the worlds that were run.
fn missing(outcome: &Outcome, marks: &Marks) -> Vec<&'static str> {
    let missing = worlds(outcome).flat_map(|world| marks.missing(world.properties()));
    missing.map(|property| property.name).collect()
}

/// The worlds that were run.
fn worlds(outcome: &Outcome) -> impl Iterator<Item = Simulated> {
    let is_run = |world: &Simulated| outcome.scenarios.iter().any(|scenario| scenario.workload.simulated() == *world);
    Simulated::ALL.into_iter().filter(is_run)
}

fn scenario_report(outcome: &ScenarioOutcome) -> ScenarioReport {
    let tally = &outcome.tally;
    let [events_median, entries_median, faults_median] = tally.medians();
    ScenarioReport {
        name: outcome.workload.source().to_owned(),
        world: outcome.workload.simulated(),
        verdict: outcome.verdict(),
        runs: tally.runs,
        events_median,
        entries_median,
        faults_median,
        events: tally.events,
        entries: tally.entries,
        delivered: tally.delivered,
        sim_us: tally.sim_us,
        digest: format!("{:032x}", tally.digest()),
        failing_seeds: tally.failed.iter().map(|failed| failed.seed).collect(),
        expected: tally.expected.clone().map(|property| ExpectedReport {
            planted: outcome.workload.planted().map(str::to_owned),
            property,
            runs: tally.expected_count,
        }),
        vacuous: outcome.vacuities.iter().map(ToString::to_string).collect(),
        nondeterminism: tally.divergence.as_ref().map(ToString::to_string),
        harness_error: tally.harness_error.as_ref().map(ToString::to_string),
        marks: tally.marks.clone(),
        judged: tally.judged.clone(),
        operations: tally.operations.clone(),
        faults: tally.faults.clone(),
    }
}

fn failure_report(of: &ScenarioOutcome, found: &Failure, planted: Option<Planted>, written: &Written) -> FailureReport {
    let (capsule_path, capsule, capsule_error) = match written {
        Written::To(path) => (Some(path.display().to_string()), None, None),
        Written::Not { why } => (None, Some(found.capsule.clone()), Some(why.clone())),
    };
    let command = "cargo run --release -- replay";
    let planting = planted.map_or(String::new(), |planted| format!(" --mutant {}", planted.name()));
    let by_seed = format!("{command} --seed {} {}{planting}", found.seed, quoted(of.workload.source()));
    let by_capsule = capsule_path.as_ref().map(|path| format!("{command} {}", quoted(path)));
    let rows = found.trace.rows();
    let rows_count = rows.len();
    FailureReport {
        scenario: of.workload.source().to_owned(),
        seed: found.seed,
        mutant: planted.map(Planted::name),
        property: found.violation.property,
        sentence: sentence_of(found.violation.property),
        fingerprint: found.violation.fingerprint(),
        at_us: found.violation.at.as_us(),
        capsule_path,
        capsule,
        capsule_error,
        replay: by_capsule.into_iter().chain([by_seed]).collect(),
        last_rows: rows.skip(rows_count.saturating_sub(ROWS_MAX)).map(ToString::to_string).collect(),
        rows: rows_count,
    }
}

impl Timing {
    fn of(totals: &Totals, wall: std::time::Duration) -> Self {
        let wall_us = wall.as_micros().max(1);
        let per_second = |count: u64| u64::try_from(u128::from(count) * 1_000_000 / wall_us).unwrap_or(u64::MAX);
        Self {
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            events_per_second: per_second(totals.events),
            deliveries_per_second: per_second(totals.delivered),
            times_real_time: u64::try_from(u128::from(totals.sim_us) / wall_us).unwrap_or(u64::MAX),
        }
    }
}
