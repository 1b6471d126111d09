//! The sweep: what the index lost is found again, and what is over goes.

use restante_core::keys::Kind;
use restante_core::plan::{AdvanceSweep, BeginSweep, Prune, SetIntake};
use restante_core::record::{SweepPlace, SweepState};
use restante_core::{Command, Effect, Observation, Rejection};

use crate::bed::{Bed, DAY_MS, Fault, config, entry_id, keyed, owner, retry_after, send, status};

#[test]
fn a_lost_due_row_or_pointer_is_put_back_and_found_in_the_same_run() {
    for lost in [&[Kind::DueRow][..], &[Kind::Pointer], &[Kind::DueRow, Kind::Pointer]] {
        let mut bed = Bed::default();
        bed.accept(send(1, &["a.example/inbox", "b.example/inbox"]));
        lost.iter().for_each(|kind| bed.delete_all(*kind));
        let ran = bed.once(1, 10);
        assert_eq!((ran.report.processed, ran.report.more), (2, false), "{lost:?}");
        assert!(ran.effects.contains(&Effect::Observed(Observation::IndexRepaired { entry: entry_id(1, 0) })));
        bed.assert_counted();
    }
}

#[test]
fn a_lost_row_of_a_leased_entry_is_put_back_at_the_end_of_its_lease() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    crate::claim::claim(&mut bed, 1).expect("due");
    bed.delete_all(Kind::DueRow);
    bed.delete_all(Kind::Pointer);
    bed.once(2, 10);
    bed.assert_discoverable();
    assert!(bed.posts.is_empty());
    bed.now_ms += 60_000;
    assert_eq!(bed.once(2, 10).report.processed, 1);
}

#[test]
fn a_sweep_is_done_once_an_interval() {
    let mut bed = Bed::default();
    assert!(!bed.once(1, 10).report.more);
    let sweeps = |bed: &Bed| bed.commits.iter().filter(|(name, _)| *name == "finish-sweep").count();
    assert_eq!(sweeps(&bed), 1);
    bed.now_ms += 59_999;
    assert!(!bed.once(2, 10).report.more);
    assert_eq!(sweeps(&bed), 1);
    bed.now_ms += 1;
    assert!(!bed.once(2, 10).report.more);
    assert_eq!(sweeps(&bed), 2);
}

#[test]
fn a_sweep_by_somebody_else_proves_nothing_yet_and_is_taken_over_when_it_died() {
    let mut bed = Bed::default();
    bed.run(Command::BeginSweep(BeginSweep { owner: owner(9) })).expect("begun");
    assert!(bed.once(1, 10).report.more);
    bed.now_ms += 60_000;
    assert!(!bed.once(1, 10).report.more);
    let state: SweepState = bed.read(&bed.env.keys.sweep()).expect("written");
    assert_eq!((state.owner, state.completed), (owner(1), true));
}

#[test]
fn a_sweep_that_the_store_interrupts_proves_nothing() {
    let mut bed = Bed::default();
    bed.fault("sweep-scan", Fault::Unavailable);
    assert!(bed.once(1, 10).report.more);
}

#[test]
fn a_repair_that_meets_only_conflicts_keeps_nothing_else_from_being_repaired() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox", "b.example/inbox", "c.example/inbox"]));
    bed.delete_all(Kind::Pointer);
    for _ in 0..8 {
        bed.fault("repair-index", Fault::Conflict);
    }
    let ran = bed.once(1, 10);
    assert!(ran.report.more, "not proved");
    assert_eq!(bed.all(Kind::Pointer).len(), 2, "the others are repaired");
}

/// A repair whose answer was lost has still put something back: the run must look for it before it says that nothing is due.
#[test]
fn an_ambiguous_repair_is_followed_by_another_look() {
    for fault in [Fault::Committed, Fault::Lost, Fault::Late] {
        let mut bed = Bed::default();
        bed.accept(send(1, &["a.example/inbox"]));
        bed.delete_all(Kind::Pointer);
        bed.fault("repair-index", fault);
        let ran = bed.once(1, 10);
        assert_eq!((ran.report.processed, ran.report.more), (1, false), "{fault:?}");
    }
    // The same for a lane that was moved on.
    for fault in [Fault::Committed, Fault::Lost, Fault::Late] {
        let mut bed = Bed::default();
        bed.accept(keyed(1, "thread", &["a.example/inbox"]));
        bed.accept(keyed(2, "thread", &["a.example/inbox"]));
        bed.make_unknown(1, 0);
        bed.delete_all(Kind::DueRow);
        bed.fault("repair-lane", fault);
        let ran = bed.once(1, 10);
        assert_eq!((ran.report.processed, ran.report.more), (1, false), "{fault:?}");
    }
}

