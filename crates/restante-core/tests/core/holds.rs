//! Holds: notices as intervals, the gate that parks, the credit they give and what they never extend.

use proptest::prelude::*;
use restante_core::keys::Kind;
use restante_core::machine::{DeliveryEnd, Failure, destination_page, destination_range};
use restante_core::plan::{HoldNotice, RepairIndex, SetHold, Settled, Wake};
use restante_core::record::{Block, DeadLetter, Destination, DropReason, HoldInterval, Record, WaitReason};
use restante_core::{Command, Config, Effect, Rejection};
use restante_kv::StoreTime;

use crate::bed::{Bed, START_MS, config, entry_id, keyed, send, status};

const HOST: &str = "https://a.example";

fn tell(bed: &mut Bed, notice: HoldNotice) -> Result<Vec<Effect>, Failure> {
    bed.run(Command::SetHold(SetHold { destination: HOST.into(), notice })).map(|(_, effects)| effects)
}

fn hold_for(bed: &mut Bed, ms: u64) {
    let until = Some(bed.now().plus_ms(ms));
    tell(bed, HoldNotice::Hold { from: None, until }).expect("accepted");
}

fn release(bed: &mut Bed) -> Vec<Effect> {
    tell(bed, HoldNotice::Release { from: None }).expect("accepted")
}

fn known(bed: &Bed) -> Destination {
    bed.read(&bed.env.keys.destination(HOST)).unwrap_or_default()
}

fn intervals(bed: &Bed) -> Vec<(u64, u64, bool)> {
    known(bed).holds.iter().map(|hold| (hold.from.since_ms(start()), hold.until.since_ms(start()), hold.is_open)).collect()
}

fn start() -> StoreTime {
    StoreTime::from_ms(START_MS)
}

#[test]
fn a_held_destination_is_not_posted_to_and_its_work_stays_where_it_is() {
    let mut bed = Bed::default();
    hold_for(&mut bed, 300_000);
    bed.accept(send(1, &["a.example/1", "a.example/2", "b.example/1"]));
    let rows = bed.all(Kind::DueRow);
    let ran = bed.once(1, 10);
    assert_eq!(ran.report.processed, 1, "the other host's");
    assert!(bed.posts.iter().all(|post| &*post.destination == "https://b.example"));
    assert_eq!(bed.all(Kind::DueRow).len(), rows.len() - 1);
    // It is looked at by the recheck interval, long before the hold ends.
    assert_eq!(ran.report.next_at, Some(StoreTime::from_ms(START_MS / 60_000 * 60_000 + 60_000)));
    bed.now_ms += 300_000;
    assert_eq!(bed.once(1, 10).report.processed, 2);
    bed.assert_counted();
}

#[test]
fn an_entry_that_was_claimed_before_the_hold_is_parked_and_counted_until_it_is_claimed_again() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/1"]));
    bed.before("gate", |bed| hold_for(bed, 300_000));
    let ran = bed.once(1, 10);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Parked(Block::Held)))]);
    assert!(bed.posts.is_empty());
    let entry = bed.entry(1, 0).expect("kept");
    assert_eq!((entry.wait, entry.failure_count, entry.vest_at, entry.lease), (WaitReason::Held, 0, bed.now(), None));
    assert_eq!((bed.depth().entries, bed.depth().held, bed.depth().leased), (1, 1, 0));
    // An order to look at it leaves it parked, and counted.
    bed.run(Command::Wake(Wake { id: entry_id(1, 0) })).expect("woken");
    bed.assert_counted();
    assert_eq!(bed.once(1, 10).report.processed, 0);
    let effects = release(&mut bed);
    assert!(effects.contains(&Effect::Wake { destination: HOST.into() }), "{effects:?}");
    assert_eq!(bed.depth().held, 1, "a release touches no entry");
    assert_eq!(bed.once(1, 10).report.processed, 1);
    assert_eq!((bed.depth().entries, bed.depth().held), (0, 0));
    bed.assert_counted();
}

