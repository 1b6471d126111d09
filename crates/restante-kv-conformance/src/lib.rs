//! Holds a store against the contract of [`restante_kv`].
//!
//! 1. A [`Check`] is one sentence of the contract, the rule of Restante that relies on it, and a way to see whether a store
//!    keeps it. [`Check::all`] is the table of them.
//! 2. A [`Subject`] is a store under trial: a way to open handles on it.
//! 3. A [`Suite`] runs checks, each on a fresh [`Subject`] and under a random prefix of its own; it writes and deletes nothing
//!    outside that prefix, and takes its records away afterwards.
//! 4. A [`Report`] says what passed, failed (with what was expected, what came, and which rule breaks) or was skipped. Only a
//!    [`Tier::Capability`] check is ever skipped, and only because the store's limits do not claim the capability. A run of
//!    nothing is a failure.
//! 5. Random programs are compared with [`restante_kv::Model`], the executable specification; one that differs is made as small
//!    as it gets before it is reported.
//!
//! Checks use threads and wait without a runtime ([`block_on`]). A store whose futures need one brings its own: it hands its
//! work to a runtime that it holds, and its futures wait for the answer.
//!
//! ```
//! use std::sync::Arc;
//!
//! use restante_kv::{Limits, MemoryKv, StoreTime};
//! use restante_kv_conformance::{Subject, Suite};
//!
//! let limits = Limits { has_clock: false, ..Limits::FLOOR };
//! let open = move || {
//!     let store = MemoryKv::new(limits, Arc::new(|| StoreTime::from_ms(0)));
//!     // Clones of a `MemoryKv` are handles on one store.
//!     Ok::<_, std::convert::Infallible>(Subject::new(move || Ok::<_, std::convert::Infallible>(store.clone())))
//! };
//! let report = Suite::new("memory", open).filter("stale-check").run();
//! assert_eq!((report.passed(), report.failed()), (1, 0));
//! report.assert_passed();
//! ```
//!
//! As a test binary without the standard harness (feature `trials`, on by default): see [`main`].

mod bed;
mod breach;
mod check;
mod checks;
mod program;
mod random;
mod report;
mod subject;
mod suite;
#[cfg(feature = "trials")]
mod trials;
mod wait;

pub use breach::Breach;
pub use check::{Check, Tier};
pub use report::{Failure, Outcome, Ran, Report};
pub use subject::{OpenError, Subject};
pub use suite::{Options, Suite};
#[cfg(feature = "trials")]
pub use trials::main;
pub use wait::block_on;
