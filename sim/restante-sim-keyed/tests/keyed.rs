//! Seeds, bounds and planted bugs.

use restante_engine::{Marks, Quantifier, Tape, TapeEntry};
use restante_sim_keyed::{Bound, Mutant, PROPERTIES, RunOptions, explore, retake, run};

const SEEDS: u64 = 2_000;

#[test]
fn every_promise_holds_in_seeded_runs_and_every_state_is_reached() {
    let mut marks = Marks::new();
    let mut tasks = 0;
    for seed in 0..SEEDS {
        let options = RunOptions::default();
        let outcome = run(seed, &options);
        assert_eq!(outcome.violation, None, "seed {seed}");
        marks.merge(&outcome.marks);
        tasks += outcome.tasks;
    }
    assert_eq!(marks.missing(PROPERTIES).map(|property| property.name).collect::<Vec<_>>(), [""; 0]);
    assert!(tasks > 10 * SEEDS, "{tasks}");
}

#[test]
fn a_seed_does_the_same_again_and_a_trace_changes_nothing() {
    for seed in 0..20 {
        let plain = run(seed, &RunOptions::default());
        let traced = run(seed, &RunOptions { trace: true, record: true, ..RunOptions::default() });
        assert_eq!((plain.digest, plain.events, plain.sim_time), (traced.digest, traced.events, traced.sim_time));
        assert!(traced.trace.rows().len() > 10 && plain.trace.rows().len() == 0);
    }
    assert_ne!(run(1, &RunOptions::default()).digest, run(2, &RunOptions::default()).digest);
}

#[test]
fn a_tape_overrides_what_a_seed_decides() {
    let entry = |site: &str, key: &str, choice: &str| TapeEntry { site: site.into(), key: key.into(), choice: choice.into() };
    let tape = Tape { entries: vec![entry("keyed.setting", "tasks", "5"), entry("keyed.setting", "keys", "1")] };
    let outcome = run(3, &RunOptions { tape, trace: true, ..RunOptions::default() });
    let submitted: Vec<_> = outcome.trace.rows().filter(|row| row.event == "submit").collect();
    assert!(submitted.len() == 5 && submitted.iter().all(|row| row.detail.starts_with("k0")));
}

#[test]
fn every_planted_bug_is_found_by_seeds() {
    for mutant in Mutant::ALL {
        let options = RunOptions { mutant: Some(*mutant), ..RunOptions::default() };
        let found = (0..SEEDS).find_map(|seed| run(seed, &options).violation);
        let property = found.map(|violation| violation.property);
        assert_eq!(property, Some(mutant.property()), "{}", mutant.name());
    }
}

/// States and moves of a bound. A count that changes is a change of the code or of what is explored: look at it, then pin it
/// anew.
#[track_caller]
fn check(bound: &Bound, states: u64, moves: u64, depth_max: u64) {
    let explored = explore(bound, None, 10_000_000);
    assert!(explored.violation.is_none(), "{:?}", explored.violation);
    assert!(explored.is_complete && explored.ended > 0);
    assert_eq!((explored.states, explored.moves, explored.depth_max), (states, moves, depth_max));
}

#[test]
fn the_small_bound_is_exhausted_at_width_one() {
    check(&Bound::small(1), 750_329, 3_907_878, 27);
}

#[test]
fn the_small_bound_is_exhausted_at_width_two() {
    check(&Bound::small(2), 843_744, 4_549_589, 27);
}

#[test]
fn every_planted_bug_is_found_by_exploration_and_its_schedule_shows_it_again() {
    for mutant in Mutant::ALL {
        let bound = Bound::small(1);
        let explored = explore(&bound, Some(*mutant), 1_000_000);
        let Some((violation, schedule)) = explored.violation else { panic!("{} is not found", mutant.name()) };
        assert_eq!(violation.property, mutant.property(), "{}: {schedule:?}", mutant.name());
        let again = retake(&bound, Some(*mutant), &schedule);
        assert_eq!((again.violation, again.moves_taken), (Some(violation), schedule.len()), "{}", mutant.name());
        assert_eq!(retake(&bound, None, &schedule).violation, None, "{}", mutant.name());
    }
}

#[test]
fn every_property_that_must_hold_has_a_planted_bug_and_every_bug_a_property() {
    let must_hold =
        |name: &str| PROPERTIES.iter().any(|property| property.name == name && property.quantifier == Quantifier::Always);
    for property in PROPERTIES.iter().filter(|property| property.quantifier != Quantifier::Sometimes) {
        assert!(Mutant::ALL.iter().any(|mutant| mutant.property() == property.name), "{}", property.name);
    }
    for mutant in Mutant::ALL {
        assert!(must_hold(mutant.property()), "{}", mutant.name());
        assert_eq!(Mutant::by_name(mutant.name()), Some(*mutant));
    }
}
