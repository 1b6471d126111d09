//! The report of `run`, as text.

use restante_sim::campaign::{Failure, Outcome, Simulated};

use super::run_json::{ExpectedReport, FailureReport};
use super::{RunReport, Timing, found_text, list_of, table};

/// The largest capsule that is printed whole.
const CAPSULE_BYTES_MAX: usize = 16 * 1024;

/// The report for a person. Files of a CI job expire and its log stays, so a log gets the capsules too.
///
/// With `with_vacuity`, the vacuity report stands where otherwise faults and states are listed.
pub(crate) fn run_text(outcome: &Outcome, report: &RunReport, is_terminal: bool, with_vacuity: bool) -> String {
    let mut text = summary(report);
    if with_vacuity {
        text.push('\n');
        text += &report.vacuity.text(report.totals.runs);
    } else {
        text += &counts(report);
    }
    text += &expected(report);
    let failures = outcome.scenarios.iter().flat_map(|scenario| &scenario.failures);
    for (failure, report) in failures.zip(&report.failures) {
        text.push('\n');
        text += &failure_text(failure, report, is_terminal);
    }
    text.push('\n');
    for scenario in &report.scenarios {
        let found = [("harness error", &scenario.harness_error), ("nondeterminism", &scenario.nondeterminism)];
        for (what, message) in found.iter().filter_map(|(what, message)| Some((what, message.as_ref()?))) {
            text += &format!("{what}: {message}\n");
        }
        for vacuity in &scenario.vacuous {
            text += &format!("vacuous: {}: {vacuity}\n", scenario.name);
        }
    }
    if let Some(mutant) = report.mutant.filter(|_| report.failures.is_empty()) {
        text += &format!("the planted bug {mutant} was not caught\n");
    }
    text += &format!("verdict: {} (exit code {})\n", report.verdict.meaning(), report.verdict.code());
    text
}

fn summary(report: &RunReport) -> String {
    let header = ["scenario", "runs", "events", "entries", "faults", "digest"].map(str::to_owned).to_vec();
    let row = |scenario: &super::run_json::ScenarioReport| {
        let numbers = [scenario.runs, scenario.events_median, scenario.entries_median, scenario.faults_median];
        let numbers = numbers.iter().map(u64::to_string);
        [scenario.name.clone()].into_iter().chain(numbers).chain([scenario.digest.clone()]).collect()
    };
    let rows: Vec<_> = [header].into_iter().chain(report.scenarios.iter().map(row)).collect();
    let totals = &report.totals;
    let mut text = table(&rows, &[1, 2, 3, 4]);
    let is_run = |world| report.scenarios.iter().any(|scenario| scenario.world == world);
    let (has_backlog, has_keyed) = (is_run(Simulated::Backlog), is_run(Simulated::Keyed));
    let instead = if has_keyed { "; of the keyed queue, its tasks are the entries" } else { "" };
    text += &format!("(events, entries and delivered faults: medians per run{instead})\n\n");
    text += &format!("{} runs, {} events, ", totals.runs, totals.events);
    if has_backlog {
        text += &format!("{} entries, {} deliveries, ", totals.entries, totals.delivered);
    }
    if has_keyed {
        text += &format!("{} tasks, {} completed, ", totals.tasks, totals.completed);
    }
    text += &format!("{} s of simulated time\n", totals.sim_us / 1_000_000);
    if !report.is_finished {
        text += "not finished: the time budget was over before everything had run that was asked for\n";
    }
    text
}

/// Faults and states, in short.
fn counts(report: &RunReport) -> String {
    let mut text = String::new();
    let faults = report.faults.iter().map(|(family, count)| format!("{family} {}/{}", count.delivered, count.requested));
    text += &section("faults delivered/requested", &faults.collect::<Vec<_>>());
    let reached = report.sometimes_reached.iter().map(|(name, count)| format!("{name} {count}"));
    text += &section("sometimes, reached", &reached.collect::<Vec<_>>());
    let missing = report.sometimes_missing.iter().map(|name| (*name).to_owned());
    text += &section("sometimes, not reached", &missing.collect::<Vec<_>>());
    text
}

/// What scenarios with a planted bug of their own found.
fn expected(report: &RunReport) -> String {
    let mut text = String::new();
    for scenario in &report.scenarios {
        if let Some(ExpectedReport { planted, property, runs }) = &scenario.expected {
            let planted = planted.as_deref().unwrap_or_default();
            text +=
                &format!("planted in {}: {planted}; {property} violated in {runs} of {} runs\n", scenario.name, scenario.runs);
        }
    }
    text
}

fn section(title: &str, words: &[String]) -> String {
    if words.is_empty() { format!("{title}: none\n") } else { format!("{title}:\n{}", list_of(words)) }
}

fn failure_text(failure: &Failure, report: &FailureReport, is_terminal: bool) -> String {
    let mut text = found_text(&failure.violation);
    let planted = failure.capsule.mutant.as_ref().map_or(String::new(), |mutant| format!(", planted bug {mutant}"));
    text += &format!("scenario     {}, seed {}{planted}\n", report.scenario, report.seed);
    text += &format!("capsule      {}\n", report.capsule_path.as_deref().unwrap_or("not written; it is below"));
    for (index, command) in report.replay.iter().enumerate() {
        text += &format!("{}  {command}\n", if index == 0 { "replay     " } else { "or         " });
    }
    text += &format!("the last {} of {} rows:\n", report.last_rows.len(), report.rows);
    for row in &report.last_rows {
        text += &format!("  {row}\n");
    }
    text += &capsule_text(failure, report.capsule_path.is_none(), is_terminal);
    text
}

/// The capsule for a log; whole when it is nowhere else.
fn capsule_text(failure: &Failure, is_nowhere_else: bool, is_terminal: bool) -> String {
    let whole = failure.capsule.to_json();
    if is_nowhere_else || (!is_terminal && whole.len() <= CAPSULE_BYTES_MAX) {
        return format!("capsule:\n{whole}\n");
    }
    if is_terminal {
        return String::new();
    }
    let mut small = failure.capsule.clone();
    small.decisions = Default::default();
    let small = small.to_json();
    if small.len() <= CAPSULE_BYTES_MAX {
        return format!("capsule, without its record of decisions (it replays as well):\n{small}\n");
    }
    format!("(the capsule has {} bytes, too many for a log)\n", whole.len())
}

/// What the wall clock showed.
pub(crate) fn speed_text(timing: &Timing, is_over_time: bool) -> String {
    let over = if is_over_time { " (the time budget)" } else { "" };
    // Runs of the keyed queue alone deliver nothing.
    let deliveries = match timing.deliveries_per_second {
        0 => String::new(),
        deliveries => format!("{deliveries} deliveries/s, "),
    };
    format!(
        "speed: {} events/s, {deliveries}{} times real time, {}.{:03} s{over}",
        timing.events_per_second,
        timing.times_real_time,
        timing.wall_ms / 1_000,
        timing.wall_ms % 1_000
    )
}