#[test]
fn markers_and_dead_letters_go_when_their_time_is_over() {
    let mut bed = Bed::default();
    bed.answers.push_back(status(410));
    bed.accept(send(1, &["a.example/inbox"]));
    bed.once(1, 10);
    let left = |bed: &Bed| (bed.all(Kind::Marker).len(), bed.all(Kind::DeadLetter).len());
    for (days, expected) in [(0, (1, 1)), (1, (0, 1)), (6, (0, 0))] {
        bed.now_ms += days * DAY_MS;
        bed.once(1, 10);
        assert_eq!(left(&bed), expected, "{days} days more");
    }
}

#[test]
fn what_is_known_of_a_destination_goes_when_its_pause_is_over() {
    let mut bed = Bed::default();
    bed.answers.push_back(retry_after(90_000));
    bed.accept(send(1, &["a.example/inbox"]));
    bed.once(1, 10);
    bed.now_ms += 60_000;
    bed.once(1, 10);
    assert_eq!(bed.all(Kind::Destination).len(), 1);
    bed.now_ms += 60_000;
    bed.once(1, 10);
    assert!(bed.all(Kind::Destination).is_empty());
}

/// Sequence: index rows that vanish as fast as they are put back, and sweeps that take longer than their interval.
#[test]
fn a_run_ends_although_every_sweep_finds_something_to_repair() {
    let mut bed = Bed::new(restante_core::Config { sweep_interval_ms: 1_000, ..config() });
    bed.answers.push_back(retry_after(3_600_000));
    bed.accept(send(1, &["a.example/inbox"]));
    bed.once(1, 1);
    bed.accept(send(2, &["a.example/inbox"]));
    bed.now_ms += 2_000;
    bed.delete_all(Kind::DueRow);
    for _ in 0..20 {
        bed.before("finish-sweep", |bed| {
            bed.delete_all(Kind::DueRow);
            bed.now_ms += 2_000;
        });
    }
    assert!(bed.once(1, 10).report.more);
    let sweeps = bed.commits.iter().filter(|(name, _)| *name == "finish-sweep").count();
    assert!(sweeps < 6, "{sweeps}");
}

#[test]
fn a_large_backlog_is_swept_page_by_page() {
    let mut bed = Bed::default();
    for number in 1..=100 {
        bed.accept(send(number, &["a.example/1", "b.example/1"]));
    }
    bed.delete_all(Kind::Pointer);
    bed.delete_all(Kind::DueRow);
    let ran = bed.once(1, u64::MAX);
    assert_eq!((ran.report.processed, ran.report.more), (200, false));
    bed.assert_counted();
}

/// Enough for a dozen pages: entries, markers.
fn many(bed: &mut Bed) {
    for number in 1..=250 {
        bed.accept(send(number, &["a.example/1", "b.example/1"]));
    }
}

fn state(bed: &Bed) -> SweepState {
    bed.read(&bed.env.keys.sweep()).expect("a sweep was begun")
}

fn done(bed: &Bed, what: &str) -> usize {
    bed.actions.iter().filter(|action| **action == what).count()
}

/// Sequence: a page takes ten seconds, of an interval of sixty; others want to sweep meanwhile.
#[test]
fn a_sweep_that_takes_longer_than_its_interval_is_completed_though_others_want_one() {
    let mut bed = Bed::default();
    many(&mut bed);
    for _ in 0..11 {
        bed.before("sweep-scan", |bed| {
            bed.now_ms += 10_000;
            let begun = bed.run(Command::BeginSweep(BeginSweep { owner: owner(9) }));
            assert_eq!(begun, Err(restante_core::machine::Failure::Rejected(Rejection::Taken)));
        });
    }
    bed.once(1, 0);
    assert!(state(&bed).completed, "{:?}", state(&bed));
    assert_eq!((state(&bed).owner, state(&bed).place), (owner(1), None));
}

