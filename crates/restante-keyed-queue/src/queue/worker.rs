//! Those who execute attempts, and those who sleep.

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Key;
use super::attempt::{Attempted, Work, message, quietly};
use super::inner::Inner;
use crate::core::{AttemptEnd, QueueTime, TaskId};
use crate::shell::Start;

/// Attempts that ended within one poll, after which a worker goes: the one that comes instead is scheduled behind whatever
/// else the runtime has to do.
const ENDS_MAX: u32 = 256;

/// Executes attempts one after the other, until there is none to begin. While one of them waits, so does its worker, and
/// others come for the rest.
pub(super) struct Worker<K: Key> {
    inner: Arc<Inner<K>>,
    at: At,
}

enum At {
    /// It has not come yet.
    Sent,
    /// It executes this.
    Attempt(Start<Work>),
    /// There was nothing to begin.
    Gone,
}

impl From<Option<Start<Work>>> for At {
    fn from(start: Option<Start<Work>>) -> Self {
        start.map_or(Self::Gone, Self::Attempt)
    }
}

impl<K: Key> Worker<K> {
    pub(super) fn new(inner: Arc<Inner<K>>) -> Self {
        Self { inner, at: At::Sent }
    }
}

impl<K: Key> Future for Worker<K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let worker = &mut *self;
        let mut ends = 0;
        loop {
            let start = match &mut worker.at {
                At::Attempt(start) => start,
                At::Sent => {
                    worker.at = At::Gone;
                    let (start, sent_another) = worker.inner.worker_comes();
                    worker.at = start.into();
                    if sent_another {
                        // A runtime may keep what was spawned last for the thread that spawned it. That thread has to be free
                        // for it, and others may take this attempt, which perhaps computes for long.
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    continue;
                }
                At::Gone => return Poll::Ready(()),
            };
            // An attempt catches its handler's panics; what is left are those of `drop`.
            let attempted = match catch_unwind(AssertUnwindSafe(|| start.work.as_mut().poll(context))) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(attempted)) => Ok(attempted),
                Err(payload) => {
                    let message = message(&*payload);
                    std::mem::forget(payload);
                    Err(message)
                }
            };
            let At::Attempt(Start { task, attempt, work }) = std::mem::replace(&mut worker.at, At::Gone) else {
                return Poll::Ready(());
            };
            quietly(|| drop(work));
            ends += 1;
            let goes_on = ends < ENDS_MAX;
            worker.at = match attempted {
                Ok(Attempted::Succeeded) => worker.inner.ended(task, AttemptEnd::Succeeded, None, goes_on),
                Ok(Attempted::Failed(next)) => worker.inner.failed(task, attempt, next, goes_on),
                Err(message) => worker.inner.lost(task, message, goes_on),
            }
            .into();
        }
    }
}

impl<K: Key> Drop for Worker<K> {
    /// A worker that is dropped before it is gone has lost its runtime.
    fn drop(&mut self) {
        match std::mem::replace(&mut self.at, At::Gone) {
            At::Gone => {}
            At::Sent => self.inner.runtime_is_gone(),
            At::Attempt(start) => {
                quietly(|| drop(start));
                self.inner.runtime_is_gone();
            }
        }
    }
}

/// Sleeps through a backoff.
pub(super) struct Backoff<K: Key> {
    inner: Arc<Inner<K>>,
    task: TaskId,
    attempt: NonZeroU32,
    is_over: bool,
}

impl<K: Key> Backoff<K> {
    pub(super) fn new(inner: Arc<Inner<K>>, task: TaskId, attempt: NonZeroU32) -> Self {
        Self { inner, task, attempt, is_over: false }
    }

    pub(super) async fn sleep_until(mut self, at: QueueTime) {
        self.inner.sleep_until(at).await;
        self.is_over = true;
        self.inner.backoff_elapsed(self.task, self.attempt);
    }
}

impl<K: Key> Drop for Backoff<K> {
    /// A sleep is called off when its task is over. If it is not, the runtime is gone.
    fn drop(&mut self) {
        if !self.is_over && self.inner.is_backing_off(self.task, self.attempt) {
            self.inner.runtime_is_gone();
        }
    }
}
