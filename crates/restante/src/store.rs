//! Store URLs: which there are, and how each is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use restante_core::Env;
use restante_core::keys::Kind;
use restante_kv::{AtomicKv, Limits, MemoryKv, StoreTime};
use restante_kv_sqlite::{OpenError, SqliteKv};

use crate::fault::{Code, Fault};
use crate::settings::{SqliteSettings, format_duration_ms};

/// What a store URL can be, for messages and help.
pub const KNOWN: &str = "sqlite:PATH (a file), memory: (forgets everything when the process ends; only with --allow-volatile)";

/// A store, by what its URL says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreUrl {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// The memory of this process.
    Memory,
}

/// What opening may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenOptions {
    /// Whether a missing file is created.
    pub create: bool,
    /// Whether a store that forgets is fine.
    pub allow_volatile: bool,
}

fn refused(message: impl Into<String>, what_to_do: impl Into<String>) -> Fault {
    Fault::new(Code::StoreRefused, message, what_to_do)
}

impl StoreUrl {
    /// Reads a store URL.
    ///
    /// # Errors
    /// A [`Fault`] that lists what is known.
    pub fn parse(url: &str) -> Result<Self, Fault> {
        match url.split_once(':') {
            Some(("sqlite", "")) => {
                Err(refused("the store URL \"sqlite:\" names no file", "write sqlite:PATH, as in sqlite:backlog.sqlite"))
            }
            Some(("sqlite", path)) => Ok(Self::Sqlite(path.into())),
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("memory", _)) => Err(refused(format!("the store URL {url:?} says something behind memory:"), "write memory:")),
            _ => Err(refused(format!("the store URL {url:?} is none that is known"), format!("known are: {KNOWN}"))),
        }
    }

    /// Opens the store. Blocks for the disk, and as long as it may wait for another process.
    ///
    /// # Errors
    /// A [`Fault`] that names it.
    pub fn open(&self, settings: &SqliteSettings, options: OpenOptions) -> Result<Arc<dyn AtomicKv>, Fault> {
        match self {
            Self::Memory if !options.allow_volatile => Err(refused(
                "a store in memory forgets everything when the process ends, accepted work included",
                "use sqlite:PATH, or give --allow-volatile where losing work is fine",
            )),
            Self::Memory => Ok(Arc::new(MemoryKv::new(MEMORY_LIMITS, Arc::new(wall_clock)))),
            Self::Sqlite(path) => {
                let mut builder =
                    SqliteKv::builder(path).create(options.create).busy_timeout(Duration::from_millis(settings.busy_timeout_ms));
                if settings.group_max > 0 {
                    builder = builder.group_max(settings.group_max);
                }
                // What was cut off to nothing must not look like an empty backlog.
                if !options.create && path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0) {
                    let message = format!("the file {path:?} is empty");
                    return Err(refused(message, "restore it, or give --create to begin a new store there"));
                }
                if settings.readers > 0 {
                    builder = builder.readers(settings.readers);
                }
                Ok(Arc::new(builder.open().map_err(|error| not_opened(error, settings))?))
            }
        }
    }
}

/// As much as an SQLite store allows in one snapshot, so that the same settings fit both.
const MEMORY_LIMITS: Limits = Limits { get_keys_max: 1_000, ..Limits::FLOOR };

fn wall_clock() -> StoreTime {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    StoreTime::from_ms(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

/// The same facts as the error has, with what to do in the words of this program.
fn not_opened(error: OpenError, settings: &SqliteSettings) -> Fault {
    let waited = format_duration_ms(settings.busy_timeout_ms);
    match error {
        OpenError::BadPath { path } => refused(format!("{path:?} is not a path to a file"), "write sqlite:PATH"),
        OpenError::MissingDirectory { directory } => {
            refused(format!("there is no directory {directory:?}"), "create it, or correct the path")
        }
        OpenError::MissingFile { path } => {
            refused(format!("there is no file {path:?}"), "correct the path, or give --create to begin a new store there")
        }
        OpenError::CannotOpen { path, detail } => refused(
            format!("{path:?} cannot be opened ({detail})"),
            "make it a file that is readable and writable, in a directory that is writable too",
        ),
        OpenError::NotADatabase { path } => {
            refused(format!("{path:?} is not an SQLite database"), "choose another path, or restore the file from a backup")
        }
        OpenError::OtherDatabase { path } => {
            refused(format!("{path:?} is a database of another program"), "give Restante a file of its own")
        }
        OpenError::NewerSchema { path, found, known } => {
            refused(format!("{path:?} has schema {found}, this program knows up to {known}"), "run the newer program")
        }
        OpenError::ReadOnly { path } => {
            refused(format!("{path:?} is read-only"), "make the file, its directory and its file system writable")
        }
        OpenError::Locked { path, .. } => refused(
            format!("{path:?} was locked by another process for {waited}"),
            "stop that process, or wait longer: busy_timeout under [sqlite] in the configuration file",
        ),
        OpenError::NoWal { path, mode } => {
            refused(format!("{path:?} is in journal mode {mode:?} and cannot change to WAL"), "move it to a local disk")
        }
        OpenError::Thread { detail } => refused(format!("no thread could be started ({detail})"), "raise the limit of threads"),
        OpenError::Sqlite { path, detail } => {
            refused(format!("SQLite cannot use {path:?} ({detail})"), "check the file and the disk")
        }
        other => refused(other.to_string(), "check the file and the disk"),
    }
}

/// Refuses a store that was written with more counter slots than are configured: their counts would not be read, and a backlog
/// that owns work could look drained.
///
/// # Errors
/// A [`Fault`]: that, or the store does not answer.
pub async fn check_layout(store: &dyn AtomicKv, env: &Env) -> Result<(), Fault> {
    let known = env.keys.all_counters();
    let mut range = env.keys.all(Kind::Counters);
    loop {
        let page = store.scan(range.clone(), store.limits().scan_page_max).await?;
        if page.entries.iter().any(|(key, _)| !known.contains(key)) {
            return Err(refused(
                format!("the store was used with more than {} counter slots", known.len()),
                "give every process the same configuration file: counter_slots must never become less",
            ));
        }
        match page.next {
            Some(next) => range.start = next,
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_url_lists_what_is_known() {
        for url in ["", "sqlite", "backlog.sqlite", "postgres://localhost/x", "SQLITE:x", "memory", "sqlite:", "memory:x"] {
            let fault = StoreUrl::parse(url).expect_err(url);
            assert_eq!(
                (fault.code, fault.to_string().contains("write") || fault.what_to_do.contains(KNOWN)),
                (Code::StoreRefused, true)
            );
        }
        assert_eq!(StoreUrl::parse("sqlite:a:b.sqlite"), Ok(StoreUrl::Sqlite("a:b.sqlite".into())));
    }
}
