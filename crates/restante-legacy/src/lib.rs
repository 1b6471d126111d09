//! The old message queue of a server that moves to the backlog: what a migration needs of it, and what lies in it.
//!
//! # Contract of a queue
//! 1. [`LegacyQueue::enqueue`] takes all drafts or none. What it took is received sooner or later, however often a process ends.
//! 2. [`LegacyQueue::receive`] hands out one message and keeps it from others for a while. After that it is handed out again,
//!    under another receipt: **at least once**, never lost between receiving and completing.
//! 3. [`LegacyQueue::complete`] and [`LegacyQueue::put_back`] need the current receipt. An outdated one is refused, and nothing
//!    happens.
//! 4. Messages of one order key are handed out one at a time, in the order in which they were enqueued. One that is put back
//!    goes behind the others.
//! 5. A draft whose id is in the queue already is not put in twice.
//!
//! [`MemoryQueue`] and `SqliteQueue` (feature `sqlite`) keep it; [`suite`] holds any other queue against it. Messages are
//! opaque to queues; [`codec`] takes them apart.
//!
//! ```
//! use std::time::Duration;
//! use restante_legacy::{Draft, LegacyQueue, MemoryQueue, block_on};
//!
//! let queue = MemoryQueue::new();
//! block_on(queue.enqueue(vec![Draft::new("1", &br#"{"type":"outbox"}"#[..])]))?;
//! let received = block_on(queue.receive(Duration::from_secs(60)))?.expect("it is there");
//! block_on(queue.complete(received.receipt))?;
//! assert!(block_on(queue.receive(Duration::from_secs(60)))?.is_none());
//! # Ok::<(), restante_legacy::QueueError>(())
//! ```
//!
//! *Architecture invariant:* a queue never looks into a message; no type that holds a key can be printed.
//! *API boundary:* [`LegacyQueue`], [`codec`], [`Keyring`], [`suite`].

pub mod codec;
mod contract;
mod memory;
mod model;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod suite;
mod translate;

pub use contract::{Draft, LegacyQueue, QueueDepth, QueueError, Receipt, Received, block_on};
pub use memory::MemoryQueue;
pub use model::QueueModel;
#[cfg(feature = "sqlite")]
pub use sqlite::{OpenError, SqliteQueue};
pub use translate::{
    HandedOver, KeyError, Keyring, NotAnActivity, RecipientOf, body_with_failures, deliveries_of, message_of, old_delivery,
    old_message,
};
