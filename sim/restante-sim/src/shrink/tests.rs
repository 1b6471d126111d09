//! Planted bugs, found and shrunk. The bounds are what was seen, with a little room.

use std::time::Duration;

use restante_engine::Violation;

use super::{Limits, ShrinkError, Shrunk, shrink};
use crate::campaign::{FailedSeed, Target, Verdict, run_guarded};
use crate::capsule::{Capsule, Replay, replay};
use crate::{Mutant, RunOptions, scenario};

const LIMITS: Limits = Limits { time_budget: None, jobs: 1 };

/// The capsule of the first seed in which the bug violates its property.
fn caught(mutant: Mutant) -> Capsule {
    let name = mutant.scenario();
    let (scenario, text) = scenario::load(name).expect("it comes with the command");
    let target = Target { source: name.into(), text, scenario };
    let options = RunOptions { mutant: Some(mutant), ..RunOptions::default() };
    let failed = (1..=200).find_map(|seed| {
        let run = run_guarded(&target.scenario, seed, &options).expect("it runs");
        let violation = run.violation.filter(|violation| violation.property == mutant.property())?;
        Some(FailedSeed { seed, fingerprint: violation.fingerprint(), digest: run.digest })
    });
    Capsule::capture(&target, &failed.expect("the bug is found"), Some(mutant)).expect("it happens again").0
}

fn shrunk(capsule: &Capsule, limits: Limits) -> Shrunk {
    shrink(capsule, limits, &|| ()).expect("it reproduces")
}

/// What every shrunk capsule has to be.
#[track_caller]
fn check(capsule: &Capsule, shrunk: &Shrunk) {
    let smaller = &shrunk.capsule;
    assert_eq!(smaller.failure.fingerprint, capsule.failure.fingerprint);
    assert!(shrunk.is_finished);
    let replayed = replay(smaller).expect("it runs");
    assert_eq!((replayed.replay, replayed.is_digest_same), (Replay::Reproduced, true));
    assert!(replayed.decisions.is_exact(), "{}", replayed.decisions);
    // No idle entries on the tape, and the bug is still what fails.
    assert!(replayed.run.log.unused_overrides().is_empty() && replayed.run.log.unknown_overrides().is_empty());
    assert_eq!(replay(&Capsule { mutant: None, ..smaller.clone() }).expect("it runs").violation, None);
    assert!(scenario::parse("shrunk", &smaller.scenario_text).expect("a scenario").why.starts_with("Shrunk from "));
    assert!(Capsule::from_json("x.json".as_ref(), &smaller.to_json()).is_ok_and(|read| read == *smaller));
}

#[test]
fn a_settle_without_fence_needs_few_pauses_and_sends() {
    // Its violation comes late and hangs on everything before it: one by one, faults cannot be left out.
    let capsule = caught(Mutant::SettleWithoutFence);
    let shrunk = shrunk(&capsule, LIMITS);
    check(&capsule, &shrunk);
    let (before, after) = (shrunk.before, shrunk.after);
    assert!(before.sends >= 20 && before.faults >= 10, "{before:?}");
    assert!(after.sends == 1 && after.faults <= 2 && after.operations == 0, "{after:?}");
    assert!(after.workers == 2 && after.destinations <= 2, "{after:?}");
    assert!(after.events * 3 < before.events, "{before:?} {after:?}");
    assert!(shrunk.faults.iter().all(|fault| fault.choice == "process.pause"), "{:?}", shrunk.faults);
}

#[test]
fn an_ambiguous_commit_taken_as_failure_needs_one_such_commit() {
    let capsule = caught(Mutant::AmbiguousTakenAsFailure);
    let shrunk = shrunk(&capsule, LIMITS);
    check(&capsule, &shrunk);
    let (before, after) = (shrunk.before, shrunk.after);
    assert!(after.sends == 1 && after.sends * 3 <= before.sends && after.faults == 1, "{before:?} {after:?}");
    assert!(after.operations == 0 && after.workers == 1, "{after:?}");
    assert!(shrunk.run.trace.rows().len() <= 30, "{}", shrunk.run.trace.render());
}

