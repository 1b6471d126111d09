//! Records without their secrets, for journals: payloads and signing references become zeros of the same length, so that a
//! planner decides on the redacted record as on the original.

use restante_kv::Value;

use super::{Body, Entry, PayloadChunk, Quarantined, Record};
use crate::atoms::{Bytes, Sealed};
use crate::keys::Kind;

/// Bytes that no record of this format decodes from, of the same length and with the same first two (format and class).
fn unreadable(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().enumerate().map(|(at, byte)| if at < 2 { *byte } else { 0xFF }).collect()
}

fn zeros(bytes: &Bytes) -> Bytes {
    Bytes::from(vec![0; bytes.len()])
}

fn without_secrets(entry: Entry) -> Entry {
    let body = match entry.body {
        Body::Inline(bytes) => Body::Inline(zeros(&bytes)),
        staged @ Body::Staged { .. } => staged,
    };
    Entry { body, signing: Sealed::new(vec![0; entry.signing.expose().len()]), ..entry }
}

fn redact_entry(value: &Value) -> Value {
    match Entry::decode(value) {
        Ok(entry) => without_secrets(entry).encode(),
        Err(_) => unreadable(value.as_bytes()).into(),
    }
}

/// The record under a key of `kind` without payload and signing reference. Doing it twice changes nothing more.
pub fn redact(kind: Kind, value: &Value) -> Value {
    match kind {
        Kind::Entry => redact_entry(value),
        Kind::PayloadChunk => match PayloadChunk::decode(value) {
            Ok(chunk) => PayloadChunk { bytes: zeros(&chunk.bytes) }.encode(),
            Err(_) => unreadable(value.as_bytes()).into(),
        },
        Kind::Quarantined => match Quarantined::decode(value) {
            Ok(aside) => {
                let record = redact_entry(&aside.record.as_slice().into());
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
        | Kind::DeadLetter => value.clone(),
    }
}
