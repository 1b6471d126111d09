//! Records that another version wrote, of every kind: nothing that this one does overwrites or removes them.

use restante_core::atoms::EntryId;
use restante_core::keys::Kind;
use restante_core::machine::{DeliveryEnd, Failure, FanoutChoice, Finding, SendError, SendRequest};
use restante_core::plan::{BeginSweep, DropQuarantined, HoldNotice, Revive, SetHold, SetIntake, Settled, StageBegin, Wake};
use restante_core::record::{QuarantineReason, Quarantined, Record, Unreadable};
use restante_core::{Command, Config};
use restante_kv::{Key, Value};

use crate::bed::{Bed, DAY_MS, config, entry_id, keyed, owner, retry_after, send, send_id, status};
use crate::doctor::examine;

/// What a record of these says stands in its key, or in the entry that it stands for: it goes with that one.
const INDEX: [Kind; 3] = [Kind::DueRow, Kind::Pointer, Kind::Member];
/// These are put aside whole.
const PUT_ASIDE: [Kind; 2] = [Kind::Entry, Kind::Intent];

fn hold(bed: &mut Bed, host: &str, ms: u64) -> Result<(), Failure> {
    let notice = HoldNotice::Hold { from: None, until: Some(bed.now().plus_ms(ms)) };
    bed.run(Command::SetHold(SetHold { destination: format!("https://{host}").into(), notice })).map(drop)
}

fn large(number: u8, inboxes: &[&str]) -> SendRequest {
    SendRequest { payload: vec![7; 9_000].into(), ..send(number, inboxes) }
}

/// A store that holds something of every kind.
fn full() -> Bed {
    let mut bed = Bed::new(Config { expand_entries_max: 1, breaker_failures: 2, max_retention_ms: DAY_MS, ..config() });
    // Given up, as a delivery and as an intent.
    bed.accept(send(1, &["gone.example/inbox"]));
    bed.answers.push_back(status(410));
    bed.once(1, 1);
    for number in [2, 3, 4] {
        let hosts = ["a.example/1", "b.example/1", "a.example/2"];
        bed.accept(SendRequest { fanout: FanoutChoice::Force, ..keyed(number, "fanout", &hosts) });
    }
    bed.now_ms += DAY_MS + 1;
    bed.once(1, 1);
    // Put aside, as a delivery and as an intent.
    bed.accept(send(5, &["a.example/inbox"]));
    bed.make_unknown(5, 0);
    bed.once(2, 20);
    // Under way, in lanes and in FIFOs, at destinations of which something is known.
    for number in [6, 7, 8] {
        bed.accept(keyed(number, "thread", &["c.example/inbox", "d.example/inbox"]));
    }
    bed.answers.extend([retry_after(90_000), status(503)]);
    bed.once(3, 2);
    for number in [10, 11, 12] {
        let hosts = ["e.example/1", "e.example/2"];
        bed.accept(SendRequest { fanout: FanoutChoice::Force, ..keyed(number, "more", &hosts) });
    }
    bed.accept(large(13, &["f.example/inbox"]));
    bed.run(Command::StageBegin(StageBegin { send: send_id(14) })).expect("staged");
    hold(&mut bed, "f.example", 600_000).expect("held");
    bed.run(Command::SetIntake(SetIntake { open: false })).expect("closed");
    bed.run(Command::SetIntake(SetIntake { open: true })).expect("open");
    for kind in Kind::ALL {
        assert!(!bed.all(kind).is_empty(), "nothing is of the kind {kind:?}");
    }
    bed
}

/// Makes every record of these kinds one of another version, and returns them.
fn make_unknown(bed: &mut Bed, kinds: &[Kind]) -> Vec<(Key, Value)> {
    let all: Vec<(Key, Value)> = kinds.iter().flat_map(|kind| bed.all(*kind)).collect();
    let unknown = |value: &Value| Value::from([&[9][..], &value.as_bytes()[1..]].concat());
    let all: Vec<(Key, Value)> = all.iter().map(|(key, value)| (key.clone(), unknown(value))).collect();
    for (key, value) in &all {
        bed.tamper(key.clone(), Some(value.clone()));
    }
    all
}

