//! Opening: what is refused, by name, and what is left as it was.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, ffi};

use super::{Temp, commit, get, put};
use crate::{OpenError, SqliteKv};

fn refusal(path: &Path) -> OpenError {
    SqliteKv::builder(path).busy_timeout(Duration::from_millis(50)).open().expect_err("this cannot be opened")
}

#[test]
fn opening_twice_changes_nothing() {
    let temp = Temp::new();
    let version = commit(&temp, &[], &[put("k", "v")]).unwrap().version;
    temp.kv.close();
    let schema = |connection: Connection| -> String {
        connection.query_row("SELECT group_concat(sql) FROM sqlite_schema", [], |row| row.get(0)).unwrap()
    };
    let before = schema(temp.raw());
    let again = temp.another();
    assert_eq!(get(&again, "k").unwrap().version, version);
    again.close();
    assert_eq!(schema(temp.raw()), before);
}

#[test]
fn many_may_open_a_new_file_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.db");
    let open = || SqliteKv::builder(&path).busy_timeout(Duration::from_secs(60)).open().unwrap();
    let stores: Vec<SqliteKv> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let version = commit(&stores[0], &[], &[put("k", "v")]).unwrap().version;
    assert!(stores.iter().all(|store| get(store, "k").unwrap().version == version));
}

#[test]
fn a_commit_is_written_ahead_and_synced() {
    // What the documentation calls durable is what the writer's connection says of itself.
    let directory = tempfile::tempdir().unwrap();
    let settings = SqliteKv::builder(directory.path().join("s.db")).settings().unwrap();
    let connection = settings.connect().unwrap();
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0));
    assert_eq!(pragma("journal_mode").unwrap(), rusqlite::types::Value::Text("wal".to_owned()));
    assert_eq!(pragma("synchronous").unwrap(), rusqlite::types::Value::Integer(2));
    assert_eq!(pragma("user_version").unwrap(), rusqlite::types::Value::Integer(crate::connection::SCHEMA));
}

#[test]
fn a_missing_directory_or_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    assert_eq!(refusal(&missing.join("s.db")), OpenError::MissingDirectory { directory: missing });
    let path = directory.path().join("s.db");
    let refused = SqliteKv::builder(&path).create(false).open().unwrap_err();
    assert_eq!(refused, OpenError::MissingFile { path: path.clone() });
    assert!(!path.exists());
    assert_eq!(refusal(Path::new("")), OpenError::BadPath { path: "".into() });
    assert!(matches!(refusal(directory.path()), OpenError::CannotOpen { .. }));
}

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("letter.txt");
    let text = "Dear reader, this is not a database, although it is long enough for a header.\n".repeat(20);
    fs::write(&path, &text).unwrap();
    assert_eq!(refusal(&path), OpenError::NotADatabase { path: path.clone() });
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    let path = directory.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (id INTEGER)").unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(refusal(&path), OpenError::OtherDatabase { path: path.clone() });
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_schema_is_refused() {
    let temp = Temp::new();
    temp.kv.close();
    temp.raw().execute_batch("PRAGMA user_version = 2").unwrap();
    assert_eq!(refusal(&temp.path()), OpenError::NewerSchema { path: temp.path(), found: 2, known: 1 });
}

#[test]
fn a_file_locked_by_another_process_is_refused_after_the_busy_timeout() {
    let temp = Temp::new();
    temp.kv.close();
    let holder = temp.raw();
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;").unwrap();
    assert_eq!(refusal(&temp.path()), OpenError::Locked { path: temp.path(), busy_timeout: Duration::from_millis(50) });
    drop(holder);
    SqliteKv::builder(temp.path()).open().expect("the lock is gone");
}

#[test]
fn what_sqlite_reports_is_named() {
    // Permissions do not stop a superuser, so the read-only report is made, not provoked.
    let explain = |code| {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        OpenError::from_sqlite(&error, Path::new("p"), Duration::ZERO)
    };
    assert_eq!(explain(ffi::SQLITE_READONLY_DIRECTORY), OpenError::ReadOnly { path: "p".into() });
    assert!(matches!(explain(ffi::SQLITE_CANTOPEN), OpenError::CannotOpen { .. }));
    assert!(matches!(explain(ffi::SQLITE_IOERR_READ), OpenError::Sqlite { .. }));
    assert_eq!(ffi::Error::new(ffi::SQLITE_BUSY_RECOVERY).code, ErrorCode::DatabaseBusy);
    assert!(matches!(explain(ffi::SQLITE_BUSY_RECOVERY), OpenError::Locked { .. }));
}

#[test]
fn a_store_that_vanished_is_not_quietly_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let mut connect = SqliteKv::builder(&path).settings().unwrap().connector();
    drop(connect().unwrap());
    fs::remove_file(&path).unwrap();
    assert_eq!(connect().unwrap_err(), OpenError::MissingFile { path });
}
