//! `run --canary`: is the alarm still connected?
//!
//! Bugs are planted in the very campaign that is asked for: the same scenarios, the same threads, the same capsules, the same
//! verdict. Each must be found in each scenario, written down, read again and seen again. If one is not, everything that was
//! green before says nothing.

use std::fs;

use restante_sim::campaign::{self, Outcome, Plan, Planted, ScenarioOutcome, Verdict, Workload};
use restante_sim::capsule::{Capsule, Replay, replay};
use restante_sim::{Mutant, keyed};

use super::Failed;
use super::args::RunArgs;
use super::output::Output;
use super::progress::Progress;
use super::run::{plan, write_capsules};
use crate::report::{Alarm, CanaryReport, Written};

/// Seeds of each scenario when nothing else is said: any delivery is enough.
const SEEDS: u64 = 50;

/// What is planted: something for the auditor and something for the guard around each run, and one bug of the other world.
fn canaries() -> [Planted; 3] {
    [Mutant::AcknowledgedAsFailed.into(), Mutant::Panics.into(), keyed::Mutant::SettledTwice.into()]
}

pub(super) fn canary(args: &RunArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let whole = plan(args)?;
    let mut alarms = Vec::new();
    for planted in canaries() {
        let is_of_world = |workload: &Workload| workload.simulated() == planted.simulated();
        let workloads: Vec<Workload> = whole.workloads.iter().filter(|workload| is_of_world(workload)).cloned().collect();
        if workloads.is_empty() {
            continue;
        }
        let seeds_count = Some(args.flags.seeds.unwrap_or(SEEDS));
        let plan = Plan { workloads, seeds_count, failures_max: 1, planted: Some(planted), ..whole.clone() };
        let progress = Progress::quiet();
        let outcome = campaign::run(plan, &progress);
        let folder = args.flags.out.join("canary");
        let written = write_capsules(&folder, &outcome);
        alarms.extend(alarms_of(planted, &outcome, written));
        // Left there only if something is wrong with one of them.
        let _ = fs::remove_dir(&folder);
    }
    let report = CanaryReport::new(alarms);
    if args.flags.json {
        output.json(&report);
    } else {
        output.text(&report.text());
    }
    Ok(report.verdict)
}

fn alarms_of(planted: Planted, outcome: &Outcome, written: Vec<Written>) -> Vec<Alarm> {
    let mut written = written.into_iter();
    let alarm = |scenario: &ScenarioOutcome| {
        let files: Vec<Written> = scenario.failures.iter().filter_map(|_| written.next()).collect();
        Alarm {
            planted: planted.name(),
            property: planted.property(),
            scenario: scenario.workload.source().to_owned(),
            runs: scenario.tally.runs,
            silent: silent(planted, scenario, &files),
        }
    };
    outcome.scenarios.iter().map(alarm).collect()
}

/// Why a scenario did not raise its alarm, if it did not.
fn silent(planted: Planted, scenario: &ScenarioOutcome, files: &[Written]) -> Option<String> {
    let verdict = scenario.verdict();
    if verdict != Verdict::Violated {
        let meaning = verdict.meaning();
        return Some(format!("the verdict of its runs is exit code {} ({meaning}), and should be 1", verdict.code()));
    }
    let Some(failure) = scenario.failures.first() else { return Some("no failure was kept".into()) };
    // Whatever is violated first is an alarm; that it is the bug's own property, `mutants` shows.
    let file = match files {
        [Written::To(file)] => file,
        [Written::Not { why }] => return Some(why.clone()),
        _ => return Some("no capsule was written".into()),
    };
    let capsule = match Capsule::read(file) {
        Ok(capsule) => capsule,
        Err(error) => return Some(error.to_string()),
    };
    if capsule.mutant.as_deref() != Some(planted.name()) || capsule.failure.property != failure.violation.property {
        return Some(format!("{} is of something else", file.display()));
    }
    match replay(&capsule) {
        Ok(replayed) if replayed.replay == Replay::Reproduced && replayed.verdict() == Verdict::Violated => {}
        Ok(replayed) => return Some(format!("its capsule does not bring it back: exit code {}", replayed.verdict().code())),
        Err(error) => return Some(error.to_string()),
    }
    fs::remove_file(file).err().map(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use restante_sim::campaign::Simulated;

    #[test]
    fn every_world_has_a_canary() {
        let mut worlds = super::canaries().map(|planted| planted.simulated()).to_vec();
        worlds.dedup();
        assert_eq!(worlds, Simulated::ALL);
    }
}
