//! `restante`: everything is in [`restante::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    restante::cli::main().into()
}
