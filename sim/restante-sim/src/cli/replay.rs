//! `replay`: one capsule, one seed or one journal.

use std::path::Path;

use restante_journal::ReadError;
use restante_sim::campaign::{Planted, SeedOptions, Verdict};
use restante_sim::capsule::{self, Capsule, CapsuleError};
use restante_sim::{RunResult, journal};

use super::Failed;
use super::args::ReplayArgs;
use super::output::Output;
use super::targets::{fits, workload};
use crate::report::{JournalReplayReport, ReplayReport};

pub(super) fn replay(args: &ReplayArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let target = args.target.as_deref().unwrap_or_default();
    match (&args.journal, args.seed) {
        (Some(path), _) => replay_journal(path, args.json, output),
        (None, Some(seed)) => replay_seed(args, target, seed, output),
        (None, None) => replay_capsule(args, target, output),
    }
}

fn replay_journal(path: &Path, json: bool, output: &mut Output) -> Result<Verdict, Failed> {
    let replayed = journal::replay(path).map_err(|error| {
        let verdict = if matches!(error, ReadError::OtherFormat { .. }) { Verdict::Stale } else { Verdict::Usage };
        Failed { verdict, message: format!("{}: {error}", path.display()) }
    })?;
    let report = JournalReplayReport::new(path, &replayed);
    if json {
        output.json(&report)
    } else {
        output.text(&report.text())
    }
    Ok(report.verdict())
}

fn replay_seed(args: &ReplayArgs, name: &str, seed: u64, output: &mut Output) -> Result<Verdict, Failed> {
    let workload = workload(name.to_owned())?;
    fits(args.mutant, &workload)?;
    let options = SeedOptions { planted: args.mutant, trace: args.trace, ..SeedOptions::default() };
    let run = workload.run(seed, &options).map_err(|error| Failed { verdict: Verdict::Harness, message: error.to_string() })?;
    let (world, source) = (workload.simulated(), workload.source());
    let report = ReplayReport::of_seed(world, source, seed, args.mutant.map(Planted::name), &run, args.trace && args.json);
    show(args, &report, &run, output);
    Ok(if run.violation.is_some() { Verdict::Violated } else { Verdict::Pass })
}

fn replay_capsule(args: &ReplayArgs, path: &str, output: &mut Output) -> Result<Verdict, Failed> {
    let capsule = read_capsule(path)?;
    let replayed =
        capsule::replay(&capsule).map_err(|error| Failed { verdict: error.verdict(), message: format!("{path}: {error}") })?;
    let report = ReplayReport::of_capsule(&capsule, &replayed, args.trace && args.json);
    show(args, &report, &replayed.run, output);
    Ok(replayed.verdict())
}

/// The capsule at `path`.
pub(super) fn read_capsule(path: &str) -> Result<Capsule, Failed> {
    Capsule::read(Path::new(path)).map_err(|error| {
        let verdict = match error {
            CapsuleError::Unreadable { .. } | CapsuleError::Malformed { .. } => Verdict::Usage,
            CapsuleError::Newer { .. } => Verdict::Stale,
        };
        Failed { verdict, message: error.to_string() }
    })
}

fn show(args: &ReplayArgs, report: &ReplayReport, run: &RunResult, output: &mut Output) {
    if args.json {
        output.json(report);
        return;
    }
    if args.trace {
        output.text(&run.trace.render());
    }
    output.text(&report.text(run.violation.as_ref()));
}
