//! Records and keys, there and back, and whatever else may lie in a store.

use proptest::collection::vec;
use proptest::prelude::*;
use restante_core::atoms::{Bytes, EntryId, Fence, OwnerId, Position, Sealed, SendId};
use restante_core::keys::{DueKey, Keys, Kind};
use restante_core::record::{
    Body, Breaker, Circuit, Class, Counters, DeadIntent, DeadLetter, Destination, DropReason, DueRow, Entry, FORMAT,
    FORMAT_EXTENDED, FailedAt, HoldInterval, Intake, Intent, IntentSlot, Lane, LaneRef, LaneSlot, Lease, Marker, MarkerState,
    Member, OrderKeyQueue, PayloadChunk, Pointer, Probe, QuarantineReason, Quarantined, Recipient, RecipientChunk, Record, Stage,
    SweepPlace, SweepState, Unreadable, WaitReason,
};
use restante_kv::{Key, StoreTime, Value};

use crate::bed::config;

pub(crate) fn at() -> impl Strategy<Value = StoreTime> {
    prop_oneof![any::<u64>(), 0..10_000_000_u64].prop_map(StoreTime::from_ms)
}

fn entry_id() -> impl Strategy<Value = EntryId> {
    (any::<[u8; 16]>(), any::<u32>()).prop_map(|(send, index)| EntryId { send: SendId::from_bytes(send), index })
}

fn position() -> impl Strategy<Value = Position> {
    prop_oneof![any::<u64>(), 0..3_u64].prop_map(Position::new)
}

pub(crate) fn lane_ref() -> impl Strategy<Value = LaneRef> {
    (".{0,9}", position()).prop_map(|(order_key, position)| LaneRef { order_key: order_key.into(), position })
}

fn wait() -> impl Strategy<Value = WaitReason> {
    prop_oneof![
        Just(WaitReason::New),
        Just(WaitReason::Lane),
        Just(WaitReason::Backoff),
        Just(WaitReason::RateLimited),
        Just(WaitReason::Unknown),
        Just(WaitReason::Woken),
        Just(WaitReason::Held),
        Just(WaitReason::CircuitHeld),
    ]
}

pub(crate) fn drop_reason() -> impl Strategy<Value = DropReason> {
    prop_oneof![
        any::<u16>().prop_map(DropReason::Permanent),
        Just(DropReason::Expired),
        Just(DropReason::AttemptsExhausted),
        Just(DropReason::PayloadUnreadable),
        Just(DropReason::CircuitHeld),
        Just(DropReason::RetryAge),
    ]
}

fn owner() -> impl Strategy<Value = OwnerId> {
    prop_oneof![any::<[u8; 16]>(), Just([1; 16])].prop_map(OwnerId::from_bytes)
}

prop_compose! {
    fn entry()(
        (inbox, destination) in (".{0,20}", prop_oneof![".{0,9}", Just("https://a".to_owned())]),
        body in prop_oneof![
            vec(any::<u8>(), 0..20).prop_map(|bytes| Body::Inline(Bytes::from(bytes))),
            any::<u32>().prop_map(|chunk_count| Body::Staged { chunk_count }),
        ],
        signing in vec(any::<u8>(), 0..9),
        (origin, vest_at, expires_at) in (at(), at(), at()),
        (failure_count, wake_gen) in (any::<u32>(), any::<u64>()),
        (owner, fence) in (proptest::option::of(owner()), prop_oneof![any::<u64>(), Just(1)]),
        lane in proptest::option::of(lane_ref()),
        (active, wait, deadline) in (any::<bool>(), wait(), proptest::option::of(at())),
    ) -> Entry {
        Entry {
            inbox: inbox.into(),
            destination: destination.into(),
            body,
            signing: Sealed::new(signing),
            origin,
            failure_count,
            vest_at,
            lease: owner.map(|owner| Lease { owner, expires_at }),
            fence: Fence::new(fence),
            lane,
            active,
            wait,
            wake_gen,
            deadline,
        }
    }
}

prop_compose! {
    pub(crate) fn intent()(
        (cursor, left, chunk) in (0..9_u32, prop_oneof![0..9_u32, any::<u32>()], 0..3_u32),
        chunk_count in any::<u32>(),
        (origin, vest_at, expires_at) in (at(), at(), at()),
        (owner, fence) in (proptest::option::of(owner()), prop_oneof![any::<u64>(), Just(1)]),
        place in proptest::option::of(lane_ref()),
        active in any::<bool>(),
        failure_count in prop_oneof![Just(0), any::<u32>()],
    ) -> Intent {
        Intent {
            cursor,
            total: cursor.saturating_add(left),
            chunk,
            body: Body::Staged { chunk_count },
            signing: Sealed::new(&b"sealed"[..]),
            origin,
            vest_at,
            lease: owner.map(|owner| Lease { owner, expires_at }),
            fence: Fence::new(fence),
            place,
            active,
            failure_count,
        }
    }
}

