//! Records of another version: put aside whole, counted, observed, and in nobody's way.

use restante_core::atoms::Bytes;
use restante_core::keys::Kind;
use restante_core::machine::{DeliveryEnd, Failure};
use restante_core::plan::{Claim, DropQuarantined, Revive};
use restante_core::record::{FORMAT, QuarantineReason, Quarantined, Record as _, Unreadable, WaitReason};
use restante_core::{Command, Effect, Observation, Outcome, Rejection};
use restante_kv::Value;

use crate::bed::{Bed, DAY_MS, Fault, entry_id, keyed, owner, send};

fn put_aside(bed: &Bed, send: u8) -> Option<Quarantined> {
    bed.read(&bed.env.keys.quarantined(entry_id(send, 0)))
}

#[test]
fn an_unknown_format_found_through_its_due_row_is_put_aside_whole_and_frees_its_lane() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "thread", &["a.example/inbox"]));
    bed.accept(keyed(2, "thread", &["a.example/inbox"]));
    let bytes = bed.make_unknown(1, 0);
    let ran = bed.once(1, 1);
    assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Quarantined)]);
    let record = put_aside(&bed, 1).expect("put aside");
    assert_eq!((record.reason, record.record.as_slice()), (QuarantineReason::UnknownFormat(9), bytes.as_bytes()));
    assert!(bed.posts.is_empty(), "never delivered");
    assert!(bed.entry(2, 0).expect("waits").active, "its successor moves up in the same commit");
    let reason = record.reason;
    assert!(ran.effects.contains(&Effect::Observed(Observation::Quarantined { entry: entry_id(1, 0), reason })));
    bed.assert_counted();
    bed.assert_discoverable();
    assert!(!bed.once(1, 10).report.more);
}

#[test]
fn without_a_due_row_the_sweep_puts_it_aside_and_repairs_its_lane() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "thread", &["a.example/inbox"]));
    bed.accept(keyed(2, "thread", &["a.example/inbox"]));
    bed.make_unknown(1, 0);
    bed.delete_all(Kind::DueRow);
    let ran = bed.once(1, 10);
    assert!(put_aside(&bed, 1).is_some());
    assert_eq!(bed.posts.len(), 1);
    assert_eq!(bed.posts[0].entry, entry_id(2, 0));
    assert!(!ran.report.more);
    bed.assert_counted();
}

/// The sweep does not know the due row of a record it cannot read. The row must not be found for ever.
#[test]
fn a_due_row_that_stands_for_nothing_is_removed_when_it_is_found() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    // Its due row lies in the future; the sweep comes first.
    bed.answers.push_back(crate::bed::retry_after(90_000));
    bed.once(1, 1);
    bed.make_unknown(1, 0);
    bed.now_ms += 60_000;
    bed.once(1, 10);
    assert_eq!((put_aside(&bed, 1).is_some(), bed.all(Kind::DueRow).len()), (true, 1));
    bed.now_ms += 31_000;
    let ran = bed.once(1, 10);
    assert_eq!((ran.report.more, ran.report.processed), (false, 0));
    assert!(bed.all(Kind::DueRow).is_empty());
    bed.assert_counted();
}

#[test]
fn damaged_bytes_are_put_aside_too() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    let key = bed.env.keys.entry(entry_id(1, 0));
    bed.tamper(key, Some(Value::from(&[1, b'w', 0xFF][..])));
    assert_eq!(bed.once(1, 1).ended, [(entry_id(1, 0), DeliveryEnd::Quarantined)]);
    assert_eq!(put_aside(&bed, 1).expect("put aside").reason, QuarantineReason::Corrupt);
    bed.assert_counted();
}

#[test]
fn a_leased_record_of_another_version_is_counted_out_exactly() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    crate::claim::claim(&mut bed, 1).expect("due");
    bed.make_unknown(1, 0);
    bed.assert_counted();
    bed.now_ms += 60_000;
    assert_eq!(bed.once(2, 1).ended, [(entry_id(1, 0), DeliveryEnd::Quarantined)]);
    bed.assert_counted();
}

#[test]
fn a_record_that_becomes_readable_again_is_left_alone() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    let key = bed.env.keys.entry(entry_id(1, 0));
    let readable = bed.model.get(&key).expect("accepted").value.clone();
    bed.make_unknown(1, 0);
    bed.before("quarantine", move |bed| bed.tamper(key, Some(readable)));
    let ran = bed.once(1, 10);
    assert!(put_aside(&bed, 1).is_none());
    assert_eq!(bed.posts.len(), 1);
    assert!(!ran.report.more);
    bed.assert_counted();
}