/// The pages that a sweep of another owner needs after the one before stopped at its eighth.
#[test]
fn a_sweep_that_was_left_is_taken_over_where_it_had_come_to() {
    let mut bed = Bed::default();
    many(&mut bed);
    for _ in 0..7 {
        bed.before("sweep-scan", |bed| bed.now_ms += 4_000);
    }
    bed.before("sweep-scan", |bed| bed.fault("sweep-scan", Fault::Unavailable));
    bed.once(1, 0);
    let left = state(&bed);
    assert!(left.place.is_some() && !left.completed, "{left:?}");

    bed.now_ms += 60_000;
    let before = done(&bed, "sweep-scan");
    bed.once(2, 0);
    let taken_over = done(&bed, "sweep-scan") - before;
    let over = state(&bed);
    assert_eq!((over.owner, over.completed, over.completed_from), (owner(2), true, left.started_at), "as old as its beginning");

    bed.now_ms += 60_000;
    let before = done(&bed, "sweep-scan");
    bed.once(3, 0);
    let whole = done(&bed, "sweep-scan") - before;
    assert_eq!(whole - taken_over, 6, "{whole} pages, {taken_over} from the seventh on, at which the place was recorded");
}

#[test]
fn what_another_saw_of_a_sweep_proves_nothing_to_a_run() {
    let mut bed = Bed::default();
    many(&mut bed);
    bed.once(1, u64::MAX);
    bed.now_ms += 60_000;
    bed.before("sweep-scan", |bed| bed.now_ms += 4_000);
    bed.before("sweep-scan", |bed| bed.fault("sweep-scan", Fault::Unavailable));
    assert!(bed.once(2, 10).report.more);
    assert!(state(&bed).place.is_some());

    bed.now_ms += 3_600_000;
    let finished = |bed: &Bed| bed.commits.iter().filter(|(name, _)| *name == "finish-sweep").count();
    let before = finished(&bed);
    assert!(!bed.once(3, 10).report.more);
    assert_eq!(finished(&bed) - before, 2, "the one that was left, and one of its own");
}

/// Sequence: a repair meets only conflicts, the sweep is left later, and another takes it over.
#[test]
fn a_sweep_that_skipped_a_repair_is_over_and_not_complete_whoever_ends_it() {
    let mut bed = Bed::default();
    many(&mut bed);
    let (row, _) = bed.all(Kind::DueRow).remove(0);
    bed.tamper(row.clone(), None);
    for _ in 0..1_000 {
        bed.fault("repair-index", Fault::Conflict);
    }
    for _ in 0..2 {
        bed.before("sweep-scan", |bed| bed.now_ms += 4_000);
    }
    bed.before("sweep-scan", |bed| bed.fault("sweep-scan", Fault::Unavailable));
    bed.once(1, 0);
    assert!(state(&bed).place.is_some_and(|place| place.skipped));
    bed.heal();

    bed.now_ms += 60_000;
    assert!(bed.once(2, 0).report.more);
    assert_eq!((state(&bed).completed, state(&bed).place), (false, None));
    assert!(bed.model.get(&row).is_none(), "it lies before the place");

    bed.now_ms += 60_000;
    bed.once(3, 0);
    assert!(state(&bed).completed);
    assert!(bed.model.get(&row).is_some());
}

/// Sequence: every record of a page takes a second, and others want to sweep meanwhile.
#[test]
fn a_page_that_takes_longer_than_the_interval_is_nobody_elses() {
    let mut bed = Bed::new(restante_core::Config { sweep_interval_ms: 10_000, ..config() });
    many(&mut bed);
    bed.delete_all(Kind::DueRow);
    for _ in 0..60 {
        bed.before("repair-index", |bed| {
            bed.now_ms += 1_000;
            let begun = bed.run(Command::BeginSweep(BeginSweep { owner: owner(9) }));
            assert_eq!(begun, Err(restante_core::machine::Failure::Rejected(Rejection::Taken)));
        });
    }
    bed.once(1, 0);
    assert_eq!((state(&bed).owner, state(&bed).completed), (owner(1), true));
}

