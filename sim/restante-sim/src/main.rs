//! `restante-sim`: runs the simulation, replays what it found, and measures what it would find.
//!
//! Results go to standard output and are the same for the same work; progress and speed go to standard error. The exit code
//! is a [`Verdict`](restante_sim::campaign::Verdict).

mod cli;
mod report;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main().into()
}