#[test]
fn quarantine_is_kept_for_its_retention_and_dropped_with_an_observation() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.make_unknown(1, 0);
    bed.once(1, 10);
    bed.now_ms += 7 * DAY_MS - 1;
    assert!(bed.once(1, 10).effects.is_empty());
    assert!(put_aside(&bed, 1).is_some());
    bed.now_ms += 60_000;
    let dropped = Effect::Observed(Observation::QuarantineDropped { entry: entry_id(1, 0) });
    assert_eq!(bed.once(1, 10).effects, [dropped]);
    assert!(put_aside(&bed, 1).is_none());
    bed.assert_counted();
}

#[test]
fn an_ambiguous_quarantine_or_drop_happens_and_is_told_once() {
    for fault in [Fault::Committed, Fault::Lost, Fault::Late] {
        let mut bed = Bed::default();
        bed.accept(send(1, &["a.example/inbox"]));
        bed.make_unknown(1, 0);
        bed.fault("quarantine", fault);
        bed.fault("drop-quarantined", fault);
        let ran = bed.once(1, 1);
        assert_eq!(ran.ended, [(entry_id(1, 0), DeliveryEnd::Quarantined)], "{fault:?}");
        assert_eq!(ran.effects.len(), 1, "{fault:?}");
        bed.assert_counted();
        bed.now_ms += 8 * DAY_MS;
        assert_eq!(bed.once(1, 10).effects.len(), 1, "{fault:?}");
        assert_eq!(bed.depth().quarantined, 0, "{fault:?}");
    }
}

/// What the version that put a record aside could not read, as the version that can read it finds it.
fn make_readable(bed: &mut Bed, send: u8) {
    let key = bed.env.keys.quarantined(entry_id(send, 0));
    let mut record: Quarantined = bed.read(&key).expect("put aside");
    let mut bytes = record.record.as_slice().to_vec();
    bytes[0] = FORMAT;
    record.record = Bytes::from(bytes);
    bed.tamper(key, Some(record.encode()));
}

fn revive(bed: &mut Bed, send: u8) -> Result<Outcome, Failure> {
    bed.run(Command::Revive(Revive { id: entry_id(send, 0), slot: 0 })).map(|(outcome, _)| outcome)
}

#[test]
fn a_revived_delivery_goes_in_front_of_its_lane_and_keeps_origin_and_token() {
    let mut bed = Bed::default();
    for number in 1..=3 {
        bed.accept(keyed(number, "thread", &["a.example/inbox"]));
    }
    crate::claim::claim(&mut bed, 1).expect("due");
    let before = bed.entry(1, 0).expect("leased");
    bed.make_unknown(1, 0);
    bed.now_ms += 60_000;
    assert_eq!(bed.once(1, 1).ended, [(entry_id(1, 0), DeliveryEnd::Quarantined)]);
    make_readable(&mut bed, 1);
    assert_eq!(revive(&mut bed, 1), Ok(Outcome::Done));
    let after = bed.entry(1, 0).expect("is back");
    assert_eq!((after.origin, after.fence, after.lease), (before.origin, before.fence, None));
    assert!(after.active && !bed.entry(2, 0).expect("waits").active);
    bed.assert_counted();
    bed.assert_discoverable();
    bed.posts.clear();
    assert!(!bed.once(1, 10).report.more);
    let posted: Vec<_> = bed.posts.iter().map(|post| post.entry).collect();
    assert_eq!(posted, [entry_id(1, 0), entry_id(2, 0), entry_id(3, 0)]);
    bed.assert_counted();
}

#[test]
fn a_revived_delivery_finds_its_lane_empty_or_has_none() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "thread", &["a.example/inbox"]));
    bed.accept(send(2, &["a.example/inbox"]));
    bed.make_unknown(1, 0);
    bed.make_unknown(2, 0);
    bed.once(1, 10);
    for number in [1, 2] {
        make_readable(&mut bed, number);
        assert_eq!(revive(&mut bed, number), Ok(Outcome::Done));
    }
    bed.assert_counted();
    bed.once(1, 10);
    assert_eq!((bed.posts.len(), bed.depth().entries), (2, 0));
}

#[test]
fn nothing_is_revived_past_a_head_that_is_being_delivered() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "thread", &["a.example/inbox"]));
    bed.accept(keyed(2, "thread", &["a.example/inbox"]));
    bed.make_unknown(1, 0);
    bed.once(1, 1);
    bed.run(Command::Claim(Claim { id: entry_id(2, 0), owner: owner(2), slot: 0 })).expect("due");
    make_readable(&mut bed, 1);
    assert_eq!(revive(&mut bed, 1), Err(Failure::Rejected(Rejection::Taken)));
    bed.assert_counted();
}

