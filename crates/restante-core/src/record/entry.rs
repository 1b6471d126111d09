//! The entry, one delivery, and the rows that make it discoverable.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{StoreTime, Value};
use serde::{Deserialize, Serialize};

use super::{Counters, FORMAT, FORMAT_EXTENDED, Record, Unreadable, decode_extended, encode_extended, plain_record};
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
    /// A gate parked it under a hold, and nobody claimed it since.
    Held,
    /// A gate parked it before a circuit that was not closed, and nobody claimed it since.
    CircuitHeld,
}

impl Class {
    const fn to_byte(self) -> u8 {
        match self {
            Self::Waiting => b'w',
            Self::Leased => b'l',
            Self::Held => b'h',
            Self::CircuitHeld => b'c',
        }
    }

    /// The class of an entry of any format; `None` when the bytes are too damaged to tell.
    pub fn of(value: &Value) -> Option<Self> {
        match value.as_bytes() {
            [_, b'w', ..] => Some(Self::Waiting),
            [_, b'l', ..] => Some(Self::Leased),
            [_, b'h', ..] => Some(Self::Held),
            [_, b'c', ..] => Some(Self::CircuitHeld),
            _ => None,
        }
    }

    /// What one entry of this class adds to the counters.
    pub fn counted(self) -> Counters {
        let one = Counters { entries: 1, ..Counters::default() };
        match self {
            Self::Waiting => one,
            Self::Leased => Counters { leased: 1, ..one },
            Self::Held => Counters { held: 1, ..one },
            Self::CircuitHeld => Counters { circuit_held: 1, ..one },
        }
    }

    /// What an entry of the class that these bytes name adds to the counters; damaged ones count as waiting.
    pub fn counted_of(value: &Value) -> Counters {
        Self::of(value).unwrap_or(Self::Waiting).counted()
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
    /// Its destination was held when a gate looked last.
    Held,
    /// The circuit of its destination was not closed when a gate looked last.
    CircuitHeld,
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
    /// Of its own accord no longer of use after this instant, which may cut its retention short and never extends it. Immutable.
    #[serde(skip)]
    pub deadline: Option<StoreTime>,
}

/// What format 1 did not have.
#[derive(Default, Serialize, Deserialize)]
struct Extension {
    deadline_ms: Option<u64>,
}

impl Entry {
    /// How it is counted.
    pub const fn class(&self) -> Class {
        match (self.lease, self.wait) {
            (Some(_), _) => Class::Leased,
            (None, WaitReason::Held) => Class::Held,
            (None, WaitReason::CircuitHeld) => Class::CircuitHeld,
            (None, _) => Class::Waiting,
        }
    }

    /// When it is given up whatever else happens: the end of retention, or its own deadline if that is earlier.
    pub fn ends_at(&self, max_retention_ms: u64) -> StoreTime {
        let retention_end = self.origin.plus_ms(max_retention_ms);
        self.deadline.map_or(retention_end, |deadline| deadline.min(retention_end))
    }
}

impl Record for Entry {
    fn encode(&self) -> Value {
        let is_parked = matches!(self.wait, WaitReason::Held | WaitReason::CircuitHeld);
        let is_extended = is_parked || self.deadline.is_some();
        let extension = is_extended.then(|| Extension { deadline_ms: self.deadline.map(StoreTime::as_ms) });
        let format = if is_extended { FORMAT_EXTENDED } else { FORMAT };
        encode_extended(&[format, self.class().to_byte()], self, extension.as_ref())
    }
    fn decode(value: &Value) -> Result<Self, Unreadable> {
        let (entry, extension) = decode_extended::<Self, Extension>(value, 1)?;
        let entry = Self { deadline: extension.deadline_ms.map(StoreTime::from_ms), ..entry };
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
