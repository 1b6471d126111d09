//! The stores that the command can open.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use restante_kv::{AtomicKv, Limits, MemoryKv, StoreTime};
use restante_kv_conformance::{OpenError, Subject};
use restante_sim::SimulatedKv;

/// A store, as it is called on the command line.
#[derive(Clone, Debug)]
pub(super) enum StoreName {
    /// The model behind a lock.
    Memory,
    /// The store of the simulation, answering at once.
    Simulated,
    /// The same with latencies; what becomes of a transaction that nobody waits for is undecided.
    SimulatedInFlight,
    /// A file.
    Sqlite(PathBuf),
}

impl FromStr for StoreName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("sqlite:")) {
            ("memory", _) => Ok(Self::Memory),
            ("simulated", _) => Ok(Self::Simulated),
            ("simulated-in-flight", _) => Ok(Self::SimulatedInFlight),
            (_, Some(path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            _ => Err("give memory, simulated, simulated-in-flight or sqlite:PATH".to_owned()),
        }
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Simulated => f.write_str("simulated"),
            Self::SimulatedInFlight => f.write_str("simulated-in-flight"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

type Open = Box<dyn Fn() -> Result<Subject, OpenError> + Send + Sync>;

impl StoreName {
    /// How to open it; what a simulated one decides follows from `seed`. An error says how to build a command that can.
    pub(super) fn opener(&self, seed: u64) -> Result<Open, String> {
        match self {
            Self::Memory => Ok(Box::new(|| Ok(handles(MemoryKv::new(Limits::FLOOR, Arc::new(machine_time)))))),
            Self::Simulated => Ok(Box::new(move || Ok(handles(SimulatedKv::prompt(seed))))),
            Self::SimulatedInFlight => Ok(Box::new(move || Ok(handles(SimulatedKv::in_flight(seed))))),
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
