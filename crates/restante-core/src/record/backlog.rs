//! The records around entries: intake, markers, payload, order, destinations, counters.

use restante_core_derive::VisitAtoms;
use restante_kv::StoreTime;
use serde::{Deserialize, Serialize};

use super::plain_record;
use crate::atoms::{Bytes, EntryId, Position, SendId};

/// Serialises [`StoreTime`] as its milliseconds.
pub(crate) mod store_time {
    use restante_kv::StoreTime;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(at: &StoreTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(at.as_ms())
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StoreTime, D::Error> {
        u64::deserialize(deserializer).map(StoreTime::from_ms)
    }
}

/// Whether the backlog takes new work. Absent means open, epoch 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Intake {
    /// Whether accepts succeed.
    pub open: bool,
    /// Rises with every change.
    pub epoch: u64,
}

/// Proof that a send was accepted, under its idempotency key. Outlives the longest ambiguous accept.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Marker {
    /// What the accept came to.
    pub state: MarkerState,
    /// When the marker may be pruned.
    #[serde(with = "store_time")]
    pub expires_at: StoreTime,
}

/// What an accept came to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub enum MarkerState {
    /// The backlog owns the send.
    Accepted {
        /// Its id.
        send: SendId,
        /// Digest of the request, to tell a repetition from another request under the same key.
        digest: u64,
        /// Number of its recipients.
        recipient_count: u32,
    },
    /// Nobody will own a send under this key unless it is sent again.
    Aborted,
}

/// A large payload on its way in: unpublished means not accepted.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Stage {
    /// When it is collected if it was not published.
    #[serde(with = "store_time")]
    pub deadline: StoreTime,
}

/// A piece of a large payload.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct PayloadChunk {
    /// The bytes.
    pub bytes: Bytes,
}

/// An entry that still needs its send's payload chunks; written and deleted with the entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Member {}

/// The FIFO of intents of an order key. Absent, or `head == next`, means empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct OrderKeyQueue {
    /// Position of the head, the only intent that may expand.
    pub head: Position,
    /// The head.
    pub head_intent: SendId,
    /// The position the next intent takes.
    pub next: Position,
}

/// The queue of entries of one (order key, destination). Absent means empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Lane {
    /// Position of the head, the only entry that may be claimed.
    pub head: Position,
    /// The head's entry.
    pub head_entry: EntryId,
    /// The position the next entry takes.
    pub next: Position,
}

/// Which entry stands at a lane position behind the head.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct LaneSlot {
    /// The entry.
    pub entry: EntryId,
}

/// What is known of a destination. Absent means nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Destination {
    /// No POST begins before this instant (the destination's own Retry-After).
    #[serde(with = "store_time")]
    pub paced_until: StoreTime,
}

/// One slot of the counters; depth is the sum of all slots. A slot alone may be negative.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, VisitAtoms)]
pub struct Counters {
    /// Entries, leased ones included, quarantined ones not.
    pub entries: i64,
    /// Entries taken by a claim and not settled.
    pub leased: i64,
    /// Quarantined records.
    pub quarantined: i64,
    /// Intents, quarantined ones not.
    pub intents: i64,
    /// Recipients of intents, quarantined ones included, that are not entries yet.
    pub pending_recipients: i64,
}

impl Counters {
    /// The sum; saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            leased: self.leased.saturating_add(other.leased),
            quarantined: self.quarantined.saturating_add(other.quarantined),
            intents: self.intents.saturating_add(other.intents),
            pending_recipients: self.pending_recipients.saturating_add(other.pending_recipients),
        }
    }
    /// The difference; saturates.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(other.entries),
            leased: self.leased.saturating_sub(other.leased),
            quarantined: self.quarantined.saturating_sub(other.quarantined),
            intents: self.intents.saturating_sub(other.intents),
            pending_recipients: self.pending_recipients.saturating_sub(other.pending_recipients),
        }
    }
}

impl std::fmt::Display for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { entries, leased, quarantined, intents, pending_recipients } = self;
        write!(
            f,
            "{entries} entries ({leased} leased), {intents} intents ({pending_recipients} recipients pending) and {quarantined} quarantined"
        )
    }
}

plain_record!(Intake, Marker, Stage, PayloadChunk, Member, OrderKeyQueue, Lane, LaneSlot, Destination, Counters);
