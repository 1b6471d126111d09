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
    explore(&scenario, &ExploreOptions { jobs, symmetry, states_max: 400_000, mutant })
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
fn two_workers_whose_scans_are_overtaken_are_exhausted() {
    check("check/overtaken", (19_421, 53_809), (38_694, 107_279));
}

#[test]
fn a_sweep_while_index_rows_vanish_is_exhausted() {
    // One worker has nobody to change places with.
    check("check/sweep", (54_452, 108_274), (54_452, 108_274));
}

#[test]
fn two_intents_of_an_order_key_around_a_crash_are_exhausted() {
    // One worker has nobody to change places with.
    check("check/fanout", (71_783, 336_743), (71_783, 336_743));
}

#[test]
fn two_workers_at_one_probe_are_exhausted() {
    check("check/probe", (151_576, 438_506), (301_700, 874_170));
}

#[test]
fn what_is_done_wrong_with_a_probe_is_found_by_exploring_it() {
    for mutant in [Mutant::ProbeNotTaken, Mutant::ProbeOvertaken, Mutant::ProbeUnchecked, Mutant::CircuitIgnored] {
        let (violation, _) = explored("check/probe", true, Some(mutant)).violation.expect("it is found");
        assert_eq!(violation.property, mutant.property());
    }
}

#[test]
fn what_only_a_sweep_does_wrong_is_found_by_exploring_it() {
    for mutant in [Mutant::IndexNotRepaired, Mutant::PayloadPrunedEarly] {
        let (violation, _) = explored("check/sweep", true, Some(mutant)).violation.expect("it is found");
        assert_eq!(violation.property, mutant.property());
    }
}

#[test]
fn what_exploration_finds_becomes_a_capsule_that_replays() {
    for mutant in
        [Mutant::FenceRestarts, Mutant::SuccessorActiveEarly, Mutant::GateTrustsLease, Mutant::Panics, Mutant::IndexNotRepaired]
    {
        let bound = mutant.bound().expect("a bound has what it needs");
        let (violation, schedule) = explored(bound, true, Some(mutant)).violation.expect("it is found");
        assert_eq!(violation.property, mutant.property());
        let (scenario, text) = scenario::load(bound).expect("it comes with the command");
        let run = retake(&scenario, Some(mutant), &schedule).expect("the simulator is not at fault").run;
        let target = Target { source: bound.into(), text, scenario };
        let capsule = Capsule::of_schedule(&target, Some(mutant), schedule, &run, &violation);
        let replayed = replay(&capsule).expect("it runs");
        assert_eq!((replayed.replay, replayed.is_digest_same), (Replay::Reproduced, true), "{}", mutant.name());
        // The same schedule without the bug violates nothing.
        let sound = retake(&target.scenario, None, &capsule.schedule).expect("the simulator is not at fault");
        assert_eq!(sound.run.violation, None, "{}", mutant.name());
    }
}
