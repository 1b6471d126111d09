//! What can be said on the command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use restante_sim::Mutant;
use restante_sim::campaign::parse_budget;

const EXIT_CODES: &str = "\
Exit codes: 0 pass, 1 property violated, 2 usage, 3 nondeterminism, 4 harness error, 5 vacuous,
6 unfinished within the budget, 7 stale capsule; of several, the first of 4 3 1 6 7 5.";

const CONFORMANCE_EXIT_CODES: &str =
    "Exit codes: 0 all passed, 1 a check failed, 2 usage, 4 the store could not be opened, 5 nothing but skipped checks.";

/// Runs the delivery backlog under simulation. Without a command, `run` over every scenario.
#[derive(Debug, Parser)]
#[command(name = "restante-sim", version, about, after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) flags: RunFlags,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run scenarios under many seeds
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Run one capsule or one seed again
    #[command(after_help = EXIT_CODES)]
    Replay(ReplayArgs),
    /// Make a smaller capsule of the same violation
    #[command(after_help = EXIT_CODES)]
    Shrink(ShrinkArgs),
    /// Try every order of events within a small bound
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Measure how soon each planted bug is caught
    Mutants(MutantsArgs),
    /// Show scenarios, properties and planted bugs
    List(ListArgs),
    /// Hold a store against the contract
    #[command(after_help = CONFORMANCE_EXIT_CODES)]
    Conformance(super::conformance::ConformanceArgs),
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Names (`smoke/plain`), folders (`faults`) or paths of scenario files; all that come with the command by default
    #[arg(value_name = "SCENARIO")]
    pub(super) scenarios: Vec<String>,
    #[command(flatten)]
    pub(super) flags: RunFlags,
}

#[derive(Debug, Args)]
pub(super) struct RunFlags {
    /// Seeds of each scenario [default: 200; 1 with --seed; 1000 with --mutant; no bound with --time-budget]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) seeds: Option<u64>,
    /// First seed [default: 1]
    #[arg(long, value_name = "S")]
    pub(super) seed: Option<u64>,
    /// Threads [default: as many as there are processors]
    #[arg(long, short, value_name = "J")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Begin no further run after this time: 1500ms, 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = parse_budget)]
    pub(super) time_budget: Option<Duration>,
    /// Failing seeds that stop a scenario
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_failures: u32,
    /// Folder for capsules
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub(super) out: PathBuf,
    /// Plant this bug; without SCENARIO, in its own scenario
    #[arg(long, value_name = "NAME", value_parser = mutant_names(), hide_possible_values = true)]
    pub(super) mutant: Option<Mutant>,
    /// Results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// Path of a capsule; with --seed, name or path of a scenario
    #[arg(value_name = "CAPSULE|SCENARIO")]
    pub(super) target: String,
    /// Run this seed of SCENARIO
    #[arg(long, value_name = "S")]
    pub(super) seed: Option<u64>,
    /// Plant this bug
    #[arg(long, value_name = "NAME", requires = "seed", value_parser = mutant_names(), hide_possible_values = true)]
    pub(super) mutant: Option<Mutant>,
    /// Print every row of the trace
    #[arg(long)]
    pub(super) trace: bool,
    /// Results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShrinkArgs {
    /// Path of a capsule
    #[arg(value_name = "CAPSULE")]
    pub(super) capsule: String,
    /// Folder for the smaller capsule [default: beside the other]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Try no further candidate after this time: 1500ms, 90s, 10m, 2h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_budget)]
    pub(super) time_budget: Duration,
    /// Threads [default: as many as there are processors]
    #[arg(long, short, value_name = "J")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// A bound: a scenario of the folder `check` (its folder may be left out), or the path of a scenario file
    #[arg(value_name = "BOUND", default_value = "backlog")]
    pub(super) bound: String,
    /// Most states to visit
    #[arg(long, value_name = "N", default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) states_max: u64,
    /// Take states that differ only in which worker does what for different ones
    #[arg(long)]
    pub(super) no_symmetry: bool,
    /// Explore with this planted bug
    #[arg(long, value_name = "NAME", value_parser = mutant_names(), hide_possible_values = true)]
    pub(super) mutant: Option<Mutant>,
    /// Folder for a capsule
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub(super) out: PathBuf,
    /// Threads [default: as many as there are processors; 1 with --mutant]
    #[arg(long, short, value_name = "J")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct MutantsArgs {
    /// Only these planted bugs
    #[arg(value_name = "NAME", value_parser = mutant_names(), hide_possible_values = true)]
    pub(super) names: Vec<Mutant>,
    /// Most seeds to look for each in
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) seeds: u64,
    /// Threads [default: as many as there are processors]
    #[arg(long, short, value_name = "J")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

fn mutant_names() -> impl TypedValueParser<Value = Mutant> {
    PossibleValuesParser::new(Mutant::ALL.iter().map(|mutant| mutant.name()))
        .map(|name| Mutant::by_name(&name).expect("only names of planted bugs are possible"))
}

/// The number of threads to use.
pub(super) fn jobs(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
