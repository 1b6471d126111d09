//! Waiting for the queue as a whole.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Key;
use super::inner::Inner;
use crate::core::DrainReport;

/// Ends once nothing was running and nothing was queued; see [`Queue::when_idle`](super::Queue::when_idle).
#[must_use = "it has to be awaited"]
pub struct WhenIdle<K: Key> {
    pub(super) inner: Arc<Inner<K>>,
    /// `None` if the queue was idle.
    pub(super) seen: Option<u64>,
    pub(super) waiter: Option<u64>,
}

impl<K: Key> Future for WhenIdle<K> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { inner, seen, waiter } = self.get_mut();
        seen.map_or(Poll::Ready(()), |seen| inner.shell.poll_idle(seen, waiter, context))
    }
}

impl<K: Key> Drop for WhenIdle<K> {
    fn drop(&mut self) {
        self.inner.shell.forget(self.waiter);
    }
}

impl<K: Key> fmt::Debug for WhenIdle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WhenIdle").finish_non_exhaustive()
    }
}

/// Ends once the queue has stopped; see [`Queue::stop`](super::Queue::stop). The queue drains whether this is awaited or not.
#[must_use = "the report is only seen here"]
pub struct Stopping<K: Key> {
    pub(super) inner: Arc<Inner<K>>,
    pub(super) waiter: Option<u64>,
}

impl<K: Key> Future for Stopping<K> {
    type Output = DrainReport;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<DrainReport> {
        let Self { inner, waiter } = self.get_mut();
        inner.shell.poll_stopped(waiter, context)
    }
}

impl<K: Key> Drop for Stopping<K> {
    fn drop(&mut self) {
        self.inner.shell.forget(self.waiter);
    }
}

impl<K: Key> fmt::Debug for Stopping<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopping").finish_non_exhaustive()
    }
}
