//! Ids that production needs, derived from the scenario's aliases, and back.
//!
//! Send number 3 of producer A is `A3`; a repetition of the same request is another attempt with another id, `A3/1`.
//! Its second recipient's delivery is `A3.1`.

use std::fmt;
use std::sync::Arc;

use restante_core::Subject;
use restante_core::atoms::{EntryId, OwnerId, SendId};

/// A send of the workload: the thing that an idempotency key names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SendKey {
    /// Producer, from 0.
    pub producer: u8,
    /// Number of the send, from 1.
    pub number: u32,
}

impl fmt::Display for SendKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.producer != OLD {
            return write!(f, "{}{}", char::from(b'A' + self.producer), self.number);
        }
        let (whole, child) = (self.number / CHILDREN, self.number % CHILDREN);
        write!(f, "old-{}{}", char::from(b'A' + (whole / OF_ONE) as u8), whole % OF_ONE)?;
        if child > 0 { write!(f, ".{}", child - 1) } else { Ok(()) }
    }
}

/// The producer that adopted messages of the old queue go by.
const OLD: u8 = 25;
/// More than a fanout of the old queue has deliveries.
const CHILDREN: u32 = 256;
/// More than anybody puts into the old queue, or hands over.
const OF_ONE: u32 = 10_000;

/// The send that a message of the old queue becomes when it is adopted. Its id is that of a send, or that and the number of a
/// recipient: `Z3`, `A7/1`.
pub(crate) fn old_key(id: &str) -> SendKey {
    let (whole, child) = id.split_once('/').unwrap_or((id, ""));
    let letter = whole.bytes().next().unwrap_or(b'Z').wrapping_sub(b'A').min(25);
    let number: u32 = whole.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let child = child.parse::<u32>().map_or(0, |child| child + 1);
    SendKey { producer: OLD, number: (u32::from(letter) * OF_ONE + number) * CHILDREN + child }
}

/// The id of attempt `attempt` to hand over the send.
pub(crate) fn send_id(key: SendKey, attempt: u16) -> SendId {
    let mut bytes = [0; 16];
    bytes[0] = key.producer;
    bytes[1..5].copy_from_slice(&key.number.to_be_bytes());
    bytes[5..7].copy_from_slice(&attempt.to_be_bytes());
    SendId::from_bytes(bytes)
}

/// The send that an id belongs to, and the attempt.
pub(crate) fn read_send_id(id: SendId) -> (SendKey, u16) {
    let bytes = id.as_bytes();
    let number = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    (SendKey { producer: bytes[0], number }, u16::from_be_bytes([bytes[5], bytes[6]]))
}

/// The owner id of a life of a node. The first bytes spread owners over shards and counter slots.
pub(crate) fn owner_id(node: usize, life: u32) -> OwnerId {
    let mut bytes = [0; 16];
    bytes[0] = node as u8;
    bytes[1] = (node * 3) as u8;
    bytes[2..6].copy_from_slice(&life.to_be_bytes());
    bytes[6] = node as u8;
    OwnerId::from_bytes(bytes)
}

/// The destination number `index`.
pub(crate) fn destination(index: u32) -> Arc<str> {
    format!("https://host-{index}.example").into()
}

/// The number of a destination; beyond every number if it is none of the scenario's.
pub(crate) fn destination_index(destination: &str) -> u32 {
    let digits = destination.trim_start_matches("https://host-").trim_end_matches(".example");
    digits.parse().unwrap_or(u32::MAX)
}

/// Shows a send id by its alias.
pub(crate) struct SendAlias(pub SendId);

impl fmt::Display for SendAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match read_send_id(self.0) {
            (key, 0) => write!(f, "{key}"),
            (key, attempt) => write!(f, "{key}/{attempt}"),
        }
    }
}

/// Shows an entry id by its alias.
pub(crate) struct EntryAlias(pub EntryId);

impl fmt::Display for EntryAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_intent() {
            return write!(f, "{}.*", SendAlias(self.0.send));
        }
        write!(f, "{}.{}", SendAlias(self.0.send), self.0.index)
    }
}

/// Shows a subject by its alias.
pub(crate) struct SubjectAlias<'s>(pub &'s Subject);

impl fmt::Display for SubjectAlias<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Subject::Send(id) => SendAlias(*id).fmt(f),
            Subject::Entry(id) => EntryAlias(*id).fmt(f),
            Subject::Destination(destination) => {
                f.write_str(destination.trim_start_matches("https://").trim_end_matches(".example"))
            }
            Subject::Backlog => Ok(()),
        }
    }
}
