//! A queue in memory: for tests, and as the contract's reference. What it holds is gone with its process.

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use restante_core::atoms::Bytes;
use restante_kv::BoxFuture;

use crate::contract::{Draft, LegacyQueue, QueueDepth, QueueError, Receipt, Received};
use crate::model::QueueModel;

type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A queue in memory. Clones are one queue.
#[derive(Clone)]
pub struct MemoryQueue {
    model: Arc<Mutex<QueueModel>>,
    now_ms: Clock,
}

impl MemoryQueue {
    /// An empty queue that goes by this process's clock.
    pub fn new() -> Self {
        let epoch = Instant::now();
        Self::with_clock(move || u64::try_from(epoch.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// An empty queue that goes by this clock, in milliseconds.
    pub fn with_clock(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { model: Arc::default(), now_ms: Arc::new(now_ms) }
    }

    fn lock(&self) -> MutexGuard<'_, QueueModel> {
        // Nothing that runs under the lock can leave the model half changed.
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryQueue").field("depth", &self.lock().depth((self.now_ms)())).finish_non_exhaustive()
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl LegacyQueue for MemoryQueue {
    fn enqueue(&self, drafts: Vec<Draft>) -> BoxFuture<'_, Result<(), QueueError>> {
        self.lock().enqueue(drafts, (self.now_ms)());
        Box::pin(ready(Ok(())))
    }

    fn receive(&self, visible_after: Duration) -> BoxFuture<'_, Result<Option<Received>, QueueError>> {
        Box::pin(ready(Ok(self.lock().receive(ms(visible_after), (self.now_ms)()))))
    }

    fn complete(&self, receipt: Receipt) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(ready(self.lock().complete(&receipt)))
    }

    fn put_back(&self, receipt: Receipt, delay: Duration, body: Bytes) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(ready(self.lock().put_back(&receipt, ms(delay), body, (self.now_ms)())))
    }

    fn depth(&self) -> BoxFuture<'_, Result<QueueDepth, QueueError>> {
        Box::pin(ready(Ok(self.lock().depth((self.now_ms)()))))
    }
}
