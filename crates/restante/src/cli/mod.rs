//! The command line: arguments in, one exit code out.

mod args;
mod dead_letters;
mod depth;
mod destinations;
mod doctor;
mod hold;
mod inspect;
mod intake;
mod keys;
mod log;
mod output;
mod quarantine;
mod run_once;
mod send;
mod serve;
mod table;

use std::future::Future;

use clap::{CommandFactory as _, Parser as _};

use crate::fault::{Code, Fault};
use crate::{Exit, api};
use args::{Cli, Command};
use output::Output;

/// Does what the arguments say.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output, and are no errors. Nobody may be listening any more.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Ok };
        }
    };
    log::start(&cli.log, matches!(cli.command, Command::Serve(_)));
    let mut output = Output::new(cli.command.is_json());
    let exit = run(&cli.command, &mut output).unwrap_or_else(|fault| {
        output.complain(&fault);
        fault.code.exit()
    });
    output.finish(exit)
}

fn run(command: &Command, output: &mut Output) -> Result<Exit, Fault> {
    match command {
        Command::Serve(args) => serve::serve(args, output),
        Command::Send(args) => block_on(send::send(args, output)),
        Command::RunOnce(args) => block_on(run_once::run_once(args, output)),
        Command::Depth(args) => block_on(depth::depth(args, output)),
        Command::Drained(args) => block_on(depth::drained(args, output)),
        Command::Inspect(args) => block_on(inspect::inspect(args, output)),
        Command::Intake(args) => block_on(intake::intake(args, output)),
        Command::Quarantine(args) => block_on(quarantine::quarantine(args, output)),
        Command::Hold(args) => block_on(hold::hold(args, output)),
        Command::Destinations(args) => block_on(destinations::destinations(args, output)),
        Command::DeadLetters(args) => block_on(dead_letters::dead_letters(args, output)),
        Command::Doctor(args) => block_on(doctor::doctor(args, output)),
        Command::Keys(args) => block_on(keys::keys(args, output)),
        Command::Openapi => {
            output.text(api::OPENAPI);
            Ok(Exit::Ok)
        }
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "restante", &mut script);
            output.text(&String::from_utf8_lossy(&script));
            Ok(Exit::Ok)
        }
    }
}

/// Runs a command that does one thing: one thread is enough.
fn block_on(work: impl Future<Output = Result<Exit, Fault>>) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| no_runtime(&error))?.block_on(work)
}

fn no_runtime(error: &std::io::Error) -> Fault {
    Fault::new(Code::Usage, format!("the runtime cannot be started ({error})"), "raise the limit of threads or open files")
}