/// Everything that anybody can ask of a backlog, and more time than anything is kept.
fn ask_everything(bed: &mut Bed) {
    let commands = |bed: &Bed| {
        let aside: Vec<_> = bed
            .all(Kind::Quarantined)
            .iter()
            .filter_map(|(key, _)| bed.env.keys.read_entry(Kind::Quarantined, key).ok())
            .collect();
        let of_aside = aside.into_iter().flat_map(|id| {
            [Command::Revive(Revive { id, slot: 0 }), Command::DropQuarantined(DropQuarantined { id, early: false, slot: 1 })]
        });
        let wakes = [6, 7, 8, 13].map(|number| Command::Wake(Wake { id: entry_id(number, 0) }));
        let others = [
            Command::BeginSweep(BeginSweep { owner: owner(9) }),
            Command::SetIntake(SetIntake { open: false }),
            Command::SetIntake(SetIntake { open: true }),
            Command::StageBegin(StageBegin { send: send_id(14) }),
        ];
        others.into_iter().chain(wakes).chain(of_aside).collect::<Vec<_>>()
    };
    let mut next = 100;
    for (round, pass_ms) in [(0, 0), (1, 30_000), (2, 120_000), (3, DAY_MS), (4, 8 * DAY_MS), (5, 30 * DAY_MS)] {
        bed.now_ms += pass_ms;
        bed.answers.extend([status(503), retry_after(10_000), status(410)]);
        bed.once(20 + round, 40);
        for command in commands(bed) {
            let _refused = bed.run(command);
        }
        for host in ["a.example", "c.example", "e.example", "f.example"] {
            let _refused = hold(bed, host, 60_000);
        }
        // Repeated, and new.
        for request in [keyed(6, "thread", &["c.example/inbox", "d.example/inbox"]), large(13, &["f.example/inbox"])] {
            next += 1;
            let _refused = bed.send(SendRequest { send: send_id(next), ..request });
        }
        let _refused = bed.send(keyed(40 + round, "thread", &["c.example/inbox"]));
        let _refused = bed.send(keyed(50 + round, "more", &["e.example/1"]));
        let _refused = bed.send(large(60 + round, &["g.example/inbox"]));
        bed.once(30 + round, 40);
        let _refused = examine(bed, true);
    }
}

#[test]
fn a_record_of_another_version_stays_as_it_is_whatever_is_asked_of_the_backlog() {
    for kind in Kind::ALL.into_iter().filter(|kind| !INDEX.contains(kind)) {
        let mut bed = full();
        let unknown = make_unknown(&mut bed, &[kind]);
        ask_everything(&mut bed);
        for (key, value) in unknown {
            let history = &bed.history[&key];
            let since = history.iter().position(|held| held.as_ref().is_some_and(|held| held.value == value)).expect("written");
            let after = &history[since + 1..];
            if !PUT_ASIDE.contains(&kind) {
                assert!(after.is_empty(), "{kind:?}: {after:?}");
                continue;
            }
            assert!(matches!(after, [None]), "{kind:?}: {after:?}");
            let id = match bed.env.keys.read_entry(kind, &key) {
                Ok(id) => id,
                Err(_) => EntryId::of_intent(bed.env.keys.read_send(kind, &key).expect("an intent's key")),
            };
            let aside = bed.history[&bed.env.keys.quarantined(id)].iter().flatten();
            let is_whole = |aside: Quarantined| {
                aside.record.as_slice() == value.as_bytes() && aside.reason == QuarantineReason::UnknownFormat(9)
            };
            assert!(aside.map(|held| Quarantined::decode(&held.value).expect("ours")).any(is_whole), "{kind:?}");
        }
    }
}

#[test]
fn with_all_of_them_of_another_version_nothing_is_written_over_and_nothing_is_posted() {
    let mut bed = full();
    let kept: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| !INDEX.contains(kind)).collect();
    let unknown = make_unknown(&mut bed, &kept);
    let posts = bed.posts.len();
    ask_everything(&mut bed);
    for (key, value) in unknown {
        let is_kept = bed.env.keys.kind_of(&key).is_some_and(|kind| !PUT_ASIDE.contains(&kind));
        assert!(!is_kept || bed.model.get(&key).is_some_and(|found| found.value == value), "{key:?}");
    }
    assert_eq!(bed.posts.len(), posts);
}

