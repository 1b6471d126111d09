//! Entries, and what was put aside.

use std::collections::BTreeMap;
use std::sync::Arc;

use restante_core::machine::{DestinationRow, InspectPage, InspectRow, QuarantinePage, QuarantineRow};
use restante_core::record::{Block, QuarantineReason, WaitReason};
use serde::{Deserialize, Serialize};

use super::{instant, write_cursor};

/// A lease.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseView {
    /// Who holds it: one start of one worker.
    pub owner: String,
    /// When it ends.
    pub expires_at: String,
}

/// What keeps a destination's work back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockView {
    /// `held`, `paced` (it asked for a pause) or `circuit`.
    pub by: String,
    /// Until then, as far as it is known.
    pub until: String,
}

impl BlockView {
    pub(super) fn of(row: &DestinationRow) -> Option<Self> {
        let (block, until) = row.blocked?;
        let by = match block {
            Block::Held => "held",
            Block::Paced => "paced",
            Block::Circuit => "circuit",
        };
        Some(Self { by: by.to_owned(), until: instant(until) })
    }
}

/// What is known of destinations, by name.
pub(crate) type Destinations = BTreeMap<Arc<str>, DestinationRow>;

/// One delivery.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryView {
    /// Its id: the send's, a point, the recipient's number.
    pub id: String,
    /// Where it goes.
    pub inbox: String,
    /// When the backlog took ownership.
    pub origin: String,
    /// When it is given up; absent where `max_retention` is not configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_end_at: Option<String>,
    /// When it is due, or its lease ends.
    pub vest_at: String,
    /// Settled attempts that did not deliver.
    pub failure_count: u32,
    /// Its latest fencing token.
    pub fence: u64,
    /// Its lease, while somebody works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseView>,
    /// Its order key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_key: Option<String>,
    /// Its place in its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Why it waits.
    pub wait: String,
    /// What keeps back all that goes to its destination, at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockView>,
}

impl EntryView {
    /// `with_retention`: whether the configured retention is one.
    pub(crate) fn new(row: &InspectRow, with_retention: bool) -> Self {
        Self {
            id: row.id.to_string(),
            inbox: row.inbox.to_string(),
            origin: instant(row.origin),
            retention_end_at: with_retention.then(|| instant(row.retention_end_at)),
            vest_at: instant(row.vest_at),
            failure_count: row.failure_count,
            fence: row.fence.get(),
            lease: row.lease.map(|lease| LeaseView { owner: lease.owner.to_string(), expires_at: instant(lease.expires_at) }),
            order_key: row.lane.as_ref().map(|lane| lane.order_key.to_string()),
            position: row.lane.as_ref().map(|lane| lane.position.get()),
            wait: wait_name(row.wait).to_owned(),
            blocked: None,
        }
    }

    /// The same beside what is known of its destination.
    pub(crate) fn beside(row: &InspectRow, destinations: &Destinations, with_retention: bool) -> Self {
        let blocked = destinations.get(&row.destination).and_then(BlockView::of);
        Self { blocked, ..Self::new(row, with_retention) }
    }
}

/// Why an entry waits, as a word.
const fn wait_name(wait: WaitReason) -> &'static str {
    match wait {
        WaitReason::New => "new",
        WaitReason::Lane => "lane",
        WaitReason::Backoff => "backoff",
        WaitReason::RateLimited => "rate_limited",
        WaitReason::Unknown => "unknown",
        WaitReason::Woken => "woken",
        WaitReason::Held => "held",
        WaitReason::CircuitHeld => "circuit_held",
    }
}

/// A record that this version cannot read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnreadableView {
    /// Its id.
    pub id: String,
    /// Why.
    pub why: String,
}

/// One page of entries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntriesView {
    /// Those that can be read.
    pub entries: Vec<EntryView>,
    /// Those that cannot.
    pub unreadable: Vec<UnreadableView>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl EntriesView {
    pub(crate) fn new(page: &InspectPage, destinations: &Destinations, with_retention: bool) -> Self {
        Self {
            entries: page.rows.iter().map(|row| EntryView::beside(row, destinations, with_retention)).collect(),
            unreadable: page
                .unreadable
                .iter()
                .map(|(id, why)| UnreadableView { id: id.to_string(), why: why.to_string() })
                .collect(),
            next_cursor: page.next.as_ref().map(write_cursor),
        }
    }
}

/// A record that was put aside.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantineView {
    /// The id of the entry it was.
    pub id: String,
    /// `unknown_format`, `damaged`, `expansion_conflict` or `recipients_unreadable`.
    pub why: String,
    /// The unknown format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<u8>,
    /// When it is dropped.
    pub expires_at: String,
    /// Its size.
    pub bytes: u64,
    /// The entry; absent when this version cannot read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryView>,
}

impl QuarantineView {
    pub(crate) fn new(row: &QuarantineRow, with_retention: bool) -> Self {
        let (why, format) = match row.reason {
            QuarantineReason::UnknownFormat(format) => ("unknown_format", Some(format)),
            QuarantineReason::Corrupt => ("damaged", None),
            QuarantineReason::ExpansionConflict => ("expansion_conflict", None),
            QuarantineReason::RecipientsUnreadable => ("recipients_unreadable", None),
        };
        Self {
            id: row.id.to_string(),
            why: why.to_owned(),
            format,
            expires_at: instant(row.expires_at),
            bytes: row.bytes as u64,
            entry: row.readable.as_ref().map(|row| EntryView::new(row, with_retention)),
        }
    }
}

/// One page of what was put aside.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantinesView {
    /// The records.
    pub records: Vec<QuarantineView>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl QuarantinesView {
    pub(crate) fn new(page: &QuarantinePage, with_retention: bool) -> Self {
        Self {
            records: page.rows.iter().map(|row| QuarantineView::new(row, with_retention)).collect(),
            next_cursor: page.next.as_ref().map(write_cursor),
        }
    }
}
