//! Opening a connection: identity of the file, schema, durability.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::OpenError;

/// Marks a file as a store of Restante ("RSTE").
const APPLICATION_ID: i64 = 0x5253_5445;
/// The schema that this crate writes, in the file's `user_version`.
pub(crate) const SCHEMA: i64 = 1;
/// Pause between two tries where SQLite does not wait by itself.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Blobs compare as unsigned bytes, so the primary key has the order of the contract. `version` stands before `value`, so that
/// a check need not follow the pages of a long value.
const CREATE: &str = "
    CREATE TABLE kv (key BLOB PRIMARY KEY NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE sequence (id INTEGER PRIMARY KEY CHECK (id = 0), newest INTEGER NOT NULL) STRICT;
    INSERT INTO sequence (id, newest) VALUES (0, 0);";

/// Durability first: `fullfsync` is heard on macOS only, where a plain sync does not reach the disk. Then speed: 16 MiB of
/// pages a connection (a negative size counts KiB), and a log of 16 MiB before it is copied back into the file, because a page
/// that is written often is then copied once.
const PRAGMAS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA cache_size = -16384;
    PRAGMA wal_autocheckpoint = 2048;";

/// A row that does not fit a quarter of a page continues on pages of its own, and each of its changes writes those too. In
/// pages of 8 KiB a delivery with a payload of up to 1.7 KiB is one row in one page. Heard only before the file has a page.
const PAGE_SIZE: &str = "PRAGMA page_size = 8192;";

/// How to open a connection. Every connection of a handle is opened alike.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    pub(crate) busy_timeout: Duration,
    pub(crate) create: bool,
}

enum Identity {
    Empty,
    Store,
}

impl Settings {
    /// Opens a connection to a store of the current schema, creating or migrating it first.
    pub(crate) fn connect(&self) -> Result<Connection, OpenError> {
        let deadline = Instant::now() + self.busy_timeout;
        loop {
            // Changing the journal mode reports a busy file at once, whatever the busy timeout is.
            match self.try_connect() {
                Err(OpenError::Locked { .. }) if Instant::now() < deadline => thread::sleep(RETRY_PAUSE),
                done => return done,
            }
        }
    }

    /// Opens connection after connection. Only the first creates the file: one that vanished is not quietly begun anew.
    pub(crate) fn connector(&self) -> impl FnMut() -> Result<Connection, OpenError> + Send + use<> {
        let mut settings = self.clone();
        move || {
            let connection = settings.connect()?;
            settings.create = false;
            Ok(connection)
        }
    }

    fn try_connect(&self) -> Result<Connection, OpenError> {
        let connection = self.open_file()?;
        let explain = |error: rusqlite::Error| self.explain(&error);
        connection.busy_timeout(self.busy_timeout).map_err(explain)?;
        // Before anything is changed: is this file ours?
        if let Identity::Empty = self.identify(&connection)? {
            connection.execute_batch(PAGE_SIZE).map_err(explain)?;
        }
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(explain)?;
        if !mode.eq_ignore_ascii_case("wal") {
            return Err(OpenError::NoWal { path: self.path.clone(), mode });
        }
        connection.execute_batch(PRAGMAS).map_err(explain)?;
        if let Identity::Empty = self.identify(&connection)? {
            self.create_schema(&connection)?;
        }
        Ok(connection)
    }

    fn open_file(&self) -> Result<Connection, OpenError> {
        if let Some(directory) = self.path.parent().filter(|directory| !directory.is_dir()) {
            return Err(OpenError::MissingDirectory { directory: directory.to_owned() });
        }
        if !self.create && !self.path.exists() {
            return Err(OpenError::MissingFile { path: self.path.clone() });
        }
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, self.create);
        let connection = Connection::open_with_flags(&self.path, flags).map_err(|error| self.explain(&error))?;
        // SQLite falls back to reading when it may not write.
        if connection.is_readonly("main").map_err(|error| self.explain(&error))? {
            return Err(OpenError::ReadOnly { path: self.path.clone() });
        }
        Ok(connection)
    }

    fn identify(&self, connection: &Connection) -> Result<Identity, OpenError> {
        let path = || self.path.clone();
        let (application, schema, objects): (i64, i64, i64) = connection
            .query_row(
                "SELECT a.application_id, u.user_version, (SELECT count(*) FROM sqlite_schema)
                 FROM pragma_application_id AS a, pragma_user_version AS u",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .map_err(|error| self.explain(&error))?;
        match (application, schema, objects) {
            (0, 0, 0) => Ok(Identity::Empty),
            (APPLICATION_ID, SCHEMA, _) => Ok(Identity::Store),
            (APPLICATION_ID, found, _) if found > SCHEMA => Err(OpenError::NewerSchema { path: path(), found, known: SCHEMA }),
            _ => Err(OpenError::OtherDatabase { path: path() }),
        }
    }

    /// Creates the schema in one transaction, unless another process just did.
    fn create_schema(&self, connection: &Connection) -> Result<(), OpenError> {
        let run = |sql: &str| connection.execute_batch(sql).map_err(|error| self.explain(&error));
        run("BEGIN IMMEDIATE")?;
        if let Identity::Empty = self.identify(connection)? {
            run(CREATE)?;
            run(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};"))?;
        }
        run("COMMIT")
    }

    fn explain(&self, error: &rusqlite::Error) -> OpenError {
        OpenError::from_sqlite(error, &self.path, self.busy_timeout)
    }
}
