//! The stores that the command can open.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use restante_kv::{
    AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, MemoryKv, Model, Page, Snapshot, StoreError, StoreTime, Txn,
    check_strict,
};
use restante_kv_conformance::{OpenError, Subject};

/// A store, as it is called on the command line.
#[derive(Clone, Debug)]
pub(super) enum StoreName {
    /// The model behind a lock.
    Memory,
    /// The model as the simulation runs it.
    Simulated,
    /// A file.
    Sqlite(PathBuf),
}

impl FromStr for StoreName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("sqlite:")) {
            ("memory", _) => Ok(Self::Memory),
            ("simulated", _) => Ok(Self::Simulated),
            (_, Some(path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            _ => Err("give memory, simulated or sqlite:PATH".to_owned()),
        }
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Simulated => f.write_str("simulated"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

type Open = Box<dyn Fn() -> Result<Subject, OpenError> + Send + Sync>;

impl StoreName {
    /// How to open it; an error says how to build a command that can.
    pub(super) fn opener(&self) -> Result<Open, String> {
        match self {
            Self::Memory => Ok(Box::new(|| Ok(handles(MemoryKv::new(Limits::FLOOR, Arc::new(machine_time)))))),
            Self::Simulated => Ok(Box::new(|| Ok(handles(SimulatedKv::new())))),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                let path = path.clone();
                Ok(Box::new(move || {
                    let path = path.clone();
                    Ok(Subject::new(move || restante_kv_sqlite::SqliteKv::builder(&path).open()))
                }))
            }
            #[cfg(not(feature = "sqlite"))]
            Self::Sqlite(_) => Err(format!(
                "this build has no SQLite (it needs a C compiler): cargo run --release --features sqlite -- conformance --store {self}"
            )),
        }
    }
}

/// Clones are handles on one store.
fn handles(kv: impl AtomicKv + Clone + 'static) -> Subject {
    Subject::new(move || Ok::<_, Infallible>(kv.clone()))
}

fn machine_time() -> StoreTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    StoreTime::from_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The store of the world without its faults: the model within the smallest limits, the write rules enforced, the store's own
/// clock, which goes on a little with each operation, and now and then a page that is legally short.
#[derive(Clone)]
struct SimulatedKv {
    model: Arc<Mutex<Model>>,
    operations: Arc<AtomicU64>,
}

impl SimulatedKv {
    fn new() -> Self {
        Self { model: Arc::new(Mutex::new(Model::new(Limits::FLOOR))), operations: Arc::default() }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        // A model is whole between statements of its own.
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only while the model is held: answers and instants come in one order.
    fn next_operation(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }
}

impl AtomicKv for SimulatedKv {
    fn limits(&self) -> Limits {
        self.model().limits()
    }

    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            let model = self.model();
            let at = Some(StoreTime::from_ms(self.next_operation()));
            Ok(Snapshot { values: model.get_many(&keys)?, at })
        })
    }

    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            let model = self.model();
            let operation = self.next_operation();
            let mut page = model.scan(&range, limit)?;
            if operation.is_multiple_of(3) && !page.entries.is_empty() {
                let kept = page.entries.len() / 2;
                let next = page.entries[kept].0.clone();
                // An empty page must still bring its reader further.
                if kept > 0 || next > range.start {
                    page.entries.truncate(kept);
                    page.next = Some(next);
                }
            }
            page.at = Some(StoreTime::from_ms(operation));
            Ok(page)
        })
    }

    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(async move {
            check_strict(&txn).map_err(|violation| StoreError::InvalidRequest(violation.to_string()))?;
            self.model().commit(&txn)
        })
    }
}
