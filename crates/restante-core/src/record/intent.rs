//! The records of a fanout: the intent, its snapshot of recipients, its place in the FIFO of its order key, and its trace.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{StoreTime, Value};
use serde::{Deserialize, Serialize};

use super::backlog::{optional_store_time, store_time};
use super::{
    Body, DropReason, FORMAT, FORMAT_EXTENDED, LaneRef, Lease, Record, Unreadable, decode_extended, encode_extended, plain_record,
};
use crate::atoms::{Fence, Sealed, SendId};

/// A send that is owned and not yet expanded into entries, or not to the end. Gone in the same commit as its last chunk.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Intent {
    /// Index of the next recipient to expand: every recipient before it was made an entry, once. Only rises.
    pub cursor: u32,
    /// Number of recipients.
    pub total: u32,
    /// Number of the chunk that holds the recipient at `cursor`.
    pub chunk: u32,
    /// The payload, or where it is; every entry gets the same.
    pub body: Body,
    /// What the sender needs to sign; unprintable.
    pub signing: Sealed,
    /// When the backlog took ownership. Immutable; retention of every entry runs from here.
    #[serde(with = "store_time")]
    pub origin: StoreTime,
    /// When it may be claimed next: its due instant, or the end of its lease. Its due row stands under this instant.
    #[serde(with = "store_time")]
    pub vest_at: StoreTime,
    /// The current lease; `None` while nobody expands it.
    pub lease: Option<Lease>,
    /// Token of the latest claim; 0 before the first.
    pub fence: Fence,
    /// Order key and place in its FIFO, for a keyed send.
    pub place: Option<LaneRef>,
    /// Whether it may be expanded: always for an unkeyed one, as the head of its FIFO for a keyed one.
    pub active: bool,
    /// Attempts that failed before the backlog owned it: of an adopted message that waits behind earlier sends of its order key.
    #[serde(skip)]
    pub failure_count: u32,
}

/// What format 1 did not have.
#[derive(Default, Serialize, Deserialize)]
struct Extension {
    failure_count: u32,
}

impl Intent {
    /// Recipients that are not entries yet.
    pub const fn remaining(&self) -> u32 {
        self.total.saturating_sub(self.cursor)
    }

    /// How many recipients an intent of any format still has. They stand right behind the format byte, so that a worker which
    /// cannot read an intent of another version can still count it exactly; `None` when the bytes are too damaged to tell.
    pub fn remaining_of(value: &[u8]) -> Option<u32> {
        match value {
            [_, a, b, c, d, ..] => Some(u32::from_be_bytes([*a, *b, *c, *d])),
            _ => None,
        }
    }
}

impl Record for Intent {
    fn encode(&self) -> Value {
        let [a, b, c, d] = self.remaining().to_be_bytes();
        let extension = (self.failure_count > 0).then_some(Extension { failure_count: self.failure_count });
        let format = if extension.is_some() { FORMAT_EXTENDED } else { FORMAT };
        encode_extended(&[format, a, b, c, d], self, extension.as_ref())
    }
    fn decode(value: &Value) -> Result<Self, Unreadable> {
        let (intent, Extension { failure_count }) = decode_extended::<Self, Extension>(value, 4)?;
        let intent = Self { failure_count, ..intent };
        let is_sound = intent.cursor <= intent.total && Self::remaining_of(value.as_bytes()) == Some(intent.remaining());
        if is_sound { Ok(intent) } else { Err(Unreadable::Corrupt) }
    }
}

/// One recipient of a snapshot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Recipient {
    /// URL to POST to.
    pub inbox: Arc<str>,
    /// Scheme, host and non-default port of `inbox`.
    pub destination: Arc<str>,
    /// When the delivery is of no use any more, if that may be before its retention ends.
    #[serde(with = "optional_store_time")]
    pub deadline: Option<StoreTime>,
}

/// A piece of the recipient snapshot; immutable once it is published.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct RecipientChunk {
    /// Index of the first recipient in it.
    pub first: u32,
    /// The recipients, in their order; never empty.
    pub recipients: Vec<Recipient>,
}

/// Which intent stands at a place behind the head of an order key's FIFO.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct IntentSlot {
    /// The intent's send.
    pub intent: SendId,
}

/// The trace of an intent that was given up with recipients left; it holds no payload.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct DeadIntent {
    /// Why.
    pub reason: DropReason,
    /// The token that ended it.
    pub fence: Fence,
    /// Index of the first recipient that was given up; those before it were made entries.
    pub cursor: u32,
    /// Number of recipients of the send.
    pub total: u32,
    /// When the backlog had taken ownership.
    #[serde(with = "store_time")]
    pub origin: StoreTime,
    /// When this record is pruned.
    #[serde(with = "store_time")]
    pub expires_at: StoreTime,
}

plain_record!(RecipientChunk, IntentSlot, DeadIntent);
