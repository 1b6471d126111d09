//! `check`: every order of events within a small bound.

use std::num::NonZeroUsize;
use std::time::Instant;

use restante_sim::campaign::{ExplorationPanicked, KeyedBound, Planted, Verdict, map};
use restante_sim::capsule::{Capsule, Origin};
use restante_sim::explore::{Exploration, ExploreError, ExploreOptions, explore, retake};
use restante_sim::{RunResult, scenario};

use super::Failed;
use super::args::{CheckArgs, jobs};
use super::output::{Output, note};
use super::targets::{keyed_bounds, misplaced, target};
use crate::report::{CheckReport, ChecksReport, Symmetry, Written, check_text};

/// An explored bound.
struct Checked {
    origin: Origin,
    symmetry: Symmetry,
    found: Exploration,
    /// The schedule of the violation, taken again.
    again: Option<RunResult>,
}

pub(super) fn check(args: &CheckArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let bounds = keyed_bounds(&args.bound)?;
    let began_at = Instant::now();
    let checked = if bounds.is_empty() { vec![check_backlog(args)?] } else { check_keyed(args, &bounds)? };
    let seconds = began_at.elapsed().as_secs_f64();
    let reports: Vec<CheckReport> = checked.iter().map(|checked| report(args, checked)).collect();
    if args.json {
        match &reports[..] {
            [report] => output.json(report),
            several => output.json(&ChecksReport::new(several)),
        }
    } else {
        output.text(&check_text(&reports));
        let sum = |of: fn(&Exploration) -> u64| checked.iter().map(|checked| of(&checked.found)).sum::<u64>() as f64;
        let (states, moves) = (sum(|found| found.states) / seconds, sum(|found| found.transitions) / seconds);
        let longest = checked.iter().map(|checked| checked.found.depth_max).max().unwrap_or(0);
        note(&format!("speed: {states:.0} states/s, {moves:.0} moves/s, {seconds:.1} s; longest schedule {longest}"));
    }
    Ok(reports.iter().map(|report| report.verdict).collect())
}

fn check_backlog(args: &CheckArgs) -> Result<Checked, Failed> {
    let in_folder = format!("check/{}", args.bound);
    let is_builtin = scenario::builtin_names().any(|name| name == in_folder);
    let target = target(if is_builtin { in_folder } else { args.bound.clone() })?;
    let mutant = args.mutant.map(|planted| planted.of_backlog().ok_or_else(|| misplaced(planted, &target.source))).transpose()?;
    // With one thread the violation found first is the same every time.
    let threads = if mutant.is_some() && args.jobs.is_none() { 1 } else { jobs(args.jobs) };
    let options = ExploreOptions {
        jobs: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
        symmetry: !args.no_symmetry,
        states_max: args.states_max,
        mutant,
    };
    let mut found = explore(&target.scenario, &options);
    if found.violation.is_some() && threads > 1 {
        found = explore(&target.scenario, &ExploreOptions { jobs: NonZeroUsize::MIN, ..options.clone() });
    }
    let harness = |error: &ExploreError| Failed { verdict: Verdict::Harness, message: error.to_string() };
    if let Some(error) = &found.harness_error {
        return Err(harness(error));
    }
    let again = found.violation.as_ref().map(|(_, schedule)| retake(&target.scenario, mutant, schedule)).transpose();
    let again = again.map_err(|error| harness(&error))?.map(|again| again.run);
    let symmetry = if options.symmetry { Symmetry::Workers } else { Symmetry::Off };
    Ok(Checked { origin: (&target).into(), symmetry, found, again })
}

/// One thread a bound: what is found does not depend on how many there are.
fn check_keyed(args: &CheckArgs, bounds: &[KeyedBound]) -> Result<Vec<Checked>, Failed> {
    let mutant = args.mutant.map(|planted| planted.of_keyed().ok_or_else(|| misplaced(planted, &args.bound))).transpose()?;
    let explored = map(jobs(args.jobs), bounds.len() as u64, |index| {
        let bound = &bounds[index as usize];
        let found = bound.explore(mutant, args.states_max)?;
        let again = found.violation.as_ref().map(|(_, schedule)| bound.retake(mutant, schedule).run);
        Ok(Checked { origin: bound.into(), symmetry: Symmetry::None, found, again })
    });
    let panicked = |error: ExplorationPanicked| Failed { verdict: Verdict::Violated, message: error.to_string() };
    explored.into_iter().map(|checked| checked.map_err(panicked)).collect()
}

/// The report; the capsule of a violation is written first.
fn report(args: &CheckArgs, Checked { origin, symmetry, found, again }: &Checked) -> CheckReport {
    let capsule = found.violation.as_ref().zip(again.as_ref()).map(|((violation, schedule), again)| {
        let capsule = Capsule::of_schedule(origin.clone(), args.mutant, schedule.clone(), again, violation);
        match capsule.write_into(&args.out) {
            Ok(path) => Written::To(path),
            Err(error) => Written::Not { why: error.to_string() },
        }
    });
    let is_unwritten = matches!(capsule, Some(Written::Not { .. }));
    let verdict = verdict_of(found).worst(if is_unwritten { Verdict::Harness } else { Verdict::Pass });
    let rows = again.as_ref().map(|run| run.trace.rows().len());
    CheckReport::new(origin.name(), found, args.mutant.map(Planted::name), *symmetry, capsule.as_ref(), rows, verdict)
}

fn verdict_of(found: &Exploration) -> Verdict {
    match (&found.violation, found.is_complete) {
        (Some(_), _) => Verdict::Violated,
        (None, false) => Verdict::Unfinished,
        // Where nothing was ever drained, nothing was explored that matters.
        (None, true) if found.drained == 0 => Verdict::Vacuous,
        (None, true) => Verdict::Pass,
    }
}