/// The second of three is put aside by the sweep, which does not know its lane: its place stays.
fn second_put_aside() -> Bed {
    let mut bed = Bed::default();
    for number in 1..=3 {
        bed.accept(keyed(number, "thread", &["a.example/inbox"]));
    }
    bed.make_unknown(2, 0);
    bed.once(1, 0);
    assert!(put_aside(&bed, 2).is_some() && bed.posts.is_empty());
    make_readable(&mut bed, 2);
    bed
}

fn posted(bed: &Bed) -> Vec<u8> {
    bed.posts.iter().map(|post| post.entry.send.as_bytes()[0]).collect()
}

#[test]
fn what_is_revived_before_its_lane_came_to_its_place_waits_there_and_nothing_waits_for_a_sweep() {
    let mut bed = second_put_aside();
    assert_eq!(revive(&mut bed, 2), Ok(Outcome::Done));
    let back = bed.entry(2, 0).expect("is back");
    assert_eq!((back.active, back.wait), (false, WaitReason::Lane));
    bed.assert_counted();
    bed.assert_discoverable();
    // No time passes, and no sweep is due.
    assert_eq!(bed.once(1, 10).report.processed, 3);
    assert_eq!(posted(&bed), [1, 2, 3], "in accepted order");
    assert_eq!((bed.all(Kind::Lane).len(), bed.all(Kind::LaneSlot).len()), (0, 0), "and no place is left behind");
    bed.assert_counted();
}

#[test]
fn it_takes_its_place_also_while_the_head_is_being_delivered() {
    let mut bed = second_put_aside();
    crate::claim::claim(&mut bed, 1).expect("due");
    assert_eq!(revive(&mut bed, 2), Ok(Outcome::Done));
    bed.now_ms += 60_000;
    bed.once(2, 10);
    assert_eq!(posted(&bed), [1, 2, 3]);
    bed.assert_counted();
}

/// The lane moves on to the place while the revive is under way: it is planned again, and finds itself the head.
#[test]
fn a_lane_that_reaches_the_place_meanwhile_is_gone_on_with() {
    let mut bed = second_put_aside();
    bed.before("revive", |bed| {
        bed.before("revive", |bed| {
            bed.before("revive", |bed| {
                bed.once(1, 1);
            });
        });
    });
    assert_eq!(revive(&mut bed, 2), Ok(Outcome::Done));
    assert!(bed.entry(2, 0).expect("is back").active);
    bed.assert_discoverable();
    bed.once(1, 10);
    assert_eq!(posted(&bed), [1, 2, 3]);
    bed.assert_counted();
}

#[test]
fn what_is_put_aside_again_after_its_revive_is_no_different() {
    let mut bed = second_put_aside();
    for _ in 0..2 {
        assert_eq!(revive(&mut bed, 2), Ok(Outcome::Done));
        bed.make_unknown(2, 0);
        bed.now_ms += 60_000;
        bed.once(1, 0);
        assert!(put_aside(&bed, 2).is_some());
        make_readable(&mut bed, 2);
    }
    assert_eq!(revive(&mut bed, 2), Ok(Outcome::Done));
    bed.once(1, 10);
    assert_eq!(posted(&bed), [1, 2, 3]);
    bed.assert_counted();
}

#[test]
fn reviving_extends_no_retention() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.make_unknown(1, 0);
    bed.once(1, 1);
    make_readable(&mut bed, 1);
    bed.now_ms += bed.env.config.max_retention_ms;
    if revive(&mut bed, 1).is_ok() {
        bed.once(1, 10);
    }
    assert!(bed.posts.is_empty(), "no POST after retention");
    bed.assert_counted();
}

#[test]
fn what_still_cannot_be_read_stays_aside_until_it_is_dropped() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.make_unknown(1, 0);
    bed.once(1, 1);
    let why = Unreadable::UnknownFormat(9);
    assert_eq!(revive(&mut bed, 1), Err(Failure::Rejected(Rejection::StillUnreadable(why))));
    let drop = |early| Command::DropQuarantined(DropQuarantined { id: entry_id(1, 0), early, slot: 0 });
    assert_eq!(bed.run(drop(false)).map(|_| ()), Err(Failure::Rejected(Rejection::NotDue)));
    let (_, effects) = bed.run(drop(true)).expect("dropped");
    assert_eq!(effects, [Effect::Observed(Observation::QuarantineDropped { entry: entry_id(1, 0) })]);
    assert_eq!(revive(&mut bed, 1), Err(Failure::Rejected(Rejection::Gone)));
    bed.assert_counted();
}
