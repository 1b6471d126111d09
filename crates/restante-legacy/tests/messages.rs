//! The codec: what it takes apart, what it leaves alone, and what it never does.

use proptest::prelude::*;
use restante_core::machine::OldMessage;
use restante_core::plan::Recipient;
use restante_legacy::codec::{LegacyMessage, Malformed, OutboxMessage, decode};
use restante_legacy::{HandedOver, LegacyQueue, MemoryQueue, block_on, deliveries_of, message_of, old_delivery, old_message};
use serde_json::Value;

const OUTBOX: &str = r#"{"type":"outbox","id":"5c1b7f0e-8d53-4c1e-9a3f-0a2f0a7f9c11","baseUrl":"https://here.example/","keys":[{"keyId":"https://here.example/u#main-key","privateKey":{"kty":"RSA","d":"SECRET"}}],"activity":{"type":"Create", "id":"https://here.example/c/1"},"activityId":"https://here.example/c/1","activityType":"https://www.w3.org/ns/activitystreams#Create","inbox":"https://there.example:8443/inbox","sharedInbox":true,"actorIds":["https://there.example/u/a"],"started":"2026-01-02T03:04:05.678Z","attempt":3,"headers":{"x-a":"b"},"orderingKey":"note-1\nhttps://there.example:8443","circuitHeld":true,"circuitHeldSince":"2026-01-02T03:00:00Z","traceContext":{"traceparent":"00-ab-cd-01"},"fromTomorrow":[1,2.50,"x"]}"#;
const FANOUT: &str = r#"{"type":"fanout","id":"f1","baseUrl":"https://here.example/","keys":[{"keyId":"k","privateKey":{"d":"SECRET"}}],"inboxes":{"https://b.example/inbox":{"actorIds":["https://b.example/1"],"sharedInbox":false},"https://a.example/inbox":{"actorIds":[],"sharedInbox":true}},"activity":{"type":"Note"},"activityType":"Note","collectionSync":"https://here.example/followers","orderingKey":"note-1","normalizeExistingProofs":true,"traceContext":{}}"#;

/// Scheme, host and port, for inboxes as these tests have them.
fn recipient_of(inbox: &str) -> Option<Recipient> {
    let rest = inbox.strip_prefix("https://")?;
    let host = rest.split('/').next()?;
    Some(Recipient { inbox: inbox.into(), destination: format!("https://{host}").into(), deadline: None })
}

