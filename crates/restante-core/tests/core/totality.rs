//! The planner answers whatever it is shown: a plan, a need, a rejection or an inconsistency, and never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use restante_core::atoms::{Bytes, EntryId, Fence, OwnerId, Sealed, SendId};
use restante_core::keys::DueKey;
use restante_core::plan::{
    Accept, Adopt, AdvanceSweep, BeginSweep, Claim, ClaimIntent, CountAttempt, Depth, DropIntent, DropQuarantined, Expand,
    Expire, FinishSweep, Gate, HoldNotice, LegacyGate, Obstacle, ParkIntent, Prune, Publish, Quarantine, Reach, Recipient, Renew,
    RepairIndex, RepairLane, RepairQueue, ResolveAccept, Revive, SetHold, SetIntake, Settle, StageBegin, StageChunk,
    StageRecipients, TidyPointer, Verdict, Wake,
};
use restante_core::record::{Block, Body, LaneRef, RecipientChunk, SweepPlace, WaitReason};
use restante_core::{Command, Config, Env, Stop, View};
use restante_kv::{Limits, StoreTime, Value, Version, Versioned, check_strict};

use crate::bed::config;
use crate::records::{any_value, at, drop_reason, lane_ref};

const ID: EntryId = EntryId { send: SendId::from_bytes([1; 16]), index: 0 };
const OWNER: OwnerId = OwnerId::from_bytes([1; 16]);

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Delivered),
        drop_reason().prop_map(Verdict::Drop),
        proptest::option::of(any::<u64>())
            .prop_map(|retry_after_ms| Verdict::Retry { wait: WaitReason::Backoff, retry_after_ms }),
        at().prop_map(|until| Verdict::Defer { until }),
        prop_oneof![Just(Block::Held), Just(Block::Circuit), Just(Block::Paced)].prop_map(Verdict::Park),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![Just(Body::Inline(Bytes::from(&b"hi"[..]))), any::<u32>().prop_map(|chunk_count| Body::Staged { chunk_count })]
}

fn accept() -> impl Strategy<Value = Accept> {
    (body(), proptest::option::of(".{0,4}"), vec(".{0,4}", 0..6), ".{0,4}", any::<u64>()).prop_map(
        |(body, order_key, names, idempotency_key, slot)| {
            let recipient = |(n, name): (usize, &String)| Recipient {
                inbox: format!("https://{name}/{n}").into(),
                destination: name.as_str().into(),
                deadline: None,
            };
            Accept {
                send: ID.send,
                idempotency_key: idempotency_key.into(),
                recipients: names.iter().enumerate().map(recipient).collect(),
                order_key: order_key.map(Into::into),
                body,
                payload_digest: 0,
                signing: Sealed::default(),
                slot,
            }
        },
    )
}

/// An accept, an adoption, or the gate of what may be adopted.
fn accept_command() -> impl Strategy<Value = Command> {
    (accept(), any::<u32>(), 0..3_u8).prop_map(|(accept, failure_count, which)| match which {
        0 => Command::Accept(accept),
        1 => Command::Adopt(Box::new(Adopt { accept, failure_count })),
        _ => Command::LegacyGate(LegacyGate {
            send: accept.send,
            idempotency_key: accept.idempotency_key,
            destination: "https://a".into(),
            failure_count,
        }),
    })
}

fn quarantine() -> impl Strategy<Value = Command> {
    (any::<bool>(), proptest::option::of(lane_ref()), any::<u64>()).prop_map(|(has_due, lane, slot)| {
        let due = has_due.then(|| DueKey { destination: "https://a".into(), vest_at: StoreTime::from_ms(5), entry: ID });
        let lane = lane.map(|lane| LaneRef { order_key: "t".into(), ..lane });
        Command::Quarantine(Quarantine { id: ID, due, lane, slot })
    })
}

