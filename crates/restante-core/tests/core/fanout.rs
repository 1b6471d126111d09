//! Fanout: staged, published, expanded chunk by chunk; what the cursor says is what happened.

use restante_core::atoms::{Bytes, EntryId};
use restante_core::keys::Kind;
use restante_core::machine::{ExpansionEnd, Failure, FanoutChoice, SendError, SendRequest};
use restante_core::plan::{ClaimIntent, DropQuarantined, Expand, Recipient, Revive};
use restante_core::record::{
    Body, DeadIntent, DropReason, Entry, Intent, Marker, MarkerState, OrderKeyQueue, QuarantineReason, Quarantined,
    RecipientChunk, Record,
};
use restante_core::{Command, Config, Effect, Observation, Outcome, Rejection};
use restante_kv::{Mutation, Value};

use crate::bed::{Bed, DAY_MS, Fault, config, entry_id, owner, recipient, send, send_id, status};

fn many(number: u8, count: usize) -> SendRequest {
    let recipients = (0..count).map(|n| recipient(&format!("h{}.example/{n}", n % 3))).collect();
    SendRequest { recipients, ..send(number, &[]) }
}

fn keyed_many(number: u8, count: usize) -> SendRequest {
    SendRequest { order_key: Some("thread".into()), ..many(number, count) }
}

/// Two entries a commit, so that a handful of recipients is several chunks.
fn small() -> Config {
    Config { expand_entries_max: 2, chunk_bytes: 150, ..config() }
}

fn intent(bed: &Bed, number: u8) -> Option<Intent> {
    bed.read(&bed.env.keys.intent(send_id(number)))
}

fn rejected<T>(rejection: Rejection) -> Result<T, Failure> {
    Err(Failure::Rejected(rejection))
}

#[test]
fn a_send_beyond_the_direct_bound_is_one_small_commit_after_its_stage() {
    let mut bed = Bed::new(small());
    bed.accept(many(1, 7));
    let (name, publish) = bed.commits.last().expect("a commit");
    assert_eq!((*name, publish.checks.len(), publish.writes.len()), ("publish", 4, 6));
    let depth = bed.depth();
    assert_eq!((depth.entries, depth.intents, depth.pending_recipients), (0, 1, 7));
    assert!(bed.all(Kind::Stage).is_empty() && bed.all(Kind::Entry).is_empty());
    let marker: Marker = bed.read(&bed.env.keys.marker("key-1")).expect("accepted");
    assert!(matches!(marker.state, MarkerState::Accepted { recipient_count: 7, .. }));
    let chunks: Vec<RecipientChunk> =
        bed.all(Kind::RecipientChunk).iter().map(|(_, value)| RecipientChunk::decode(value).expect("readable")).collect();
    assert!(chunks.len() > 1);
    assert_eq!(chunks.iter().map(|chunk| chunk.recipients.len()).sum::<usize>(), 7);
    bed.assert_counted();
    bed.assert_discoverable();
}

#[test]
fn a_keyed_publish_checks_five_records() {
    let mut bed = Bed::new(small());
    bed.accept(keyed_many(1, 7));
    assert_eq!(bed.sizes("publish"), [(5, 7)]);
    bed.accept(keyed_many(2, 7));
    assert_eq!(bed.sizes("publish")[1], (5, 6), "one behind another has no index rows, and a place");
}

#[test]
fn every_recipient_is_delivered_to_once_and_nothing_is_left() {
    let mut bed = Bed::new(small());
    bed.accept(many(1, 7));
    let report = bed.once(1, 100).report;
    assert!(!report.more);
    let mut inboxes: Vec<String> = bed.posts.iter().map(|post| post.inbox.to_string()).collect();
    inboxes.sort();
    let mut expected: Vec<String> = many(1, 7).recipients.iter().map(|to| to.inbox.to_string()).collect();
    expected.sort();
    assert_eq!(inboxes, expected);
    assert!(bed.posts.iter().all(|post| post.payload == many(1, 7).payload));
    // The payload is kept once, in a chunk: what is left of it goes with the next sweeps.
    bed.now_ms += 61_000;
    bed.once(2, 100);
    for kind in [Kind::Intent, Kind::RecipientChunk, Kind::PayloadChunk, Kind::Member, Kind::Entry] {
        assert!(bed.all(kind).is_empty(), "{kind:?}");
    }
    bed.assert_counted();
}