#[test]
fn what_goes_to_a_destination_that_only_another_version_can_read_is_free_again_when_its_lease_ends() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox", "b.example/inbox"]));
    let key = bed.env.keys.destination("https://a.example");
    bed.tamper(key.clone(), Some(Value::from(&[9][..])));
    let ran = bed.once(1, 10);
    let is_typed = |end: &DeliveryEnd| matches!(end, DeliveryEnd::Yielded(Failure::Inconsistent { key: at, why: Unreadable::UnknownFormat(9) }) if *at == key);
    assert_eq!(ran.ended.iter().filter(|(_, end)| is_typed(end)).count(), 1, "{:?}", ran.ended);
    assert_eq!(bed.posts.len(), 1, "the other one's");
    bed.tamper(key.clone(), None);
    assert!(bed.once(2, 10).ended.is_empty());
    bed.now_ms += bed.env.config.lease_ms;
    assert_eq!(bed.once(2, 10).ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Delivered))]);
    bed.assert_counted();
}

#[test]
fn what_is_over_goes_also_at_a_destination_that_only_another_version_can_read() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.tamper(bed.env.keys.destination("https://a.example"), Some(Value::from(&[9][..])));
    bed.now_ms += 7 * DAY_MS;
    bed.once(1, 10);
    assert!(bed.entry(1, 0).is_none() && bed.posts.is_empty());
    assert_eq!(bed.all(Kind::DeadLetter).len(), 1);
}

#[test]
fn where_a_counter_cannot_be_read_everything_that_needs_it_changes_nothing_and_says_why() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    for slot in bed.env.keys.all_counters() {
        bed.tamper(slot, Some(Value::from(&[9][..])));
    }
    let before: Vec<(Key, Value)> = bed.all(Kind::Entry);
    let ran = bed.once(1, 10);
    assert!(ran.report.more && bed.posts.is_empty());
    let is_typed = |failure: &Failure| matches!(failure, Failure::Inconsistent { why: Unreadable::UnknownFormat(9), .. });
    assert!(matches!(&ran.ended[..], [(_, DeliveryEnd::Yielded(why)), ..] if is_typed(why)), "{:?}", ran.ended);
    let refused = bed.send(send(2, &["b.example/inbox"])).expect_err("it counts");
    assert!(matches!(&refused, SendError::NotAccepted(why) if is_typed(why)), "{refused:?}");
    assert_eq!(bed.all(Kind::Entry), before);
}

/// What it cannot read it cannot count: a correction would be a guess.
#[test]
fn the_doctor_corrects_no_counters_beside_records_that_it_cannot_count() {
    for kind in [Kind::Counters, Kind::Quarantined] {
        let mut bed = full();
        // An intent that is put aside, whose recipients are counted as long as it is kept.
        let key = bed.env.keys.intent(send_id(11));
        let value = bed.model.get(&key).expect("it waits").value.clone();
        bed.tamper(key, Some(Value::from([&[8][..], &value.as_bytes()[1..]].concat())));
        bed.once(9, 1);
        bed.now_ms += 120_000;
        bed.once(9, 1);
        let counters = bed.all(Kind::Counters);
        make_unknown(&mut bed, &[kind]);
        let (report, _) = examine(&mut bed, true).expect("the store answers");
        let miscounted = report.diagnoses.iter().find(|it| matches!(it.finding, Finding::Miscounted { .. }));
        assert!(miscounted.is_none(), "{kind:?}: {miscounted:?}");
        assert!(report.diagnoses.iter().any(|it| matches!(it.finding, Finding::Unreadable { .. })), "{kind:?}");
        assert!(kind == Kind::Counters || bed.all(Kind::Counters) == counters);
    }
}

#[test]
fn the_doctor_does_not_say_of_a_place_that_it_cannot_read_that_it_leads_elsewhere() {
    for kind in [Kind::Lane, Kind::LaneSlot, Kind::OrderKeyQueue, Kind::IntentSlot] {
        let mut bed = full();
        make_unknown(&mut bed, &[kind]);
        let (report, _) = examine(&mut bed, false).expect("the store answers");
        let is_outside = |it: &Finding| matches!(it, Finding::OutsideItsLane { .. } | Finding::OutsideItsQueue { .. });
        assert!(report.diagnoses.iter().all(|it| !is_outside(&it.finding)), "{kind:?}: {report:?}");
    }
}
