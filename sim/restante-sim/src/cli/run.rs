//! `run`: a campaign.

use std::path::Path;

use restante_sim::campaign::{self, KEYED, Outcome, Plan, Verdict};
use restante_sim::scenario;

use super::Failed;
use super::args::{RunArgs, jobs};
use super::output::{Output, complain, note};
use super::progress::Progress;
use super::targets::{fits, workloads};
use crate::report::{self, Written};

/// Seeds of each scenario when nothing else is said.
const SEEDS: u64 = 200;
/// Seeds to look for a planted bug in.
const SEEDS_WITH_MUTANT: u64 = 1_000;

pub(super) fn run(args: &RunArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let plan = plan(args)?;
    let is_over_time = plan.time_budget.is_some() && plan.seeds_count.is_none();
    let runs = plan.seeds_count.map(|count| count.saturating_mul(plan.workloads.len() as u64));
    let planted = plan.planted;
    let progress = Progress::new(runs);
    let outcome = campaign::run(plan, &progress);
    progress.end();
    let written = write_capsules(&args.flags.out, &outcome);
    let is_unwritten = written.iter().any(|written| matches!(written, Written::Not { .. }));
    let verdict = outcome.verdict().worst(if is_unwritten { Verdict::Harness } else { Verdict::Pass });
    let report = report::RunReport::new(&outcome, &written, planted, verdict);
    if args.flags.json {
        output.json(&report);
    } else {
        output.text(&report::run_text(&outcome, &report, output.is_terminal(), args.flags.vacuity));
        note(&report::speed_text(&report.timing, is_over_time));
    }
    Ok(verdict)
}

/// What the arguments ask for.
pub(super) fn plan(args: &RunArgs) -> Result<Plan, Failed> {
    let flags = &args.flags;
    let workloads = match (args.scenarios.is_empty(), flags.mutant) {
        (true, Some(planted)) => workloads([planted.workload()])?,
        (true, None) => workloads(scenario::suite_names().chain([KEYED]))?,
        (false, _) => workloads(args.scenarios.iter().map(String::as_str))?,
    };
    workloads.iter().try_for_each(|workload| fits(flags.mutant, workload))?;
    let default = match (flags.seed, flags.mutant, flags.time_budget) {
        (_, _, Some(_)) => None,
        (Some(_), ..) => Some(1),
        (None, Some(_), None) => Some(SEEDS_WITH_MUTANT),
        (None, None, None) => Some(SEEDS),
    };
    let (first_seed, seeds_count) = (flags.seed.unwrap_or(1), flags.seeds.or(default));
    if first_seed.checked_add(seeds_count.unwrap_or(1) - 1).is_none() {
        return Err(Failed::usage(format!(
            "the seeds from {first_seed} on end at {}: give a smaller --seeds or --seed",
            u64::MAX
        )));
    }
    Ok(Plan {
        workloads,
        first_seed,
        seeds_count,
        jobs: jobs(flags.jobs),
        time_budget: flags.time_budget,
        failures_max: flags.max_failures,
        planted: flags.mutant,
    })
}

/// Writes the capsules into `folder`; one for each failure, in their order.
pub(super) fn write_capsules(folder: &Path, outcome: &Outcome) -> Vec<Written> {
    let failures = outcome.scenarios.iter().flat_map(|scenario| &scenario.failures);
    failures
        .map(|failure| match failure.capsule.write_into(folder) {
            Ok(path) => Written::To(path),
            Err(error) => {
                complain(&error.to_string());
                Written::Not { why: error.to_string() }
            }
        })
        .collect()
}
