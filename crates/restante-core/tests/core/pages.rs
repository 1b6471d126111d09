//! Pages of an inspection while everybody goes on working: what is there all the time is seen exactly once, nothing is seen twice.

use std::collections::BTreeSet;

use proptest::prelude::*;
use restante_core::Command;
use restante_core::atoms::{Bytes, EntryId};
use restante_core::keys::Kind;
use restante_core::machine::{inspect_page, inspect_range};
use restante_core::plan::Revive;
use restante_core::record::{FORMAT, Quarantined, Record as _};
use restante_kv::Key;

use crate::bed::{Bed, keyed, send, status};

/// What happens between two pages.
#[derive(Clone, Copy, Debug)]
enum Act {
    Send { recipients: usize, keyed: bool },
    Deliver { limit: u64 },
    Fail { limit: u64 },
    PutAside { nth: usize },
    Revive { nth: usize },
    Wait { ms: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (1..4_usize, any::<bool>()).prop_map(|(recipients, keyed)| Act::Send { recipients, keyed }),
        (1..4_u64).prop_map(|limit| Act::Deliver { limit }),
        (1..4_u64).prop_map(|limit| Act::Fail { limit }),
        any::<usize>().prop_map(|nth| Act::PutAside { nth }),
        any::<usize>().prop_map(|nth| Act::Revive { nth }),
        (1..90_000_u64).prop_map(|ms| Act::Wait { ms }),
    ]
}

fn ids(bed: &Bed, kind: Kind) -> Vec<EntryId> {
    bed.all(kind).iter().map(|(key, _)| bed.env.keys.read_entry(kind, key).expect("its key")).collect()
}

/// A send whose id stands anywhere among the others.
fn accept(bed: &mut Bed, sent: &mut u8, recipients: usize, is_keyed: bool) {
    let number = sent.wrapping_mul(37);
    *sent += 1;
    let inboxes = ["a.example/1", "b.example/2", "a.example/3"];
    let inboxes = &inboxes[..recipients];
    bed.accept(if is_keyed { keyed(number, "thread", inboxes) } else { send(number, inboxes) });
}

fn perform(bed: &mut Bed, act: Act, sent: &mut u8) {
    match act {
        Act::Send { recipients, keyed } => accept(bed, sent, recipients, keyed),
        Act::Deliver { limit } => drop(bed.once(1, limit)),
        Act::Fail { limit } => {
            bed.answers.extend((0..limit).map(|_| status(503)));
            bed.once(1, limit);
            bed.answers.clear();
        }
        Act::PutAside { nth } => {
            let entries = ids(bed, Kind::Entry);
            if let Some(id) = entries.get(nth % entries.len().max(1)) {
                bed.make_unknown(id.send.as_bytes()[0], id.index);
                bed.now_ms += 60_000;
                bed.once(1, 0);
            }
        }
        Act::Revive { nth } => {
            let aside = ids(bed, Kind::Quarantined);
            let Some(id) = aside.get(nth % aside.len().max(1)) else { return };
            let key = bed.env.keys.quarantined(*id);
            let mut record: Quarantined = bed.read(&key).expect("put aside");
            let mut bytes = record.record.as_slice().to_vec();
            bytes[0] = FORMAT;
            record.record = Bytes::from(bytes);
            bed.tamper(key, Some(record.encode()));
            // The head of its lane may be taken.
            let _ = bed.run(Command::Revive(Revive { id: *id, slot: 0 }));
        }
        Act::Wait { ms } => bed.now_ms += ms,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]
    #[test]
    fn what_is_there_from_the_first_page_to_the_last_is_seen_exactly_once_and_nothing_twice(
        before in proptest::collection::vec((1..4_usize, any::<bool>()), 1..12),
        between in proptest::collection::vec(proptest::collection::vec(act(), 0..4), 40),
        limits in proptest::collection::vec(1..5_usize, 40),
    ) {
        let (mut bed, mut sent) = (Bed::default(), 1);
        for (recipients, is_keyed) in before {
            accept(&mut bed, &mut sent, recipients, is_keyed);
        }
        let mut always: BTreeSet<EntryId> = ids(&bed, Kind::Entry).into_iter().collect();
        let (mut seen, mut next): (Vec<EntryId>, Option<Key>) = (Vec::new(), None);
        let mut ended = false;
        for (acts, limit) in between.into_iter().zip(limits) {
            let page = bed.model.scan(&inspect_range(&bed.env, next), limit).expect("a page");
            let page = inspect_page(&bed.env, &page);
            seen.extend(page.rows.iter().map(|row| row.id).chain(page.unreadable.iter().map(|(id, _)| *id)));
            next = page.next;
            if next.is_none() {
                ended = true;
                break;
            }
            for act in acts {
                perform(&mut bed, act, &mut sent);
                let there: BTreeSet<EntryId> = ids(&bed, Kind::Entry).into_iter().collect();
                always.retain(|id| there.contains(id));
            }
        }
        let distinct: BTreeSet<EntryId> = seen.iter().copied().collect();
        prop_assert_eq!(distinct.len(), seen.len(), "nothing is seen twice");
        if ended {
            prop_assert!(always.is_subset(&distinct), "{:?} was there all the time", always.difference(&distinct));
        }
    }
}
