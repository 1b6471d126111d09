//! Accepting: when ownership begins, and when it does not.

use restante_core::Rejection;
use restante_core::atoms::Bytes;
use restante_core::keys::Kind;
use restante_core::machine::{Failure, SendError, SendRequest};
use restante_core::plan::{Accept, Recipient, ResolveAccept, SetIntake};
use restante_core::record::{Body, WaitReason};
use restante_core::{Command, Effect, Observation, Outcome};

use crate::bed::{Bed, Fault, config, keyed, recipient, send, send_id};

fn rejected(rejection: Rejection) -> Result<(), SendError> {
    Err(SendError::NotAccepted(Failure::Rejected(rejection)))
}

fn set_intake(bed: &mut Bed, open: bool) -> (bool, u64) {
    match bed.run(Command::SetIntake(SetIntake { open })) {
        Ok((Outcome::Intake { open, epoch }, _)) => (open, epoch),
        other => panic!("intake came to {other:?}"),
    }
}

#[test]
fn a_small_unkeyed_accept_writes_five_rows() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    // Marker, entry, due row, pointer, counters; checks: intake, marker, counters.
    assert_eq!(bed.sizes("accept"), [(3, 5)]);
    bed.assert_counted();
    bed.assert_discoverable();
}

#[test]
fn a_keyed_direct_accept_makes_five_checks() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "thread", &["a.example/inbox"]));
    assert_eq!(bed.sizes("accept"), [(5, 6)]);
    bed.accept(keyed(2, "thread", &["a.example/inbox"]));
    assert_eq!(bed.sizes("accept")[1].0, 5);
}

#[test]
fn an_accept_reads_once() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "thread", &["a.example/inbox", "b.example/inbox"]));
    assert_eq!(bed.actions, ["accept", "accept"], "one snapshot, one commit");
}

#[test]
fn what_is_accepted_is_what_was_sent() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    let entry = bed.entry(1, 0).expect("accepted");
    assert_eq!(&*entry.inbox, "https://a.example/inbox");
    assert_eq!(entry.body, Body::Inline(Bytes::from(&b"payload 1"[..])));
    assert_eq!((entry.origin, entry.vest_at, entry.wait), (bed.now(), bed.now(), WaitReason::New));
    assert_eq!(bed.depth().entries, 1);
}

#[test]
fn the_same_request_again_is_a_duplicate_and_writes_nothing() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    let before = bed.commits.len();
    let again = SendRequest { send: send_id(9), ..send(1, &["a.example/inbox"]) };
    assert_eq!(bed.send(again).map(|(send, duplicate, _)| (send, duplicate)), Ok((send_id(1), true)));
    assert_eq!(bed.commits.len(), before);
}

#[test]
fn another_request_under_the_same_key_is_a_typed_conflict_and_writes_nothing() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    let (before, one) = (bed.commits.len(), send(1, &["a.example/inbox"]));
    for other in [
        SendRequest { payload: Bytes::from(&b"other"[..]), ..one.clone() },
        SendRequest { recipients: vec![recipient("b.example/inbox")], ..one.clone() },
        SendRequest { order_key: Some("thread".into()), ..one.clone() },
    ] {
        let result = bed.send(SendRequest { send: send_id(9), ..other }).map(|_| ());
        assert_eq!(result, rejected(Rejection::IdempotencyConflict(send_id(1))));
    }
    assert_eq!(bed.commits.len(), before);
}

/// A digest that merely appended the order key to the recipients would take these for the same request, and drop a recipient.
#[test]
fn an_order_key_does_not_pass_for_a_recipient() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "https://a.example/inbox", &["b.example/inbox"]));
    let other = send(1, &["a.example/inbox", "b.example/inbox"]);
    assert_eq!(bed.send(other).map(|_| ()), rejected(Rejection::IdempotencyConflict(send_id(1))));
}

#[test]
fn a_batch_is_accepted_whole_or_not_at_all() {
    let inboxes = ["a.example/inbox", "b.example/1", "b.example/2", "c.example/inbox"];
    let mut bed = Bed::default();
    bed.accept(send(1, &inboxes));
    assert_eq!((bed.depth().entries, bed.commits.len()), (4, 1));
    bed.assert_discoverable();

    let mut refused = Bed::default();
    for _ in 0..config().tries_max {
        refused.fault("accept", Fault::Conflict);
    }
    assert_eq!(refused.send(send(1, &inboxes)).map(|_| ()), Err(SendError::NotAccepted(Failure::Contention)));
    assert!(refused.model.is_empty());
}

