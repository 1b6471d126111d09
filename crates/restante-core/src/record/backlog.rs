//! The records around entries: intake, markers, payload, order, counters.

use restante_core_derive::VisitAtoms;
use restante_kv::{StoreTime, Value};
use serde::{Deserialize, Serialize};

use super::{FORMAT, FORMAT_EXTENDED, Record, Unreadable, decode_extended, encode_extended, plain_record};
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

/// Serialises an instant that may be missing as its milliseconds.
pub(crate) mod optional_store_time {
    use restante_kv::StoreTime;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(at: &Option<StoreTime>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(StoreTime::as_ms).serialize(serializer)
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StoreTime>, D::Error> {
        Option::<u64>::deserialize(deserializer).map(|ms| ms.map(StoreTime::from_ms))
    }
}

/// Serialises a [`Key`](restante_kv::Key) as its bytes.
pub(crate) mod key {
    use restante_kv::Key;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::atoms::Bytes;

    pub(crate) fn serialize<S: Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(key.as_bytes())
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        Bytes::deserialize(deserializer).map(|bytes| bytes.as_slice().into())
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
    /// A message of an old queue that this key follows from was about to be tried there: no adoption of it as it was then, or
    /// earlier, commits any more.
    Tried {
        /// How many attempts it had behind it.
        failure_count: u32,
    },
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
    /// Entries that a gate parked under a hold, not claimed since.
    #[serde(skip)]
    pub held: i64,
    /// Entries that a gate parked before a circuit that was not closed, not claimed since.
    #[serde(skip)]
    pub circuit_held: i64,
}

impl Record for Counters {
    fn encode(&self) -> Value {
        let extension = (self.held, self.circuit_held);
        let is_extended = extension != (0, 0);
        let format = if is_extended { FORMAT_EXTENDED } else { FORMAT };
        encode_extended(&[format], self, is_extended.then_some(&extension))
    }
    fn decode(value: &Value) -> Result<Self, Unreadable> {
        let (counters, (held, circuit_held)) = decode_extended::<Self, (i64, i64)>(value, 0)?;
        Ok(Self { held, circuit_held, ..counters })
    }
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
            held: self.held.saturating_add(other.held),
            circuit_held: self.circuit_held.saturating_add(other.circuit_held),
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
            held: self.held.saturating_sub(other.held),
            circuit_held: self.circuit_held.saturating_sub(other.circuit_held),
        }
    }
}

impl std::fmt::Display for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { entries, leased, quarantined, intents, pending_recipients, held, circuit_held } = self;
        write!(
            f,
            "{entries} entries ({leased} leased, {held} held, {circuit_held} held by a circuit), {intents} intents \
             ({pending_recipients} recipients pending) and {quarantined} quarantined"
        )
    }
}

plain_record!(Intake, Marker, Stage, PayloadChunk, Member, OrderKeyQueue, Lane, LaneSlot);
