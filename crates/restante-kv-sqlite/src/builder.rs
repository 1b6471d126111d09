//! Options for opening a store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::connection::Settings;
use crate::{OpenError, SqliteKv};

/// Options for opening a store; made by [`SqliteKv::builder`].
#[derive(Clone, Debug)]
#[must_use = "call open()"]
pub struct Builder {
    path: PathBuf,
    busy_timeout: Duration,
    create: bool,
    group_max: usize,
    readers: usize,
}

impl Builder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), busy_timeout: Duration::from_secs(5), create: true, group_max: 64, readers: 1 }
    }

    /// Most transactions that share one commit; at least 1, 64 unless set. More means fewer syncs to disk under load, longer
    /// waits for the first of a group, and more ambiguous answers when a commit fails.
    pub fn group_max(mut self, transactions: usize) -> Self {
        self.group_max = transactions.max(1);
        self
    }

    /// Connections for reading, each with a thread and up to 16 MiB of cached pages; at least 1, 1 unless set. Whatever waits
    /// for one connection shares a snapshot, and a snapshot after a commit begins with no page cached: a second connection
    /// pays where long scans would keep short reads waiting, and costs where processors are few.
    pub fn readers(mut self, connections: usize) -> Self {
        self.readers = connections.max(1);
        self
    }

    /// How long to wait for another process or handle that writes to the file; 5 seconds unless set. Counted in whole
    /// milliseconds, and cut to 24 days.
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout.min(Duration::from_millis(i32::MAX as u64));
        self
    }

    /// Whether a missing file is created; true unless set. Its directory must exist either way.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Opens the file, creates its schema when it is new, and starts the threads. Blocks for the disk, and up to the busy
    /// timeout for other processes.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(self) -> Result<SqliteKv, OpenError> {
        let settings = self.settings()?;
        let connect = Box::new(settings.connector());
        self.open_with(settings, connect)
    }

    pub(crate) fn settings(&self) -> Result<Settings, OpenError> {
        // Absolute, so that SQLite's special names (":memory:", the empty one) are nothing special, and a later change of the
        // working directory does not move the store.
        let path = std::path::absolute(&self.path).map_err(|_| OpenError::BadPath { path: self.path.clone() })?;
        Ok(Settings { path, busy_timeout: self.busy_timeout, create: self.create })
    }

    /// Opens with the writer's connections from `connect_writer`, through which tests reach SQLite's own fault points.
    pub(crate) fn open_with(self, settings: Settings, connect_writer: crate::worker::Connect) -> Result<SqliteKv, OpenError> {
        SqliteKv::start(settings, connect_writer, self.group_max, self.readers)
    }
}
