//! `check`: every order of events within a small bound.

use std::num::NonZeroUsize;

use restante_sim::Mutant;
use restante_sim::campaign::Verdict;
use restante_sim::capsule::Capsule;
use restante_sim::explore::{Exploration, ExploreError, ExploreOptions, explore, retake};
use restante_sim::scenario;

use super::Failed;
use super::args::{CheckArgs, jobs};
use super::output::{Output, note};
use super::targets::target;
use crate::report::{CheckReport, Written};

pub(super) fn check(args: &CheckArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let in_folder = format!("check/{}", args.bound);
    let is_builtin = scenario::builtin_names().any(|name| name == in_folder);
    let target = target(if is_builtin { in_folder } else { args.bound.clone() })?;
    // With one thread the violation found first is the same every time.
    let threads = if args.mutant.is_some() && args.jobs.is_none() { 1 } else { jobs(args.jobs) };
    let options = ExploreOptions {
        jobs: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
        symmetry: !args.no_symmetry,
        states_max: args.states_max,
        mutant: args.mutant,
    };
    let began_at = std::time::Instant::now();
    let mut found = explore(&target.scenario, &options);
    if found.violation.is_some() && threads > 1 {
        found = explore(&target.scenario, &ExploreOptions { jobs: NonZeroUsize::MIN, ..options.clone() });
    }
    let seconds = began_at.elapsed().as_secs_f64();
    let verdict = verdict_of(&found);
    let harness = |error: &ExploreError| Failed { verdict: Verdict::Harness, message: error.to_string() };
    if let Some(error) = &found.harness_error {
        return Err(harness(error));
    }
    let again = found.violation.as_ref().map(|(_, schedule)| retake(&target.scenario, args.mutant, schedule)).transpose();
    let again = again.map_err(|error| harness(&error))?;
    let capsule = found.violation.as_ref().zip(again).map(|((violation, schedule), again)| {
        let capsule = Capsule::of_schedule(&target, args.mutant, schedule.clone(), &again.run, violation);
        let written = match capsule.write_into(&args.out) {
            Ok(path) => Written::To(path),
            Err(error) => Written::Not { why: error.to_string() },
        };
        (written, again.run)
    });
    let is_unwritten = matches!(&capsule, Some((Written::Not { .. }, _)));
    let verdict = verdict.worst(if is_unwritten { Verdict::Harness } else { Verdict::Pass });
    let report = CheckReport::new(&target, &found, args.mutant.map(Mutant::name), options.symmetry, capsule.as_ref(), verdict);
    if args.json {
        output.json(&report);
    } else {
        output.text(&report.text(capsule.as_ref().map(|(_, run)| run)));
        let (states, moves) = (found.states as f64 / seconds, found.transitions as f64 / seconds);
        note(&format!("speed: {states:.0} states/s, {moves:.0} moves/s, {seconds:.1} s; longest schedule {}", found.depth_max));
    }
    Ok(verdict)
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