#[test]
fn a_release_that_comes_between_gate_and_settle_is_not_slept_over() {
    let mut bed = Bed::default();
    hold_for(&mut bed, 300_000);
    bed.accept(send(1, &["a.example/1"]));
    release(&mut bed);
    bed.before("gate", |bed| hold_for(bed, 300_000));
    bed.before("settle", |bed| _ = release(bed));
    let ran = bed.once(1, 1);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Parked(Block::Held)))]);
    bed.assert_discoverable();
    assert_eq!(bed.once(2, 1).report.processed, 1);
    assert_eq!(bed.posts.len(), 1);
}

#[test]
fn setting_extending_and_releasing_write_two_rows_whatever_waits() {
    let mut bed = Bed::default();
    for number in 1..=20 {
        bed.accept(send(number, &["a.example/1", "a.example/2"]));
    }
    let before = bed.commits.len();
    hold_for(&mut bed, 300_000);
    hold_for(&mut bed, 400_000);
    release(&mut bed);
    let sizes: Vec<_> = bed.commits[before..].iter().map(|(_, txn)| (txn.checks.len(), txn.writes.len())).collect();
    assert_eq!(sizes, [(1, 1), (1, 1), (1, 2)]);
}

#[test]
fn overlapping_notices_become_one_interval_and_a_release_cuts_them_all() {
    let mut bed = Bed::default();
    let at = |ms| Some(start().plus_ms(ms));
    let hold = |from, until| HoldNotice::Hold { from: at(from), until: at(until) };
    for notice in [hold(0, 10_000), hold(5_000, 20_000), hold(30_000, 40_000), hold(39_999, 50_000)] {
        tell(&mut bed, notice).expect("accepted");
    }
    assert_eq!(intervals(&bed), [(0, 20_000, false), (30_000, 50_000, false)]);
    let credit = |from, to| known(&bed).hold_credit_ms(start().plus_ms(from), start().plus_ms(to));
    assert_eq!((credit(0, 100_000), credit(15_000, 35_000), credit(20_000, 30_000)), (40_000, 10_000, 0));
    tell(&mut bed, HoldNotice::Release { from: at(12_000) }).expect("accepted");
    assert_eq!(intervals(&bed), [(0, 12_000, false)]);
    // The same again changes nothing, and writes nothing.
    let before = bed.commits.len();
    tell(&mut bed, HoldNotice::Release { from: at(12_000) }).expect("accepted");
    assert_eq!(bed.commits.len(), before);
}

#[test]
fn a_hold_without_a_known_end_lasts_for_the_cap_after_it_was_last_confirmed() {
    let mut bed = Bed::new(Config { hold_cap_ms: 100_000, ..config() });
    let notice = HoldNotice::Hold { from: None, until: None };
    tell(&mut bed, notice).expect("accepted");
    assert_eq!(intervals(&bed), [(0, 100_000, true)]);
    bed.now_ms += 60_000;
    tell(&mut bed, notice).expect("accepted");
    assert_eq!(intervals(&bed), [(0, 160_000, true)], "confirmed");
    bed.now_ms += 40_000;
    let at = bed.now();
    tell(&mut bed, HoldNotice::Hold { from: None, until: Some(at.plus_ms(500_000)) }).expect("accepted");
    assert_eq!(intervals(&bed), [(0, 600_000, false)], "known now");
    bed.accept(send(1, &["a.example/1"]));
    bed.now_ms += 500_000;
    assert_eq!(bed.once(1, 1).report.processed, 1, "past its end it is asked again");
}

