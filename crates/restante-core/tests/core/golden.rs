//! Golden bytes: what lies in stores today must be read by every later version. A difference here is a new format.

use restante_core::atoms::{Bytes, EntryId, Fence, OwnerId, Position, Sealed, SendId};
use restante_core::keys::{Keys, Kind};
use restante_core::plan::Accept;
use restante_core::record::{
    Body, Breaker, Circuit, Counters, DeadIntent, DeadLetter, Destination, DropReason, DueRow, Entry, FORMAT, FailedAt,
    HoldInterval, Intake, Intent, IntentSlot, Lane, LaneRef, LaneSlot, Lease, Marker, MarkerState, Member, OrderKeyQueue,
    PayloadChunk, Pointer, Probe, QuarantineReason, Quarantined, Recipient, RecipientChunk, Record, Stage, SweepPlace,
    SweepState, WaitReason,
};
use restante_kv::{Key, StoreTime, Value};

use crate::bed::{Bed, config, keyed};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn at(ms: u64) -> StoreTime {
    StoreTime::from_ms(ms)
}

const SEND: SendId = SendId::from_bytes([0xAB; 16]);
const OWNER: OwnerId = OwnerId::from_bytes([0xCD; 16]);
const ID: EntryId = EntryId { send: SEND, index: 300 };

fn check<R: Record + PartialEq + std::fmt::Debug>(record: &R, expected: &str) {
    let value = record.encode();
    assert_eq!(hex(value.as_bytes()), expected, "{record:?}");
    assert_eq!(R::decode(&value).as_ref(), Ok(record));
}

fn waiting() -> Entry {
    Entry {
        inbox: "https://a/i".into(),
        destination: "https://a".into(),
        body: Body::Inline(Bytes::from(&b"hi"[..])),
        signing: Sealed::new(&b"key"[..]),
        origin: at(1_000),
        failure_count: 2,
        vest_at: at(300_000),
        lease: None,
        fence: Fence::new(7),
        lane: None,
        active: true,
        wait: WaitReason::Backoff,
        wake_gen: 1,
        deadline: None,
    }
}

#[test]
fn entries() {
    check(&waiting(), "01770b68747470733a2f2f612f690968747470733a2f2f6100026869036b6579e80702e0a712000700010201");
    let lane = Some(LaneRef { order_key: "t".into(), position: Position::new(5) });
    let lease = Some(Lease { owner: OWNER, expires_at: at(2_000) });
    check(
        &Entry { body: Body::Staged { chunk_count: 3 }, lease, lane, active: false, wait: WaitReason::New, ..waiting() },
        "016c0b68747470733a2f2f612f690968747470733a2f2f610103036b6579e80702e0a71201cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdd00f0701017405000001",
    );
}

#[test]
fn intents() {
    let intent = Intent {
        cursor: 2,
        total: 300,
        chunk: 1,
        body: Body::Staged { chunk_count: 3 },
        signing: Sealed::new(&b"key"[..]),
        origin: at(1_000),
        vest_at: at(300_000),
        lease: None,
        fence: Fence::new(7),
        place: None,
        active: true,
        failure_count: 0,
    };
    check(&intent, "010000012a02ac02010103036b6579e807e0a71200070001");
    let lease = Some(Lease { owner: OWNER, expires_at: at(2_000) });
    let place = Some(LaneRef { order_key: "t".into(), position: Position::new(5) });
    check(
        &Intent { body: Body::Inline(Bytes::from(&b"hi"[..])), lease, place, active: false, ..intent.clone() },
        "010000012a02ac020100026869036b6579e807e0a71201cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdd00f070101740500",
    );
    // An adopted message that waits behind earlier sends of its order key.
    check(&Intent { failure_count: 7, ..intent }, "020000012a02ac02010103036b6579e807e0a7120007000107");
    let recipient = Recipient { inbox: "https://a/i".into(), destination: "https://a".into(), deadline: None };
    check(&RecipientChunk { first: 300, recipients: vec![recipient] }, "01ac02010b68747470733a2f2f612f690968747470733a2f2f6100");
    check(&IntentSlot { intent: SEND }, "01abababababababababababababababab");
    let trace =
        DeadIntent { reason: DropReason::Expired, fence: Fence::new(7), cursor: 2, total: 300, origin: at(1), expires_at: at(4) };
    check(&trace, "01010702ac020104");
}

#[test]
fn wait_reasons() {
    let reasons = [
        WaitReason::New,
        WaitReason::Lane,
        WaitReason::Backoff,
        WaitReason::RateLimited,
        WaitReason::Unknown,
        WaitReason::Woken,
        WaitReason::Held,
        WaitReason::CircuitHeld,
    ];
    for (number, wait) in reasons.into_iter().enumerate() {
        let value = Entry { wait, ..waiting() }.encode();
        // The last field but one; `wake_gen` behind it takes a byte, and so does the extension of what format 1 has no class for.
        let from_end = if value.as_bytes()[0] == FORMAT { 2 } else { 3 };
        assert_eq!(usize::from(value.as_bytes()[value.len() - from_end]), number, "{wait:?}");
    }
}