#[test]
fn each_chunk_moves_the_cursor_in_its_own_commit() {
    let mut bed = Bed::new(small());
    bed.accept(many(1, 7));
    bed.once(1, 100);
    let moved = bed.commits.iter().filter(|(name, _)| *name == "expand").map(|(_, txn)| {
        let made = txn.writes.iter().filter(|write| bed.env.keys.kind_of(&write.key) == Some(Kind::Entry)).count();
        let cursor = txn.writes.iter().find_map(|write| match &write.mutation {
            Mutation::Put(value) if bed.env.keys.kind_of(&write.key) == Some(Kind::Intent) => {
                Some(Intent::decode(value).expect("readable").cursor)
            }
            _ => None,
        });
        assert_eq!(txn.checks.len(), 2, "the intent and a counter");
        (made, cursor)
    });
    let moved: Vec<_> = moved.collect();
    assert_eq!(moved.iter().map(|(made, _)| made).sum::<usize>(), 7);
    assert_eq!(moved.last().expect("commits").1, None, "the last one removes the intent");
    assert!(moved.iter().all(|(made, _)| *made <= 2));
}

/// Ids say which entry is which; they do not keep one from being made again after it was settled. The cursor does.
#[test]
fn a_replayed_chunk_makes_nothing_again_after_its_entries_were_settled() {
    let mut bed = Bed::new(small());
    bed.accept(many(1, 6));
    let claim = Command::ClaimIntent(ClaimIntent { send: send_id(1), owner: owner(9) });
    let Ok((Outcome::IntentClaimed(claimed), _)) = bed.run(claim) else { panic!("claimed") };
    let expand = Expand {
        send: send_id(1),
        owner: owner(9),
        fence: claimed.fence,
        from: 0,
        recipients: many(1, 6).recipients[..2].to_vec(),
        ends_chunk: false,
        order_key: None,
        release: false,
        slot: 0,
    };
    assert!(bed.run(Command::Expand(expand.clone())).is_ok());
    bed.once(1, 2);
    assert_eq!(bed.all(Kind::Entry).len(), 0, "both were delivered");
    assert_eq!(bed.run(Command::Expand(expand)).map(drop), rejected(Rejection::NotNeeded));
    assert_eq!((bed.all(Kind::Entry).len(), intent(&bed, 1).expect("there").cursor), (0, 2));
}

#[test]
fn after_a_crash_another_worker_goes_on_at_the_cursor() {
    for actions in 0..60 {
        let mut bed = Bed::new(small());
        bed.accept(many(1, 7));
        bed.die_after(1, actions);
        bed.assert_counted();
        bed.now_ms += 61_000;
        bed.once(2, 100);
        bed.now_ms += 61_000;
        bed.once(3, 100);
        bed.assert_counted();
        assert!(bed.all(Kind::Entry).is_empty() && bed.all(Kind::Intent).is_empty(), "after {actions} actions");
        let mut made: Vec<EntryId> =
            bed.history.keys().filter_map(|key| bed.env.keys.read_entry(Kind::Entry, key).ok()).collect();
        made.sort();
        assert_eq!(made, (0..7).map(|index| entry_id(1, index)).collect::<Vec<_>>());
        let created = |versions: &Vec<Option<restante_kv::Versioned>>| {
            let before = std::iter::once(None).chain(versions.iter().map(Option::as_ref));
            before.zip(versions).filter(|(before, after)| before.is_none() && after.is_some()).count()
        };
        let is_entry = |key: &restante_kv::Key| bed.env.keys.kind_of(key) == Some(Kind::Entry);
        assert!(bed.history.iter().filter(|(key, _)| is_entry(key)).all(|(_, versions)| created(versions) == 1));
    }
}

#[test]
fn commits_of_unknown_outcome_move_the_cursor_once() {
    for fault in [Fault::Committed, Fault::Lost, Fault::Late, Fault::Conflict, Fault::Unavailable] {
        for what in ["publish", "claim-intent", "expand"] {
            let mut bed = Bed::new(small());
            bed.fault(what, fault);
            bed.accept(keyed_many(1, 5));
            for _ in 0..4 {
                bed.once(1, 100);
                bed.now_ms += 61_000;
            }
            bed.assert_counted();
            assert_eq!(bed.posts.len(), 5, "{what} {fault:?}");
        }
    }
}

