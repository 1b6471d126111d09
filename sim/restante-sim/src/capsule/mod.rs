//! Capsules: everything that is needed to see a violation again, in one JSON file.
//!
//! # Contract
//!
//! 1. A capsule holds its scenario's text, so it needs no file beside it. One of the keyed queue has no scenario, and holds the
//!    text of its bound if it has a schedule.
//! 2. The schema is strict: an unknown field is an error, a newer schema is said to be newer.
//! 3. [`Capsule::capture`] makes one only of a violation that it has seen twice.
//! 4. [`replay`] tells a violation that came back from one that is gone because the code changed ([`Replay::Stale`]) and from
//!    one that is gone although nothing changed ([`Replay::Vanished`]).

mod environment;
mod format;
mod origin;
mod replay;
#[cfg(test)]
mod tests;

pub use self::environment::Environment;
pub use self::format::{Capsule, CapsuleError, CaptureError, FailureNote, WriteError, sentence_of};
pub use self::origin::Origin;
pub use self::replay::{Replay, ReplayError, Replayed, replay};