#[test]
fn records_of_the_index_and_the_lanes() {
    check(&DueRow { lane: None }, "0100");
    check(&DueRow { lane: Some(LaneRef { order_key: "t".into(), position: Position::new(5) }) }, "0101017405");
    check(&Pointer {}, "01");
    check(
        &OrderKeyQueue { head: Position::new(1), head_intent: SEND, next: Position::new(2) },
        "0101abababababababababababababababab02",
    );
    check(&Lane { head: Position::new(1), head_entry: ID, next: Position::new(2) }, "0101ababababababababababababababababac0202");
    check(&LaneSlot { entry: ID }, "01ababababababababababababababababac02");
    check(&Destination { paced_until: at(300_000), ..Destination::default() }, "01e0a712");
}

#[test]
fn entries_that_format_1_has_no_place_for() {
    let rest = "0b68747470733a2f2f612f690968747470733a2f2f6100026869036b6579e80702e0a7120007000102";
    let plain = rest.strip_suffix("02").expect("the reason");
    check(&Entry { deadline: Some(at(2_000)), ..waiting() }, &format!("0277{rest}0101d00f"));
    check(&Entry { wait: WaitReason::Held, ..waiting() }, &format!("0268{plain}060100"));
    check(&Entry { wait: WaitReason::CircuitHeld, ..waiting() }, &format!("0263{plain}070100"));
}

#[test]
fn destinations_that_format_1_has_no_place_for() {
    let holds = vec![
        HoldInterval { from: at(1), until: at(2), is_open: false },
        HoldInterval { from: at(300_000), until: at(300_001), is_open: true },
    ];
    check(&Destination { holds, ..Destination::default() }, "020002010200e0a712e1a712010000");
    let (since, expires_at) = (at(3), at(300_000));
    let breaker = |circuit| Destination { breaker: Some(Breaker { circuit, since, expires_at }), ..Destination::default() };
    check(&breaker(Circuit::Counting(vec![FailedAt(at(3)), FailedAt(at(4))])), "020000010002030403e0a71200");
    check(&breaker(Circuit::Open { recovers_at: at(5) }), "02000001010503e0a71200");
    let probe = Probe { entry: ID, owner: OWNER, fence: Fence::new(7), expires_at: at(6) };
    check(
        &breaker(Circuit::HalfOpen(probe)),
        "0200000102ababababababababababababababababac02cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd070603e0a71200",
    );
    check(&Destination { paced_until: at(1), resumed_at: at(2), ..Destination::default() }, "0201000002");
}

#[test]
fn records_of_intake_and_payload() {
    check(&Intake { open: false, epoch: 3 }, "010003");
    let state = MarkerState::Accepted { send: SEND, digest: 0x0102_0304_0506_0708, recipient_count: 2 };
    check(&Marker { state, expires_at: at(9) }, "0100abababababababababababababababab888e98a8c0e08081010209");
    check(&Marker { state: MarkerState::Aborted, expires_at: at(9) }, "010109");
    check(&Marker { state: MarkerState::Tried { failure_count: 300 }, expires_at: at(9) }, "0102ac0209");
    check(&Stage { deadline: at(9) }, "0109");
    check(&PayloadChunk { bytes: Bytes::from(&b"hi"[..]) }, "01026869");
    check(&Member {}, "01");
    let counters = Counters { entries: 3, leased: -1, intents: 2, pending_recipients: 100, ..Counters::default() };
    check(&counters, "0106010004c801");
    check(&Counters { held: 2, circuit_held: -1, ..counters }, "0206010004c8010401");
}

#[test]
fn records_of_upkeep() {
    let sweep =
        SweepState { owner: OWNER, taken_until: at(1), started_at: at(2), completed: true, completed_from: at(3), place: None };
    check(&sweep, "01cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd01020103");
    let place = Some(SweepPlace { next: (&b"ke"[..]).into(), skipped: true });
    check(&SweepState { place, ..sweep }, "02cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd0102010301026b6501");
    let record = Bytes::from(&b"\x09x"[..]);
    check(
        &Quarantined { reason: QuarantineReason::UnknownFormat(9), record: record.clone(), expires_at: at(4) },
        "01000902097804",
    );
    for (reason, expected) in [
        (QuarantineReason::Corrupt, "010102097804"),
        (QuarantineReason::ExpansionConflict, "010202097804"),
        (QuarantineReason::RecipientsUnreadable, "010302097804"),
    ] {
        check(&Quarantined { reason, record: record.clone(), expires_at: at(4) }, expected);
    }
    for (reason, expected) in [
        (DropReason::Permanent(410), "01009a03070b68747470733a2f2f612f69010204"),
        (DropReason::Expired, "0101070b68747470733a2f2f612f69010204"),
        (DropReason::AttemptsExhausted, "0102070b68747470733a2f2f612f69010204"),
        (DropReason::PayloadUnreadable, "0103070b68747470733a2f2f612f69010204"),
        (DropReason::CircuitHeld, "0104070b68747470733a2f2f612f69010204"),
        (DropReason::RetryAge, "0105070b68747470733a2f2f612f69010204"),
    ] {
        let fence = Fence::new(7);
        check(
            &DeadLetter { reason, fence, inbox: "https://a/i".into(), origin: at(1), failure_count: 2, expires_at: at(4) },
            expected,
        );
    }
}