#[test]
fn a_conflict_halves_the_chunk_and_success_grows_it_back() {
    let mut bed = Bed::new(Config { expand_entries_max: 8, ..config() });
    bed.fault("expand", Fault::Conflict);
    bed.accept(many(1, 40));
    bed.once(1, 1);
    let made =
        |txn: &restante_kv::Txn| txn.writes.iter().filter(|write| bed.env.keys.kind_of(&write.key) == Some(Kind::Entry)).count();
    let sizes: Vec<usize> = bed.commits.iter().filter(|(name, _)| *name == "expand").map(|(_, txn)| made(txn)).collect();
    assert_eq!(sizes, [8, 4, 8, 8, 8, 8, 4]);
}

#[test]
fn an_entry_in_the_way_parks_the_intent_whole_and_its_recipients_stay_counted() {
    let mut bed = Bed::new(small());
    bed.accept(keyed_many(1, 6));
    bed.accept(keyed_many(2, 5));
    // Somebody else's doing: the fourth recipient's entry is there already.
    bed.accept(send(9, &["z.example/i"]));
    let intruder = Entry { active: false, ..bed.entry(9, 0).expect("there") };
    bed.once(8, 0);
    bed.tamper(bed.env.keys.entry(entry_id(1, 3)), Some(intruder.encode()));
    bed.once(1, 1);
    let id = EntryId::of_intent(send_id(1));
    let aside: Quarantined = bed.read(&bed.env.keys.quarantined(id)).expect("put aside");
    assert_eq!(aside.reason, QuarantineReason::ExpansionConflict);
    let parked = Intent::decode(&aside.record.as_slice().into()).expect("whole");
    assert!(parked.cursor <= 3 && parked.total == 6);
    let depth = bed.depth();
    assert_eq!(depth.intents, 1, "the one behind it");
    assert_eq!(depth.pending_recipients, i64::from(parked.remaining()) + 5);
    // Its order key is free: the next intent expands.
    assert!(intent(&bed, 2).expect("waiting").active);
    let removed = bed.env.keys.entry(entry_id(1, 3));
    bed.tamper(removed, None);
    let (made_before, pending) = (bed.posts.len(), parked.remaining());
    bed.once(2, 1_000);
    assert!(intent(&bed, 2).is_none());
    // An operator brings it back, at the cursor it had.
    assert!(bed.run(Command::Revive(Revive { id, slot: 0 })).is_ok());
    assert_eq!(intent(&bed, 1).expect("back").cursor, parked.cursor);
    bed.now_ms += 61_000;
    bed.once(3, 1_000);
    assert_eq!(bed.posts.len(), 12);
    assert!(made_before < 12 && pending > 0);
    bed.assert_counted();
}

#[test]
fn missing_recipients_park_the_intent_and_the_end_of_quarantine_drops_them_visibly() {
    let mut bed = Bed::new(small());
    bed.accept(many(1, 6));
    bed.tamper(bed.env.keys.recipients(send_id(1), 1), None);
    bed.once(1, 1);
    let id = EntryId::of_intent(send_id(1));
    let aside: Quarantined = bed.read(&bed.env.keys.quarantined(id)).expect("put aside");
    assert_eq!(aside.reason, QuarantineReason::RecipientsUnreadable);
    assert!(bed.depth().pending_recipients > 0 && bed.depth().intents == 0);
    bed.once(2, 100);
    let early = Command::DropQuarantined(DropQuarantined { id, early: false, slot: 0 });
    assert_eq!(bed.run(early).map(drop), rejected(Rejection::NotDue));
    bed.now_ms += 8 * DAY_MS;
    let effects = bed.once(3, 100).effects;
    assert!(effects.contains(&Effect::Observed(Observation::QuarantineDropped { entry: id })));
    assert_eq!(bed.depth().pending_recipients, 0);
    bed.assert_counted();
}

