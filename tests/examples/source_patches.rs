//! Is a mistake in the source of production code found? Each patch under `scenarios/negative/` is applied to a copy of the
//! repository, built and run; the property that it names must be violated, and without any patch its scenario must pass.
//!
//! ```sh
//! cargo run -p restante-tests --example source_patches                 # all of them
//! cargo run -p restante-tests --example source_patches rescued-by-age  # some
//! ```
//!
//! Exit code 0 if all were found, 1 if not, 2 if one cannot be tried.

#[path = "../patches/mod.rs"]
mod patches;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use patches::{Copy, Patch, SEEDS};

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let all = match patches::all(root) {
        Ok(all) => all,
        Err(why) => return cannot(&why),
    };
    if let Some(unknown) = wanted.iter().find(|name| all.iter().all(|patch| patch.name != **name)) {
        return cannot(&format!("{unknown}: no patch of that name lies under scenarios/negative"));
    }
    let chosen: Vec<Patch> = all.into_iter().filter(|patch| wanted.is_empty() || wanted.contains(&patch.name)).collect();
    let copy = match Copy::new(root) {
        Ok(copy) => copy,
        Err(why) => return cannot(&why),
    };
    let mut is_found = true;
    let mut say = |name: &str, what: Result<String, String>, began_at: Instant| {
        is_found &= what.is_ok();
        let (Ok(text) | Err(text)) = &what;
        println!("{name:<24}  {text}");
        // How long it took is for whoever waits.
        eprintln!("{name:<24}  {} s", began_at.elapsed().as_secs());
    };
    for patch in &chosen {
        let began_at = Instant::now();
        let passed = copy.passes(&patch.scenario).map(|()| format!("passes {SEEDS} seeds without any patch"));
        say(&patch.scenario, passed, began_at);
    }
    for patch in &chosen {
        let began_at = Instant::now();
        let found = copy.finds(patch);
        say(&patch.name, found.map(|seed| format!("found by {} in seed {seed} of {}", patch.property, patch.scenario)), began_at);
    }
    if is_found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cannot(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(2)
}