fn settle() -> impl Strategy<Value = Command> {
    (verdict(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(verdict, entropy, slot, wake_seen)| {
        Command::Settle(Settle { id: ID, owner: OWNER, fence: Fence::new(1), wake_seen, verdict, entropy, slot })
    })
}

/// A due row's or a pointer's key of the backlog under test, to be pruned or tidied.
fn index_commands() -> impl Strategy<Value = Command> {
    (any::<bool>(), any::<u128>(), proptest::option::of(at()), any::<bool>()).prop_map(|(prune, raw, next_vest_at, chunk)| {
        let (env, version) = (Env::new(config()), Version::from_raw(raw % 4));
        let destination = "https://a";
        if prune {
            let (due, piece) = (env.keys.due(destination, StoreTime::from_ms(5), ID), env.keys.chunk(ID.send, 0));
            let key = if chunk { piece } else { due };
            Command::Prune(Prune { key, version, chunk_of: chunk.then_some(ID.send) })
        } else {
            let key = env.keys.pointer(destination, StoreTime::from_ms(5));
            Command::TidyPointer(TidyPointer { key, version, destination: destination.into(), next_vest_at })
        }
    })
}

fn expand() -> impl Strategy<Value = Command> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (0..9_u32, 0..6_usize, flags, any::<u64>()).prop_map(|(from, count, (ends_chunk, release, is_keyed), slot)| {
        let recipient = |n| Recipient {
            inbox: format!("https://h{n}/i").into(),
            destination: format!("https://h{n}").into(),
            deadline: None,
        };
        Command::Expand(Expand {
            send: ID.send,
            owner: OWNER,
            fence: Fence::new(1),
            from,
            recipients: (0..count).map(recipient).collect(),
            ends_chunk,
            order_key: is_keyed.then(|| "t".into()),
            release,
            slot,
        })
    })
}

fn intents() -> impl Strategy<Value = Command> {
    let (send, intent, owner, fence) = (ID.send, EntryId::of_intent(ID.send), OWNER, Fence::new(1));
    let lane = |position| LaneRef { order_key: "t".into(), position };
    let due = DueKey { destination: "".into(), vest_at: StoreTime::from_ms(5), entry: intent };
    let keys = Env::new(config()).keys;
    let publish = Publish {
        send,
        idempotency_key: "k".into(),
        order_key: Some("t".into()),
        recipient_count: 9,
        payload_chunk_count: 1,
        digest: 0,
        signing: Sealed::default(),
        slot: 0,
    };
    let chunks = vec![RecipientChunk { first: 0, recipients: Vec::new() }];
    prop::sample::select(vec![
        Command::Publish(Publish { order_key: None, ..publish.clone() }),
        Command::Publish(publish),
        Command::StageRecipients(StageRecipients { send, number: 0, chunks }),
        Command::ClaimIntent(ClaimIntent { send, owner }),
        Command::DropIntent(DropIntent { send, owner, fence, slot: 0 }),
        Command::ParkIntent(ParkIntent { send, owner, fence, obstacle: Obstacle::Entry { index: 3 }, slot: 0 }),
        Command::ParkIntent(ParkIntent { send, owner, fence, obstacle: Obstacle::Recipients { chunk: 1 }, slot: 0 }),
        Command::RepairQueue(RepairQueue { order_key: "t".into() }),
        Command::RepairIndex(RepairIndex { id: intent }),
        Command::Revive(Revive { id: intent, slot: 0 }),
        Command::DropQuarantined(DropQuarantined { id: intent, early: true, slot: 0 }),
        Command::Quarantine(Quarantine { id: intent, due: None, lane: None, slot: 0 }),
        Command::Quarantine(Quarantine {
            id: intent,
            due: Some(due.clone()),
            lane: Some(lane(restante_core::atoms::Position::new(1))),
            slot: 0,
        }),
        Command::Prune(Prune { key: keys.due("", due.vest_at, due.entry), version: Version::from_raw(1), chunk_of: None }),
        Command::Prune(Prune { key: keys.recipients(send, 0), version: Version::from_raw(1), chunk_of: Some(send) }),
    ])
}

/// Notices and reports about a destination.
fn of_destination() -> impl Strategy<Value = Command> {
    let destination: std::sync::Arc<str> = "https://a.example".into();
    let instant = || proptest::option::of(at());
    let reach = prop_oneof![Just(Reach::Reached), Just(Reach::Failed), Just(Reach::Untried)];
    (any::<bool>(), any::<bool>(), instant(), instant(), reach).prop_map(move |(counts, holds, from, until, reach)| {
        let (destination, fence) = (destination.clone(), Fence::new(1));
        if counts {
            return Command::CountAttempt(CountAttempt { destination, id: ID, owner: OWNER, fence, reach });
        }
        let notice = if holds { HoldNotice::Hold { from, until } } else { HoldNotice::Release { from } };
        Command::SetHold(SetHold { destination, notice })
    })
}

