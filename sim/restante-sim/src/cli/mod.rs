//! The command line: arguments in, one verdict out.

mod args;
mod canary;
mod check;
mod conformance;
mod list;
mod mutants;
mod output;
mod progress;
mod replay;
mod run;
mod shrink;
mod targets;

use clap::Parser;
use restante_sim::campaign::Verdict;

use args::{Cli, Command, RunArgs};
use output::Output;

/// Does what the arguments say.
pub(crate) fn main() -> Verdict {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output, and are no errors. Nobody may be listening any more.
            let _ = error.print();
            return if error.use_stderr() { Verdict::Usage } else { Verdict::Pass };
        }
    };
    let command = cli.command.unwrap_or(Command::Run(RunArgs { scenarios: Vec::new(), flags: cli.flags }));
    let mut output = Output::new();
    let verdict = match &command {
        Command::Run(args) if args.flags.canary => canary::canary(args, &mut output),
        Command::Run(args) => run::run(args, &mut output),
        Command::Replay(args) => replay::replay(args, &mut output),
        Command::Shrink(args) => shrink::shrink(args, &mut output),
        Command::Check(args) => check::check(args, &mut output),
        Command::Mutants(args) => mutants::mutants(args, &mut output),
        Command::List(args) => list::list(args, &mut output),
        Command::Conformance(args) => conformance::conformance(args, &mut output),
    };
    let verdict = verdict.unwrap_or_else(|error| {
        output::complain(&error.message);
        error.verdict
    });
    verdict.worst(output.finish())
}

/// Why a command could not be done.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failed {
    verdict: Verdict,
    message: String,
}

impl Failed {
    fn usage(error: impl ToString) -> Self {
        Self { verdict: Verdict::Usage, message: error.to_string() }
    }
}