#[test]
fn closed_intake_refuses_and_an_open_one_accepts_again() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    assert_eq!(set_intake(&mut bed, false), (false, 1));
    assert_eq!(set_intake(&mut bed, false), (false, 1), "closing twice changes nothing");
    assert_eq!(bed.send(send(2, &["a.example/inbox"])).map(|_| ()), rejected(Rejection::IntakeClosed));
    // A repetition of what was accepted before is still told so.
    assert_eq!(bed.send(send(1, &["a.example/inbox"])).map(|(_, duplicate, _)| duplicate), Ok(true));
    assert!(!bed.depth().is_drained());
    assert_eq!(bed.once(1, 10).report.processed, 1);
    assert!(bed.depth().is_drained());
    assert_eq!(set_intake(&mut bed, true), (true, 2));
    bed.accept(send(2, &["a.example/inbox"]));
}

#[test]
fn an_accept_that_meets_a_close_in_the_middle_does_not_commit() {
    let mut bed = Bed::default();
    // The accept has read that intake is open; the close commits before it does.
    bed.before("accept", |bed| bed.before("accept", |bed| _ = set_intake(bed, false)));
    assert_eq!(bed.send(send(1, &["a.example/inbox"])).map(|_| ()), rejected(Rejection::IntakeClosed));
    assert_eq!(bed.depth().entries, 0);
}

#[test]
fn requests_beyond_the_documented_bounds_are_refused_without_a_read() {
    let long = "x".repeat(513);
    let one = send(1, &["a.example/inbox"]);
    let with = |change: fn(&mut SendRequest, &str)| {
        let mut request = one.clone();
        change(&mut request, &long);
        request
    };
    let refused = [
        with(|it, _| it.recipients.clear()),
        with(|it, _| {
            it.recipients = (0..5).map(|n| recipient(&format!("h{n}.example/inbox"))).collect();
            it.fanout = restante_core::machine::FanoutChoice::Skip;
        }),
        with(|it, _| it.recipients = vec![recipient("a.example/inbox"); 2]),
        with(|it, _| it.idempotency_key = "".into()),
        with(|it, long| it.idempotency_key = long.into()),
        with(|it, _| it.order_key = Some("".into())),
        with(|it, long| it.order_key = Some(long.into())),
        with(|it, long| it.recipients = vec![Recipient { inbox: "i".into(), destination: long.into(), deadline: None }]),
        with(|it, long| {
            it.recipients = vec![Recipient { inbox: long.repeat(5).into(), destination: "d".into(), deadline: None }]
        }),
        with(|it, long| it.signing = restante_core::atoms::Sealed::new(long.repeat(17).into_bytes())),
    ];
    for request in refused {
        let mut bed = Bed::default();
        let result = bed.send(request);
        assert!(matches!(result, Err(SendError::NotAccepted(Failure::Rejected(Rejection::Invalid(_))))), "{result:?}");
        assert!(bed.actions.is_empty());
    }
}

/// Zero bytes double in a key: two names of the greatest length would give a lane whose next place has no key within the limit,
/// and whose head could then never be settled.
#[test]
fn names_that_would_grow_in_a_key_are_refused() {
    let mut bed = Bed::default();
    let name: String = "\0".repeat(512);
    let to = Recipient { inbox: "https://a.example/inbox".into(), destination: name.clone().into(), deadline: None };
    for request in [
        SendRequest { order_key: Some(name.into()), ..send(1, &["a.example/inbox"]) },
        SendRequest { recipients: vec![to], ..send(2, &["a.example/inbox"]) },
    ] {
        let result = bed.send(request);
        assert!(matches!(result, Err(SendError::NotAccepted(Failure::Rejected(Rejection::Invalid(_))))), "{result:?}");
    }
}

