//! The embedded store: one SQLite file behind the contract of [`restante_kv`].
//!
//! 1. **One writer.** A writer thread takes the transactions that wait, up to [`Builder::group_max`], and runs them one after
//!    the other inside one `BEGIN IMMEDIATE ... COMMIT`. Each member looks at its checks before it writes anything, so a
//!    conflict leaves its neighbours alone, and the group shares one sync to disk. Answers go out after the `COMMIT`.
//! 2. **Snapshot readers.** Each [`get_many`](restante_kv::AtomicKv::get_many) and each page of a [`scan`](restante_kv::AtomicKv::scan) is one read
//!    transaction on one of [`Builder::readers`] connections; it sees every commit that was acknowledged before it began.
//! 3. **Definite or ambiguous.** What fails up to and including `BEGIN`, or while a member runs, is rolled back and definite
//!    ([`StoreError::Unavailable`]). When `COMMIT` itself fails, its frames may or may not be in the log and a crash may still
//!    bring them back, so every member that would have succeeded is [`StoreError::Ambiguous`]; conflicts stay conflicts. The
//!    writer then opens a new connection before it goes on.
//! 4. **Versions** are one sequence for the whole file, stored in it and advanced in the transaction that uses it. Deleting
//!    records, closing and opening again never brings a version back.
//! 5. **Durable** means WAL with `synchronous=FULL`: an acknowledged commit survives power loss if the disk keeps what it says
//!    it has synced. The file must be on a local disk.
//! 6. **Several handles or processes** may open one file; they take turns at `BEGIN IMMEDIATE`. Whoever waits longer than
//!    [`Builder::busy_timeout`] is refused as unavailable. The clock is the machine's, and does not run backwards within one
//!    handle.
//!
//! ```
//! use restante_kv::{AtomicKv, Check, Expect, Guard, Key, Mutation, Txn, Value, Write};
//! use restante_kv_conformance::block_on; // any executor will do
//! use restante_kv_sqlite::SqliteKv;
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("restante.db");
//! let store = SqliteKv::builder(path).open()?;
//! let key = Key::from(&b"greeting"[..]);
//! let check = Check { key: key.clone(), expect: Expect::Absent };
//! let write = Write { key: key.clone(), mutation: Mutation::Put(Value::from(&b"hello"[..])), guard: Guard::Checked };
//! let committed = block_on(store.cas_many(Txn { checks: vec![check], writes: vec![write] }))?;
//!
//! let found = block_on(store.get_many(vec![key]))?.values.remove(0);
//! assert_eq!(found.map(|record| record.version), Some(committed.version));
//! store.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`StoreError::Unavailable`]: restante_kv::StoreError::Unavailable
//! [`StoreError::Ambiguous`]: restante_kv::StoreError::Ambiguous

mod builder;
mod clock;
mod connection;
mod error;
mod queue;
mod reader;
mod store;
#[cfg(test)]
mod tests;
mod worker;
mod writer;

pub use builder::Builder;
pub use error::OpenError;
pub use store::SqliteKv;
