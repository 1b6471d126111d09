//! The doctor: clean where nothing is wrong, and each damage found by its own name.

use restante_core::Effect;
use restante_core::keys::Kind;
use restante_core::machine::{Diagnosis, Doctor, DoctorReport, DoctorStep, Failure, Finding};
use restante_core::record::{Counters, Entry, Lease, Record as _};
use restante_kv::{Key, StoreTime, Value};

use crate::bed::{Bed, entry_id, keyed, owner, send};

pub(crate) fn examine(bed: &mut Bed, repair: bool) -> Result<(DoctorReport, Vec<Effect>), Failure> {
    let env = bed.env.clone();
    let (mut doctor, mut step) = Doctor::begin(&env, repair);
    loop {
        match step {
            DoctorStep::Do(io) => {
                let reply = bed.execute(&doctor.about(), io);
                step = doctor.step(&env, reply, bed.local());
            }
            DoctorStep::Done(result) => return result,
        }
    }
}

fn findings(bed: &mut Bed) -> Vec<Finding> {
    let (report, _) = examine(bed, false).expect("the store answers");
    report.diagnoses.into_iter().map(|Diagnosis { finding, .. }| finding).collect()
}

/// Repairs, expects everything repaired, and expects a second look to find nothing.
fn assert_repaired(bed: &mut Bed) {
    let (report, _) = examine(bed, true).expect("the store answers");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(findings(bed), []);
    bed.assert_counted();
    bed.assert_discoverable();
}

/// A lane of three, an unkeyed send, and one with a staged payload.
fn busy() -> Bed {
    let mut bed = Bed::default();
    for number in 1..=3 {
        bed.accept(keyed(number, "thread", &["a.example/inbox"]));
    }
    bed.accept(send(4, &["a.example/inbox", "b.example/inbox"]));
    let mut large = send(5, &["c.example/inbox"]);
    large.payload = vec![7; bed.env.config.inline_bytes_max + 1].into();
    bed.accept(large);
    bed
}

fn remove_first(bed: &mut Bed, kind: Kind) {
    let (key, _) = bed.all(kind).swap_remove(0);
    bed.tamper(key, None);
}

#[test]
fn nothing_is_found_at_any_point_of_an_ordinary_life() {
    let mut bed = busy();
    assert_eq!(findings(&mut bed), []);
    bed.answers.push_back(crate::bed::status(503));
    bed.answers.push_back(crate::bed::retry_after(5_000));
    for _ in 0..4 {
        bed.once(1, 1);
        assert_eq!(findings(&mut bed), []);
    }
    bed.now_ms += 3_600_000;
    bed.once(1, 100);
    assert_eq!(findings(&mut bed), []);
    assert_eq!(bed.depth().entries, 0);
}

#[test]
fn missing_index_rows_are_found_and_put_back() {
    for kind in [Kind::DueRow, Kind::Pointer] {
        let mut bed = busy();
        bed.delete_all(kind);
        assert!(findings(&mut bed).contains(&Finding::Undiscoverable { entry: entry_id(1, 0) }));
        assert_repaired(&mut bed);
    }
}

#[test]
fn a_row_for_an_entry_that_is_gone_is_found_and_removed() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    remove_first(&mut bed, Kind::Entry);
    let counted = Counters::default();
    let recorded = Counters { entries: 1, ..counted };
    assert_eq!(findings(&mut bed), [Finding::StrayDueRow { entry: entry_id(1, 0) }, Finding::Miscounted { recorded, counted }]);
    assert_repaired(&mut bed);
}

#[test]
fn a_lane_whose_head_is_gone_is_found_and_moved_on() {
    let mut bed = busy();
    bed.tamper(bed.env.keys.entry(entry_id(1, 0)), None);
    let stuck = |it: &Finding| matches!(it, Finding::LaneStuck { order_key, .. } if &**order_key == "thread");
    assert!(findings(&mut bed).iter().any(stuck));
    assert_repaired(&mut bed);
}

#[test]
fn an_entry_that_its_lane_does_not_lead_to_is_found_and_nothing_pretends_to_repair_it() {
    let mut bed = busy();
    remove_first(&mut bed, Kind::LaneSlot);
    assert!(findings(&mut bed).iter().any(|it| matches!(it, Finding::OutsideItsLane { entry, .. } if *entry == entry_id(2, 0))));
    let (report, _) = examine(&mut bed, true).expect("the store answers");
    assert!(!report.is_clean());
}

#[test]
fn an_incomplete_payload_and_a_stray_member_are_found() {
    let incomplete = Finding::PayloadIncomplete { entry: entry_id(5, 0) };
    for kind in [Kind::PayloadChunk, Kind::Member] {
        let mut bed = busy();
        remove_first(&mut bed, kind);
        assert_eq!(findings(&mut bed), std::slice::from_ref(&incomplete));
    }
    let mut bed = busy();
    bed.tamper(bed.env.keys.entry(entry_id(5, 0)), None);
    assert!(findings(&mut bed).contains(&Finding::StrayMember { entry: entry_id(5, 0) }));
}

