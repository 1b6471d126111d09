//! How fast each scenario of the suite runs: events a second and runs a second, on one core, digest and auditor on.
//!
//! `cargo run --release -p restante-sim --example speed_by_scenario [SEEDS]` runs `SEEDS` (200) seeds of each.

use std::time::Instant;

use restante_sim::campaign::run_guarded;
use restante_sim::{RunOptions, scenario};

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|seeds| seeds.parse().ok()).unwrap_or(200);
    println!("{:<36} {:>12} {:>10} {:>14}", "scenario", "events/run", "runs/s", "events/s");
    let (mut all_events, all_began, mut all_runs) = (0, Instant::now(), 0);
    for name in scenario::suite_names().filter(|name| !name.starts_with("negative/")) {
        let (scenario, _) = scenario::load(name).expect("a scenario that comes with the command");
        let began = Instant::now();
        let run = |seed| run_guarded(&scenario, seed, &RunOptions::default()).expect("the simulator is not at fault").events;
        let events: u64 = (0..seeds).map(run).sum();
        let took = began.elapsed().as_secs_f64();
        println!("{name:<36} {:>12} {:>10.0} {:>14.0}", events / seeds.max(1), seeds as f64 / took, events as f64 / took);
        all_events += events;
        all_runs += seeds;
    }
    let took = all_began.elapsed().as_secs_f64();
    println!(
        "{:<36} {:>12} {:>10.0} {:>14.0}",
        "all",
        all_events / all_runs.max(1),
        all_runs as f64 / took,
        all_events as f64 / took
    );
}
