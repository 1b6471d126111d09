//! The machine's wall clock, made not to run backwards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use restante_kv::StoreTime;

/// A clock that stands still while the machine's clock is behind what was already answered.
#[derive(Debug)]
pub(crate) struct Clock {
    source: fn() -> SystemTime,
    latest_ms: AtomicU64,
}

impl Clock {
    pub(crate) const fn new(source: fn() -> SystemTime) -> Self {
        Self { source, latest_ms: AtomicU64::new(0) }
    }

    pub(crate) fn now(&self) -> StoreTime {
        let since_epoch = (self.source)().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        StoreTime::from_ms(self.latest_ms.fetch_max(ms, Ordering::AcqRel).max(ms))
    }
}