/// Sequence: a circuit has kept an entry back for too long, the entry loses its row, and the circuit closes.
#[test]
fn what_is_not_over_after_all_gets_its_row_back() {
    let mut bed = Bed::new(restante_core::Config { circuit_held_max_ms: 5_000, ..config() });
    bed.accept(send(1, &["a.example/inbox"]));
    bed.now_ms += 10_000;
    bed.delete_all(Kind::DueRow);
    assert_eq!(bed.once(1, 10).report.processed, 1);
}

#[test]
fn a_sweep_record_that_is_damaged_is_none() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.delete_all(Kind::Pointer);
    let damaged: restante_kv::Value = (&b"\x01damaged"[..]).into();
    bed.tamper(bed.env.keys.sweep(), Some(damaged));
    assert_eq!(bed.once(1, 10).report.processed, 1);
    assert!(state(&bed).completed);
}

#[test]
fn a_place_that_is_none_begins_a_sweep_at_the_beginning() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.delete_all(Kind::Pointer);
    bed.run(Command::BeginSweep(BeginSweep { owner: owner(9) })).expect("begun");
    let place = SweepPlace { next: bed.env.keys.sweep(), skipped: false };
    bed.run(Command::AdvanceSweep(AdvanceSweep { owner: owner(9), place })).expect("recorded");
    bed.now_ms += 60_000;
    assert_eq!(bed.once(1, 10).report.processed, 1);
}

#[test]
fn a_due_row_is_pruned_only_when_it_stands_for_nothing() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    let (key, _) = bed.all(Kind::DueRow).remove(0);
    let version = bed.model.get(&key).expect("put").version;
    let prune = || Command::Prune(Prune { key: key.clone(), version, chunk_of: None });
    let refused = |rejection| Err(restante_core::machine::Failure::Rejected(rejection));
    assert_eq!(bed.run(prune()), refused(Rejection::NotNeeded));
    // One whose entry cannot be read leads to its quarantine.
    bed.make_unknown(1, 0);
    assert_eq!(bed.run(prune()), refused(Rejection::NotNeeded));
    bed.tamper(bed.env.keys.entry(entry_id(1, 0)), None);
    assert!(bed.run(prune()).is_ok());
    assert_eq!(bed.run(prune()), refused(Rejection::Gone));
}

#[test]
fn a_sweep_leaves_a_sound_backlog_as_it_is() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.answers.push_back(status(500));
    bed.once(1, 10);
    bed.run(Command::SetIntake(SetIntake { open: false })).expect("closed");
    let before = bed.commits.len();
    let ran = bed.once(1, 10);
    assert!(ran.effects.is_empty());
    assert!(bed.commits[before..].iter().all(|(name, _)| ["tidy-pointer", "begin-sweep", "finish-sweep"].contains(name)));
}

/// Cron alone, under more load than one run takes: lost index rows must be found all the same.
#[test]
fn a_run_that_reaches_its_limit_sweeps_too() {
    let mut bed = Bed::default();
    for number in 1..=3 {
        bed.accept(send(number, &["a.example/inbox"]));
    }
    assert!(bed.once(1, 1).report.more);
    assert_eq!(bed.commits.iter().filter(|(name, _)| *name == "finish-sweep").count(), 1);
}

/// The pointer of a paced destination stands at the end of the pause, not where its entries vest.
#[test]
fn a_paced_destination_gives_the_sweep_nothing_to_repair() {
    let mut bed = Bed::default();
    bed.answers.push_back(retry_after(300_000));
    bed.accept(send(1, &["a.example/inbox"]));
    bed.once(1, 1);
    bed.accept(send(2, &["a.example/inbox"]));
    for _ in 0..3 {
        bed.now_ms += 60_000;
        let ran = bed.once(1, 10);
        let repaired = |effect: &Effect| matches!(effect, Effect::Observed(Observation::IndexRepaired { .. }));
        assert!(!ran.effects.iter().any(repaired));
    }
}
