//! Order: one lane for an order key and a destination, its head first, through retries, drops and losses.

use restante_core::keys::Kind;
use restante_core::machine::DeliveryEnd;
use restante_core::plan::{RepairLane, Settled};
use restante_core::record::{Lane, Record, WaitReason};
use restante_core::{Command, Effect, Observation, Rejection};
use restante_kv::Value;

use crate::bed::{Bed, Fault, entry_id, keyed, status};

fn lane(bed: &Bed) -> Option<Lane> {
    bed.read(&bed.env.keys.lane("thread", "https://a.example"))
}

fn posted(bed: &Bed) -> Vec<(u8, u32)> {
    bed.posts.iter().map(|post| (post.entry.send.as_bytes()[0], post.entry.index)).collect()
}

fn three_sent() -> Bed {
    let mut bed = Bed::default();
    for number in 1..=3 {
        bed.accept(keyed(number, "thread", &["a.example/inbox"]));
    }
    bed
}

#[test]
fn only_the_head_of_a_lane_has_a_due_row() {
    let bed = three_sent();
    assert_eq!(bed.all(Kind::DueRow).len(), 1);
    let second = bed.entry(2, 0).expect("accepted");
    assert_eq!((second.active, second.wait), (false, WaitReason::Lane));
    bed.assert_discoverable();
}

#[test]
fn a_retrying_head_holds_its_lane() {
    let mut bed = three_sent();
    bed.answers.extend([status(500), status(500)]);
    for _ in 0..2 {
        bed.once(1, 10);
        bed.now_ms += 10_000;
    }
    assert_eq!(posted(&bed), [(1, 0), (1, 0)]);
    bed.once(1, 10);
    assert_eq!(posted(&bed), [(1, 0), (1, 0), (1, 0), (2, 0), (3, 0)]);
    bed.assert_counted();
}

#[test]
fn a_terminal_settle_makes_four_checks_and_activates_its_successor_in_the_same_commit() {
    let mut bed = three_sent();
    bed.once(1, 1);
    assert_eq!(bed.sizes("settle")[0].0, 4, "entry, lane, successor, counters");
    let second = bed.entry(2, 0).expect("waits");
    assert_eq!((second.active, second.wait, second.vest_at), (true, WaitReason::New, bed.now()));
    assert_eq!(lane(&bed).expect("two are left").head_entry, entry_id(2, 0));
    bed.assert_discoverable();
}

#[test]
fn the_last_of_a_lane_deletes_it() {
    let mut bed = three_sent();
    assert_eq!(bed.once(1, 10).report.processed, 3);
    assert_eq!((bed.all(Kind::Lane).len(), bed.all(Kind::LaneSlot).len(), bed.all(Kind::Entry).len()), (0, 0, 0));
    // The next one begins a new lane.
    bed.accept(keyed(4, "thread", &["a.example/inbox"]));
    assert_eq!(bed.once(1, 10).report.processed, 1);
}

#[test]
fn a_head_that_is_given_up_frees_its_lane() {
    let mut bed = three_sent();
    bed.answers.push_back(status(404));
    assert_eq!(bed.once(1, 10).report.processed, 3);
    assert_eq!(posted(&bed), [(1, 0), (2, 0), (3, 0)]);
    bed.assert_counted();
}

#[test]
fn two_recipients_of_one_send_share_a_lane_in_their_order() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "thread", &["a.example/1", "b.example/1", "a.example/2"]));
    bed.accept(keyed(2, "thread", &["a.example/1"]));
    assert_eq!((bed.all(Kind::Lane).len(), bed.all(Kind::LaneSlot).len(), bed.all(Kind::DueRow).len()), (2, 2, 2));
    bed.assert_discoverable();
    bed.once(1, 10);
    let at_a: Vec<_> = posted(&bed).into_iter().filter(|posted| *posted != (1, 1)).collect();
    assert_eq!(at_a, [(1, 0), (1, 2), (2, 0)]);
}

#[test]
fn an_append_that_meets_a_settle_of_the_last_does_not_strand() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "thread", &["a.example/inbox"]));
    // The settle has planned to delete the lane; the append commits first.
    bed.before("settle", |bed| {
        bed.before("settle", |bed| bed.before("settle", |bed| bed.accept(keyed(2, "thread", &["a.example/inbox"]))));
    });
    assert_eq!(bed.once(1, 10).report.processed, 2);
    bed.assert_counted();
}