/// Put aside by the sweep, which does not know its place: that stays, and is its own again.
#[test]
fn an_intent_that_is_revived_before_its_turn_waits_at_its_place_and_nothing_waits_for_a_sweep() {
    let mut bed = Bed::new(small());
    for number in 1..=3 {
        bed.accept(keyed_many(number, 5));
    }
    let key = bed.env.keys.intent(send_id(2));
    let readable = bed.model.get(&key).expect("there").value.clone();
    bed.tamper(key, Some(Value::from([&[9], &readable.as_bytes()[1..]].concat())));
    bed.once(1, 0);
    let id = EntryId::of_intent(send_id(2));
    let aside = bed.env.keys.quarantined(id);
    let mut record: Quarantined = bed.read(&aside).expect("put aside");
    record.record = Bytes::from(readable.as_bytes());
    bed.tamper(aside, Some(record.encode()));
    assert!(bed.run(Command::Revive(Revive { id, slot: 0 })).is_ok());
    assert!(!intent(&bed, 2).expect("back").active);
    bed.assert_counted();
    bed.assert_discoverable();
    bed.once(1, 1_000);
    let first_of = |number| bed.posts.iter().position(|post| post.entry == entry_id(number, 0));
    assert!(
        bed.posts.len() == 15 && first_of(1) < first_of(2) && first_of(2) < first_of(3),
        "in accepted order, without a sweep"
    );
    assert!(bed.all(Kind::IntentSlot).is_empty(), "and no place is left behind");
    bed.assert_counted();
}

#[test]
fn an_intent_of_another_version_is_put_aside_with_its_count_and_releases_its_order_key() {
    let mut bed = Bed::new(small());
    bed.accept(keyed_many(1, 6));
    bed.accept(keyed_many(2, 5));
    let key = bed.env.keys.intent(send_id(1));
    let mut bytes = bed.model.get(&key).expect("there").value.as_bytes().to_vec();
    bytes[0] = 9;
    bed.tamper(key, Some(Value::from(bytes)));
    bed.once(1, 1_000);
    assert_eq!(bed.depth().pending_recipients, 6);
    assert!(intent(&bed, 2).is_none(), "the one behind it was expanded");
    assert_eq!(bed.posts.len(), 5);
    bed.assert_counted();
}

#[test]
fn order_holds_behind_an_unexpanded_intent() {
    let mut bed = Bed::new(small());
    bed.accept(keyed_many(1, 6));
    // A keyed direct send behind it becomes an intent of its own; an unkeyed one does not wait.
    bed.accept(crate::bed::keyed(2, "thread", &["h0.example/0"]));
    bed.accept(send(3, &["h0.example/0"]));
    bed.accept(crate::bed::keyed(4, "other", &["h0.example/0"]));
    let depth = bed.depth();
    assert_eq!((depth.intents, depth.pending_recipients, depth.entries), (2, 7, 2));
    assert!(matches!(intent(&bed, 2).expect("an intent of one").body, Body::Inline(_)));
    assert!(!intent(&bed, 2).expect("there").active);
    bed.assert_discoverable();
    for number in 1..6 {
        bed.once(number, 1_000);
        bed.assert_counted();
    }
    let of_thread: Vec<u8> = bed
        .posts
        .iter()
        .filter(|post| &*post.destination == "https://h0.example")
        .map(|post| post.entry.send.as_bytes()[0])
        .filter(|send| [1, 2].contains(send))
        .collect();
    assert_eq!(of_thread, [1, 1, 2]);
    assert_eq!(bed.posts.len(), 9);
}

#[test]
fn an_empty_fifo_lets_a_keyed_direct_send_expand_at_once() {
    let mut bed = Bed::new(small());
    bed.accept(keyed_many(1, 5));
    bed.once(1, 1_000);
    assert!(bed.read::<OrderKeyQueue>(&bed.env.keys.order_key("thread")).is_none());
    bed.accept(crate::bed::keyed(2, "thread", &["h0.example/0"]));
    assert_eq!((bed.depth().intents, bed.depth().entries), (0, 1));
}

#[test]
fn an_intent_that_expires_unexpanded_is_given_up_with_a_trace_that_counts() {
    let mut bed = Bed::new(small());
    bed.accept(keyed_many(1, 6));
    bed.accept(keyed_many(2, 6));
    bed.now_ms += 7 * DAY_MS;
    let ended = bed.once(1, 1_000);
    assert!(ended.expanded.contains(&(send_id(1), ExpansionEnd::Dropped)));
    let dropped = Observation::IntentDropped { send: send_id(1), recipient_count: 6, reason: DropReason::Expired };
    assert!(ended.effects.contains(&Effect::Observed(dropped)));
    let trace: DeadIntent = bed.read(&bed.env.keys.dead_intent(send_id(1))).expect("a trace");
    assert_eq!((trace.cursor, trace.total, trace.reason), (0, 6, DropReason::Expired));
    assert_eq!((bed.depth().intents, bed.depth().pending_recipients), (0, 0));
    assert!(bed.posts.is_empty());
    bed.assert_counted();
    // The trace is kept for a finite time, and the recipients are collected.
    bed.now_ms += 8 * DAY_MS;
    bed.once(2, 1_000);
    assert!(bed.all(Kind::DeadIntent).is_empty() && bed.all(Kind::RecipientChunk).is_empty());
}

