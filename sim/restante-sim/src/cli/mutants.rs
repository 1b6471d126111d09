//! `mutants`: how much the properties notice.

use std::num::NonZeroUsize;

use restante_sim::Mutant;
use restante_sim::campaign::{Verdict, hunt};
use restante_sim::explore::{ExploreOptions, explore};

use super::Failed;
use super::args::{MutantsArgs, jobs};
use super::output::{Output, note};
use super::targets::target;
use crate::report::{Explored, MutantReport, MutantsReport};

pub(super) fn mutants(args: &MutantsArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let chosen = if args.names.is_empty() { Mutant::ALL } else { &args.names };
    let jobs = jobs(args.jobs);
    let mut reports = Vec::new();
    for mutant in chosen {
        let report = one(*mutant, args.seeds, jobs);
        note(&report.line());
        reports.push(report);
    }
    let report = MutantsReport::new(reports);
    if args.json {
        output.json(&report);
    } else {
        output.text(&report.text());
    }
    Ok(report.verdict)
}

fn one(mutant: Mutant, seeds_max: u64, jobs: usize) -> MutantReport {
    let target = match target(mutant.scenario().to_owned()) {
        Ok(target) => target,
        // That its scenario is missing is no mistake of whoever called the command.
        Err(error) => return MutantReport::new(mutant, Err(format!("its scenario cannot be used: {error}")), None),
    };
    let found = hunt(&target, mutant, seeds_max, jobs).map_err(|error| error.to_string());
    MutantReport::new(mutant, found, explored(mutant))
}

/// Most states to look for a planted bug in.
const STATES_MAX: u64 = 400_000;

/// Looks for the bug in every order of events of its bound, on one thread, so that what is found first is always the same.
fn explored(mutant: Mutant) -> Option<Explored> {
    let bound = mutant.bound().ok()?;
    let target = target(bound.to_owned()).ok()?;
    let options = ExploreOptions { jobs: NonZeroUsize::MIN, symmetry: true, states_max: STATES_MAX, mutant: Some(mutant) };
    let found = explore(&target.scenario, &options);
    let violation = found.violation;
    Some(Explored {
        bound,
        states: found.states,
        moves: violation.as_ref().map(|(_, schedule)| schedule.len()),
        property: violation.as_ref().map(|(violation, _)| violation.property),
    })
}
