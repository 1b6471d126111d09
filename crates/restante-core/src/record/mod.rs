//! Records as they lie in the store: versioned envelopes around compact bodies.
//!
//! A record is one format byte and a [postcard](https://postcard.jamesmunns.com/wire-format) body. A worker that meets a
//! format it does not know says so ([`Unreadable::UnknownFormat`]) and never guesses. Golden-byte tests pin every format.

mod backlog;
mod entry;
mod intent;
mod redact;
mod upkeep;

pub use backlog::{
    Counters, Destination, Intake, Lane, LaneSlot, Marker, MarkerState, Member, OrderKeyQueue, PayloadChunk, Stage,
};
pub use entry::{Body, Class, DueRow, Entry, LaneRef, Lease, Pointer, WaitReason};
pub use intent::{DeadIntent, Intent, IntentSlot, Recipient, RecipientChunk};
pub use redact::redact;
pub use upkeep::{DeadLetter, DropReason, QuarantineReason, Quarantined, SweepState};

use restante_core_derive::VisitAtoms;
use restante_kv::Value;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// The format this build writes, for every record.
pub const FORMAT: u8 = 1;

/// Why a record cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Error, VisitAtoms)]
pub enum Unreadable {
    /// Written by another version.
    #[error("its format is {0}, this version knows {FORMAT}")]
    UnknownFormat(u8),
    /// The bytes are not a record of the format they name.
    #[error("its bytes are damaged")]
    Corrupt,
}

/// A record kind: how it becomes bytes and back.
pub trait Record: Sized {
    /// The record as bytes.
    fn encode(&self) -> Value;
    /// The record from bytes.
    ///
    /// # Errors
    /// [`Unreadable`] for another format and for damaged bytes; never a panic.
    fn decode(value: &Value) -> Result<Self, Unreadable>;
}

/// Encodes `body` after `header`.
fn encode_body<T: Serialize>(header: &[u8], body: &T) -> Value {
    // Serialising plain data into a growing vector has no failure: no map of unknown length, no custom error.
    match postcard::to_extend(body, header.to_vec()) {
        Ok(bytes) => Value::from(bytes),
        Err(error) => unreachable!("a record body always serialises: {error}"),
    }
}

fn decode_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, Unreadable> {
    match postcard::take_from_bytes(body) {
        Ok((record, [])) => Ok(record),
        Ok(_) | Err(_) => Err(Unreadable::Corrupt),
    }
}

fn split_format(value: &Value) -> Result<&[u8], Unreadable> {
    match value.as_bytes() {
        [FORMAT, body @ ..] => Ok(body),
        [other, ..] => Err(Unreadable::UnknownFormat(*other)),
        [] => Err(Unreadable::Corrupt),
    }
}

/// Implements [`Record`] as format byte + postcard body.
macro_rules! plain_record {
    ($($name:ty),+) => { $(
        impl $crate::record::Record for $name {
            fn encode(&self) -> restante_kv::Value {
                $crate::record::encode_body(&[$crate::record::FORMAT], self)
            }
            fn decode(value: &restante_kv::Value) -> Result<Self, $crate::record::Unreadable> {
                $crate::record::decode_body($crate::record::split_format(value)?)
            }
        }
    )+ };
}
use plain_record;
