//! What can be said on the command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use restante_sim::campaign::{Planted, parse_budget};

const EXIT_CODES: &str = "\
Exit codes: 0 pass, 1 property violated, 2 usage, 3 nondeterminism, 4 harness error, 5 vacuous,
6 unfinished within what it was given, 7 stale capsule; of several, the first of 4 3 1 6 7 5.";

const CHECK_EXIT_CODES: &str = "\
Exit codes: 0 every order was tried and every promise held, 1 property violated, 2 usage, 4 harness error,
5 nothing was ever drained, 6 more states than --states-max.";

const MUTANTS_EXIT_CODES: &str = "\
Exit codes: 0 every planted bug was caught, 1 one was not, or fewer than two thirds of all in general, 2 usage,
4 harness error.";

const CONFORMANCE_EXIT_CODES: &str =
    "Exit codes: 0 all passed, 1 a check failed, 2 usage, 4 the store could not be opened, 5 nothing but skipped checks.";

/// Run the delivery backlog and the keyed queue under simulation; without a command, `run` over every scenario
#[derive(Debug, Parser)]
#[command(name = "restante-sim", version, after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) flags: RunFlags,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run scenarios under many seeds, and make a capsule of what fails
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Run one capsule or one seed again, and say what became of it
    #[command(after_help = EXIT_CODES)]
    Replay(ReplayArgs),
    /// Make a smaller capsule of the same violation: fewer faults, sends, actors and settings
    #[command(after_help = EXIT_CODES)]
    Shrink(ShrinkArgs),
    /// Try every order of events within a small bound
    #[command(after_help = CHECK_EXIT_CODES)]
    Check(CheckArgs),
    /// Measure how soon each planted bug is caught: in its own scenario, in general, and by exploration
    #[command(after_help = MUTANTS_EXIT_CODES)]
    Mutants(MutantsArgs),
    /// Show scenarios, properties, and planted bugs with what is to find them
    List(ListArgs),
    /// Hold a store against the contract
    #[command(after_help = CONFORMANCE_EXIT_CODES)]
    Conformance(super::conformance::ConformanceArgs),
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Names (`smoke/plain`, `keyed/small`), folders (`faults`, `keyed`) or paths of scenario files [default: all that come with the command, without `check`]
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
    /// Begin no further run after this time: 1500ms, 90s, 10m, 2h [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_budget)]
    pub(super) time_budget: Option<Duration>,
    /// Failing seeds that stop a scenario
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_failures: u32,
    /// Folder for capsules
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub(super) out: PathBuf,
    /// Plant this bug; without SCENARIO, in its own scenario [default: what a negative scenario plants]
    #[arg(long, value_name = "NAME", value_parser = mutant_names(), hide_possible_values = true)]
    pub(super) mutant: Option<Planted>,
    /// Show the vacuity report: what was asked for, reached, judged and seen, row by row
    #[arg(long)]
    pub(super) vacuity: bool,
    /// Plant bugs in these very runs: exit code 0 if every scenario raises the alarm, 4 if one does not
    #[arg(long, conflicts_with_all = ["mutant", "vacuity"])]
    pub(super) canary: bool,
    /// Print the results as one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// Path of a capsule; with --seed, name or path of a scenario, or `keyed/small` [default: none, with --journal]
    #[arg(value_name = "CAPSULE|SCENARIO", required_unless_present = "journal")]
    pub(super) target: Option<String>,
    /// Replay what a process in production recorded, instead of a capsule [default: none]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "seed", "trace"])]
    pub(super) journal: Option<PathBuf>,
    /// Run this seed of SCENARIO [default: the capsule's]
    #[arg(long, value_name = "S")]
    pub(super) seed: Option<u64>,
    /// Plant this bug [default: what a negative scenario plants]
    #[arg(long, value_name = "NAME", requires = "seed", value_parser = mutant_names(), hide_possible_values = true)]
    pub(super) mutant: Option<Planted>,
    /// Print every row of the trace
    #[arg(long)]
    pub(super) trace: bool,
    /// Print the results as one JSON document
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
    /// Print the results as one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// A bound: a scenario of the folder `check` (its folder may be left out), the path of a scenario file, or `keyed`
    #[arg(value_name = "BOUND", default_value = "backlog")]
    pub(super) bound: String,
    /// Most states to visit
    #[arg(long, value_name = "N", default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) states_max: u64,
    /// Take states that differ only in which worker does what for different ones; of no effect on bounds of the keyed queue
    #[arg(long)]
    pub(super) no_symmetry: bool,
    /// Explore with this planted bug [default: none]
    #[arg(long, value_name = "NAME", value_parser = mutant_names(), hide_possible_values = true)]
    pub(super) mutant: Option<Planted>,
    /// Folder for a capsule
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub(super) out: PathBuf,
    /// Threads; a bound of the keyed queue takes one [default: as many as there are processors; 1 with --mutant]
    #[arg(long, short, value_name = "J")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Print the results as one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct MutantsArgs {
    /// Only these planted bugs [default: all]
    #[arg(value_name = "NAME", value_parser = mutant_names(), hide_possible_values = true)]
    pub(super) names: Vec<Planted>,
    /// Most seeds to look for each in, of each scenario
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) seeds: u64,
    /// Threads [default: as many as there are processors]
    #[arg(long, short, value_name = "J")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Print the results as one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print the results as one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

fn mutant_names() -> impl TypedValueParser<Value = Planted> {
    PossibleValuesParser::new(Planted::all().map(Planted::name))
        .map(|name| Planted::by_name(&name).expect("only names of planted bugs are possible"))
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

    #[test]
    fn every_command_says_what_it_does_and_every_argument_what_it_is_when_not_given() {
        let mut cli = super::Cli::command();
        cli.build();
        for command in cli.get_subcommands().chain([&cli]).filter(|command| command.get_name() != "help") {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.contains('\n'), "{name}: {about:?}");
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let is_said = !argument.get_default_values().is_empty() || help.contains("[default: ");
                assert!(!help.is_empty() && (is_said || argument.is_required_set()), "{name} {}: {help:?}", argument.get_id());
            }
        }
    }
}