#[test]
fn only_the_oldest_that_is_over_is_forgotten() {
    let mut bed = Bed::default();
    for number in 0..40 {
        hold_for(&mut bed, 1_000);
        bed.now_ms += 2_000;
        assert!(known(&bed).holds.len() <= Destination::HOLDS_MAX, "{number}");
    }
    assert_eq!(intervals(&bed).last(), Some(&(78_000, 79_000, false)));
    // What is yet to come is never forgotten: there is only so much of it.
    let mut bed = Bed::default();
    let mut future = |number: u64| {
        let at = |ms| Some(start().plus_ms(1_000_000 + number * 10_000 + ms));
        tell(&mut bed, HoldNotice::Hold { from: at(0), until: at(5_000) })
    };
    for number in 0..Destination::HOLDS_MAX as u64 {
        future(number).expect("accepted");
    }
    assert!(matches!(future(99), Err(Failure::Rejected(Rejection::Invalid(_)))));
}

#[test]
fn notices_that_say_nothing_are_refused() {
    let mut bed = Bed::default();
    let now = Some(bed.now());
    for (destination, from, until) in [(HOST, now, now), ("", None, None), ("a\0b", None, None)] {
        let command = SetHold { destination: destination.into(), notice: HoldNotice::Hold { from, until } };
        assert!(matches!(bed.run(Command::SetHold(command)), Err(Failure::Rejected(Rejection::Invalid(_)))), "{destination}");
    }
}

#[test]
fn a_hold_extends_no_retention_and_what_ends_under_it_is_dropped_by_the_sweep() {
    let mut bed = Bed::new(Config { max_retention_ms: 100_000, ..config() });
    hold_for(&mut bed, 1_000_000);
    bed.accept(send(1, &["a.example/1"]));
    let mut recipients = send(2, &["a.example/2"]);
    recipients.recipients[0].deadline = Some(bed.now().plus_ms(30_000));
    bed.accept(recipients);
    bed.now_ms += 61_000;
    bed.once(1, 10);
    assert_eq!((bed.entry(1, 0).is_some(), bed.entry(2, 0).is_some()), (true, false), "its own deadline is earlier");
    bed.now_ms += 61_000;
    bed.once(1, 10);
    assert_eq!(bed.all(Kind::Entry), []);
    for number in [1, 2] {
        let letter: DeadLetter = bed.read(&bed.env.keys.dead_letter(entry_id(number, 0))).expect("its trace");
        assert_eq!(letter.reason, DropReason::Expired);
    }
    assert!(bed.posts.is_empty());
    bed.assert_counted();
    assert_eq!((bed.all(Kind::DueRow), bed.depth().held), (vec![], 0));
}

#[test]
fn a_whole_lane_that_is_over_goes_in_one_sweep() {
    let mut bed = Bed::new(Config { max_retention_ms: 100_000, ..config() });
    hold_for(&mut bed, 1_000_000);
    // Keys do not lie in the order of the lane.
    for number in [9, 3, 7, 1, 5] {
        bed.accept(keyed(number, "t", &["a.example/1"]));
    }
    bed.now_ms += 90_000;
    bed.accept(keyed(4, "t", &["a.example/1"]));
    bed.now_ms += 20_000;
    bed.once(1, 1);
    assert_eq!((bed.all(Kind::Entry).len(), bed.all(Kind::LaneSlot).len(), bed.all(Kind::DueRow).len()), (1, 0, 1));
    assert!(bed.entry(4, 0).is_some_and(|entry| entry.active), "whose time is not over");
    bed.assert_counted();
    bed.assert_discoverable();
}

#[test]
fn retry_age_does_not_count_time_under_known_holds() {
    for (held_ms, expected) in [(0, 0), (60_000, 1)] {
        let mut bed = Bed::new(Config { retry_age_max_ms: 60_000, ..config() });
        bed.accept(send(1, &["a.example/1"]));
        bed.answers.push_back(status(500));
        bed.once(1, 1);
        if held_ms > 0 {
            hold_for(&mut bed, held_ms);
            hold_for(&mut bed, held_ms / 2);
        }
        // The worker was away all the time: only what is known to have been a hold counts as one.
        bed.now_ms += 90_000;
        bed.once(2, 1);
        assert_eq!(bed.posts.len(), 1 + expected, "{held_ms}");
        let letter: Option<DeadLetter> = bed.read(&bed.env.keys.dead_letter(entry_id(1, 0)));
        assert_eq!(letter.map(|letter| letter.reason), (expected == 0).then_some(DropReason::RetryAge));
    }
}