#[test]
fn the_longest_names_and_the_most_recipients_fit_the_smallest_store() {
    let mut bed = Bed::default();
    let recipients = (0..4)
        .map(|n| Recipient {
            inbox: format!("{n}{}", "i".repeat(2047)).into(),
            destination: "d".repeat(512).into(),
            deadline: None,
        })
        .collect();
    let request = SendRequest {
        idempotency_key: "\0".repeat(512).into(),
        order_key: Some("o".repeat(512).into()),
        recipients,
        payload: Bytes::from(vec![7; 4096]),
        signing: restante_core::atoms::Sealed::new(vec![8; 8192]),
        ..send(1, &[])
    };
    bed.accept(request);
    assert_eq!(bed.once(1, 10).report.processed, 4);
    bed.assert_counted();
}

#[test]
fn an_inline_payload_over_the_bound_must_be_staged() {
    let mut bed = Bed::default();
    let payload = Bytes::from(vec![0; 4097]);
    let accept = Accept {
        send: send_id(1),
        idempotency_key: "k".into(),
        recipients: vec![recipient("a.example/inbox")],
        order_key: None,
        payload_digest: Accept::digest_payload(&payload),
        body: Body::Inline(payload),
        signing: restante_core::atoms::Sealed::default(),
        slot: 0,
    };
    for body in [accept.body.clone(), Body::Staged { chunk_count: 0 }] {
        let command = Command::Accept(Accept { body, ..accept.clone() });
        assert!(matches!(bed.run(command), Err(Failure::Rejected(Rejection::Invalid(_)))));
    }
}

fn resolve(bed: &mut Bed, number: u8) -> Option<restante_core::atoms::SendId> {
    let command = ResolveAccept { send: send_id(number), idempotency_key: format!("key-{number}").into() };
    match bed.run(Command::ResolveAccept(command)) {
        Ok((Outcome::Resolved(send), _)) => send,
        other => panic!("resolving came to {other:?}"),
    }
}

#[test]
fn resolving_finds_an_accept_that_happened() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    assert_eq!(resolve(&mut bed, 1), Some(send_id(1)));
}

#[test]
fn resolving_an_accept_that_did_not_happen_keeps_it_from_happening_late() {
    let mut bed = Bed::new(restante_core::Config { tries_max: 1, ..config() });
    bed.fault("accept", Fault::Late);
    assert_eq!(bed.send(send(1, &["a.example/inbox"])).map(|_| ()), Err(SendError::Unknown));
    let late = bed.take_late();
    assert_eq!(resolve(&mut bed, 1), None);
    // The commit that was under way arrives now.
    for txn in late {
        assert!(bed.model.commit(&txn).is_err(), "it must meet the marker");
    }
    assert_eq!(resolve(&mut bed, 1), None);
    // Sent again on purpose, it is accepted.
    bed.accept(send(1, &["a.example/inbox"]));
    assert_eq!(resolve(&mut bed, 1), Some(send_id(1)));
}

/// The sender is still trying when somebody resolves: what that one was told must stay true.
#[test]
fn resolving_an_accept_that_is_still_being_tried_ends_it() {
    for fault in [Fault::Lost, Fault::Committed] {
        let mut bed = Bed::default();
        bed.fault("accept", fault);
        // Actions of the accept: read, commit (without an answer), pause; then the resolve; then it reads again.
        bed.before("accept", |bed| bed.before("accept", |bed| bed.before("accept", |bed| _ = resolve(bed, 1))));
        let result = bed.send(send(1, &["a.example/inbox"])).map(|_| ());
        let expected = if fault == Fault::Lost { rejected(Rejection::Aborted) } else { Ok(()) };
        assert_eq!(result, expected, "{fault:?}");
        assert_eq!(resolve(&mut bed, 1).is_some(), result.is_ok(), "{fault:?}");
        bed.assert_counted();
    }
}

#[test]
fn an_accept_tells_of_itself_once_and_wakes_each_destination_once() {
    let mut bed = Bed::default();
    let (_, _, effects) = bed.send(send(1, &["a.example/1", "a.example/2", "b.example/1"])).expect("accepted");
    let wake = |host: &str| Effect::Wake { destination: format!("https://{host}").into() };
    let accepted = Effect::Observed(Observation::Accepted { send: send_id(1) });
    assert_eq!(effects, [accepted, wake("a.example"), wake("b.example")]);
    assert_eq!(bed.all(Kind::Entry).len(), 3);
}
