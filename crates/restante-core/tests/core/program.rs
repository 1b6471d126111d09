//! Random programs: whatever is sent, answered, broken and lost, depth is a recount, order holds, and all of it comes to an end.

use std::collections::BTreeMap;

use proptest::prelude::*;
use restante_core::Command;
use restante_core::atoms::Bytes;
use restante_core::keys::Kind;
use restante_core::machine::{PostResult, SendRequest};
use restante_core::plan::Wake;

use crate::bed::{Bed, Fault, config, entry_id, recipient, retry_after, send, status};

#[derive(Clone, Debug)]
enum Step {
    Send { hosts: Vec<u8>, keyed: bool, large: bool },
    Run { who: u8, limit: u64, answers: Vec<u8> },
    Wait(u64),
    Wake(u8),
    LoseRow(prop::sample::Index),
    LosePointers,
    MakeUnknown(u8),
    Fault(usize, u8),
    LandLate,
}

const FAULTY: [&str; 7] = ["accept", "claim", "settle", "quarantine", "repair-index", "tidy-pointer", "stage-begin"];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop::collection::vec(0..3_u8, 1..4), any::<bool>(), any::<bool>())
            .prop_map(|(hosts, keyed, large)| Step::Send { hosts, keyed, large }),
        5 => (1..4_u8, 0..6_u64, prop::collection::vec(0..6_u8, 0..6))
            .prop_map(|(who, limit, answers)| Step::Run { who, limit, answers }),
        3 => prop_oneof![Just(1), Just(1_000), Just(61_000)].prop_map(Step::Wait),
        1 => (0..12_u8).prop_map(Step::Wake),
        1 => any::<prop::sample::Index>().prop_map(Step::LoseRow),
        1 => Just(Step::LosePointers),
        1 => (0..12_u8).prop_map(Step::MakeUnknown),
        3 => (0..FAULTY.len(), 0..5_u8).prop_map(|(what, fault)| Step::Fault(what, fault)),
        1 => Just(Step::LandLate),
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

fn perform(bed: &mut Bed, step: Step, sent: &mut u8) {
    match step {
        Step::Send { hosts, keyed, large } => {
            *sent += 1;
            let recipients = hosts.iter().enumerate().map(|(n, host)| recipient(&format!("h{host}.example/{n}"))).collect();
            let payload = Bytes::from(vec![*sent; if large { 25 } else { 4 }]);
            let order_key = keyed.then(|| "thread".into());
            let request = SendRequest { recipients, payload, order_key, ..send(*sent, &[]) };
            let _may_be_refused = bed.send(request);
        }
        Step::Run { who, limit, answers } => {
            bed.answers = answers.into_iter().map(answer).collect();
            bed.once(who, limit);
        }
        Step::Wait(ms) => bed.now_ms += ms,
        Step::Wake(number) => _ = bed.run(Command::Wake(Wake { id: entry_id(number, 0) })),
        Step::LoseRow(index) => {
            let rows = bed.all(Kind::DueRow);
            if !rows.is_empty() {
                let (key, _) = index.get(&rows).clone();
                bed.tamper(key, None);
            }
        }
        Step::LosePointers => bed.delete_all(Kind::Pointer),
        Step::MakeUnknown(number) => {
            if bed.model.get(&bed.env.keys.entry(entry_id(number, 0))).is_some() {
                bed.make_unknown(number, 0);
            }
        }
        Step::Fault(what, fault) => {
            let fault = [Fault::Conflict, Fault::Unavailable, Fault::Committed, Fault::Lost, Fault::Late][usize::from(fault)];
            bed.fault(FAULTY[what], fault);
        }
        Step::LandLate => bed.land_late(),
    }
}

/// First attempts of a lane are in accepted order, and nobody is tried before its predecessor's last attempt.
fn assert_ordered(bed: &Bed) {
    let mut latest: BTreeMap<String, (u8, u32)> = BTreeMap::new();
    for post in bed.posts.iter().filter(|post| bed.keyed.contains(&post.entry.send)) {
        let place = (post.entry.send.as_bytes()[0], post.entry.index);
        let before = latest.insert(post.destination.to_string(), place);
        assert!(before.is_none_or(|before| before <= place), "{place:?} was tried after {before:?}");
    }
}

proptest! {
    #[test]
    fn depth_is_a_recount_order_holds_and_everything_ends(steps in prop::collection::vec(step(), 1..40)) {
        let mut bed = Bed::new(restante_core::Config { inline_bytes_max: 8, chunk_bytes: 10, counter_slots: 2, ..config() });
        let mut sent = 0;
        for step in steps {
            perform(&mut bed, step, &mut sent);
            bed.assert_counted();
        }
        // All faults are over, nobody sends any more: within a bounded time nothing is left.
        bed.heal();
        bed.answers.clear();
        let mut more = true;
        for _ in 0..20 {
            more = bed.once(1, u64::MAX).report.more;
            bed.assert_counted();
            bed.now_ms += 61_000;
        }
        // A due row that lost both its pointer and its entry is met by the next send to its destination.
        bed.accept(SendRequest { recipients: (0..3).map(|host| recipient(&format!("h{host}.example/0"))).collect(), ..send(255, &[]) });
        for _ in 0..3 {
            more = bed.once(1, u64::MAX).report.more;
            bed.now_ms += 61_000;
        }
        let left: Vec<_> = bed.all(Kind::Entry).into_iter().map(|(key, _)| key).collect();
        prop_assert!(left.is_empty(), "left over: {left:?}");
        prop_assert!(!more);
        for kind in [Kind::Lane, Kind::LaneSlot, Kind::DueRow, Kind::Pointer, Kind::PayloadChunk, Kind::Stage] {
            let members = bed.all(Kind::Quarantined).len();
            let rows = bed.all(kind);
            prop_assert!(rows.is_empty() || (kind == Kind::PayloadChunk && members > 0), "{kind:?} left over: {rows:?}");
        }
        assert_ordered(&bed);
    }
}
