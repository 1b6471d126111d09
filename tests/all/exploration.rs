//! Small bounds, exhausted: counts are pinned, symmetry agrees with its absence, and what is found replays.

use std::num::NonZeroUsize;

use restante_sim::campaign::Target;
use restante_sim::capsule::{Capsule, Replay, replay};
use restante_sim::explore::{Exploration, ExploreOptions, explore, retake};
use restante_sim::{Mutant, scenario};

fn explored(bound: &str, symmetry: bool, mutant: Option<Mutant>) -> Exploration {
    let (scenario, _) = scenario::load(bound).expect("it comes with the command");
    let jobs = if mutant.is_some() { 1 } else { 2 };
    let jobs = NonZeroUsize::new(jobs).expect("positive");
    explore(&scenario, &ExploreOptions { jobs, symmetry, states_max: 100_000, mutant })
}

/// States and moves with symmetry, states and moves without. A count that changes is a change of the code or of what is
/// explored: look at it, then pin it anew.
#[track_caller]
fn check(bound: &str, with: (u64, u64), without: (u64, u64)) {
    for (symmetry, counts) in [(true, with), (false, without)] {
        let found = explored(bound, symmetry, None);
        assert!(found.is_complete && found.violation.is_none() && found.drained > 0, "{bound}: {:?}", found.violation);
        assert_eq!((found.states, found.transitions), counts, "{bound}, symmetry {symmetry}");
    }
}

#[test]
fn two_workers_and_two_entries_are_exhausted() {
    check("check/small", (5_946, 15_183), (11_839, 30_273));
}

#[test]
fn a_worker_that_stands_still_anywhere_is_exhausted() {
    check("check/stale", (24_139, 63_272), (48_043, 126_064));
}

#[test]
fn two_entries_of_a_lane_are_exhausted() {
    check("check/lane", (18_073, 57_769), (36_048, 115_326));
}

#[test]
fn what_exploration_finds_becomes_a_capsule_that_replays() {
    for mutant in [Mutant::FenceRestarts, Mutant::SuccessorActiveEarly, Mutant::GateTrustsLease] {
        let bound = mutant.bound().expect("a bound has what it needs");
        let (violation, schedule) = explored(bound, true, Some(mutant)).violation.expect("it is found");
        assert_eq!(violation.property, mutant.property());
        let (scenario, text) = scenario::load(bound).expect("it comes with the command");
        let run = retake(&scenario, Some(mutant), &schedule).run;
        let target = Target { source: bound.into(), text, scenario };
        let capsule = Capsule::of_schedule(&target, Some(mutant), schedule, &run, &violation);
        let replayed = replay(&capsule).expect("it runs");
        assert_eq!((replayed.replay, replayed.is_digest_same), (Replay::Reproduced, true), "{}", mutant.name());
        // The same schedule without the bug violates nothing.
        let sound = retake(&target.scenario, None, &capsule.schedule);
        assert_eq!(sound.run.violation, None, "{}", mutant.name());
    }
}