#[test]
fn keys() {
    let keys = Keys::new(&config());
    let show = |key: Key| key.as_bytes().escape_ascii().to_string();
    let id = EntryId { send: SendId::from_bytes(*b"0123456789abcdef"), index: 300 };
    let shown = [
        show(keys.intake()),
        show(keys.marker("k")),
        show(keys.stage(id.send)),
        show(keys.chunk(id.send, 0)),
        show(keys.member(id)),
        show(keys.entry(id)),
        show(keys.order_key("t")),
        show(keys.lane("t", "https://a")),
        show(keys.lane_slot("t", "https://a", Position::new(256))),
        show(keys.due("https://a", at(1_000_000), id)),
        show(keys.pointer("https://a", at(1_000_999))),
        show(keys.pointer("https://b.example:8443", at(0))),
        show(keys.destination("https://a")),
        show(keys.counters(9)),
        show(keys.sweep()),
        show(keys.quarantined(id)),
        show(keys.dead_letter(id)),
        show(keys.marker("zero \0 one \u{1}")),
        show(keys.intent(id.send)),
        show(keys.recipients(id.send, 1)),
        show(keys.intent_slot("t", Position::new(256))),
        show(keys.dead_intent(id.send)),
        show(keys.intent_due(id.send, at(1_000_000))),
        show(keys.quarantined(EntryId::of_intent(id.send))),
    ];
    let expected: [&str; 24] = [
        r"restante/i",
        r"restante/sk\x00",
        r"restante/g0123456789abcdef",
        r"restante/b0123456789abcdef\x00",
        r"restante/m0123456789abcdef\x02\x01,",
        r"restante/e0123456789abcdef\x02\x01,",
        r"restante/kt\x00",
        r"restante/lt\x00https://a\x00",
        r"restante/qt\x00https://a\x00\x02\x01\x00",
        r"restante/dhttps://a\x00\x03\x0fB@0123456789abcdef\x02\x01,",
        r"restante/p\x00\x02\x03\xe8https://a\x00",
        r"restante/p\x01\x02\x00https://b.example:8443\x00",
        r"restante/hhttps://a\x00",
        r"restante/c\x01\x01",
        r"restante/w",
        r"restante/x0123456789abcdef\x02\x01,",
        r"restante/z0123456789abcdef\x02\x01,",
        r"restante/szero \x01\x01 one \x01\x02\x00",
        r"restante/f0123456789abcdef",
        r"restante/a0123456789abcdef\x01\x01",
        r"restante/tt\x00\x02\x01\x00",
        r"restante/y0123456789abcdef",
        r"restante/d\x00\x03\x0fB@0123456789abcdef\x04\xff\xff\xff\xff",
        r"restante/x0123456789abcdef\x04\xff\xff\xff\xff",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn every_kind_has_a_tag_of_its_own_and_is_recognised() {
    let keys = Keys::new(&config());
    let tags: String = Kind::ALL.iter().map(|kind| char::from(*kind as u8)).collect();
    assert_eq!(tags, "isgbmeklqdphcwxzfaty");
    for kind in Kind::ALL {
        assert_eq!(keys.kind_of(&keys.all(kind).start), Some(kind));
    }
    assert_eq!(keys.kind_of(&Key::from(&b"restante/?"[..])), None);
    assert_eq!(keys.kind_of(&Key::from(&b"elsewhere"[..])), None);
    assert_eq!(keys.kind_of(&Key::from(&b"restante/"[..])), None);
}

/// The digest tells a repetition from another request for as long as a marker lives: across versions.
#[test]
fn digests() {
    let mut bed = Bed::default();
    bed.accept(keyed(1, "t", &["a.example/1", "b.example/1"]));
    let marker: Marker = bed.read(&bed.env.keys.marker("key-1")).expect("accepted");
    let MarkerState::Accepted { digest, .. } = marker.state else { panic!("accepted") };
    assert_eq!(format!("{digest:016x}"), "7e57f0bf1236fde7");
    assert_eq!(format!("{:016x}", Accept::digest_payload(&Bytes::from(&b"hi"[..]))), "2d32f9b9429b1720");
    assert_eq!(hex(Value::from(&[1][..]).as_bytes()), "01");
}
