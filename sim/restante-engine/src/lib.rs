//! A deterministic simulation engine that knows nothing of what is simulated.
//!
//! # Contract
//!
//! 1. **Everything that can differ is a keyed decision.** A world asks [`Decider`] for every outcome, latency and piece of
//!    entropy, naming the *site* (where) and the *key* (what, in words: "send A3 -> host b, attempt 2"). The answer is a pure
//!    function of (seed, site, key). Nothing depends on how many decisions were made before.
//! 2. Hence a decision added, removed or moved elsewhere shifts no other, and a new alternative changes only the draws that
//!    it wins. Seeds survive changes of code.
//! 3. A [`Tape`] overrides single decisions by name. An override that no longer fits is reported by the [`DecisionLog`],
//!    never a panic.
//! 4. **Everything in flight is data.** A [`Timeline`] holds it, answers in an order fixed by (time, tie, insertion), and can
//!    be cloned, listed and cancelled from.
//! 5. No floats, no clock, no threads, no hash maps: a seed means the same on every machine. Golden tests pin it.
//!
//! The loop that a world writes:
//!
//! 1. put the first events on the timeline;
//! 2. [`Timeline::pop`] the next one: this moves the time;
//! 3. handle it: ask the decider for what may differ, push what follows, fold what happened into a [`Digest`], and show it
//!    in a [`Trace`];
//! 4. stop when nothing is in flight, when a property is violated, or at the event cap.
//!
//! ```
//! use restante_engine::{Alternative, Decider, Digest, Quantity, SimTime, Timeline};
//!
//! const LOSS: [Alternative; 2] = [Alternative::new("arrives", 98), Alternative::new("lost", 2)];
//! const LATENCY: Quantity = Quantity::uniform(1_000, 20_000, 100); // microseconds
//!
//! let mut decider = Decider::new(7);
//! let mut timeline = Timeline::new();
//! let mut digest = Digest::new();
//! for message in 0..10_u64 {
//!     if decider.choose("net.send", format_args!("message {message}"), &LOSS) == 0 {
//!         let at = SimTime::ZERO.plus_us(decider.quantity("net.latency", format_args!("message {message}"), LATENCY));
//!         timeline.push(at, decider.tie(format_args!("message {message}")), message);
//!     }
//! }
//! while let Some((at, message)) = timeline.pop() {
//!     digest.u64(at.as_us());
//!     digest.u64(message);
//! }
//! assert_eq!(digest.to_string().len(), 32);
//! ```
//!
//! # Architecture invariant
//!
//! This crate names no entity of the system under simulation and depends on none of its crates; it reads no clock, no
//! environment and no file.

pub mod decide;
pub mod digest;
mod mix;
pub mod properties;
pub mod time;
pub mod timeline;
pub mod trace;

pub use decide::{Alternative, Decider, DecisionLog, DecisionRecord, Match, Quantity, RecordError, SiteCount, Tape, TapeEntry};
pub use digest::Digest;
pub use properties::{FaultCount, FaultCounts, Judged, Marks, Property, Quantifier, Violation, must_hold, place_of};
pub use time::SimTime;
pub use timeline::{EventId, Timeline};
pub use trace::{Trace, TraceRow};
