//! What all handles of one queue share: the shell, and who does its chores.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::attempt::{Work, message, quietly};
use super::clock::Clock;
use super::worker::{Backoff, Worker};
use super::{BACKOFF_MAX, Key};
use crate::core::{AttemptEnd, QueueTime, TaskId};
use crate::shell::{Chores, MoreChores, Shell, Start, Threads};

/// The delay after the 1-based attempt just made.
pub(super) type BackoffFn = Box<dyn Fn(NonZeroU32) -> Duration + Send + Sync>;

pub(super) struct Inner<K: Key> {
    pub(super) shell: Shell<K, Work, Threads>,
    pub(super) attempts_max: NonZeroU32,
    backoff: BackoffFn,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    hasher: RandomState,
}

impl<K: Key> Inner<K> {
    pub(super) fn new(
        width: NonZeroU32,
        attempts_max: NonZeroU32,
        backoff: BackoffFn,
        clock: Arc<dyn Clock>,
        runtime: Handle,
    ) -> Self {
        Self { shell: Shell::new(width), attempts_max, backoff, clock, runtime, hasher: RandomState::new() }
    }

    /// Computed before the lock is taken: hashing is the key's code.
    pub(super) fn hash(&self, key: &K) -> u64 {
        self.hasher.hash_one(key)
    }

    pub(super) fn now(&self) -> QueueTime {
        self.clock.now()
    }

    pub(super) async fn sleep_until(&self, at: QueueTime) {
        while self.clock.now() < at {
            self.clock.sleep_until(at).await;
        }
    }

    /// Does what a call left to do.
    #[inline]
    pub(super) fn perform(self: &Arc<Self>, chores: Chores<K, Work, Threads>) {
        let Chores { settled, needs_worker, key, more } = chores;
        if let Some((answer, end)) = settled {
            quietly(|| answer.settle(end));
        }
        if needs_worker {
            self.runtime.spawn(Worker::new(self.clone()));
        }
        if let Some(key) = key {
            quietly(|| drop(key));
        }
        if let Some(more) = more {
            self.perform_more(*more);
        }
    }

    #[cold]
    fn perform_more(self: &Arc<Self>, chores: MoreChores<K, Work, Threads>) {
        let MoreChores { settled, wakers, backoffs, deadline, timers, works, keys } = chores;
        for (answer, end) in settled {
            quietly(|| answer.settle(end));
        }
        for waker in wakers.into_values() {
            quietly(|| waker.wake());
        }
        for (task, attempt, at) in backoffs {
            let sleep = Backoff::new(self.clone(), task, attempt).sleep_until(at);
            let timer = self.runtime.spawn(sleep).abort_handle();
            if let Some(timer) = self.shell.keep_backoff_timer(task, attempt, timer) {
                timer.abort();
            }
        }
        if let Some(at) = deadline {
            let inner = self.clone();
            let sleep = async move {
                inner.sleep_until(at).await;
                inner.perform(inner.shell.deadline_reached(inner.now()));
            };
            let timer = self.runtime.spawn(sleep).abort_handle();
            if let Some(timer) = self.shell.keep_deadline_timer(timer) {
                timer.abort();
            }
        }
        timers.iter().for_each(tokio::task::AbortHandle::abort);
        for work in works {
            quietly(|| drop(work));
        }
        for key in keys {
            quietly(|| drop(key));
        }
    }

    /// What a new worker is to begin, and whether another was sent for.
    pub(super) fn worker_comes(self: &Arc<Self>) -> (Option<Start<Work>>, bool) {
        let (start, chores) = self.shell.worker_comes();
        let sent_another = chores.needs_worker;
        self.perform(chores);
        (start, sent_another)
    }

    /// An attempt has ended: what its worker is to begin, if it goes on.
    pub(super) fn ended(
        self: &Arc<Self>,
        task: TaskId,
        end: AttemptEnd,
        next: Option<Work>,
        goes_on: bool,
    ) -> Option<Start<Work>> {
        let (start, chores) = self.shell.attempt_ended(task, end, next, goes_on);
        self.perform(chores);
        start
    }

    /// An attempt has failed.
    pub(super) fn failed(
        self: &Arc<Self>,
        task: TaskId,
        attempt: NonZeroU32,
        next: Option<Work>,
        goes_on: bool,
    ) -> Option<Start<Work>> {
        if next.is_none() {
            return self.ended(task, AttemptEnd::GivenUp, None, goes_on);
        }
        match catch_unwind(AssertUnwindSafe(|| (self.backoff)(attempt))) {
            Ok(backoff) => {
                let (now, backoff) = (self.now(), backoff.min(BACKOFF_MAX));
                self.ended(task, AttemptEnd::Failed { now, backoff }, next, goes_on)
            }
            Err(payload) => {
                quietly(|| drop(next));
                let message = format!("its backoff function panicked: {}", message(&*payload));
                std::mem::forget(payload);
                self.lost(task, message, goes_on)
            }
        }
    }

    /// An attempt has panicked where nothing of it is left to try again.
    pub(super) fn lost(self: &Arc<Self>, task: TaskId, message: String, goes_on: bool) -> Option<Start<Work>> {
        self.shell.store_panic(task, message);
        self.ended(task, AttemptEnd::GivenUp, None, goes_on)
    }

    pub(super) fn backoff_elapsed(self: &Arc<Self>, task: TaskId, attempt: NonZeroU32) {
        self.perform(self.shell.backoff_elapsed(task, attempt, self.now()));
    }

    pub(super) fn is_backing_off(&self, task: TaskId, attempt: NonZeroU32) -> bool {
        self.shell.is_backing_off(task, attempt)
    }

    /// Nothing can be executed any more: everything outstanding is abandoned, so that nobody waits for it.
    pub(super) fn runtime_is_gone(self: &Arc<Self>) {
        self.perform(self.shell.stop(QueueTime::ZERO, Some(QueueTime::ZERO)));
    }
}