fn recipient_chunk() -> impl Strategy<Value = RecipientChunk> {
    let recipient = (".{0,4}", ".{0,4}").prop_map(|(inbox, destination)| Recipient {
        inbox: inbox.into(),
        destination: destination.into(),
        deadline: None,
    });
    (0..9_u32, vec(recipient, 0..4)).prop_map(|(first, recipients)| RecipientChunk { first, recipients })
}

fn dead_intent() -> impl Strategy<Value = DeadIntent> {
    (drop_reason(), any::<u64>(), any::<u32>(), any::<u32>(), at(), at()).prop_map(
        |(reason, fence, cursor, total, origin, expires_at)| DeadIntent {
            reason,
            fence: Fence::new(fence),
            cursor,
            total,
            origin,
            expires_at,
        },
    )
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn reason() -> impl Strategy<Value = QuarantineReason> {
    prop_oneof![any::<u8>().prop_map(QuarantineReason::UnknownFormat), Just(QuarantineReason::Corrupt)]
}

fn marker_state() -> impl Strategy<Value = MarkerState> {
    let accepted = (any::<[u8; 16]>(), any::<u64>(), any::<u32>()).prop_map(|(send, digest, recipient_count)| {
        MarkerState::Accepted { send: SendId::from_bytes(send), digest, recipient_count }
    });
    let tried = any::<u32>().prop_map(|failure_count| MarkerState::Tried { failure_count });
    prop_oneof![accepted, Just(MarkerState::Aborted), tried]
}

fn circuit() -> impl Strategy<Value = Circuit> {
    let probe =
        (prop_oneof![entry_id(), Just(EntryId { send: SendId::from_bytes([1; 16]), index: 0 })], owner(), any::<u64>(), at());
    prop_oneof![
        vec(at().prop_map(FailedAt), 0..7).prop_map(Circuit::Counting),
        at().prop_map(|recovers_at| Circuit::Open { recovers_at }),
        probe.prop_map(|(entry, owner, fence, expires_at)| {
            Circuit::HalfOpen(Probe { entry, owner, fence: Fence::new(fence), expires_at })
        }),
    ]
}

/// Canonical or not: planning has to bear whatever it reads.
pub(crate) fn destination() -> impl Strategy<Value = Destination> {
    let hold = (at(), at(), any::<bool>()).prop_map(|(from, until, is_open)| HoldInterval { from, until, is_open });
    let breaker = (circuit(), at(), at()).prop_map(|(circuit, since, expires_at)| Breaker { circuit, since, expires_at });
    (at(), vec(hold, 0..20), proptest::option::of(breaker), prop_oneof![Just(StoreTime::default()), at()])
        .prop_map(|(paced_until, holds, breaker, resumed_at)| Destination { paced_until, holds, breaker, resumed_at })
}

fn encoded<R: Record>(strategy: impl Strategy<Value = R>) -> impl Strategy<Value = Value> {
    strategy.prop_map(|record| record.encode())
}

fn sweep_state() -> impl Strategy<Value = SweepState> {
    let place = (vec(any::<u8>(), 0..9), any::<bool>()).prop_map(|(next, skipped)| SweepPlace { next: next.into(), skipped });
    let of_sweep = (owner(), at(), at(), any::<bool>(), at(), proptest::option::of(place));
    of_sweep.prop_map(|(owner, taken_until, started_at, completed, completed_from, place)| SweepState {
        owner,
        taken_until,
        started_at,
        completed,
        completed_from,
        place,
    })
}

fn dead_letter() -> impl Strategy<Value = DeadLetter> {
    (drop_reason(), any::<u64>(), ".{0,9}", at(), any::<u32>(), at()).prop_map(
        |(reason, fence, inbox, origin, failure_count, expires_at)| DeadLetter {
            reason,
            fence: Fence::new(fence),
            inbox: inbox.into(),
            origin,
            failure_count,
            expires_at,
        },
    )
}

/// A record of any kind, as its bytes.
pub(crate) fn any_record() -> impl Strategy<Value = Value> {
    let counters = (any::<i64>(), any::<i64>(), any::<i64>(), any::<i64>(), any::<i64>(), prop_oneof![Just(0), any::<i64>()]);
    let send = || any::<[u8; 16]>().prop_map(SendId::from_bytes);
    prop_oneof![
        6 => encoded(entry()),
        1 => encoded((any::<bool>(), any::<u64>()).prop_map(|(open, epoch)| Intake { open, epoch })),
        1 => encoded((marker_state(), at()).prop_map(|(state, expires_at)| Marker { state, expires_at })),
        1 => encoded(at().prop_map(|deadline| Stage { deadline })),
        1 => encoded(bytes().prop_map(|bytes| PayloadChunk { bytes })),
        1 => encoded(Just(Member {})),
        1 => encoded((position(), send(), position()).prop_map(|(head, head_intent, next)| OrderKeyQueue { head, head_intent, next })),
        3 => encoded((position(), entry_id(), position()).prop_map(|(head, head_entry, next)| Lane { head, head_entry, next })),
        1 => encoded(entry_id().prop_map(|entry| LaneSlot { entry })),
        1 => encoded(proptest::option::of(lane_ref()).prop_map(|lane| DueRow { lane })),
        1 => encoded(Just(Pointer {})),
        3 => encoded(destination()),
        2 => encoded(counters.prop_map(|(entries, leased, quarantined, intents, pending_recipients, held)| {
            Counters { entries, leased, quarantined, intents, pending_recipients, held, circuit_held: held / 2 }
        })),
        4 => encoded(intent()),
        1 => encoded(recipient_chunk()),
        1 => encoded(send().prop_map(|intent| IntentSlot { intent })),
        1 => encoded(dead_intent()),
        1 => encoded(sweep_state()),
        1 => encoded((reason(), bytes(), at()).prop_map(|(reason, record, expires_at)| Quarantined { reason, record, expires_at })),
        1 => encoded(dead_letter()),
    ]
}

/// Any bytes: a record, a record of another format, a record cut short or changed in one byte, garbage.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let damaged = (any_record(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(value, index, byte)| {
        let mut bytes = value.as_bytes().to_vec();
        let at = index.index(bytes.len());
        bytes[at] = byte;
        Value::from(bytes)
    });
    let short = (any_record(), any::<prop::sample::Index>())
        .prop_map(|(value, index)| Value::from(&value.as_bytes()[..index.index(value.len() + 1)]));
    let other = (any_record(), 2..=255_u8).prop_map(|(value, format)| {
        let mut bytes = value.as_bytes().to_vec();
        bytes[0] = format;
        Value::from(bytes)
    });
    prop_oneof![6 => any_record(), 1 => damaged, 1 => short, 1 => other, 1 => vec(any::<u8>(), 0..60).prop_map(Value::from)]
}

