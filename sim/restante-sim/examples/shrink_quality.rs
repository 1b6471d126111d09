//! How small failures get: shrinks the failures of some planted bugs and adds up what is left of them.
//!
//! `cargo run --release -p restante-sim --example shrink_quality [SEEDS]` takes the first `SEEDS` (4) failing seeds of each pair.

use std::collections::BTreeMap;

use restante_sim::campaign::{FailedSeed, Target, run_guarded};
use restante_sim::capsule::Capsule;
use restante_sim::shrink::{Limits, shrink};
use restante_sim::{Mutant, RunOptions, scenario};

/// Planted bugs that need faults, each in scenarios with many.
const PAIRS: [(&str, &str); 14] = [
    ("settle-without-fence", "faults/slow-answers"),
    ("settle-without-fence", "faults/store-trouble"),
    ("settle-without-fence", "negative/stale-settle"),
    ("gate-trusts-lease", "faults/slow-answers"),
    ("gate-trusts-lease", "swarm/everything-at-once"),
    ("unknown-taken-as-success", "faults/ambiguous-commits"),
    ("unknown-taken-as-success", "swarm/everything-at-once"),
    ("pause-ignored", "faults/rate-limits"),
    ("wake-dropped", "swarm/everything-at-once"),
    ("payload-pruned-early", "swarm/everything-at-once"),
    ("more-from-short-batch", "faults/cron-only"),
    ("drop-unrecorded", "swarm/quiet-hours"),
    ("index-not-repaired", "swarm/everything-at-once"),
    ("successor-not-activated", "swarm/quiet-hours"),
];

fn main() {
    let seeds: usize = std::env::args().nth(1).and_then(|seeds| seeds.parse().ok()).unwrap_or(4);
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    println!("planted bug               scenario                  seed  faults before/after  sends  events  candidates");
    for (name, of) in PAIRS {
        let mutant = Mutant::by_name(name).expect("a planted bug");
        let (scenario, text) = scenario::load(of).expect("a scenario that comes with the command");
        let target = Target { source: of.into(), text, scenario };
        let failing = (1..2_000).filter_map(|seed| {
            let options = RunOptions { mutant: Some(mutant), ..RunOptions::default() };
            let run = run_guarded(&target.scenario, seed, &options).expect("the simulator is not at fault");
            let violation = run.violation.filter(|violation| violation.property == mutant.property())?;
            Some(FailedSeed { seed, fingerprint: violation.fingerprint(), digest: run.digest })
        });
        for failed in failing.take(seeds) {
            let (capsule, ..) = Capsule::capture(&target, &failed, Some(mutant)).expect("it happens again");
            let limits = Limits { time_budget: None, jobs: 2 };
            let shrunk = shrink(&capsule, limits, &|| ()).expect("it reproduces");
            let (before, after) = (shrunk.before, shrunk.after);
            let seed = failed.seed;
            println!(
                "{name:<24}  {of:<24}  {seed:>4}  {:>13}/{:<5}  {:>5}  {:>6}  {:>10}",
                before.faults, after.faults, after.sends, after.events, shrunk.candidates
            );
            for (what, count) in [
                ("failures", 1),
                ("faults before", before.faults),
                ("faults after", after.faults),
                ("sends after", after.sends),
                ("events after", after.events),
                ("candidates", shrunk.candidates),
            ] {
                *sums.entry(what).or_default() += count;
            }
        }
    }
    println!("{sums:?}");
}
