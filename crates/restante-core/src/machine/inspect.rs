//! Looking at entries, at what was put aside and at what was given up. No row type has a field that could hold a payload or a signing
//! reference.

use std::collections::BTreeSet;
use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Key, KeyRange, Page, StoreTime, Versioned};

use crate::atoms::{EntryId, Fence, SendId};
use crate::keys::Kind;
use crate::plan::Env;
use crate::record::{
    Block, Circuit, CircuitState, DeadIntent, DeadLetter, Destination, DropReason, Entry, HoldInterval, Intent, LaneRef, Lease,
    QuarantineReason, Quarantined, Record, Unreadable, WaitReason,
};

/// What may be shown of an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct InspectRow {
    /// The delivery.
    pub id: EntryId,
    /// Where it goes.
    pub inbox: Arc<str>,
    /// Its destination: what is known of that stands in [`DestinationPage`].
    pub destination: Arc<str>,
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
        retention_end_at: entry.ends_at(env.config.max_retention_ms),
        inbox: entry.inbox,
        destination: entry.destination,
        origin: entry.origin,
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

/// What is left of a delivery that was given up.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct DeadLetterRow {
    /// The delivery.
    pub id: EntryId,
    /// Where it should have gone.
    pub inbox: Arc<str>,
    /// Why it was given up.
    pub reason: DropReason,
    /// Attempts that were settled: those that failed, and the one that was refused for good.
    pub attempts: u32,
    /// When the backlog had taken ownership.
    pub origin: StoreTime,
    /// When this trace is forgotten.
    pub expires_at: StoreTime,
}

/// What is left of an intent that was given up with recipients left.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct DeadIntentRow {
    /// The send.
    pub send: SendId,
    /// Why it was given up.
    pub reason: DropReason,
    /// Recipients that were deliveries already: each of them has an end of its own.
    pub expanded: u32,
    /// Recipients in all.
    pub total: u32,
    /// When the backlog had taken ownership.
    pub origin: StoreTime,
    /// When this trace is forgotten.
    pub expires_at: StoreTime,
}

/// One page of what was given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetterPage {
    /// Intents, in the order of their sends. They come before all dead letters.
    pub intents: Vec<DeadIntentRow>,
    /// Deliveries, in the order of their ids.
    pub rows: Vec<DeadLetterRow>,
    /// Traces of another version, or damaged; an intent's under [`EntryId::of_intent`].
    pub unreadable: Vec<(EntryId, Unreadable)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Key>,
}

/// The range to scan, from `next` of an earlier page or from the beginning.
pub fn dead_letter_range(env: &Env, next: Option<Key>) -> KeyRange {
    let all = env.keys.all_of_both(Kind::DeadIntent, Kind::DeadLetter);
    match next {
        Some(start) if all.contains(&start) => KeyRange { start, ..all },
        _ => all,
    }
}

/// What a scanned page shows.
pub fn dead_letter_page(env: &Env, page: &Page) -> DeadLetterPage {
    let mut shown = DeadLetterPage { intents: Vec::new(), rows: Vec::new(), unreadable: Vec::new(), next: page.next.clone() };
    for (key, record) in &page.entries {
        if let Ok(id) = env.keys.read_entry(Kind::DeadLetter, key) {
            match DeadLetter::decode(&record.value) {
                Ok(letter) => shown.rows.push(dead_letter_row(id, letter)),
                Err(why) => shown.unreadable.push((id, why)),
            }
        } else if let Ok(send) = env.keys.read_send(Kind::DeadIntent, key) {
            match DeadIntent::decode(&record.value) {
                Ok(trace) => shown.intents.push(dead_intent_row(send, &trace)),
                Err(why) => shown.unreadable.push((EntryId::of_intent(send), why)),
            }
        }
    }
    shown
}

fn dead_letter_row(id: EntryId, letter: DeadLetter) -> DeadLetterRow {
    // What is refused for good is given up before it is counted as failed; it was an attempt all the same.
    let refused = u32::from(matches!(letter.reason, DropReason::Permanent(_)));
    DeadLetterRow {
        id,
        inbox: letter.inbox,
        reason: letter.reason,
        attempts: letter.failure_count.saturating_add(refused),
        origin: letter.origin,
        expires_at: letter.expires_at,
    }
}

