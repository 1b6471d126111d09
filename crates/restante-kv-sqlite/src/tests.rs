//! What every test here needs: a store in a directory of its own, short words for transactions, and SQLite's commit hook as a
//! place where a real `COMMIT` can be held up or made to fail.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use restante_kv::{
    AtomicKv, BoxFuture, Check, Committed, Expect, Guard, Key, KeyRange, Limits, Mutation, Page, Snapshot, StoreError, Txn,
    Value, Version, Versioned, Write,
};
use restante_kv_conformance::block_on;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{Builder, SqliteKv};

mod contract;
mod crash;
mod group;
mod handles;
mod open;
mod random;

type Answer = Result<Committed, StoreError>;

/// A store in a directory that goes with it.
struct Temp {
    kv: SqliteKv,
    directory: TempDir,
}

impl Temp {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(options: impl FnOnce(Builder) -> Builder) -> Self {
        Self::start(options, |builder| builder.open().expect("a new store opens"))
    }

    /// A store whose writer connections are prepared by `prepare` before they are used.
    fn prepared(options: impl FnOnce(Builder) -> Builder, prepare: impl Fn(&mut Connection) + Send + 'static) -> Self {
        Self::start(options, |builder| {
            let settings = builder.settings().expect("the path is good");
            let mut connect = settings.connector();
            let connect = move || {
                let mut connection = connect()?;
                prepare(&mut connection);
                Ok(connection)
            };
            builder.open_with(settings, Box::new(connect)).expect("a new store opens")
        })
    }

    /// A store whose writer calls `fails` at each `COMMIT`; when it answers true, SQLite fails that commit.
    fn hooked(fails: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let fails = Arc::new(fails);
        Self::prepared(
            |builder| builder,
            move |connection| {
                let fails = Arc::clone(&fails);
                connection.commit_hook(Some(move || fails())).expect("the hook is set");
            },
        )
    }

    fn start(options: impl FnOnce(Builder) -> Builder, open: impl FnOnce(Builder) -> SqliteKv) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let kv = open(options(SqliteKv::builder(path_in(&directory))));
        Self { kv, directory }
    }

    fn path(&self) -> PathBuf {
        path_in(&self.directory)
    }

    /// Another handle on the same file.
    fn another(&self) -> SqliteKv {
        SqliteKv::builder(self.path()).create(false).open().expect("the file is there")
    }

    /// A connection past the store.
    fn raw(&self) -> Connection {
        Connection::open(self.path()).expect("the file is there")
    }
}

fn path_in(directory: &TempDir) -> PathBuf {
    directory.path().join("restante.db")
}

impl AtomicKv for Temp {
    fn limits(&self) -> Limits {
        self.kv.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.kv.get_many(keys)
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.kv.scan(range, limit)
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Answer> {
        self.kv.cas_many(txn)
    }
}

fn key(name: impl AsRef<[u8]>) -> Key {
    Key::from(name.as_ref())
}

fn absent(name: &str) -> Check {
    Check { key: key(name), expect: Expect::Absent }
}

fn is(name: &str, version: Version) -> Check {
    Check { key: key(name), expect: Expect::Version(version) }
}

fn put(name: &str, value: impl AsRef<[u8]>) -> Write {
    Write { key: key(name), mutation: Mutation::Put(Value::from(value.as_ref())), guard: Guard::Checked }
}

fn delete(name: &str) -> Write {
    Write { key: key(name), mutation: Mutation::Delete, guard: Guard::Checked }
}

fn txn(checks: &[Check], writes: &[Write]) -> Txn {
    Txn { checks: checks.to_vec(), writes: writes.to_vec() }
}

fn commit(kv: &dyn AtomicKv, checks: &[Check], writes: &[Write]) -> Answer {
    block_on(kv.cas_many(txn(checks, writes)))
}

fn get(kv: &dyn AtomicKv, name: &str) -> Option<Versioned> {
    block_on(kv.get_many(vec![key(name)])).expect("a read is answered").values.remove(0)
}

/// Polls once, which sends the request, and gives the future back to wait for.
fn sent<T>(mut future: BoxFuture<'_, T>) -> BoxFuture<'_, T> {
    assert!(matches!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending), "answered already");
    future
}

#[track_caller]
fn assert_sound(path: &Path) {
    let report: String = Connection::open(path)
        .and_then(|connection| connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
        .expect("the file can be checked");
    assert_eq!(report, "ok");
}
