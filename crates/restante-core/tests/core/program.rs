//! Random programs: whatever is sent, answered, broken and lost, depth is a recount, order holds, and all of it comes to an end.

use std::collections::BTreeMap;

use proptest::prelude::*;
use restante_core::atoms::Bytes;
use restante_core::keys::Kind;
use restante_core::machine::{PostResult, SendRequest};
use restante_core::plan::{HoldNotice, SetHold, Wake};
use restante_core::{Command, Config};

use crate::bed::{Bed, Fault, config, entry_id, recipient, retry_after, send, status};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send {
        hosts: Vec<u8>,
        keyed: bool,
        large: bool,
    },
    Run {
        limit: u64,
        answers: Vec<u8>,
    },
    Race {
        turns: Vec<bool>,
        answers: Vec<u8>,
    },
    Die {
        actions: usize,
        answers: Vec<u8>,
    },
    Wait(u64),
    Wake(u8),
    /// A notice about a host: held for so long, for nobody knows how long, or not any more.
    Notice(u8, Option<u64>, bool),
    LoseRow(prop::sample::Index),
    LosePointers,
    MakeUnknown(u8),
    Fault(usize, u8),
    LandLate,
    /// A send in the middle of whatever comes next.
    SendBefore {
        what: usize,
        host: u8,
        keyed: bool,
    },
}

const FAULTY: [&str; 26] = [
    "publish",
    "stage-recipients",
    "claim-intent",
    "expand",
    "park-intent",
    "load-recipients",
    "expand-probe",
    "accept",
    "claim",
    "settle",
    "quarantine",
    "repair-index",
    "repair-lane",
    "tidy-pointer",
    "stage-begin",
    "stage-chunk",
    "begin-sweep",
    "advance-sweep",
    "finish-sweep",
    "prune",
    "wake",
    "scan-due",
    "sweep-scan",
    "gate",
    "count-attempt",
    "set-hold",
];
const MOMENTS: [&str; 11] = [
    "publish",
    "claim-intent",
    "expand",
    "scan-pointers",
    "scan-due",
    "tidy-pointer",
    "claim",
    "settle",
    "sweep-scan",
    "repair-lane",
    "quarantine",
];

/// Small limits, so that every one of them is met.
pub(crate) fn crowded() -> Config {
    Config {
        inline_bytes_max: 8,
        chunk_bytes: 90,
        counter_slots: 2,
        recipients_max: 2,
        expand_entries_max: 2,
        expand_lanes_max: 2,
        concurrency_per_destination: 2,
        ramp_step_ms: 1_000,
        breaker_failures: 2,
        breaker_recovery_ms: 30_000,
        hold_cap_ms: 200_000,
        ..config()
    }
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..6_u8, 0..6)
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop::collection::vec(0..3_u8, 1..7), any::<bool>(), any::<bool>())
            .prop_map(|(hosts, keyed, large)| Step::Send { hosts, keyed, large }),
        4 => (0..6_u64, answers()).prop_map(|(limit, answers)| Step::Run { limit, answers }),
        2 => (prop::collection::vec(any::<bool>(), 1..12), answers()).prop_map(|(turns, answers)| Step::Race { turns, answers }),
        2 => (0..40_usize, answers()).prop_map(|(actions, answers)| Step::Die { actions, answers }),
        3 => prop_oneof![Just(1), Just(1_000), Just(61_000)].prop_map(Step::Wait),
        1 => (0..12_u8).prop_map(Step::Wake),
        1 => (0..3_u8, proptest::option::of(prop_oneof![Just(5_000), Just(200_000)]), any::<bool>())
            .prop_map(|(host, ms, releases)| Step::Notice(host, ms, releases)),
        1 => any::<prop::sample::Index>().prop_map(Step::LoseRow),
        1 => Just(Step::LosePointers),
        1 => (0..12_u8).prop_map(Step::MakeUnknown),
        3 => (0..FAULTY.len(), 0..5_u8).prop_map(|(what, fault)| Step::Fault(what, fault)),
        1 => Just(Step::LandLate),
        2 => (0..MOMENTS.len(), 0..3_u8, any::<bool>())
            .prop_map(|(what, host, keyed)| Step::SendBefore { what, host, keyed }),
    ]
}

fn answer(number: u8) -> PostResult {
    match number {
        0 | 1 => status(200),
        2 => status(500),
        3 => status(410),
        4 => PostResult::Unknown,
        _ => retry_after(3_000),
    }
}

/// Settings under which little is much: payloads are staged, sends of three and more are intents, chunks hold little.
/// Every start of a worker has an owner id of its own.
#[derive(Default)]
pub(crate) struct Owners(u8);

impl Owners {
    fn next(&mut self) -> u8 {
        self.0 += 1;
        self.0
    }
}

