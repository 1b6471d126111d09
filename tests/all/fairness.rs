//! A host that does not answer beside fifty that do: what the fifty notice of it.

use restante_sim::{RunOptions, World, scenario};

/// Within how many milliseconds 99 of 100 deliveries to healthy hosts were done, over some seeds: the middle one.
fn healthy_p99_ms(name: &str) -> u64 {
    let (scenario, _) = scenario::load(name).expect("it comes with the command");
    let mut all: Vec<u64> = (1..=15)
        .map(|seed| {
            let run = World::run(&scenario, seed, &RunOptions::default());
            assert_eq!(run.violation, None, "{name}, seed {seed}");
            run.healthy_p99_ms.expect("something was delivered")
        })
        .collect();
    all.sort_unstable();
    all[all.len() / 2]
}

#[test]
fn a_host_that_never_answers_at_most_doubles_what_the_slowest_of_the_others_take() {
    let (with, without) = (healthy_p99_ms("fairness/slow-host"), healthy_p99_ms("fairness/all-healthy"));
    println!("p99 of healthy hosts: {with} ms beside the dead one, {without} ms without it");
    assert!(with <= 2 * without, "{with} ms beside it, {without} ms without it");
}
