//! What really happened, kept beside the production records and never in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use restante_core::atoms::{EntryId, Fence, Position, SendId};
use restante_core::plan::Recipient;
use restante_engine::SimTime;
use restante_kv::StoreTime;

use super::destinations::GateSeen;

/// How an entry ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Delivered,
    Dropped,
    Quarantined,
}

/// A lease as it was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GhostLease {
    pub(super) fence: Fence,
    pub(super) expires_at: StoreTime,
}

/// The truth about an entry.
#[derive(Clone, Debug)]
pub(super) struct GhostEntry {
    pub(super) origin: StoreTime,
    /// After which it is of no use, by its sender.
    pub(super) deadline: Option<StoreTime>,
    pub(super) end: Option<End>,
    /// Highest token of any claim.
    pub(super) fence_max: Fence,
    /// The latest lease, as its claim or renewal granted it.
    pub(super) lease: Option<GhostLease>,
    /// Order key and destination, for a keyed one.
    pub(super) lane: Option<(Arc<str>, Arc<str>)>,
    /// Its place in that lane.
    pub(super) position: Option<Position>,
    pub(super) destination: Arc<str>,
    /// A wake was committed during the lease and no settle answered it yet.
    pub(super) wake_pending: bool,
    /// Tokens whose POST began.
    pub(super) posted: BTreeSet<Fence>,
    /// Tokens whose POST the destination accepted.
    pub(super) accepted: BTreeSet<Fence>,
    /// Tokens whose sender was told so while it held the lease.
    pub(super) told: BTreeSet<Fence>,
    /// When the latest gate read its snapshot, with its token.
    pub(super) gate_read_at: Option<(Fence, StoreTime)>,
    /// What the latest gate would have seen, had it read what was there.
    pub(super) gate_seen: Option<GateSeen>,
    /// When it was claimed last.
    pub(super) claimed_at: StoreTime,
    /// When it was created or changed last.
    pub(super) changed_at: SimTime,
}

/// The truth about an intent.
#[derive(Clone, Debug)]
pub(super) struct GhostIntent {
    /// The snapshot that was accepted.
    pub(super) recipients: Vec<Recipient>,
    pub(super) order_key: Option<Arc<str>>,
    /// Its place among the intents of that key.
    pub(super) position: Option<Position>,
    /// Recipients that became entries.
    pub(super) cursor: u32,
    /// `Delivered` stands for "expanded to the last recipient".
    pub(super) end: Option<End>,
    pub(super) fence_max: Fence,
    pub(super) lease: Option<GhostLease>,
    pub(super) changed_at: SimTime,
}

impl GhostIntent {
    /// Recipients that are no entries.
    pub(super) fn left(&self) -> u32 {
        (self.recipients.len() as u32).saturating_sub(self.cursor)
    }
}

/// The truth about a send.
#[derive(Clone, Debug, Default)]
pub(super) struct GhostSend {
    /// The attempt that was committed.
    pub(super) owned: Option<SendId>,
    /// Attempts whose caller was told that they are not owned.
    pub(super) told_not_owned: BTreeSet<SendId>,
    /// The payload.
    pub(super) payload: restante_core::atoms::Bytes,
}

/// A lane's entries that are not terminal, in accepted order.
pub(super) type GhostLane = std::collections::VecDeque<EntryId>;