fn outbox(text: &str) -> OutboxMessage {
    match decode(text.as_bytes()) {
        Ok(LegacyMessage::Outbox(outbox)) => outbox,
        other => panic!("{other:?}"),
    }
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn a_delivery_is_taken_apart() {
    let message = outbox(OUTBOX);
    assert_eq!(&**message.inbox(), "https://there.example:8443/inbox");
    assert_eq!(message.activity(), r#"{"type":"Create", "id":"https://here.example/c/1"}"#, "byte for byte");
    assert_eq!(message.attempt(), 3);
    assert_eq!(message.order_key(), Some("note-1"));
    assert_eq!(message.circuit_held_since(), Some("2026-01-02T03:00:00Z"));
    assert_eq!(message.keys()[0].private_key.expose(), r#"{"kty":"RSA","d":"SECRET"}"#);
    let delivery = old_delivery(&message, &recipient_of).expect("it has an inbox");
    assert_eq!(&*delivery.to.destination, "https://there.example:8443");
    assert_eq!((delivery.failure_count, delivery.order_key.as_deref()), (3, Some("note-1")));
    insta::assert_snapshot!(delivery.idempotency_key(), @"legacy/5044f2901e23f44e086585b5c2bbb209");
}

#[test]
fn unknown_fields_survive_and_an_attempt_changes_nothing_else() {
    let message = outbox(OUTBOX);
    assert_eq!(json(&message.encode()), json(OUTBOX.as_bytes()));
    let mut expected = json(OUTBOX.as_bytes());
    expected["attempt"] = 4.into();
    let next = message.with_attempt(4);
    assert_eq!(json(&next.encode()), expected);
    assert!(String::from_utf8(next.encode()).expect("text").contains(r#"[1,2.50,"x"]"#), "byte for byte");
}

#[test]
fn nothing_secret_is_printed() {
    let (message, fanout) = (outbox(OUTBOX), decode(FANOUT.as_bytes()).expect("a message"));
    for shown in [format!("{message:?}"), format!("{:?}", message.keys()), format!("{fanout:?}")] {
        assert!(!shown.contains("SECRET") && !shown.contains("Create"), "{shown}");
    }
}

#[test]
fn the_order_key_is_what_stands_before_the_origin() {
    let with = |key: &str| {
        let text = serde_json::json!({"type":"outbox","id":"1","inbox":"https://a.example/i","activity":{},"orderingKey":key});
        outbox(&text.to_string()).order_key().map(str::to_owned)
    };
    assert_eq!(with("a\nb\nhttps://a.example").as_deref(), Some("a\nb"));
    assert_eq!(with("plain").as_deref(), Some("plain"));
}

#[test]
fn what_is_none_of_ours_says_what_it_is() {
    for kind in ["inbox", "task", "something new"] {
        match decode(serde_json::json!({"type": kind, "x": 1}).to_string().as_bytes()) {
            Ok(LegacyMessage::Other { kind: found }) => assert_eq!(found, kind),
            other => panic!("{other:?}"),
        }
    }
    let message = LegacyMessage::Other { kind: "task".into() };
    assert_eq!(old_message(&message, &recipient_of), OldMessage::Other);
}

#[test]
fn what_is_malformed_says_where_and_repeats_nothing() {
    for (text, expected) in [
        ("", Malformed::NotAnObject { line: 1, column: 1 }),
        (r#""SECRET""#, Malformed::NotAnObject { line: 1, column: 8 }),
        (r#"{"type":"outbox"}"#, Malformed::Missing { field: "id" }),
        (r#"{"type":"outbox","id":1}"#, Malformed::Wrong { field: "id", expected: "a string" }),
        (r#"{"type":"outbox","id":"1","inbox":"https://a.example/i"}"#, Malformed::Missing { field: "activity" }),
        (
            r#"{"type":"outbox","id":"1","inbox":"i","activity":{},"keys":["SECRET"]}"#,
            Malformed::Wrong { field: "keys", expected: "a list of keys" },
        ),
        (
            r#"{"type":"outbox","id":"1","inbox":"i","activity":{},"attempt":-1}"#,
            Malformed::Wrong { field: "attempt", expected: "a count" },
        ),
        (r#"{"type":"fanout","id":"1","activity":{}}"#, Malformed::Missing { field: "inboxes" }),
    ] {
        let error = decode(text.as_bytes()).expect_err(text);
        assert_eq!(error, expected, "{text}");
        assert!(!error.to_string().contains("SECRET"));
    }
}

#[test]
fn a_fanout_becomes_deliveries_under_ids_that_follow_from_it() {
    let Ok(LegacyMessage::Fanout(fanout)) = decode(FANOUT.as_bytes()) else { panic!("no fanout") };
    let drafts = deliveries_of(&fanout, &recipient_of, 1_700_000_000_000);
    let later = deliveries_of(&fanout, &recipient_of, 1_800_000_000_000);
    let ids = |drafts: &[restante_legacy::Draft]| drafts.iter().map(|draft| draft.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(&drafts), ["f1/0", "f1/1"]);
    assert_eq!(ids(&drafts), ids(&later));
    assert_eq!(drafts[0].order_key.as_deref(), Some("note-1\nhttps://a.example"));
    let first = outbox(std::str::from_utf8(drafts[0].body.as_slice()).expect("text"));
    assert_eq!((&**first.inbox(), first.attempt(), first.order_key()), ("https://a.example/inbox", 0, Some("note-1")));
    insta::assert_snapshot!(String::from_utf8(first.encode()).expect("text"), @r#"{"activity":{"type":"Note"},"activityType":"Note","actorIds":[],"attempt":0,"baseUrl":"https://here.example/","headers":{},"id":"f1/0","inbox":"https://a.example/inbox","keys":[{"keyId":"k","privateKey":{"d":"SECRET"}}],"normalizeExistingProofs":true,"orderingKey":"note-1\nhttps://a.example","sharedInbox":true,"started":"2023-11-14T22:13:20.000Z","traceContext":{},"type":"outbox"}"#);

    // A crash before the fanout is completed: expanded again, the queue has each delivery once.
    let queue = MemoryQueue::new();
    block_on(queue.enqueue(drafts)).expect("enqueued");
    block_on(queue.enqueue(later)).expect("enqueued");
    assert_eq!(block_on(queue.depth()).expect("counted").ready, 2);
}

fn handed_over(inboxes: &[&str], order_key: Option<&str>) -> restante_legacy::Draft {
    let recipients: Vec<Recipient> = inboxes.iter().filter_map(|inbox| recipient_of(inbox)).collect();
    let (order_key, payload) = (order_key.map(Into::into), (&br#"{"type":"Follow","id":"https://here.example/f/1"}"#[..]).into());
    message_of(&HandedOver {
        idempotency_key: "f-1",
        keys: &[],
        base_url: "https://here.example/",
        recipients: &recipients,
        order_key: order_key.as_ref(),
        payload: &payload,
        now_ms: 1_700_000_000_123,
    })
    .expect("an activity")
}

#[test]
fn a_send_is_handed_over_as_one_message() {
    let one = handed_over(&["https://a.example/inbox"], None);
    insta::assert_snapshot!(std::str::from_utf8(one.body.as_slice()).expect("text"), @r#"{"activity":{"type":"Follow","id":"https://here.example/f/1"},"activityId":"https://here.example/f/1","activityType":"Follow","attempt":0,"baseUrl":"https://here.example/","headers":{},"id":"f-1","inbox":"https://a.example/inbox","keys":[],"sharedInbox":false,"started":"2023-11-14T22:13:20.123Z","traceContext":{},"type":"outbox"}"#);
    let many = handed_over(&["https://a.example/inbox", "https://b.example/inbox"], Some("note-1"));
    assert_eq!((&*many.id, many.order_key.as_deref()), ("f-1", Some("note-1")));
    insta::assert_snapshot!(std::str::from_utf8(many.body.as_slice()).expect("text"), @r#"{"activity":{"type":"Follow","id":"https://here.example/f/1"},"activityId":"https://here.example/f/1","activityType":"Follow","baseUrl":"https://here.example/","id":"f-1","inboxes":{"https://a.example/inbox":{"actorIds":[],"sharedInbox":false},"https://b.example/inbox":{"actorIds":[],"sharedInbox":false}},"keys":[],"orderingKey":"note-1","traceContext":{},"type":"fanout"}"#);
    let keyed = handed_over(&["https://a.example/inbox"], Some("note-1"));
    assert!(matches!(decode(keyed.body.as_slice()), Ok(LegacyMessage::Fanout(_))), "it keeps its place in its key's order");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".{0,4}", inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

/// A sound message, some of whose fields were replaced or removed.
fn bent() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        prop::sample::select(vec![
            "type",
            "id",
            "keys",
            "activity",
            "inbox",
            "inboxes",
            "attempt",
            "headers",
            "orderingKey",
            "actorIds",
            "started",
            "sharedInbox",
            "circuitHeld",
            "circuitHeldSince",
        ])
        .prop_map(str::to_owned),
        ".{0,5}",
    ];
    let changes = proptest::collection::vec((field, proptest::option::of(any_json())), 0..4);
    (any::<bool>(), changes).prop_map(|(is_fanout, changes)| {
        let mut message = json(if is_fanout { FANOUT } else { OUTBOX }.as_bytes());
        for (field, value) in changes {
            let fields = message.as_object_mut().expect("an object");
            match value {
                Some(value) => _ = fields.insert(field, value),
                None => _ = fields.remove(&field),
            }
        }
        message.to_string().into_bytes()
    })
}

proptest! {
    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes).map(|message| old_message(&message, &recipient_of));
    }

    #[test]
    fn cut_messages_never_panic(end in 0..OUTBOX.len()) {
        let cut = &OUTBOX.as_bytes()[..end];
        prop_assert!(decode(cut).is_err());
    }

    #[test]
    fn bent_messages_never_panic_and_survive_a_round_trip(bytes in bent()) {
        match decode(&bytes) {
            Ok(LegacyMessage::Outbox(outbox)) => {
                prop_assert_eq!(json(&outbox.encode()), json(&bytes));
                let next = outbox.clone().with_attempt(7);
                let Ok(LegacyMessage::Outbox(again)) = decode(&next.encode()) else { panic!("it is one no more") };
                prop_assert_eq!(again.attempt(), 7);
                let key = |message: &OutboxMessage| old_delivery(message, &recipient_of).map(|it| it.idempotency_key());
                prop_assert_eq!(key(&outbox), key(&again), "a message keeps its key however often it is tried");
            }
            Ok(LegacyMessage::Fanout(fanout)) => {
                prop_assert_eq!(json(&fanout.encode()), json(&bytes));
                for draft in deliveries_of(&fanout, &recipient_of, 0) {
                    prop_assert!(matches!(decode(draft.body.as_slice()), Ok(LegacyMessage::Outbox(_))));
                }
            }
            Ok(LegacyMessage::Other { .. }) | Err(_) => {}
        }
    }
}
