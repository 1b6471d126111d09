//! The entry, one delivery, and the rows that make it discoverable.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{StoreTime, Value};
use serde::{Deserialize, Serialize};

use super::{FORMAT, Record, Unreadable, decode_body, encode_body, plain_record, split_format};
use crate::atoms::{Bytes, Fence, OwnerId, Position, Sealed};
use crate::record::backlog::store_time;

/// How an entry is counted. It stands right behind the format byte, in every format, so that a worker which cannot read an
/// entry of another version can still count it out exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Nobody works on it.
    Waiting,
    /// A claim took it and no settle gave it back yet; its lease may have expired.
    Leased,
}

impl Class {
    const fn to_byte(self) -> u8 {
        match self {
            Self::Waiting => b'w',
            Self::Leased => b'l',
        }
    }

    /// The class of an entry of any format; `None` when the bytes are too damaged to tell.
    pub fn of(value: &Value) -> Option<Self> {
        match value.as_bytes() {
            [_, b'w', ..] => Some(Self::Waiting),
            [_, b'l', ..] => Some(Self::Leased),
            _ => None,
        }
    }
}

/// Where the payload is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub enum Body {
    /// In the entry.
    Inline(Bytes),
    /// In chunks beside it, shared by all entries of the send.
    Staged {
        /// Number of chunks, at least 1.
        chunk_count: u32,
    },
}

/// A time-bounded right to work on an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Lease {
    /// Who holds it.
    pub owner: OwnerId,
    /// When it ends, in store time.
    #[serde(with = "store_time")]
    pub expires_at: StoreTime,
}

/// Why an entry waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub enum WaitReason {
    /// Accepted, never tried.
    New,
    /// Behind an earlier entry of its order key and destination.
    Lane,
    /// The destination or the way to it failed; waiting for the next attempt.
    Backoff,
    /// The destination asked for a pause (Retry-After).
    RateLimited,
    /// It is unknown whether the last attempt arrived; waiting for the next one.
    Unknown,
    /// Somebody asked for an immediate re-evaluation.
    Woken,
}

/// Membership in a lane.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct LaneRef {
    /// The order key of the send.
    pub order_key: Arc<str>,
    /// Place in the lane of (order key, destination).
    pub position: Position,
}

/// One delivery.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Entry {
    /// URL to POST to.
    pub inbox: Arc<str>,
    /// Scheme, host and non-default port of `inbox`: the unit of pacing and ordering.
    pub destination: Arc<str>,
    /// The prepared bytes, or where they are.
    pub body: Body,
    /// What the sender needs to sign; unprintable.
    pub signing: Sealed,
    /// When the backlog took ownership. Immutable; retention runs from here.
    #[serde(with = "store_time")]
    pub origin: StoreTime,
    /// Settled attempts that did not deliver. 0 at first; a crash adds nothing.
    pub failure_count: u32,
    /// When the entry may be claimed next: its due instant, or the end of its lease. Its due row stands under this instant.
    #[serde(with = "store_time")]
    pub vest_at: StoreTime,
    /// The current lease; `None` while nobody works on it.
    pub lease: Option<Lease>,
    /// Token of the latest claim; 0 before the first.
    pub fence: Fence,
    /// The lane, for a keyed send.
    pub lane: Option<LaneRef>,
    /// Whether the entry may be claimed: always for an unkeyed one, as the head of its lane for a keyed one.
    /// Cleared only by a revive, which puts another one in front of it.
    pub active: bool,
    /// Why it waits.
    pub wait: WaitReason,
    /// Rises with every wake. A settle that finds another value than its claim saw makes the entry due at once.
    pub wake_gen: u64,
}

impl Entry {
    /// How it is counted.
    pub const fn class(&self) -> Class {
        if self.lease.is_some() { Class::Leased } else { Class::Waiting }
    }
}

impl Record for Entry {
    fn encode(&self) -> Value {
        encode_body(&[FORMAT, self.class().to_byte()], self)
    }
    fn decode(value: &Value) -> Result<Self, Unreadable> {
        let [_class, body @ ..] = split_format(value)? else { return Err(Unreadable::Corrupt) };
        let entry: Self = decode_body(body)?;
        if Class::of(value) == Some(entry.class()) { Ok(entry) } else { Err(Unreadable::Corrupt) }
    }
}

/// Value of a due row. It repeats the lane so that an unreadable entry can still release it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct DueRow {
    /// The entry's lane.
    pub lane: Option<LaneRef>,
}

/// Value of a pointer row: nothing, its key says all.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Pointer {}

plain_record!(DueRow, Pointer);
