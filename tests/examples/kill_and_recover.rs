//! Watch a process being killed while it delivers, and nothing being lost.
//!
//! ```sh
//! cargo build -p restante
//! cargo run -p restante-tests --example kill_and_recover            # seed 1
//! cargo run -p restante-tests --example kill_and_recover 7          # another one
//! ```

#[path = "../kill/mod.rs"]
mod kill;

use std::process::ExitCode;

fn main() -> ExitCode {
    let program = match kill::find_program() {
        Ok(program) => program,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let directory = tempfile::tempdir().expect("a folder");
    let options = kill::Options { seed, watch: true, ..kill::Options::default() };
    let verdict = kill::run(&program, directory.path(), &options);
    println!("{verdict}");
    if !verdict.journals.is_empty() {
        println!("{} journals, see `restante-sim replay --journal`", verdict.journals.len());
    }
    if verdict.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