fn dead_intent_row(send: SendId, trace: &DeadIntent) -> DeadIntentRow {
    DeadIntentRow {
        send,
        reason: trace.reason,
        expanded: trace.cursor,
        total: trace.total,
        origin: trace.origin,
        expires_at: trace.expires_at,
    }
}

/// What may be shown of a destination of which something is known.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DestinationRow {
    /// Scheme, host and non-default port.
    pub destination: Arc<str>,
    /// Why nothing is posted there now, and until when as far as it is known; `None` if nothing keeps its work back.
    pub blocked: Option<(Block, StoreTime)>,
    /// When the hold that lasts now ends, and whether that is a guess.
    pub held: Option<HoldInterval>,
    /// Holds that have not begun yet, in order.
    pub holds_to_come: Vec<HoldInterval>,
    /// When the pause that it asked for ends, if it lasts: `blocked` names only the first of all reasons.
    pub paced_until: Option<StoreTime>,
    /// How its circuit stands.
    pub circuit: CircuitState,
    /// Since when its circuit has not been closed; while it counts, since when.
    pub circuit_since: Option<StoreTime>,
    /// Failures that count while it is closed.
    pub failure_count: usize,
}

/// One page of destinations of which something is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DestinationPage {
    /// In the order of their names.
    pub rows: Vec<DestinationRow>,
    /// Destinations whose record is another version's, or damaged.
    pub unreadable: Vec<(Arc<str>, Unreadable)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Key>,
}

/// The range to scan, from `next` of an earlier page or from the beginning.
pub fn destination_range(env: &Env, next: Option<Key>) -> KeyRange {
    let all = env.keys.all(Kind::Destination);
    match next {
        Some(start) if all.contains(&start) => KeyRange { start, ..all },
        _ => all,
    }
}

/// What a page that was scanned at `at` shows.
pub fn destination_page(env: &Env, page: &Page, at: StoreTime) -> DestinationPage {
    let mut shown = DestinationPage { rows: Vec::new(), unreadable: Vec::new(), next: page.next.clone() };
    for (key, record) in &page.entries {
        let Ok(destination) = env.keys.read_destination(key) else { continue };
        match Destination::decode(&record.value) {
            Ok(known) => shown.rows.push(row_of_destination(env, destination, &known, at)),
            Err(why) => shown.unreadable.push((destination, why)),
        }
    }
    shown
}

/// The keys to read to see what is known of the destinations of these entries, in portions of at most `keys_max`.
pub fn destination_keys(env: &Env, rows: &[InspectRow], keys_max: usize) -> Vec<Vec<Key>> {
    let destinations: BTreeSet<&str> = rows.iter().map(|row| &*row.destination).collect();
    let keys: Vec<Key> = destinations.into_iter().map(|destination| env.keys.destination(destination)).collect();
    keys.chunks(keys_max.max(1)).map(<[Key]>::to_vec).collect()
}

/// What records that were read under [`destination_keys`] at `at` show. One that cannot be read shows nothing: a page of destinations
/// names it.
pub fn destinations_read(env: &Env, keys: &[Key], records: &[Option<Versioned>], at: StoreTime) -> Vec<DestinationRow> {
    let row = |(key, record): (&Key, &Option<Versioned>)| {
        let known = Destination::decode(&record.as_ref()?.value).ok()?;
        Some(row_of_destination(env, env.keys.read_destination(key).ok()?, &known, at))
    };
    keys.iter().zip(records).filter_map(row).collect()
}

/// What may be shown of a destination at `at`; also beside an entry that goes there.
pub fn row_of_destination(env: &Env, destination: Arc<str>, known: &Destination, at: StoreTime) -> DestinationRow {
    let breaker = known.breaker_at(at);
    DestinationRow {
        destination,
        // A held destination is looked at again before its hold ends; what is shown is the hold's end.
        blocked: known.block_at(at, &env.config).map(|(block, until)| (block, known.held_until(at).unwrap_or(until))),
        held: known.holds.iter().find(|hold| hold.from <= at && at < hold.until).copied(),
        holds_to_come: known.holds.iter().filter(|hold| at < hold.from).copied().collect(),
        paced_until: Some(known.paced_until).filter(|until| at < *until),
        circuit: known.circuit_at(at),
        circuit_since: breaker.map(|breaker| breaker.since),
        failure_count: breaker.map_or(0, |breaker| match &breaker.circuit {
            Circuit::Counting(failures) => failures.len(),
            Circuit::Open { .. } | Circuit::HalfOpen(_) => 0,
        }),
    }
}
