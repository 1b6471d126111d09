//! The contract between Restante and a store: atomic, versioned, ordered bytes.
//!
//! Everything above this crate is written against [`AtomicKv`] and plans within its [`Limits`]; everything below it is an
//! adapter. The contract in five sentences:
//!
//! 1. [`AtomicKv::get_many`] answers for all its keys from one point in time.
//! 2. [`AtomicKv::cas_many`] applies all of a [`Txn`] or none of it, exactly when every [`Check`] holds; keys that are only
//!    checked take part in the isolation like keys that are written.
//! 3. A [`Version`] is compared for equality only and is never used twice for a key, not even after delete and recreate.
//! 4. [`AtomicKv::scan`] answers in unsigned byte order of the keys; only `next == None` means the end of the range.
//! 5. A [`StoreError`] is definite (nothing happened) or ambiguous (it may have happened, and may still).
//!
//! [`MemoryKv`] is the executable specification of these sentences (around a pure [`Model`]); its strict mode enforces limits and
//! the write rules that Restante relies on.

mod contract;
mod error;
mod memory;
pub mod tuple;
mod validate;

pub use contract::{
    AtomicKv, BoxFuture, Check, Committed, Durability, Expect, Guard, Key, KeyRange, Limits, Mutation, Page, Snapshot, StoreTime,
    Txn, Value, Version, Versioned, Write,
};
pub use error::{LimitKind, StoreError};
pub use memory::{MemoryKv, Model, StrictViolation, check_strict};