#[test]
fn what_is_known_of_destinations_can_be_looked_at_and_goes_when_it_matters_no_more() {
    let mut bed = Bed::new(Config { max_retention_ms: 100_000, ..config() });
    hold_for(&mut bed, 50_000);
    let page = bed.model.scan(&destination_range(&bed.env, None), 10).expect("readable");
    let shown = destination_page(&bed.env, &page, bed.now());
    assert_eq!(shown.rows.len(), 1);
    assert_eq!(shown.rows[0].blocked, Some((Block::Held, bed.now().plus_ms(50_000))));
    bed.now_ms += 60_000;
    bed.once(1, 1);
    assert_eq!(bed.all(Kind::Destination).len(), 1, "there may be credit for it");
    bed.now_ms += 100_000;
    bed.once(1, 1);
    assert_eq!(bed.all(Kind::Destination), []);
}

#[test]
fn a_hold_to_come_and_a_pause_behind_a_hold_are_shown() {
    let mut bed = Bed::new(config());
    let at = |bed: &Bed, ms| bed.now().plus_ms(ms);
    let paced_until = at(&bed, 90_000);
    bed.tamper(bed.env.keys.destination(HOST), Some(Destination { paced_until, ..Destination::default() }.encode()));
    hold_for(&mut bed, 50_000);
    let later = (at(&bed, 70_000), at(&bed, 80_000));
    tell(&mut bed, HoldNotice::Hold { from: Some(later.0), until: Some(later.1) }).expect("accepted");
    let shown = |bed: &Bed| {
        let page = bed.model.scan(&destination_range(&bed.env, None), 10).expect("readable");
        destination_page(&bed.env, &page, bed.now()).rows.remove(0)
    };
    let to_come = HoldInterval { from: later.0, until: later.1, is_open: false };
    let row = shown(&bed);
    assert_eq!((row.held.map(|hold| hold.until), row.holds_to_come), (Some(at(&bed, 50_000)), vec![to_come]));
    assert!(matches!(row.blocked, Some((Block::Held, _))));
    assert_eq!(row.paced_until, Some(paced_until));
    bed.now_ms += 75_000;
    let row = shown(&bed);
    assert_eq!((row.held, row.holds_to_come, row.paced_until), (Some(to_come), Vec::new(), Some(paced_until)));
    bed.now_ms += 20_000;
    let row = shown(&bed);
    assert_eq!((row.held, row.blocked, row.paced_until), (None, None, None));
}

#[test]
fn intervals_that_overlap_are_found_by_the_doctor_and_mended() {
    let mut bed = Bed::default();
    let hold = |from, until| HoldInterval { from: start().plus_ms(from), until: start().plus_ms(until), is_open: false };
    let holds = vec![hold(10_000, 30_000), hold(0, 20_000)];
    bed.tamper(bed.env.keys.destination(HOST), Some(Destination { holds, ..Destination::default() }.encode()));
    let (report, _) = crate::doctor::examine(&mut bed, true).expect("examined");
    assert_eq!(report.diagnoses.len(), 1, "{report:?}");
    assert!(report.is_clean());
    assert_eq!(intervals(&bed), [(0, 30_000, false)]);
}

