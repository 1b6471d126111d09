//! `mutants`: how much the properties notice.

use restante_sim::Mutant;
use restante_sim::campaign::{Verdict, hunt};

use super::Failed;
use super::args::{MutantsArgs, jobs};
use super::output::{Output, note};
use super::targets::target;
use crate::report::{MutantReport, MutantsReport};

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
        Err(error) => return MutantReport::new(mutant, Err(format!("its scenario cannot be used: {error}"))),
    };
    MutantReport::new(mutant, hunt(&target, mutant, seeds_max, jobs).map_err(|error| error.to_string()))
}
