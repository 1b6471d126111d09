//! `mutants`: how much the properties notice.

use std::num::NonZeroUsize;

use restante_sim::Mutant;
use restante_sim::campaign::{Target, Verdict, hunt, hunt_in_general};
use restante_sim::explore::{ExploreError, ExploreOptions, explore};
use restante_sim::scenario::general_names;

use super::Failed;
use super::args::{MutantsArgs, jobs};
use super::output::{Output, note};
use super::targets::{target, targets};
use crate::report::{Explored, MutantReport, MutantsReport};

pub(super) fn mutants(args: &MutantsArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let chosen = if args.names.is_empty() { Mutant::ALL } else { &args.names };
    let jobs = jobs(args.jobs);
    let general = targets(general_names())?;
    let mut reports = Vec::new();
    for mutant in chosen {
        let report = one(*mutant, &general, args.seeds, jobs);
        note(&report.line());
        reports.push(report);
    }
    let report = MutantsReport::new(reports, general_names().collect(), args.seeds, args.names.is_empty());
    if args.json {
        output.json(&report);
    } else {
        output.text(&report.text());
    }
    Ok(report.verdict)
}

fn one(mutant: Mutant, general: &[Target], seeds_max: u64, jobs: usize) -> MutantReport {
    let target = match target(mutant.scenario().to_owned()) {
        Ok(target) => target,
        // That its scenario is missing is no mistake of whoever called the command.
        Err(error) => return MutantReport::failed(mutant, format!("its scenario cannot be used: {error}")),
    };
    let found = hunt(&target, mutant, seeds_max, jobs);
    match found.and_then(|found| Ok((found, hunt_in_general(general, mutant, seeds_max, jobs)?))) {
        Ok((found, in_general)) => match explored(mutant) {
            Ok(explored) => MutantReport::new(mutant, found, in_general, explored),
            Err(error) => MutantReport::failed(mutant, error.to_string()),
        },
        Err(error) => MutantReport::failed(mutant, error.to_string()),
    }
}

/// Most states to look for a planted bug in.
const STATES_MAX: u64 = 400_000;

/// Looks for the bug in every order of events of its bound, on one thread, so that what is found first is always the same.
fn explored(mutant: Mutant) -> Result<Option<Explored>, ExploreError> {
    let Ok(bound) = mutant.bound() else { return Ok(None) };
    let Ok(target) = target(bound.to_owned()) else { return Ok(None) };
    let options = ExploreOptions { jobs: NonZeroUsize::MIN, symmetry: true, states_max: STATES_MAX, mutant: Some(mutant) };
    let found = explore(&target.scenario, &options);
    if let Some(error) = found.harness_error {
        return Err(error);
    }
    let violation = found.violation;
    Ok(Some(Explored {
        bound,
        states: found.states,
        moves: violation.as_ref().map(|(_, schedule)| schedule.len()),
        property: violation.as_ref().map(|(violation, _)| violation.property),
    }))
}