#[test]
fn entries_keep_the_origin_of_their_intent() {
    let mut bed = Bed::new(small());
    bed.accept(many(1, 6));
    let origin = intent(&bed, 1).expect("there").origin;
    bed.now_ms += DAY_MS;
    bed.answers.extend([status(500); 6]);
    bed.once(1, 3);
    assert!(
        bed.entry(1, 0).is_some_and(|entry| entry.origin == origin)
            || bed.entry(1, 1).is_some_and(|entry| entry.origin == origin)
    );
}

#[test]
fn what_was_staged_and_never_published_is_collected() {
    let mut bed = Bed::new(Config { tries_max: 1, ..small() });
    bed.fault("publish", Fault::Unavailable);
    assert!(matches!(bed.send(many(1, 6)), Err(SendError::NotAccepted(Failure::Store(_)))));
    assert!(!bed.all(Kind::RecipientChunk).is_empty() && !bed.all(Kind::PayloadChunk).is_empty());
    assert_eq!((bed.depth().intents, bed.depth().pending_recipients), (0, 0));
    // Not while the stage stands.
    bed.once(1, 10);
    assert!(!bed.all(Kind::RecipientChunk).is_empty());
    bed.now_ms += 11 * 60_000;
    bed.once(2, 10);
    bed.now_ms += 61_000;
    bed.once(3, 10);
    for kind in [Kind::Stage, Kind::RecipientChunk, Kind::PayloadChunk] {
        assert!(bed.all(kind).is_empty(), "{kind:?}");
    }
}

#[test]
fn a_sweep_takes_nothing_from_an_intent_that_waits() {
    let mut bed = Bed::new(small());
    bed.accept(keyed_many(1, 6));
    bed.accept(keyed_many(2, 6));
    let before = bed.all(Kind::RecipientChunk).len();
    for number in 1..4 {
        bed.now_ms += 61_000;
        bed.once(number, 0);
    }
    assert_eq!(bed.all(Kind::RecipientChunk).len(), before);
    bed.delete_all(Kind::DueRow);
    bed.delete_all(Kind::Pointer);
    bed.now_ms += 61_000;
    bed.once(9, 0);
    bed.assert_discoverable();
    bed.now_ms += 61_000;
    bed.once(10, 1_000);
    bed.once(11, 1_000);
    assert_eq!(bed.posts.len(), 12);
}

#[test]
fn a_repeated_fanout_is_one_send_and_a_misused_key_is_refused() {
    let mut bed = Bed::new(small());
    bed.accept(many(1, 6));
    let again = SendRequest { send: send_id(9), ..many(1, 6) };
    assert_eq!(bed.send(again).map(|(send, duplicate, _)| (send, duplicate)), Ok((send_id(1), true)));
    let other = SendRequest { send: send_id(8), payload: Bytes::from(&b"other"[..]), ..many(1, 6) };
    assert!(matches!(bed.send(other), Err(SendError::NotAccepted(Failure::Rejected(Rejection::IdempotencyConflict(_))))));
    assert_eq!(bed.depth().intents, 1);
}

#[test]
fn a_choice_forces_or_forbids() {
    let mut bed = Bed::default();
    bed.accept(SendRequest { fanout: FanoutChoice::Force, ..send(1, &["a.example/i"]) });
    assert_eq!((bed.depth().intents, bed.depth().entries), (1, 0));
    let result = bed.send(SendRequest { fanout: FanoutChoice::Skip, ..many(2, 5) });
    assert!(matches!(result, Err(SendError::NotAccepted(Failure::Rejected(Rejection::Invalid(_))))));
    bed.accept(SendRequest { fanout: FanoutChoice::Skip, ..many(3, 4) });
    assert_eq!(bed.depth().entries, 4);
    let twice = SendRequest { recipients: vec![recipient("a.example/i"); 5], ..send(4, &[]) };
    assert!(matches!(bed.send(twice), Err(SendError::NotAccepted(Failure::Rejected(Rejection::Invalid(_))))));
}