#[test]
fn a_head_that_vanished_is_passed_by_the_sweep_however_many_follow_it() {
    let mut bed = three_sent();
    // The second and third are unreadable: the sweep puts them aside; then the first is delivered.
    bed.make_unknown(2, 0);
    bed.make_unknown(3, 0);
    bed.accept(keyed(4, "thread", &["a.example/inbox"]));
    bed.delete_all(Kind::Pointer);
    bed.once(1, 0);
    let ran = bed.once(1, 10);
    assert_eq!(bed.depth().quarantined, 2);
    assert!(!ran.report.more);
    bed.now_ms += 60_000;
    let ran = bed.once(1, 10);
    assert_eq!(posted(&bed), [(1, 0), (4, 0)], "one sweep passes both places");
    let repaired = Effect::Observed(Observation::LaneRepaired { destination: "https://a.example".into() });
    assert!(ran.effects.contains(&repaired));
    bed.assert_counted();
}

/// Sequence: an older worker promoted a successor that it could not read; a newer one can read it and finds it inactive.
#[test]
fn a_head_that_was_promoted_unread_is_activated_by_the_sweep() {
    let mut bed = three_sent();
    // A fresh sweep, so that the next run does not meet the unreadable record before it is promoted.
    bed.once(1, 0);
    let key = bed.env.keys.entry(entry_id(2, 0));
    let readable = bed.model.get(&key).expect("accepted").value.clone();
    bed.make_unknown(2, 0);
    bed.once(1, 1);
    bed.tamper(key, Some(readable));
    assert!(!bed.entry(2, 0).expect("kept").active);
    for _ in 0..3 {
        bed.once(1, 10);
        bed.now_ms += 60_000;
    }
    assert_eq!(posted(&bed), [(1, 0), (2, 0), (3, 0)]);
    assert!(bed.all(Kind::DueRow).is_empty(), "the row that stood for nothing is gone too");
    bed.assert_counted();
}

/// Refusing to settle would deliver the head again with every lease.
#[test]
fn a_lane_that_cannot_be_read_does_not_keep_its_head_from_being_settled() {
    for value in [&[9_u8][..], &[1, 0xFF][..]] {
        let mut bed = three_sent();
        let key = bed.env.keys.lane("thread", "https://a.example");
        let readable = bed.model.get(&key).expect("exists").value.clone();
        bed.tamper(key.clone(), Some(Value::from(value)));
        let ran = bed.once(1, 1);
        assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Delivered))]);
        // Whoever can read it moves it on.
        bed.tamper(key, Some(readable));
        bed.once(1, 10);
        bed.now_ms += 60_000;
        bed.once(1, 10);
        assert_eq!(posted(&bed), [(1, 0), (2, 0), (3, 0)]);
        bed.assert_counted();
    }
}

#[test]
fn a_lane_whose_next_place_is_missing_is_reported_and_keeps_nothing_else_from_being_proved() {
    let mut bed = three_sent();
    bed.delete_all(Kind::LaneSlot);
    assert_eq!(bed.once(1, 1).ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Delivered))]);
    let repair = RepairLane { order_key: "thread".into(), destination: "https://a.example".into() };
    let result = bed.run(Command::RepairLane(repair));
    assert!(matches!(result, Err(restante_core::machine::Failure::Inconsistent { .. })), "{result:?}");
    assert!(!bed.once(1, 10).report.more);
}

#[test]
fn repairing_a_sound_lane_is_not_needed() {
    let mut bed = three_sent();
    let repair = RepairLane { order_key: "thread".into(), destination: "https://a.example".into() };
    let refused = Err(restante_core::machine::Failure::Rejected(Rejection::NotNeeded));
    assert_eq!(bed.run(Command::RepairLane(repair)), refused);
    let none = RepairLane { order_key: "none".into(), destination: "https://a.example".into() };
    assert_eq!(bed.run(Command::RepairLane(none)), refused);
}

#[test]
fn an_ambiguous_terminal_settle_moves_the_lane_on_once() {
    for fault in [Fault::Committed, Fault::Lost, Fault::Late] {
        let mut bed = three_sent();
        bed.fault("settle", fault);
        assert_eq!(bed.once(1, 10).report.processed, 3, "{fault:?}");
        assert_eq!(posted(&bed), [(1, 0), (2, 0), (3, 0)], "{fault:?}");
        assert!(bed.all(Kind::Lane).is_empty());
        bed.assert_counted();
    }
}

#[test]
fn an_entry_behind_the_head_is_not_claimed() {
    let mut bed = three_sent();
    let owner = crate::bed::owner(1);
    let claim = restante_core::plan::Claim { id: entry_id(2, 0), owner, slot: 0 };
    assert_eq!(bed.run(Command::Claim(claim)), Err(restante_core::machine::Failure::Rejected(Rejection::NotDue)));
    assert!(Lane::decode(&Value::from(&[][..])).is_err());
}
