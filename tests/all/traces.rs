//! Traces are part of the interface: the short ones are pinned, and the same seed gives the same bytes.

use restante_sim::{RunOptions, World, scenario};

fn trace(name: &str, seed: u64) -> String {
    let (scenario, _) = scenario::load(name).expect("a scenario that comes with the command");
    World::run(&scenario, seed, &RunOptions { trace: true, ..RunOptions::default() }).trace.render()
}

macro_rules! pinned {
    ($($test:ident: $scenario:literal),+ $(,)?) => { $(
        #[test]
        fn $test() {
            insta::assert_snapshot!($scenario.trim_start_matches("traces/"), trace($scenario, 1));
        }
    )+ };
}
pinned! {
    the_trace_of_one_delivery_is_pinned: "traces/one-delivery",
    the_trace_of_a_lost_answer_is_pinned: "traces/lost-answer",
    the_trace_of_a_crash_after_a_post_is_pinned: "traces/crash-after-post",
    the_trace_of_ambiguous_commits_is_pinned: "traces/ambiguous-commits",
    the_trace_of_a_lane_of_two_is_pinned: "traces/lane-of-two",
    the_trace_of_a_staged_payload_is_pinned: "traces/staged-payload",
    the_trace_of_a_closed_intake_is_pinned: "traces/closed-intake",
}

#[test]
fn the_same_seed_gives_the_same_bytes_twice_in_one_process() {
    for name in scenario::builtin_names() {
        assert_eq!(trace(name, 7), trace(name, 7), "{name}");
    }
}

#[test]
fn tracing_and_recording_change_nothing() {
    for name in ["swarm/everything-at-once", "faults/crashes"] {
        let (scenario, _) = scenario::load(name).expect("a scenario that comes with the command");
        let plain = World::run(&scenario, 3, &RunOptions::default());
        let loud = World::run(&scenario, 3, &RunOptions { trace: true, record: true, ..RunOptions::default() });
        assert_eq!((plain.digest, plain.events), (loud.digest, loud.events), "{name}");
    }
}
