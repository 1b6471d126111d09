//! Seeds that take a part of everything, and other orders of events that lie close to each other.

use restante_sim::campaign::run_guarded;
use restante_sim::scenario::{self, Scenario, Schedule};
use restante_sim::{RunOptions, RunResult};

fn run(scenario: &Scenario, seed: u64, trace: bool) -> RunResult {
    let options = RunOptions { trace, ..RunOptions::default() };
    run_guarded(scenario, seed, &options).expect("the simulator is not at fault")
}

#[test]
fn whatever_a_seed_takes_of_everything_the_properties_hold() {
    let (full, _) = scenario::load("swarm/full").expect("it comes with the command");
    for seed in 1_000_001..=1_000_150 {
        let once = run(&full, seed, false);
        assert_eq!(once.violation, None, "seed {seed}");
        if seed % 10 == 0 {
            let twice = run(&full, seed, false);
            assert_eq!(
                (once.digest, once.judged, once.operations),
                (twice.digest, twice.judged, twice.operations),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn schedules_differ_and_each_does_the_same_again() {
    for name in ["smoke/plain", "order/lanes", "faults/slow-answers", "fanout/two-workers"] {
        let (mut scenario, _) = scenario::load(name).expect("it comes with the command");
        for seed in 1..=10 {
            let runs = Schedule::ALL.map(|schedule| {
                scenario.world.schedule = schedule;
                let one = run(&scenario, seed, true);
                assert_eq!(one.violation, None, "{name}, seed {seed}, {}", schedule.name());
                assert_eq!(one.trace.render(), run(&scenario, seed, true).trace.render(), "{name}, seed {seed}");
                // Only what is not as usual is said.
                let says = one.trace.rows().any(|row| row.event == "schedule" && row.detail.starts_with(schedule.name()));
                assert_eq!(says, schedule != Schedule::Timed);
                one.digest
            });
            assert!(runs[0] != runs[1] && runs[1] != runs[2] && runs[0] != runs[2], "{name}, seed {seed}");
        }
    }
}