/// Two intents of an order key, the second behind the first, and the first half expanded.
fn with_intents() -> Bed {
    let mut bed = Bed::new(restante_core::Config { expand_entries_max: 1, chunk_bytes: 100, ..crate::bed::config() });
    for number in [1, 2] {
        let hosts = ["a.example/1", "b.example/1", "c.example/1", "d.example/1", "e.example/1"];
        bed.accept(keyed(number, "thread", &hosts));
    }
    bed.die_after(9, 16);
    bed.assert_counted();
    bed
}

#[test]
fn a_store_with_intents_is_clean() {
    assert_eq!(findings(&mut with_intents()), []);
}

#[test]
fn a_fifo_whose_head_is_gone_is_found_and_moved_on() {
    let mut bed = with_intents();
    bed.tamper(bed.env.keys.intent(crate::bed::send_id(1)), None);
    let found = findings(&mut bed);
    let stuck = |it: &Finding| matches!(it, Finding::QueueStuck { order_key } if &**order_key == "thread");
    assert!(found.iter().any(stuck), "{found:?}");
    assert!(found.iter().any(|it| matches!(it, Finding::Miscounted { .. })), "{found:?}");
    assert!(found.contains(&Finding::StrayRecipients { send: crate::bed::send_id(1) }), "{found:?}");
    let (report, _) = examine(&mut bed, true).expect("the store answers");
    assert!(report.diagnoses.iter().filter(|it| stuck(&it.finding)).all(|it| it.repaired), "{report:?}");
    assert_repaired(&mut bed);
    bed.assert_discoverable();
    bed.assert_counted();
}

#[test]
fn an_intent_that_nobody_would_find_and_one_that_lacks_recipients_are_found() {
    let mut bed = with_intents();
    bed.delete_all(Kind::Pointer);
    let id = restante_core::atoms::EntryId::of_intent(crate::bed::send_id(1));
    assert!(findings(&mut bed).contains(&Finding::Undiscoverable { entry: id }));
    let mut bed = with_intents();
    bed.tamper(bed.env.keys.recipients(crate::bed::send_id(2), 0), None);
    assert_eq!(findings(&mut bed), [Finding::IntentIncomplete { send: crate::bed::send_id(2) }]);
    let mut bed = with_intents();
    remove_first(&mut bed, Kind::IntentSlot);
    let found = findings(&mut bed);
    assert!(
        found.iter().any(|it| matches!(it, Finding::OutsideItsQueue { send, .. } if *send == crate::bed::send_id(2))),
        "{found:?}"
    );
}

#[test]
fn counters_that_do_not_say_what_is_there_are_found_and_corrected() {
    let mut bed = busy();
    bed.tamper(
        bed.env.keys.counters(2),
        Some(Counters { entries: 40, leased: -3, quarantined: 1, ..Counters::default() }.encode()),
    );
    let found = findings(&mut bed);
    assert!(matches!(found[..], [Finding::Miscounted { .. }]), "{found:?}");
    assert_repaired(&mut bed);
}

#[test]
fn counters_are_not_judged_while_others_commit() {
    let mut bed = busy();
    bed.tamper(bed.env.keys.counters(2), Some(Counters { entries: 40, ..Counters::default() }.encode()));
    bed.before("doctor-scan", |bed| bed.accept(send(9, &["z.example/inbox"])));
    let (report, _) = examine(&mut bed, true).expect("the store answers");
    assert!(report.in_motion);
    assert_eq!(report.diagnoses, []);
}

#[test]
fn what_cannot_be_read_and_what_does_not_belong_there_are_found() {
    let mut bed = busy();
    bed.make_unknown(4, 1);
    bed.tamper(bed.env.keys.marker("k9"), Some(Value::from(&[9, 9][..])));
    let mut foreign = bed.env.keys.everything().start.as_bytes().to_vec();
    foreign.push(b'?');
    bed.tamper(Key::from(foreign), Some(Value::from(&b"x"[..])));
    let found = findings(&mut bed);
    assert_eq!(found.iter().filter(|it| matches!(it, Finding::Unreadable { .. })).count(), 2, "{found:?}");
    assert_eq!(found.iter().filter(|it| matches!(it, Finding::ForeignKey { .. })).count(), 1, "{found:?}");
}

#[test]
fn a_lease_from_a_clock_far_ahead_is_found() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    let key = bed.env.keys.entry(entry_id(1, 0));
    let mut entry: Entry = bed.read(&key).expect("there");
    let expires_at = StoreTime::from_ms(bed.now_ms + 365 * 86_400_000);
    entry.lease = Some(Lease { owner: owner(1), expires_at });
    bed.tamper(key, Some(entry.encode()));
    assert!(findings(&mut bed).contains(&Finding::LeaseTooLong { entry: entry_id(1, 0) }));
}

/// A count that others outdated between the last look and the repair is no repair.
#[test]
fn a_recount_that_came_too_late_stays_a_finding() {
    let mut bed = busy();
    bed.tamper(bed.env.keys.counters(2), Some(Counters { entries: 40, ..Counters::default() }.encode()));
    bed.before("recount", |bed| bed.accept(send(9, &["z.example/inbox"])));
    let (report, _) = examine(&mut bed, true).expect("the store answers");
    assert!(report.in_motion && !report.is_clean(), "{report:?}");
    assert_repaired(&mut bed);
}