#[test]
fn a_lane_out_of_order_needs_two_sends_and_no_fault() {
    let capsule = caught(Mutant::SuccessorActiveEarly);
    let one = shrunk(&capsule, LIMITS);
    check(&capsule, &one);
    assert!(one.after.sends == 2 && one.after.faults == 0 && one.after.workers == 1, "{:?} {:?}", one.before, one.after);
    // The number of threads changes nothing; and what is minimal stays as it is.
    let limits = Limits { time_budget: Some(Duration::from_secs(600)), jobs: 3 };
    let other = shrunk(&capsule, limits);
    assert_eq!(other.capsule, one.capsule);
    assert_eq!((other.candidates, other.accepted, &other.changes), (one.candidates, one.accepted, &one.changes));
    assert_eq!(shrunk(&one.capsule, LIMITS).capsule, one.capsule);
}

#[test]
fn of_a_swarm_an_ordinary_scenario_is_left() {
    let (full, text) = scenario::load("swarm/full").expect("it comes with the command");
    let target = Target { source: "swarm/full".into(), text, scenario: full };
    let options = RunOptions { mutant: Some(Mutant::AcknowledgedAsFailed), ..RunOptions::default() };
    let failed = (1..=200).find_map(|seed| {
        let run = run_guarded(&target.scenario, seed, &options).expect("it runs");
        let violation = run.violation.filter(|violation| violation.property == Mutant::AcknowledgedAsFailed.property())?;
        // A send that was refused before has the number of its attempt in its name: whatever led to that has to stay.
        let fingerprint = Some(violation.fingerprint()).filter(|fingerprint| !fingerprint.contains('/'))?;
        Some(FailedSeed { seed, fingerprint, digest: run.digest })
    });
    let mutant = Some(Mutant::AcknowledgedAsFailed);
    let capsule = Capsule::capture(&target, &failed.expect("the bug is found"), mutant).expect("it happens again").0;
    assert_eq!(replay(&capsule).expect("it runs").replay, Replay::Reproduced);
    let shrunk = shrunk(&capsule, LIMITS);
    check(&capsule, &shrunk);
    let smaller = scenario::parse("shrunk", &shrunk.capsule.scenario_text).expect("a scenario");
    assert_eq!(smaller.swarm, None, "{}", shrunk.capsule.scenario_text);
    let (before, after) = (shrunk.before, shrunk.after);
    assert!(after.sends <= 1 && after.faults <= 1 && before.sends > 1, "{before:?} {after:?}");
}

#[test]
fn what_does_not_reproduce_is_not_shrunk() {
    let healed = Capsule { mutant: None, ..caught(Mutant::SuccessorActiveEarly) };
    let error = shrink(&healed, LIMITS, &|| ()).expect_err("nothing fails without the bug");
    assert!(matches!(error, ShrinkError::NotReproduced(_)) && error.verdict() == Verdict::Nondeterminism);
    let mut older = healed.clone();
    older.environment.source = "another".into();
    assert_eq!(shrink(&older, LIMITS, &|| ()).expect_err("nor here").verdict(), Verdict::Stale);
    let unknown = Capsule { mutant: Some("no-such".into()), ..healed };
    assert_eq!(shrink(&unknown, LIMITS, &|| ()).expect_err("nor then").verdict(), Verdict::Stale);
}

#[test]
fn without_time_the_capsule_stays_what_it_is() {
    let capsule = caught(Mutant::SuccessorActiveEarly);
    let limits = Limits { time_budget: Some(Duration::from_nanos(1)), jobs: 1 };
    let shrunk = shrunk(&capsule, limits);
    assert!(!shrunk.is_finished && shrunk.candidates == 0);
    assert_eq!(shrunk.run.violation.as_ref().map(Violation::fingerprint), Some(capsule.failure.fingerprint));
    assert_eq!(shrunk.capsule.digest, capsule.digest);
}

#[test]
fn a_panic_is_shrunk_without_its_record() {
    let capsule = caught(Mutant::Panics);
    let shrunk = shrunk(&capsule, LIMITS);
    assert!(shrunk.is_finished);
    let replayed = replay(&shrunk.capsule).expect("it runs");
    assert_eq!(replayed.replay, Replay::Reproduced);
    let smaller = scenario::parse("shrunk", &shrunk.capsule.scenario_text).expect("a scenario");
    assert_eq!((smaller.workload.sends_count, smaller.workload.producers, smaller.world.workers), (1, 1, 1));
}
