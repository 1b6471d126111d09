//! Do failing seeds survive changes of the code? For bugs that few seeds hit, each of four changes is made to the world, the
//! failing seeds are run again, and the share that fails with the same fingerprint is printed beside the hit rate of fresh
//! seeds. `cargo run --release -p restante-sim --example seed_survival [SEEDS]` (3,000 seeds a bug by default).

use restante_sim::{Mutant, Perturbation, RunOptions, World, scenario};

/// Bugs in scenarios where fewer than 5 % of seeds hit them.
const RARE: &[(&str, &str)] = &[
    ("settle-without-fence", "faults/store-trouble"),
    ("gate-trusts-lease", "faults/store-trouble"),
    ("unknown-taken-as-success", "swarm/everything-at-once"),
    ("settle-without-fence", "order/intake-closes"),
    ("gate-trusts-lease", "swarm/everything-at-once"),
    ("unknown-taken-as-success", "order/intake-closes"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(3_000), |text| text.parse())?;
    let changes = [
        ("no change", None),
        ("an extra decision at another site", Some(Perturbation::ExtraDecision)),
        ("an extra read in the same operation", Some(Perturbation::ExtraRead)),
        ("a new alternative at an existing site", Some(Perturbation::NewAlternative)),
        ("two independent reads swapped", Some(Perturbation::SwappedReads)),
    ];
    let mut kept = [0_u64; 5];
    let mut failing = 0_u64;
    let mut fresh_hits = [0_u64; 5];
    let mut fresh_runs = 0_u64;
    println!("{:<28} {:<28} {:>8} {:>8}", "bug", "scenario", "seeds", "failing");
    for (mutant, name) in RARE {
        let (scenario, _) = scenario::load(name)?;
        let mutant = Mutant::by_name(mutant).ok_or("no such mutant")?;
        let run = |seed, perturbation| {
            let options = RunOptions { mutant: Some(mutant), perturbation, ..RunOptions::default() };
            let violation = World::run(&scenario, seed, &options).violation;
            violation.filter(|found| found.property == mutant.property()).map(|found| found.fingerprint())
        };
        let failures: Vec<(u64, String)> = (1..=seeds).filter_map(|seed| Some((seed, run(seed, None)?))).collect();
        println!("{:<28} {:<28} {:>8} {:>8}", mutant.name(), name, seeds, failures.len());
        if failures.is_empty() || failures.len() as u64 * 20 >= seeds {
            println!("  left out: hit by none, or by 5 % of the seeds or more");
            continue;
        }
        failing += failures.len() as u64;
        fresh_runs += 200;
        for (index, (_, change)) in changes.iter().enumerate() {
            kept[index] += failures.iter().filter(|(seed, print)| run(*seed, *change).as_ref() == Some(print)).count() as u64;
            fresh_hits[index] += (seeds + 1..=seeds + 200).filter(|seed| run(*seed, *change).is_some()).count() as u64;
        }
    }
    println!("\n{:<40} {:>16} {:>8} {:>22}", "change", "kept / failing", "kept", "fresh seeds that hit");
    for (index, (what, _)) in changes.iter().enumerate() {
        let percent = kept[index] as f64 * 100.0 / failing.max(1) as f64;
        let fresh = fresh_hits[index] as f64 * 100.0 / fresh_runs.max(1) as f64;
        println!("{what:<40} {:>16} {percent:>6.1} % {fresh:>20.2} %", format!("{} / {failing}", kept[index]));
    }
    Ok(())
}
