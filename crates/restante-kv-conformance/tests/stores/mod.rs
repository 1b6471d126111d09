//! How each store is opened.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::SystemTime;

use restante_kv::{Limits, MemoryKv, StoreTime};
use restante_kv_conformance::{OpenError, Subject, Suite};
use restante_kv_sqlite::SqliteKv;

use crate::awkward::Awkward;

/// The machine's clock. Not monotonic in principle; the checks take seconds.
fn clock() -> Arc<dyn Fn() -> StoreTime + Send + Sync> {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        StoreTime::from_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    })
}

fn memory(limits: Limits, strict: bool) -> impl Fn() -> Result<Subject, Infallible> {
    move || {
        let store = MemoryKv::new(limits, clock()).strict(strict);
        Ok(Subject::new(move || Ok::<_, Infallible>(store.clone())))
    }
}

fn sqlite() -> Result<Subject, OpenError> {
    let folder = tempfile::tempdir().map_err(OpenError::new)?;
    Ok(Subject::new(move || SqliteKv::builder(folder.path().join("restante.db")).open()))
}

/// One suite a store.
pub(crate) fn all() -> impl Iterator<Item = Suite> {
    let roomy =
        Limits { value_bytes_max: 1 << 20, txn_bytes_max: 4 << 20, get_keys_max: 500, txn_checks_max: 500, ..Limits::FLOOR };
    [
        Suite::new("memory", memory(roomy, false)),
        // As small as a store may be, and with the write rules enforced.
        Suite::new("simulated", memory(Limits::FLOOR, true)),
        Suite::new("sqlite", sqlite),
        Suite::new("awkward", || {
            let store = Awkward::new(MemoryKv::new(Limits { has_clock: false, ..Limits::FLOOR }, clock()));
            Ok::<_, Infallible>(Subject::new(move || Ok::<_, Infallible>(store.clone())))
        }),
    ]
    .into_iter()
}