/// Decoding answers, and what it accepts it writes back byte for byte (so no two encodings of one record exist, but for
/// overlong numbers, which decode to the same record).
fn total<R: Record + PartialEq + std::fmt::Debug>(value: &Value) {
    match R::decode(value) {
        Ok(record) => assert_eq!(R::decode(&record.encode()).as_ref(), Ok(&record)),
        Err(Unreadable::UnknownFormat(format)) => assert!(format != FORMAT && value.as_bytes()[0] == format),
        Err(Unreadable::Corrupt) => assert!(value.is_empty() || [FORMAT, FORMAT_EXTENDED].contains(&value.as_bytes()[0])),
    }
}

/// A number that no builder writes must not be read as another entry's.
#[test]
fn an_index_beyond_its_width_is_no_entry() {
    let keys = Keys::new(&config());
    let send = SendId::from_bytes([1; 16]);
    let builder = restante_kv::tuple::KeyBuilder::new(b"restante/").tag(b'e').raw(send.as_bytes());
    assert!(keys.read_entry(Kind::Entry, &builder.clone().u64(u32::MAX.into()).key()).is_ok());
    assert!(keys.read_entry(Kind::Entry, &builder.u64(1 << 32).key()).is_err());
}

proptest! {
    #[test]
    fn an_entry_comes_back_as_it_was_written(entry in entry()) {
        let value = entry.encode();
        prop_assert_eq!(Class::of(&value), Some(entry.class()));
        prop_assert_eq!(Entry::decode(&value), Ok(entry));
    }

    #[test]
    fn the_class_of_an_entry_is_readable_in_any_format(entry in entry(), format in any::<u8>(), tail in vec(any::<u8>(), 0..9)) {
        let mut bytes = entry.encode().as_bytes().to_vec();
        bytes[0] = format;
        bytes.truncate(2);
        bytes.extend(tail);
        prop_assert_eq!(Class::of(&Value::from(bytes)), Some(entry.class()));
    }

    #[test]
    fn a_class_that_contradicts_its_entry_is_damage(entry in entry()) {
        let mut bytes = entry.encode().as_bytes().to_vec();
        bytes[1] ^= b'w' ^ b'l';
        prop_assert_eq!(Entry::decode(&Value::from(bytes)), Err(Unreadable::Corrupt));
    }

    #[test]
    fn decoding_is_total_and_tells_another_format_from_damage(value in any_value()) {
        let _answers = Class::of(&value);
        total::<Entry>(&value);
        total::<Intake>(&value);
        total::<Marker>(&value);
        total::<Stage>(&value);
        total::<PayloadChunk>(&value);
        total::<Member>(&value);
        total::<OrderKeyQueue>(&value);
        total::<Lane>(&value);
        total::<LaneSlot>(&value);
        total::<DueRow>(&value);
        total::<Pointer>(&value);
        total::<Destination>(&value);
        total::<Counters>(&value);
        total::<SweepState>(&value);
        total::<Quarantined>(&value);
        total::<DeadLetter>(&value);
        total::<Intent>(&value);
        total::<RecipientChunk>(&value);
        total::<IntentSlot>(&value);
        total::<DeadIntent>(&value);
    }

    #[test]
    fn keys_are_taken_apart_into_what_they_were_built_from(
        id in entry_id(), destination in ".{0,12}", order_key in ".{0,12}", vest_at in at(),
    ) {
        let keys = Keys::new(&config());
        for kind in [Kind::Entry, Kind::Member, Kind::Quarantined, Kind::DeadLetter] {
            let key = match kind {
                Kind::Entry => keys.entry(id),
                Kind::Member => keys.member(id),
                Kind::Quarantined => keys.quarantined(id),
                _ => keys.dead_letter(id),
            };
            prop_assert_eq!(keys.read_entry(kind, &key), Ok(id));
            prop_assert!(keys.read_entry(Kind::Stage, &key).is_err());
        }
        prop_assert_eq!(keys.read_send(Kind::Stage, &keys.stage(id.send)), Ok(id.send));
        prop_assert_eq!(keys.read_send(Kind::PayloadChunk, &keys.chunk(id.send, id.index)), Ok(id.send));
        let due = DueKey { destination: destination.as_str().into(), vest_at, entry: id };
        let key = keys.due(&destination, vest_at, id);
        prop_assert!(keys.due_rows(&destination).contains(&key));
        prop_assert_eq!(keys.read_due(&key), Ok(due));
        let pointer = keys.read_pointer(&keys.pointer(&destination, vest_at)).unwrap();
        prop_assert_eq!(&*pointer.destination, destination.as_str());
        prop_assert!(vest_at.since_ms(pointer.bucket_at) < 1_000 && pointer.bucket_at <= vest_at);
        prop_assert!((0..4).any(|shard| keys.pointers(shard).contains(&keys.pointer(&destination, vest_at))));
        let lane = keys.read_lane(&keys.lane(&order_key, &destination)).unwrap();
        prop_assert_eq!((&*lane.0, &*lane.1), (order_key.as_str(), destination.as_str()));
        prop_assert!(keys.members(id.send).contains(&keys.member(id)));
        let read = keys.read_order_key(&keys.order_key(&order_key)).unwrap();
        prop_assert_eq!(&*read, order_key.as_str());
        let next = id.index.saturating_add(1);
        prop_assert!(id.is_intent() || keys.entries(id.send, id.index, next).contains(&keys.entry(id)));
    }

    #[test]
    fn due_rows_lie_in_the_order_of_their_instants(a in at(), b in at(), x in entry_id(), y in entry_id()) {
        let keys = Keys::new(&config());
        let built = (keys.due("https://a", a, x), keys.due("https://a", b, y));
        if a != b {
            prop_assert_eq!(built.0.cmp(&built.1), a.cmp(&b));
        }
    }

    #[test]
    fn reading_any_bytes_as_a_key_never_panics(tag in 0..20_usize, tail in vec(any::<u8>(), 0..60), whole in any::<bool>()) {
        let keys = Keys::new(&config());
        let mut bytes = if whole { Vec::new() } else { b"restante/".to_vec() };
        bytes.push(Kind::ALL[tag] as u8);
        bytes.extend(tail);
        let key = Key::from(bytes);
        for kind in Kind::ALL {
            if let Ok(id) = keys.read_entry(kind, &key) && kind == Kind::Entry {
                prop_assert_eq!(&keys.entry(id), &key, "a key is read back as itself");
            }
            let _answers = keys.read_send(kind, &key);
        }
        if let Ok(due) = keys.read_due(&key) {
            prop_assert_eq!(keys.due(&due.destination, due.vest_at, due.entry), key.clone());
        }
        let _answers = (keys.read_pointer(&key), keys.read_lane(&key), keys.read_order_key(&key), keys.kind_of(&key));
    }
}
