//! `mutants`: how much the properties notice.

use std::num::NonZeroUsize;

use restante_sim::campaign::{KeyedBound, Planted, Target, Verdict, hunt, hunt_in_general};
use restante_sim::explore::{Exploration, ExploreOptions, explore};
use restante_sim::scenario::general_names;
use restante_sim::{Mutant, keyed};

use super::Failed;
use super::args::{MutantsArgs, jobs};
use super::output::{Output, note};
use super::targets::{target, targets, workload};
use crate::report::{Explored, MutantReport, MutantsReport};

pub(super) fn mutants(args: &MutantsArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let chosen = if args.names.is_empty() { Planted::all().collect() } else { args.names.clone() };
    let jobs = jobs(args.jobs);
    let general = targets(general_names())?;
    let mut reports = Vec::new();
    for planted in chosen {
        let report = one(planted, &general, args.seeds, jobs).unwrap_or_else(|error| MutantReport::failed(planted, error));
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

/// Looks for one planted bug in every way; an error is the simulator's.
fn one(planted: Planted, general: &[Target], seeds_max: u64, jobs: usize) -> Result<MutantReport, String> {
    // That its scenario is missing is no mistake of whoever called the command.
    let workload = workload(planted.workload().to_owned()).map_err(|error| format!("its scenario cannot be used: {error}"))?;
    let found = hunt(&workload, planted, seeds_max, jobs).map_err(|error| error.to_string())?;
    let (in_general, explored) = match planted {
        Planted::Backlog(mutant) => {
            let in_general = hunt_in_general(general, mutant, seeds_max, jobs).map_err(|error| error.to_string())?;
            (in_general, explored(mutant)?)
        }
        Planted::Keyed(mutant) => (None, Some(explored_keyed(mutant)?)),
    };
    Ok(MutantReport::new(planted, found, in_general, explored))
}

/// Most states to look for a planted bug in.
const STATES_MAX: u64 = 400_000;

/// Looks for the bug in every order of events of its bound, on one thread, so that what is found first is always the same.
fn explored(mutant: Mutant) -> Result<Option<Explored>, String> {
    let Ok(bound) = mutant.bound() else { return Ok(None) };
    let Ok(target) = target(bound.to_owned()) else { return Ok(None) };
    let options = ExploreOptions { jobs: NonZeroUsize::MIN, symmetry: true, states_max: STATES_MAX, mutant: Some(mutant) };
    let found = explore(&target.scenario, &options);
    match &found.harness_error {
        Some(error) => Err(error.to_string()),
        None => Ok(Some(shown(bound.to_owned(), &found))),
    }
}

/// The same in the keyed queue's first bound, which has what every bug needs.
fn explored_keyed(mutant: keyed::Mutant) -> Result<Explored, String> {
    let [bound, _] = KeyedBound::all();
    let found = bound.explore(Some(mutant), STATES_MAX).map_err(|error| error.to_string())?;
    Ok(shown(bound.name, &found))
}

fn shown(bound: String, found: &Exploration) -> Explored {
    let violation = found.violation.as_ref();
    Explored {
        bound,
        states: found.states,
        moves: violation.map(|(_, schedule)| schedule.len()),
        property: violation.map(|(violation, _)| violation.property),
    }
}
