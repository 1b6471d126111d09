//! Counter slots of this process: one transaction in flight on each.

use std::sync::{Mutex, PoisonError};

use restante_core::machine::Slots;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The slots that callers take turns on; the others belong to the workers.
pub(crate) struct SlotPool {
    /// One permit per free slot.
    permits: Semaphore,
    free: Mutex<Vec<u64>>,
    workers: Slots,
}

/// A slot, until it is dropped.
pub(crate) struct Slot<'p> {
    pool: &'p SlotPool,
    slot: u64,
    _permit: SemaphorePermit<'p>,
}

impl SlotPool {
    /// Halves `slot_count` slots between callers and workers, beginning at `offset`: processes that begin elsewhere meet less.
    pub(crate) fn new(slot_count: u64, offset: u64) -> Self {
        let offset = offset % slot_count.max(1);
        let callers = (slot_count / 2).max(1);
        Self {
            permits: Semaphore::new(callers as usize),
            free: Mutex::new((offset..offset + callers).collect()),
            workers: Slots::Range { first: offset + callers, count: slot_count.saturating_sub(callers).max(1) },
        }
    }

    pub(crate) fn of_workers(&self) -> Slots {
        self.workers
    }

    /// Waits for a free slot; whoever waits longest gets it first.
    pub(crate) async fn take(&self) -> Slot<'_> {
        // The semaphore is never closed.
        let permit = self.permits.acquire().await.unwrap_or_else(|_| unreachable!("the semaphore is never closed"));
        let slot = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        Slot { pool: self, slot, _permit: permit }
    }
}

impl Slot<'_> {
    pub(crate) fn number(&self) -> u64 {
        self.slot
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.pool.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}
