//! A keyed queue: work of one key runs one at a time, in submission order, through retries; keys run side by side.
//!
//! # Contract
//!
//! 1. **One at a time, in order.** Of one key, the first task that was submitted and is not over is the only one that runs.
//!    A task that waits for its next attempt holds its key; a task that has failed for good does not.
//! 2. **Side by side.** At most [`width`](Builder::width) keys are in an attempt. A key between two attempts takes up no
//!    width. Keys that wait for width take turns, one task each.
//! 3. **One result.** Every task that was accepted comes to exactly one: its handler's value, the error of its last attempt,
//!    or why it did not run to its end ([`TaskError`]). Whoever has a result finds it counted in [`Queue::snapshot`].
//! 4. **Only what has not started can be cancelled.** A task between two attempts has started.
//! 5. **A pause starts nothing**, of the queue or of a key, each on its own; what runs goes on.
//! 6. **A stop ends.** It takes no more work, drains what there is, abandons what a pause holds back at once and what is left
//!    at its deadline, and every call of it gives one and the same [`DrainReport`]. What was abandoned while it ran changes
//!    nothing by ending later.
//! 7. **A panic is a failure** of that attempt, wherever it is somebody else's code: handler, future, `drop`, backoff function,
//!    key. It poisons nothing.
//! 8. **Nothing is kept.** What is over is forgotten, and so is a key of which nothing is left.
//!
//! Nothing is durable: what is queued ends with the process. Whoever needs more owns the work elsewhere, and drains it
//! *through* this queue.
//!
//! ```
//! use std::time::Duration;
//! use restante_keyed_queue::Queue;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let queue = Queue::builder().width(8).retry(3, |attempt| Duration::from_millis(1) * attempt.get()).build()?;
//! let mut failures = 1;
//! let first = queue.run("a.example", move || {
//!     let fails = std::mem::take(&mut failures) > 0;
//!     async move { if fails { Err(std::io::Error::other("not now")) } else { Ok("first") } }
//! })?;
//! let second = queue.run("a.example", || async { Ok::<_, std::io::Error>("second") })?;
//! assert_eq!((second.await?, first.await?), ("second", "first"));
//!
//! let report = queue.stop(Some(Duration::from_secs(5))).await;
//! assert_eq!((report.completed, report.timed_out), (0, false), "all was done before the stop");
//! # Ok(())
//! # }
//! ```
//!
//! # How it is made
//!
//! [`core`] is the queue as a pure state machine: it says which attempt may begin, what is settled, and how long to sleep. The
//! shell puts it behind one lock, with handlers, results and wakers, and calls nobody's code under that lock. Workers on tokio
//! execute: one that is done takes the next attempt itself, so bursts of short tasks cost neither a spawn nor a wake each.
//!
//! The core alone, without the feature `tokio`, is what the simulator runs in every order of events; the shell is checked by
//! loom in every interleaving, as part of the tests.
//!
//! # Architecture invariant
//!
//! The core has no clock, entropy, I/O, thread or async. Under the lock runs no code but the queue's own, except `eq` and
//! `clone` of a key before anything is changed.
//!
//! # API boundary
//!
//! [`Queue`] and what its methods return; [`Clock`] for time; [`core::Core`] for whoever brings an executor of their own.

pub mod core;
#[cfg(feature = "tokio")]
mod queue;
#[cfg(feature = "tokio")]
mod shell;

pub use crate::core::{DrainReport, QueueStopped, QueueTime, TaskId};
#[cfg(feature = "tokio")]
pub use crate::queue::{
    BACKOFF_MAX, BuildError, Builder, Clock, Key, Queue, Sleep, Snapshot, Stopping, Task, TaskError, TaskResult, TokioClock,
    WIDTH_DEFAULT, WhenIdle,
};
