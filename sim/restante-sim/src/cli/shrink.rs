//! `shrink`: a smaller capsule.

use std::path::Path;
use std::time::Instant;

use restante_sim::campaign::{Simulated, Verdict};
use restante_sim::shrink::{self, Limits, ShrinkError, Shrunk};

use super::Failed;
use super::args::{ShrinkArgs, jobs};
use super::output::{Output, complain, note};
use super::progress::Progress;
use super::replay::read_capsule;
use crate::report::{ReplayReport, ShrinkReport, Written};

pub(super) fn shrink(args: &ShrinkArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let capsule = read_capsule(&args.capsule)?;
    if capsule.world != Simulated::Backlog {
        let why = "a capsule of the keyed queue, whose workload has nothing to leave out; `check keyed` finds shortest schedules";
        return Err(Failed::usage(format!("{}: {why}", args.capsule)));
    }
    let began_at = Instant::now();
    let progress = Progress::new(None);
    let limits = Limits { time_budget: Some(args.time_budget), jobs: jobs(args.jobs) };
    let outcome = shrink::shrink(&capsule, limits, &|| progress.on_candidate());
    progress.end();
    let shrunk = match outcome {
        Ok(shrunk) => shrunk,
        Err(error) => {
            let verdict = error.verdict();
            let message = format!("{}: {error}", args.capsule);
            let ShrinkError::NotReproduced(replayed) = error else { return Err(Failed { verdict, message }) };
            let report = ReplayReport::of_capsule(&capsule, &replayed, false);
            if args.json {
                output.json(&report);
            } else {
                output.text(&report.text(replayed.violation.as_ref()));
            }
            complain(&message);
            return Ok(verdict);
        }
    };
    let written = write(args, &shrunk);
    let verdict = if matches!(written, Written::Not { .. }) { Verdict::Harness } else { Verdict::Pass };
    let report = ShrinkReport::new(&shrunk, &written, verdict);
    if args.json {
        output.json(&report);
    } else {
        output.text(&report.text(&shrunk));
    }
    let wall_ms = began_at.elapsed().as_millis();
    note(&format!("time: {}.{:03} s", wall_ms / 1_000, wall_ms % 1_000));
    Ok(verdict)
}

/// Writes the smaller capsule beside the other one, or where the arguments say.
fn write(args: &ShrinkArgs, shrunk: &Shrunk) -> Written {
    let path = Path::new(&args.capsule);
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = args.out.as_deref().unwrap_or(beside);
    let stem = path.file_stem().map_or("capsule".into(), |stem| stem.to_string_lossy());
    match shrunk.capsule.write_as(folder, &format!("{stem}.shrunk.json")) {
        Ok(path) => Written::To(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)),
        Err(error) => {
            complain(&error.to_string());
            Written::Not { why: error.to_string() }
        }
    }
}
