//! Two builds at once: of every kind of record, the newer build's stays whole, and it is noticed if it does not.

use restante_core::keys::Kind;
use restante_sim::campaign::run_guarded;
use restante_sim::scenario::{self, Ms, RecordKinds, Scenario, kind_name};
use restante_sim::{Mutant, RunOptions, RunResult};

const SEEDS_MAX: u64 = 300;

/// What a record of these says stands in its key, or in the entry that it stands for: it goes with that one, whoever wrote it.
const INDEX: [Kind; 3] = [Kind::DueRow, Kind::Pointer, Kind::Member];

/// `upgrade/records` with this kind alone.
fn alone(kind: Kind) -> Scenario {
    let (mut scenario, _) = scenario::load("upgrade/records").expect("it comes with the command");
    scenario.faults.process.upgrade_kinds = RecordKinds(vec![kind]);
    match kind {
        // Both go when their time is over only: that has to come before the last process is replaced.
        Kind::Quarantined => scenario.config.quarantine_retention = Ms(3_000),
        Kind::DeadIntent => scenario.config.max_retention = Ms(8_000),
        _ => {}
    }
    scenario
}

fn run(scenario: &Scenario, seed: u64, mutant: Option<Mutant>) -> RunResult {
    run_guarded(scenario, seed, &RunOptions { mutant, ..RunOptions::default() }).expect("the simulator is not at fault")
}

#[test]
fn whatever_kind_of_record_the_newer_build_writes_its_own_way_the_properties_hold() {
    for kind in Kind::ALL {
        let scenario = alone(kind);
        for seed in 1..=20 {
            assert_eq!(run(&scenario, seed, None).violation, None, "{kind:?}, seed {seed}");
        }
    }
}

#[test]
fn an_older_build_that_guesses_is_found_out_by_every_kind_of_record_that_it_may_write_over() {
    // Nobody but an operator writes the intake record, and there is one operator: once it is of the newer build, no older one
    // writes it any more.
    let found_out = |kind: &Kind| !INDEX.contains(kind) && *kind != Kind::Intake;
    for kind in Kind::ALL.into_iter().filter(found_out) {
        let scenario = alone(kind);
        let is_found = |seed: &u64| {
            let found = run(&scenario, *seed, Some(Mutant::UnknownVersionGuessed)).violation;
            let evidence = match kind {
                Kind::Entry => ("entry", None),
                Kind::Intent => ("send", None),
                kind => ("record", Some(kind_name(kind))),
            };
            found.is_some_and(|found| {
                let is_it =
                    |(role, alias): &(&str, String)| *role == evidence.0 && evidence.1.as_ref().is_none_or(|it| it == alias);
                found.property == "unknown-version-is-left" && found.evidence.iter().any(is_it)
            })
        };
        assert!((1..=SEEDS_MAX).any(|seed| is_found(&seed)), "{kind:?}: not found out in {SEEDS_MAX} seeds");
    }
}

/// The index, memberships among it, says nothing that its keys do not: whoever wrote it, the other build works by it.
#[test]
fn an_older_build_works_by_the_newer_ones_index() {
    for kind in INDEX {
        let (mut scenario, _) = scenario::load("upgrade/rolling").expect("it comes with the command");
        scenario.faults.process.upgrade_kinds = RecordKinds(vec![kind]);
        for seed in 1..=20 {
            let run = run(&scenario, seed, None);
            assert_eq!(run.violation, None, "{kind:?}, seed {seed}");
            assert!(run.marks.iter().all(|(mark, _)| mark != "newer-record-was-put-aside"), "{kind:?}, seed {seed}");
        }
    }
}