#[test]
fn a_claim_is_given_back_after_a_while_so_that_others_get_their_turn() {
    let mut bed = Bed::new(small());
    bed.accept(many(1, 50));
    let ended = bed.once(1, 1);
    assert_eq!(ended.expanded, [(send_id(1), ExpansionEnd::GivenBack)]);
    let left = intent(&bed, 1).expect("there");
    assert!(left.lease.is_none() && left.cursor > 20 && left.vest_at <= bed.now());
    bed.assert_counted();
    bed.assert_discoverable();
}

#[test]
fn the_longest_names_fit_the_smallest_store() {
    let mut bed = Bed::default();
    let to = |n: usize| Recipient {
        inbox: format!("{n}{}", "i".repeat(2040)).into(),
        destination: format!("{n:0512}").into(),
        deadline: None,
    };
    let request = SendRequest {
        order_key: Some("o".repeat(512).into()),
        recipients: (0..200).map(to).collect(),
        signing: restante_core::atoms::Sealed::new(vec![8; 8192]),
        ..send(1, &[])
    };
    bed.accept(SendRequest { idempotency_key: "second".into(), send: send_id(2), ..request.clone() });
    bed.accept(request);
    for number in 0..30 {
        bed.once(number, 1_000);
    }
    assert_eq!(bed.posts.len(), 400);
    bed.assert_counted();
}

#[test]
fn a_hundred_thousand_recipients() {
    let mut bed = Bed::default();
    let recipients = (0..100_000).map(|n| recipient(&format!("h{n}.example/inbox"))).collect();
    bed.accept(SendRequest { recipients, ..send(1, &[]) });
    assert_eq!((bed.depth().intents, bed.depth().pending_recipients), (1, 100_000));
    let staged = bed.sizes("stage-recipients");
    assert!(staged.len() < 20, "{} commits", staged.len());
    bed.once(1, 4);
    let left = intent(&bed, 1).expect("there");
    assert!(left.cursor > 2_000);
    bed.assert_counted();
}

#[test]
fn a_journal_and_an_inspection_show_neither_payload_nor_signing_reference_of_an_intent() {
    let mut bed = Bed::default();
    bed.accept(keyed_many(1, 5));
    let secret = SendRequest {
        payload: Bytes::from(&b"TOP-SECRET"[..]),
        signing: restante_core::atoms::Sealed::new(&b"KEY-SECRET"[..]),
        ..crate::bed::keyed(2, "thread", &["h0.example/0"])
    };
    bed.accept(secret);
    let key = bed.env.keys.intent(send_id(2));
    let value = bed.model.get(&key).expect("there").value.clone();
    let is_hidden = |value: &Value| !value.as_bytes().windows(6).any(|window| window == b"SECRET");
    assert!(!is_hidden(&value));
    let redacted = restante_core::record::redact(Kind::Intent, &value);
    assert!(is_hidden(&redacted) && redacted.len() == value.len());
    let same = |value: &Value| Intent::decode(value).map(|it| (it.cursor, it.total, it.place, it.fence, it.origin));
    assert_eq!(same(&redacted), same(&value));
    let mut unknown = value.as_bytes().to_vec();
    unknown[0] = 9;
    let unknown = restante_core::record::redact(Kind::Intent, &Value::from(unknown));
    assert!(is_hidden(&unknown) && Intent::remaining_of(unknown.as_bytes()) == Some(1));
    let page = bed.model.scan(&restante_core::machine::intent_range(&bed.env, None), 10).expect("readable");
    let shown = restante_core::machine::intent_page(&bed.env, &page);
    // Every field, by name: a new one has to be looked at here.
    let restante_core::machine::IntentRow {
        send,
        expanded,
        total,
        origin: _,
        retention_end_at: _,
        vest_at: _,
        fence: _,
        lease: _,
        place,
        active,
    } = &shown.rows[1];
    assert_eq!((*send, *expanded, *total, *active, place.is_some()), (send_id(2), 0, 1, false, true));
    assert!(!format!("{shown:?} {:?}", intent(&bed, 2)).contains("SECRET"));
}