proptest! {
    /// Whatever the notices say, the intervals are canonical, and the credit is what counting instants one by one gives.
    #[test]
    fn credit_is_the_union(notices in prop::collection::vec((0..60_u64, 1..40_u64, 0..3_u8), 0..12), life in (0..40_u64, 0..80_u64)) {
        let mut bed = Bed::new(Config { hold_cap_ms: 20, ..config() });
        let mut held = [false; 400];
        for (from, length, kind) in notices {
            let now = bed.now_ms - START_MS;
            let (from_at, until_at) = (start().plus_ms(from), start().plus_ms(from + length));
            let notice = match kind {
                0 => HoldNotice::Hold { from: Some(from_at), until: Some(until_at) },
                1 => HoldNotice::Hold { from: None, until: None },
                _ => HoldNotice::Release { from: Some(from_at) },
            };
            if tell(&mut bed, notice).is_ok() {
                let range = match kind { 0 => from..from + length, 1 => now..now + 20, _ => from..400 };
                held[range.start as usize..range.end as usize].fill(kind < 2);
            }
            bed.now_ms += 3;
        }
        let destination = known(&bed);
        prop_assert_eq!(&destination.canonical_holds(), &destination.holds);
        let (from, to) = (life.0, life.0 + life.1);
        let counted = held[from as usize..to as usize].iter().filter(|held| **held).count() as u64;
        prop_assert_eq!(destination.hold_credit_ms(start().plus_ms(from), start().plus_ms(to)), counted);
    }
}

/// Whether the sweep or the doctor would find that the index leads to none of these entries.
fn assert_nothing_is_missing(bed: &mut Bed, entries: &[(u8, u32)], when: &str) {
    for (send, index) in entries {
        let repair = Command::RepairIndex(RepairIndex { id: entry_id(*send, *index) });
        assert_eq!(bed.run(repair), Err(Failure::Rejected(Rejection::NotNeeded)), "{when}: {send}.{index}");
    }
}

/// The pointer of a destination moves when somebody looks. Until then nothing is missing either.
#[test]
fn holds_pauses_and_circuits_leave_nothing_that_looks_like_a_missing_row() {
    let three = || {
        let mut bed = Bed::new(Config { breaker_failures: 2, ..config() });
        bed.accept(send(1, &["a.example/1"]));
        bed.now_ms += 2_500;
        bed.accept(send(2, &["a.example/2"]));
        bed.accept(send(3, &["a.example/3"]));
        bed
    };
    let all = [(1, 0), (2, 0), (3, 0)];

    for is_met in [false, true] {
        let mut bed = three();
        hold_for(&mut bed, 200_000);
        if is_met {
            bed.once(1, 10);
        }
        assert_nothing_is_missing(&mut bed, &all, "held");
        if is_met {
            bed.now_ms += 61_000;
            assert_nothing_is_missing(&mut bed, &all, "to be looked at again");
        }
        let mut ended = Bed::new(bed.env.config.clone());
        (ended.model, ended.now_ms) = (bed.model.clone(), bed.now_ms + 200_000);
        if !is_met {
            assert_nothing_is_missing(&mut ended, &all, "the hold ended");
        }
        release(&mut bed);
        assert_nothing_is_missing(&mut bed, &all, "released");
    }

    let mut bed = three();
    bed.answers.push_back(crate::bed::retry_after(3_000));
    bed.once(1, 1);
    let left: Vec<(u8, u32)> = all.into_iter().filter(|(send, _)| bed.entry(*send, 0).is_some()).collect();
    assert_nothing_is_missing(&mut bed, &left, "paused");
    bed.once(1, 10);
    assert_nothing_is_missing(&mut bed, &left, "paused, and looked at");
    bed.now_ms += 4_000;
    assert_nothing_is_missing(&mut bed, &left, "the pause ended");

    let mut bed = three();
    bed.answers.extend([status(503), status(503)]);
    bed.once(1, 2);
    assert_nothing_is_missing(&mut bed, &all, "the circuit opened");
    bed.once(1, 10);
    assert_nothing_is_missing(&mut bed, &all, "the circuit is open, and was met");
    bed.now_ms += bed.env.config.breaker_recovery_ms;
    assert_nothing_is_missing(&mut bed, &all, "a probe is admitted");
}
