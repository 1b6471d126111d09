//! Looking at entries and at what was put aside. No row type has a field that could hold a payload or a signing reference.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Key, KeyRange, Page, StoreTime, Versioned};

use crate::atoms::{EntryId, Fence, SendId};
use crate::keys::Kind;
use crate::plan::Env;
use crate::record::{Entry, Intent, LaneRef, Lease, QuarantineReason, Quarantined, Record, Unreadable, WaitReason};

/// What may be shown of an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct InspectRow {
    /// The delivery.
    pub id: EntryId,
    /// Where it goes.
    pub inbox: Arc<str>,
    /// When the backlog took ownership.
    pub origin: StoreTime,
    /// When it is given up.
    pub retention_end_at: StoreTime,
    /// When it is due, or its lease ends.
    pub vest_at: StoreTime,
    /// Settled attempts that did not deliver.
    pub failure_count: u32,
    /// Its latest token.
    pub fence: Fence,
    /// Its lease.
    pub lease: Option<Lease>,
    /// Its lane.
    pub lane: Option<LaneRef>,
    /// Why it waits.
    pub wait: WaitReason,
}

/// One page of an inspection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InspectPage {
    /// Readable entries, in the order of their ids.
    pub rows: Vec<InspectRow>,
    /// Entries of another version, or damaged.
    pub unreadable: Vec<(EntryId, Unreadable)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Key>,
}

/// The range to scan, from `next` of an earlier page or from the beginning.
pub fn inspect_range(env: &Env, next: Option<Key>) -> KeyRange {
    let all = env.keys.all(Kind::Entry);
    match next {
        Some(start) if all.contains(&start) => KeyRange { start, ..all },
        _ => all,
    }
}

/// What a scanned page shows.
pub fn inspect_page(env: &Env, page: &Page) -> InspectPage {
    let mut shown = InspectPage { rows: Vec::new(), unreadable: Vec::new(), next: page.next.clone() };
    for (key, record) in &page.entries {
        let Ok(id) = env.keys.read_entry(Kind::Entry, key) else { continue };
        match Entry::decode(&record.value) {
            Ok(entry) => shown.rows.push(row_of(env, id, entry)),
            Err(why) => shown.unreadable.push((id, why)),
        }
    }
    shown
}

fn row_of(env: &Env, id: EntryId, entry: Entry) -> InspectRow {
    InspectRow {
        id,
        inbox: entry.inbox,
        origin: entry.origin,
        retention_end_at: entry.origin.plus_ms(env.config.max_retention_ms),
        vest_at: entry.vest_at,
        failure_count: entry.failure_count,
        fence: entry.fence,
        lease: entry.lease,
        lane: entry.lane,
        wait: entry.wait,
    }
}

/// What may be shown of an intent.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct IntentRow {
    /// The send.
    pub send: SendId,
    /// Recipients that are deliveries already.
    pub expanded: u32,
    /// Recipients in all.
    pub total: u32,
    /// When the backlog took ownership.
    pub origin: StoreTime,
    /// When what is left of it is given up.
    pub retention_end_at: StoreTime,
    /// When it is due, or its lease ends.
    pub vest_at: StoreTime,
    /// Its latest token.
    pub fence: Fence,
    /// Its lease.
    pub lease: Option<Lease>,
    /// Its order key, and its place among the intents of it.
    pub place: Option<LaneRef>,
    /// Whether it may be expanded: not while it waits behind an earlier intent of its order key.
    pub active: bool,
}

/// One page of intents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentPage {
    /// Readable intents, in the order of their sends.
    pub rows: Vec<IntentRow>,
    /// Intents of another version, or damaged.
    pub unreadable: Vec<(SendId, Unreadable)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Key>,
}

/// The range to scan, from `next` of an earlier page or from the beginning.
pub fn intent_range(env: &Env, next: Option<Key>) -> KeyRange {
    let all = env.keys.all(Kind::Intent);
    match next {
        Some(start) if all.contains(&start) => KeyRange { start, ..all },
        _ => all,
    }
}

/// What a scanned page shows.
pub fn intent_page(env: &Env, page: &Page) -> IntentPage {
    let mut shown = IntentPage { rows: Vec::new(), unreadable: Vec::new(), next: page.next.clone() };
    for (key, record) in &page.entries {
        let Ok(send) = env.keys.read_send(Kind::Intent, key) else { continue };
        match Intent::decode(&record.value) {
            Ok(intent) => shown.rows.push(intent_row(env, send, intent)),
            Err(why) => shown.unreadable.push((send, why)),
        }
    }
    shown
}

fn intent_row(env: &Env, send: SendId, intent: Intent) -> IntentRow {
    IntentRow {
        send,
        expanded: intent.cursor,
        total: intent.total,
        origin: intent.origin,
        retention_end_at: intent.origin.plus_ms(env.config.max_retention_ms),
        vest_at: intent.vest_at,
        fence: intent.fence,
        lease: intent.lease,
        place: intent.place,
        active: intent.active,
    }
}

/// What may be shown of a quarantined record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuarantineRow {
    /// The delivery.
    pub id: EntryId,
    /// Why it was put aside.
    pub reason: QuarantineReason,
    /// When it is dropped.
    pub expires_at: StoreTime,
    /// Size of the record that was put aside, in bytes.
    pub bytes: usize,
    /// What this version reads of it; `None` if it cannot read it either, or if it is an intent.
    pub readable: Option<InspectRow>,
    /// What this version reads of it, if it is an intent.
    pub intent: Option<IntentRow>,
}

/// One page of what was put aside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuarantinePage {
    /// In the order of their ids.
    pub rows: Vec<QuarantineRow>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Key>,
}

/// The range to scan, from `next` of an earlier page or from the beginning.
pub fn quarantine_range(env: &Env, next: Option<Key>) -> KeyRange {
    let all = env.keys.all(Kind::Quarantined);
    match next {
        Some(start) if all.contains(&start) => KeyRange { start, ..all },
        _ => all,
    }
}

/// What a scanned page shows.
pub fn quarantine_page(env: &Env, page: &Page) -> QuarantinePage {
    let row = |(key, record): &(Key, Versioned)| {
        let id = env.keys.read_entry(Kind::Quarantined, key).ok()?;
        let aside = Quarantined::decode(&record.value).ok()?;
        let record = aside.record.as_slice().into();
        let (readable, intent) = if id.is_intent() {
            (None, Intent::decode(&record).ok().map(|intent| intent_row(env, id.send, intent)))
        } else {
            (Entry::decode(&record).ok().map(|entry| row_of(env, id, entry)), None)
        };
        let (reason, expires_at, bytes) = (aside.reason, aside.expires_at, aside.record.len());
        Some(QuarantineRow { id, reason, expires_at, bytes, readable, intent })
    };
    QuarantinePage { rows: page.entries.iter().filter_map(row).collect(), next: page.next.clone() }
}
