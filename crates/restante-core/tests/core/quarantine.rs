//! Records of another version: put aside whole, counted, observed, and in nobody's way.

use restante_core::keys::Kind;
use restante_core::machine::DeliveryEnd;
use restante_core::record::{QuarantineReason, Quarantined};
use restante_core::{Effect, Observation};
use restante_kv::Value;

use crate::bed::{Bed, DAY_MS, Fault, entry_id, keyed, send};

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
