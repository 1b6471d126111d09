//! The model behind a lock, as a store.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Model, check_strict};
use crate::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Page, Snapshot, StoreError, StoreTime, Txn};

/// A store in memory: [`Model`] behind a lock, with a clock.
///
/// Nothing it answers is ever ambiguous, and its futures are ready at the first poll. A clone of the handle is another handle
/// on the same store.
#[derive(Clone)]
pub struct MemoryKv {
    model: Arc<Mutex<Model>>,
    clock: Arc<dyn Fn() -> StoreTime + Send + Sync>,
    limits: Limits,
    strict: bool,
}

impl MemoryKv {
    /// An empty store that is not strict. `limits.has_clock` says whether answers carry the time of `clock`.
    pub fn new(limits: Limits, clock: Arc<dyn Fn() -> StoreTime + Send + Sync>) -> Self {
        Self { model: Arc::new(Mutex::new(Model::new(limits))), clock, limits, strict: false }
    }

    /// Whether a transaction that breaks [`check_strict`] is refused with [`StoreError::InvalidRequest`]. Limits are enforced
    /// either way.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// A copy of all that the store holds now.
    pub fn model(&self) -> Model {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Model> {
        // A model is whole between statements of its own; a caller that panicked elsewhere does not make it less so.
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Option<StoreTime> {
        self.limits.has_clock.then(|| (self.clock)())
    }
}

impl fmt::Debug for MemoryKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryKv").field("records", &self.lock().len()).field("strict", &self.strict).finish_non_exhaustive()
    }
}

impl AtomicKv for MemoryKv {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            let model = self.lock();
            Ok(Snapshot { values: model.get_many(&keys)?, at: self.now() })
        })
    }

    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            let model = self.lock();
            Ok(Page { at: self.now(), ..model.scan(&range, limit)? })
        })
    }

    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(async move {
            if self.strict {
                check_strict(&txn).map_err(|violation| StoreError::InvalidRequest(violation.to_string()))?;
            }
            self.lock().commit(&txn)
        })
    }
}
