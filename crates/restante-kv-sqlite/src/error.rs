//! Why a file could not be opened as a store, and what to do about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;
use thiserror::Error;

/// Why [`Builder::open`](crate::Builder::open) refused. Nothing was changed in a file that was there before.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The path is empty, or cannot be made absolute.
    #[error("{path:?} is not a path to a file: give one")]
    BadPath {
        /// The path as given.
        path: PathBuf,
    },
    /// The file's directory does not exist.
    #[error("there is no directory {directory:?}: create it, or correct the path")]
    MissingDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// The file does not exist and the options forbid creating it.
    #[error("there is no file {path:?}: correct the path, or allow creating it with `create(true)`")]
    MissingFile {
        /// The file.
        path: PathBuf,
    },
    /// The file, or one that SQLite keeps beside it, cannot be opened.
    #[error("cannot open {path:?} ({detail}): it must be a file, and it and its directory must be readable and writable")]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        detail: String,
    },
    /// The file is not an SQLite database, or it is encrypted or damaged at its beginning.
    #[error("{path:?} is not an SQLite database: choose another path, or restore the file from a backup")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is an SQLite database of some other program.
    #[error("{path:?} is a database of another program: give Restante a file of its own")]
    OtherDatabase {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of this crate wrote the file.
    #[error("{path:?} has schema {found}, this program knows up to {known}: run the newer program")]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Schema of the file.
        found: i64,
        /// Newest schema that this crate knows.
        known: i64,
    },
    /// The file may be read but not written.
    #[error("{path:?} is read-only: make the file, its directory and its file system writable")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another process or handle holds the file.
    #[error("{path:?} was locked by another process for {busy_timeout:?}: stop that process, or wait longer with `busy_timeout`")]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long it was tried.
        busy_timeout: Duration,
    },
    /// SQLite refuses write-ahead logging for this file.
    #[error("{path:?} is in journal mode {mode:?} and cannot change to WAL: move it to a local disk")]
    NoWal {
        /// The file.
        path: PathBuf,
        /// The mode that SQLite stays in.
        mode: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread ({detail}): raise the limit of threads, or open fewer stores")]
    Thread {
        /// The system's words.
        detail: String,
    },
    /// Anything else that SQLite reports.
    #[error("SQLite cannot use {path:?}: {detail}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        detail: String,
    },
}

impl OpenError {
    pub(crate) fn from_sqlite(error: &rusqlite::Error, path: &Path, busy_timeout: Duration) -> Self {
        let path = path.to_owned();
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::CannotOpen { path, detail },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path, busy_timeout },
            _ => Self::Sqlite { path, detail },
        }
    }
}

/// Whether another connection was in the way.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