fn command() -> impl Strategy<Value = Command> {
    let simple = prop::sample::select(vec![
        Command::StageBegin(StageBegin { send: ID.send }),
        Command::StageChunk(StageChunk { send: ID.send, number: 0, bytes: Bytes::from(&b"hi"[..]) }),
        Command::ResolveAccept(ResolveAccept { send: ID.send, idempotency_key: "k".into() }),
        Command::Claim(Claim { id: ID, owner: OWNER, slot: 0 }),
        Command::Renew(Renew { id: ID, owner: OWNER, fence: Fence::new(1) }),
        Command::Gate(Gate { id: ID, owner: OWNER, fence: Fence::new(1), destination: "https://a.example".into() }),
        Command::Wake(Wake { id: ID }),
        Command::DropQuarantined(DropQuarantined { id: ID, early: false, slot: 0 }),
        Command::DropQuarantined(DropQuarantined { id: ID, early: true, slot: 0 }),
        Command::Revive(Revive { id: ID, slot: 0 }),
        Command::RepairIndex(RepairIndex { id: ID }),
        Command::RepairLane(RepairLane { order_key: "t".into(), destination: "https://a".into() }),
        Command::BeginSweep(BeginSweep { owner: OWNER }),
        Command::AdvanceSweep(AdvanceSweep { owner: OWNER, place: SweepPlace { next: (&b"x"[..]).into(), skipped: true } }),
        Command::FinishSweep(FinishSweep { owner: OWNER, complete: true }),
        Command::FinishSweep(FinishSweep { owner: OWNER, complete: false }),
        Command::SetIntake(SetIntake { open: true }),
        Command::SetIntake(SetIntake { open: false }),
        Command::Depth(Depth {}),
        Command::Expire(Expire { id: ID, slot: 0 }),
    ]);
    prop_oneof![
        4 => simple, 2 => accept_command(), 1 => quarantine(), 3 => settle(), 2 => index_commands(), 3 => intents(), 2 => expand(),
        3 => of_destination(),
    ]
}

/// What a store answers for a key: nothing, or a record of some version.
fn answer() -> impl Strategy<Value = Option<(Value, u8)>> {
    prop_oneof![1 => Just(None), 3 => (any_value(), 0..4_u8).prop_map(Some)]
}

fn settings() -> impl Strategy<Value = Config> {
    (1..5_u64, any::<bool>()).prop_map(|(counter_slots, long)| Config {
        counter_slots,
        max_retention_ms: if long { u64::MAX } else { 1 },
        breaker_failures: if long { 1 } else { 5 },
        retry_age_max_ms: u64::from(long),
        ramp_step_ms: u64::from(!long),
        ..config()
    })
}

proptest! {
    // Commands times records is a large space: more cases than elsewhere, still scaled by PROPTEST_CASES.
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    /// Every key that a command asks for is answered at random; its questions end, and a plan obeys the write rules.
    #[test]
    fn planning_is_total(
        command in command(), config in settings(), attempted in any::<bool>(), at in at(), answers in vec(answer(), 24),
    ) {
        let env = Env::new(config);
        let mut answers = answers.into_iter();
        let mut view = View { at, records: Vec::new() };
        for _ in 0..8 {
            match command.plan(&env, &view, attempted) {
                Ok(plan) => {
                    prop_assert_eq!(check_strict(&plan.txn), Ok(()));
                    let empty = plan.txn.checks.is_empty() && plan.txn.writes.is_empty();
                    prop_assert!(empty || Limits::FLOOR.check_txn(&plan.txn).is_ok(), "{:?}", plan.txn);
                    for check in &plan.txn.checks {
                        prop_assert!(view.records.iter().any(|(key, _)| *key == check.key), "checked, but never read");
                    }
                    return Ok(());
                }
                Err(Stop::Reject(_) | Stop::Inconsistent { .. }) => return Ok(()),
                Err(Stop::Need(keys)) => {
                    prop_assert!(!keys.is_empty());
                    for key in keys {
                        prop_assert!(view.records.iter().all(|(known, _)| *known != key), "asked twice");
                        let found = answers.next().flatten().map(|(value, version)| Versioned {
                            version: Version::from_raw(version.into()),
                            value,
                        });
                        view.records.push((key, found));
                    }
                    prop_assert!(view.records.len() <= Limits::FLOOR.get_keys_max, "more keys than a snapshot takes");
                }
            }
        }
        prop_assert!(false, "it asks for ever");
    }

    /// A view that holds other keys than the ones asked for is as good as none.
    #[test]
    fn planning_is_total_on_views_of_something_else(command in command(), values in vec((any::<[u8; 8]>(), any_value()), 0..9)) {
        let env = Env::new(config());
        let records = values.into_iter().map(|(key, value)| {
            (restante_kv::Key::from(&key[..]), Some(Versioned { version: Version::from_raw(1), value }))
        });
        let view = View { at: StoreTime::MAX, records: records.collect() };
        match command.plan(&env, &view, false) {
            Ok(plan) => prop_assert!(plan.txn.checks.is_empty(), "nothing was read, so nothing can be checked"),
            Err(stop) => prop_assert!(matches!(stop, Stop::Need(_) | Stop::Reject(_))),
        }
    }
}
