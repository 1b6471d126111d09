//! Records without their secrets, for journals: payloads and signing references become zeros of the same length, so that a
//! planner decides on the redacted record as on the original.

use restante_kv::Value;

use super::{Body, Entry, Intent, PayloadChunk, Quarantined, Record};
use crate::atoms::{Bytes, Sealed};
use crate::keys::Kind;

/// Bytes that no record of this format decodes from, of the same length and with the same first two (format and class).
fn unreadable(bytes: &[u8]) -> Vec<u8> {
    unreadable_behind(2, bytes)
}

fn unreadable_behind(kept: usize, bytes: &[u8]) -> Vec<u8> {
    bytes.iter().enumerate().map(|(at, byte)| if at < kept { *byte } else { 0xFF }).collect()
}

fn zeros(bytes: &Bytes) -> Bytes {
    Bytes::from(vec![0; bytes.len()])
}

fn hidden(body: Body) -> Body {
    match body {
        Body::Inline(bytes) => Body::Inline(zeros(&bytes)),
        staged @ Body::Staged { .. } => staged,
    }
}

fn sealed_zeros(sealed: &Sealed) -> Sealed {
    Sealed::new(vec![0; sealed.expose().len()])
}

fn without_secrets(entry: Entry) -> Entry {
    Entry { body: hidden(entry.body), signing: sealed_zeros(&entry.signing), ..entry }
}

fn redact_entry(value: &Value) -> Value {
    match Entry::decode(value) {
        Ok(entry) => without_secrets(entry).encode(),
        Err(_) => unreadable(value.as_bytes()).into(),
    }
}

/// Format and number of remaining recipients stay, as they do of an intent that nobody can read.
fn redact_intent(value: &Value) -> Value {
    match Intent::decode(value) {
        Ok(intent) => Intent { body: hidden(intent.body), signing: sealed_zeros(&intent.signing), ..intent }.encode(),
        Err(_) => unreadable_behind(5, value.as_bytes()).into(),
    }
}

/// What was put aside: an entry, or an intent. Either is told by its own decoder; what neither reads keeps its counting header.
fn redact_aside(value: &Value) -> Value {
    if Entry::decode(value).is_ok() { redact_entry(value) } else { redact_intent(value) }
}

/// The record under a key of `kind` without payload and signing reference. Doing it twice changes nothing more.
pub fn redact(kind: Kind, value: &Value) -> Value {
    match kind {
        Kind::Entry => redact_entry(value),
        Kind::Intent => redact_intent(value),
        Kind::PayloadChunk => match PayloadChunk::decode(value) {
            Ok(chunk) => PayloadChunk { bytes: zeros(&chunk.bytes) }.encode(),
            Err(_) => unreadable(value.as_bytes()).into(),
        },
        Kind::Quarantined => match Quarantined::decode(value) {
            Ok(aside) => {
                let record = redact_aside(&aside.record.as_slice().into());
                Quarantined { record: record.as_bytes().into(), ..aside }.encode()
            }
            Err(_) => unreadable(value.as_bytes()).into(),
        },
        // These hold ids, places and instants.
        Kind::Intake
        | Kind::Marker
        | Kind::Stage
        | Kind::Member
        | Kind::OrderKeyQueue
        | Kind::Lane
        | Kind::LaneSlot
        | Kind::DueRow
        | Kind::Pointer
        | Kind::Destination
        | Kind::Counters
        | Kind::SweepState
        | Kind::DeadLetter
        | Kind::RecipientChunk
        | Kind::IntentSlot
        | Kind::DeadIntent => value.clone(),
    }
}
