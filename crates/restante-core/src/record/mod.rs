//! Records as they lie in the store: versioned envelopes around compact bodies.
//!
//! A record is one format byte and a [postcard](https://postcard.jamesmunns.com/wire-format) body. A worker that meets a
//! format it does not know says so ([`Unreadable::UnknownFormat`]) and never guesses. Golden-byte tests pin every format.

mod backlog;
mod destination;
mod entry;
mod intent;
mod redact;
mod upkeep;

pub use backlog::{Counters, Intake, Lane, LaneSlot, Marker, MarkerState, Member, OrderKeyQueue, PayloadChunk, Stage};
pub use destination::{Block, Breaker, Circuit, CircuitState, Destination, FailedAt, HoldInterval, Probe, look_again_at};
pub use entry::{Body, Class, DueRow, Entry, LaneRef, Lease, Pointer, WaitReason};
pub use intent::{DeadIntent, Intent, IntentSlot, Recipient, RecipientChunk};
pub use redact::redact;
pub use upkeep::{DeadLetter, DropReason, QuarantineReason, Quarantined, SweepPlace, SweepState};

use restante_core_derive::VisitAtoms;
use restante_kv::Value;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// The format this build writes, for every record that needs nothing newer.
pub const FORMAT: u8 = 1;
/// The format of records that hold what format 1 has no place for: holds, circuits, deadlines, the place of a sweep. A record
/// is written in the oldest format that can hold it, so a backlog that uses none of these stays readable to who knows format 1 only.
pub const FORMAT_EXTENDED: u8 = 2;

/// Why a record cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Error, VisitAtoms)]
pub enum Unreadable {
    /// Written by another version.
    #[error("its format is {0}, this version knows {FORMAT} to {FORMAT_EXTENDED}")]
    UnknownFormat(u8),
    /// The bytes are not a record of the format they name.
    #[error("its bytes are damaged")]
    Corrupt,
}

/// Whether these bytes name a format that this version does not know. Who removes records by their keys alone asks this first: what
/// else they say is for who can read it.
pub(crate) fn is_of_another_version(value: &Value) -> bool {
    value.as_bytes().first().is_some_and(|format| !(FORMAT..=FORMAT_EXTENDED).contains(format))
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

/// Encodes `body` after `header`, and `extension` after that.
fn encode_extended<T: Serialize, X: Serialize>(header: &[u8], body: &T, extension: Option<&X>) -> Value {
    let plain = encode_body(header, body);
    match extension {
        Some(extension) => encode_body(plain.as_bytes(), extension),
        None => plain,
    }
}

/// Decodes a body of either format, `skip` bytes behind the format byte. In format 1 the extension is its default.
fn decode_extended<T: DeserializeOwned, X: DeserializeOwned + Default>(value: &Value, skip: usize) -> Result<(T, X), Unreadable> {
    let (format, rest) = match value.as_bytes() {
        [format @ (FORMAT | FORMAT_EXTENDED), rest @ ..] => (*format, rest),
        [other, ..] => return Err(Unreadable::UnknownFormat(*other)),
        [] => return Err(Unreadable::Corrupt),
    };
    let body = rest.get(skip..).ok_or(Unreadable::Corrupt)?;
    let (record, rest) = postcard::take_from_bytes(body).map_err(|_| Unreadable::Corrupt)?;
    match (format, rest) {
        (FORMAT, []) => Ok((record, X::default())),
        (FORMAT, _) => Err(Unreadable::Corrupt),
        (_, rest) => Ok((record, decode_body(rest)?)),
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
