//! A record of what a backlog asked for and what store and network answered: enough to run its machines again.
//!
//! # Contract
//! 1. An event is one line: a checksum and JSON. What a machine asked for stands before the answer to it.
//! 2. Payloads and signing references are not in it: zeros of the same length stand for them, so that the machines decide on
//!    the record as they did on the original. Inboxes, order keys and idempotency keys are in it.
//! 3. It is bounded. Once full it says so and records nothing more. Recording never stops the work.
//!
//! *Architecture invariant:* it knows machines and records, and executes nothing.
//! *API boundary:* [`Journal`] to write, [`read`] to read, [`Event`] for what stands in it.

mod file;
mod text;
mod wire;

pub use file::{Journal, ReadError, Recorded, line, read, read_from};
pub use wire::{
    CheckRecord, ErrorRecord, Event, FORMAT, Found, IoRecord, Malformed, Of, Operation, ReplyRecord, WriteRecord, to_key,
    to_value,
};
