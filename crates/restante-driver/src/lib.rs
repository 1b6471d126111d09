//! Runs a delivery backlog on tokio: a thin executor of the machines in `restante-core`.
//!
//! # Contract
//! 1. [`Backlog::send`] returns when the store owns the message, and not before.
//! 2. What is owned is delivered or visibly dropped by any worker over the same store: [`Backlog::start`] or
//!    [`Backlog::run_once`], in this process or another, now or after a crash.
//! 3. An attempt may be repeated, after a crash or an answer that never came. Receivers tell by the id of the activity.
//!
//! ```
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("backlog.sqlite");
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use std::{convert::Infallible, sync::Arc};
//! use restante_core::{Config, machine::{Post, PostResult}};
//! use restante_driver::{Backlog, Message};
//! use restante_kv_sqlite::SqliteKv;
//!
//! // Whatever delivers: here, everything arrives.
//! let sender = tower::service_fn(|_post: Post| async {
//!     Ok::<_, Infallible>(PostResult::Status { code: 202, retry_after_ms: None })
//! });
//! let store = Arc::new(SqliteKv::builder(&path).open()?);
//! let week_ms = 7 * 24 * 3_600_000;
//! let backlog = Backlog::builder(store, Config::new(week_ms), sender).build()?;
//!
//! let accepted = backlog.send(Message::new("https://example.org/inbox", &b"{}"[..])).await?;
//! assert!(!accepted.duplicate);
//! assert_eq!(backlog.run_once(100).await.processed, 1);
//! assert_eq!(backlog.depth().await?.entries, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! *Architecture invariant:* it executes what the machines ask for and decides nothing; it knows no record and no key.
//! *API boundary:* [`Backlog`], [`Message`], [`Sender`], [`WorkerHandle`], [`BoundedRuns`].

mod attempts;
mod backlog;
mod builder;
mod handle;
mod legacy;
mod message;
mod operate;
mod recording;
mod report;
mod sender;
mod shared;
mod slots;
mod telemetry;
mod wakes;
mod worker;

pub use backlog::{Accepted, Backlog, NoLegacyQueue, Owner, SendError};
pub use builder::{BuildError, Builder};
pub use handle::{BoundedRuns, WorkerHandle};
pub use legacy::{LegacyHandle, LegacyReport, LegacyRun, NotOurs, OldPath};
pub use message::{InvalidInbox, Message};
pub use report::{DrainReport, RunOutcome};
pub use restante_journal::Journal;
pub use sender::Sender;

/// The snippets of the manual compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/manual/circuit-breaker.md")]
#[doc = include_str!("../../../docs/manual/holds.md")]
#[doc = include_str!("../../../docs/manual/queues-and-legacy.md")]
struct Manual;