pub(crate) fn perform(bed: &mut Bed, step: Step, sent: &mut u8, owners: &mut Owners) {
    match step {
        Step::Send { hosts, keyed, large } => {
            *sent += 1;
            let recipients = hosts.iter().enumerate().map(|(n, host)| recipient(&format!("h{host}.example/{n}"))).collect();
            let payload = Bytes::from(vec![*sent; if large { 25 } else { 4 }]);
            let order_key = keyed.then(|| "thread".into());
            let request = SendRequest { recipients, payload, order_key, ..send(*sent, &[]) };
            let _may_be_refused = bed.send(request);
        }
        Step::Run { limit, answers } => {
            bed.answers = answers.into_iter().map(answer).collect();
            bed.once(owners.next(), limit);
        }
        Step::Race { turns, answers } => {
            bed.answers = answers.into_iter().map(answer).collect();
            bed.race([owners.next(), owners.next()], &turns);
        }
        Step::Die { actions, answers } => {
            bed.answers = answers.into_iter().map(answer).collect();
            bed.die_after(owners.next(), actions);
        }
        Step::Wait(ms) => bed.now_ms += ms,
        Step::Wake(number) => _ = bed.run(Command::Wake(Wake { id: entry_id(number, 0) })),
        Step::Notice(host, ms, releases) => {
            let until = ms.map(|ms| bed.now().plus_ms(ms));
            let hold = HoldNotice::Hold { from: None, until };
            let notice = if releases { HoldNotice::Release { from: None } } else { hold };
            let destination = format!("https://h{host}.example").into();
            _ = bed.run(Command::SetHold(SetHold { destination, notice }));
        }
        Step::LoseRow(index) => {
            let rows = bed.all(Kind::DueRow);
            if !rows.is_empty() {
                let (key, _) = index.get(&rows).clone();
                bed.tamper(key, None);
            }
        }
        Step::LosePointers => bed.delete_all(Kind::Pointer),
        Step::MakeUnknown(number) => {
            let intent = bed.env.keys.intent(crate::bed::send_id(number));
            if let Some(found) = bed.model.get(&intent).cloned() {
                let mut bytes = found.value.as_bytes().to_vec();
                bytes[0] = 9;
                bed.tamper(intent, Some(restante_kv::Value::from(bytes)));
            }
            if bed.model.get(&bed.env.keys.entry(entry_id(number, 0))).is_some() {
                bed.make_unknown(number, 0);
            }
        }
        Step::Fault(what, fault) => {
            let fault = [Fault::Conflict, Fault::Unavailable, Fault::Committed, Fault::Lost, Fault::Late][usize::from(fault)];
            bed.fault(FAULTY[what], fault);
        }
        Step::LandLate => bed.land_late(),
        Step::SendBefore { what, host, keyed } => {
            *sent += 1;
            let order_key = keyed.then(|| "thread".into());
            let request = SendRequest { order_key, ..send(*sent, &[&format!("h{host}.example/0")]) };
            bed.before(MOMENTS[what], |bed| _ = bed.send(request));
        }
    }
}

/// Every attempt has a token of its own, and an entry's tokens rise.
fn assert_fenced(bed: &Bed) {
    let mut latest = BTreeMap::new();
    for post in &bed.posts {
        let before = latest.insert(post.entry, post.fence);
        assert!(before.is_none_or(|before| before < post.fence), "{} posted under {:?} after {before:?}", post.entry, post.fence);
    }
}

/// First attempts of a lane are in accepted order, and nobody is tried before its predecessor's last attempt.
fn assert_ordered(bed: &Bed) {
    let mut latest: BTreeMap<String, (usize, u32)> = BTreeMap::new();
    for post in &bed.posts {
        let Some(accepted) = bed.keyed.iter().position(|send| *send == post.entry.send) else { continue };
        let place = (accepted, post.entry.index);
        let before = latest.insert(post.destination.to_string(), place);
        assert!(before.is_none_or(|before| before <= place), "{place:?} was tried after {before:?}");
    }
}

proptest! {
    #[test]
    fn depth_is_a_recount_order_holds_and_everything_ends(steps in prop::collection::vec(step(), 1..40)) {
        let mut bed = Bed::new(crowded());
        let (mut sent, mut owners) = (0, Owners::default());
        for step in steps {
            perform(&mut bed, step, &mut sent, &mut owners);
            bed.assert_counted();
        }
        // All faults are over, nobody sends any more: within a bounded time nothing is left.
        bed.heal();
        bed.answers.clear();
        let mut more = true;
        for _ in 0..20 {
            more = bed.once(owners.next(), u64::MAX).report.more;
            bed.assert_counted();
            bed.now_ms += 61_000;
        }
        // A due row that lost both its pointer and its entry is met by the next send to its destination.
        bed.accept(SendRequest { recipients: (0..3).map(|host| recipient(&format!("h{host}.example/0"))).collect(), ..send(255, &[]) });
        for _ in 0..3 {
            more = bed.once(owners.next(), u64::MAX).report.more;
            bed.now_ms += 61_000;
        }
        let left: Vec<_> = bed.all(Kind::Entry).into_iter().map(|(key, _)| key).collect();
        prop_assert!(left.is_empty(), "left over: {left:?}");
        prop_assert!(!more);
        let left: Vec<_> = bed.all(Kind::Intent).into_iter().map(|(key, _)| key).collect();
        prop_assert!(left.is_empty(), "left over: {left:?}");
        for kind in [Kind::OrderKeyQueue, Kind::IntentSlot, Kind::RecipientChunk] {
            // A quarantined intent keeps its recipients.
            let is_kept = kind == Kind::RecipientChunk && !bed.all(Kind::Quarantined).is_empty();
            let rows = bed.all(kind);
            prop_assert!(rows.is_empty() || is_kept, "{kind:?} left over: {rows:?}");
        }
        for kind in [Kind::Lane, Kind::LaneSlot, Kind::DueRow, Kind::Pointer, Kind::PayloadChunk, Kind::Stage] {
            let members = bed.all(Kind::Quarantined).len();
            let rows = bed.all(kind);
            prop_assert!(rows.is_empty() || (kind == Kind::PayloadChunk && members > 0), "{kind:?} left over: {rows:?}");
        }
        assert_ordered(&bed);
        assert_fenced(&bed);
    }
}
