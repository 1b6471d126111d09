//! The records of upkeep: sweep state, quarantine, dead letters.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Key, StoreTime, Value};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::backlog::{key, store_time};
use super::{FORMAT, FORMAT_EXTENDED, Record, Unreadable, decode_extended, encode_extended, plain_record};
use crate::atoms::{Bytes, Fence, OwnerId};

/// How far the sweep is. Absent means that none was ever started.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct SweepState {
    /// Who began or took over the latest sweep.
    pub owner: OwnerId,
    /// While this lies ahead, nobody else begins one or takes it over; the epoch when none is under way.
    #[serde(with = "store_time")]
    pub taken_until: StoreTime,
    /// When the latest sweep began, whoever began it.
    #[serde(with = "store_time")]
    pub started_at: StoreTime,
    /// Whether a sweep was ever completed.
    pub completed: bool,
    /// When the latest *complete* sweep began.
    #[serde(with = "store_time")]
    pub completed_from: StoreTime,
    /// How far a sweep has come that was not completed yet; `None` while it has recorded nothing.
    #[serde(skip)]
    pub place: Option<SweepPlace>,
}

/// How far a sweep has come. Format 2 has it, format 1 had no place for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct SweepPlace {
    /// Where it goes on; everything before was seen since it began.
    #[serde(with = "key")]
    pub next: Key,
    /// Whether something before could not be repaired: then the sweep proves nothing when it reaches the end.
    pub skipped: bool,
}

impl Record for SweepState {
    fn encode(&self) -> Value {
        let format = if self.place.is_some() { FORMAT_EXTENDED } else { FORMAT };
        encode_extended(&[format], self, self.place.as_ref().map(Some).as_ref())
    }
    fn decode(value: &Value) -> Result<Self, Unreadable> {
        let (state, place) = decode_extended::<Self, Option<SweepPlace>>(value, 0)?;
        Ok(Self { place, ..state })
    }
}

/// Why a record was put aside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, VisitAtoms, Error)]
pub enum QuarantineReason {
    /// Its format is another version's.
    #[error("unknown format {0}")]
    UnknownFormat(u8),
    /// Its bytes are damaged.
    #[error("damaged")]
    Corrupt,
    /// An intent whose next chunk would have made an entry that is there already.
    #[error("an entry stands where its expansion goes")]
    ExpansionConflict,
    /// An intent whose snapshot of recipients is incomplete or unreadable.
    #[error("its recipients cannot be read")]
    RecipientsUnreadable,
}

impl From<Unreadable> for QuarantineReason {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::UnknownFormat(format) => Self::UnknownFormat(format),
            Unreadable::Corrupt => Self::Corrupt,
        }
    }
}

/// A record put aside: kept whole, for a finite time, and delivered by nobody.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Quarantined {
    /// Why.
    pub reason: QuarantineReason,
    /// The record as it was found.
    pub record: Bytes,
    /// When it is dropped, with an observation.
    #[serde(with = "store_time")]
    pub expires_at: StoreTime,
}

/// Why a delivery was given up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, VisitAtoms, Error)]
pub enum DropReason {
    /// The destination refused it for good (status code).
    #[error("refused for good with status {0}")]
    Permanent(u16),
    /// `max_retention` ran out.
    #[error("expired")]
    Expired,
    /// The last of `attempts_max` attempts failed.
    #[error("attempts exhausted")]
    AttemptsExhausted,
    /// Its payload is not readable any more.
    #[error("payload unreadable")]
    PayloadUnreadable,
    /// The circuit of its destination kept it back for `circuit_held_max_ms`.
    #[error("held by an open circuit for too long")]
    CircuitHeld,
    /// `retry_age_max_ms` ran out, time under holds not counted.
    #[error("too old for another attempt")]
    RetryAge,
}

/// The trace of a delivery that was given up; it holds no payload.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct DeadLetter {
    /// Why.
    pub reason: DropReason,
    /// The fencing token that settled it.
    pub fence: Fence,
    /// Where it should have gone.
    pub inbox: Arc<str>,
    /// When the backlog had taken ownership.
    #[serde(with = "store_time")]
    pub origin: StoreTime,
    /// Settled attempts that did not deliver.
    pub failure_count: u32,
    /// When this record is pruned.
    #[serde(with = "store_time")]
    pub expires_at: StoreTime,
}

plain_record!(Quarantined, DeadLetter);
