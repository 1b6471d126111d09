//! The queue that runs handlers, on tokio.

mod attempt;
mod builder;
mod clock;
mod error;
mod inner;
mod task;
mod waits;
mod worker;

use std::fmt;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use self::attempt::{TaskAnswer, Work};
pub use self::builder::Builder;
pub use self::clock::{Clock, Sleep, TokioClock};
pub use self::error::{BuildError, TaskError};
use self::inner::Inner;
pub use self::task::{Task, TaskResult};
pub use self::waits::{Stopping, WhenIdle};
use crate::core::{QueueStopped, TaskId};
use crate::shell::Look;

/// The width of a queue that was not given one.
pub const WIDTH_DEFAULT: u32 = 16;

/// The longest backoff: ten years. What is longer is a mistake in a formula, and is cut to this.
pub const BACKOFF_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// What can be a key: anything that can be compared, hashed, cloned and sent.
///
/// A key is cloned when it comes into use and dropped when nothing of it is left.
pub trait Key: Eq + Hash + Clone + Send + 'static {}

impl<K: Eq + Hash + Clone + Send + 'static> Key for K {}

/// A handle on a keyed queue. Clones are handles on the same queue; dropping them all stops nothing.
///
/// Submitting: [`run`](Self::run), [`run_future`](Self::run_future). Steering: [`cancel`](Self::cancel),
/// [`pause`](Self::pause), [`resume`](Self::resume), [`pause_key`](Self::pause_key), [`resume_key`](Self::resume_key),
/// [`stop`](Self::stop). Looking: [`snapshot`](Self::snapshot), [`when_idle`](Self::when_idle).
///
/// Every call returns at once; what is to be awaited is returned. None needs to be made inside the runtime.
pub struct Queue<K: Key> {
    inner: Arc<Inner<K>>,
}

impl<K: Key> Queue<K> {
    /// Settings of a queue to be built.
    pub fn builder() -> Builder<K> {
        Builder::new()
    }

    /// Queues a task of `key`, behind all that were submitted under that key before.
    ///
    /// `handler` is called once an attempt; the task comes to its first value, or to the error of its last attempt. A panic
    /// is a failed attempt. While the task is running or waiting for its next attempt, no other task of the key starts.
    ///
    /// A handler that awaits another task of its *own* key waits for ever: that task starts only when the handler has ended.
    /// The same holds for awaiting [`when_idle`](Self::when_idle), or [`stop`](Self::stop) without a deadline.
    ///
    /// # Errors
    ///
    /// The queue was told to stop.
    pub fn run<F, Fut, T, E>(&self, key: K, handler: F) -> Result<Task<K, T, E>, QueueStopped>
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let attempts_max = self.inner.attempts_max;
        self.submit(key, attempts_max, |answer| attempt::attempt(handler, attempts_max.get() - 1, answer))
    }

    /// Queues a task whose only attempt is `future`, whatever [`Builder::retry`] says: a future cannot be begun again.
    ///
    /// # Errors
    ///
    /// The queue was told to stop.
    pub fn run_future<Fut, T, E>(&self, key: K, future: Fut) -> Result<Task<K, T, E>, QueueStopped>
    where
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.submit(key, NonZeroU32::MIN, |answer| attempt::only_attempt(future, answer))
    }

    fn submit<T, E>(
        &self,
        key: K,
        attempts_max: NonZeroU32,
        work: impl FnOnce(Arc<TaskAnswer<T, E>>) -> Work,
    ) -> Result<Task<K, T, E>, QueueStopped>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let answer = Arc::new(TaskAnswer::new());
        let work = work(answer.clone());
        let hash = self.inner.hash(&key);
        let submitted = self.inner.shell.submit((hash, &key), attempts_max, answer.clone(), work);
        let (id, chores) = submitted.map_err(|refused| {
            attempt::quietly(|| drop(refused));
            QueueStopped
        })?;
        self.inner.perform(chores);
        Ok(Task { id, key, result: TaskResult { answer } })
    }

    /// Takes a task back that has not started: its result is [`TaskError::Cancelled`]. False, and nothing changes, if it has
    /// started (waiting for its next attempt included), is over or is unknown.
    pub fn cancel(&self, id: TaskId) -> bool {
        let (cancelled, chores) = self.inner.shell.cancel(id);
        self.inner.perform(chores);
        cancelled
    }

    /// Starts nothing until [`resume`](Self::resume): no task and no further attempt of one. What runs goes on, and
    /// submissions are accepted. False if it was paused before.
    pub fn pause(&self) -> bool {
        let (changed, chores) = self.inner.shell.pause();
        self.inner.perform(chores);
        changed
    }

    /// Ends [`pause`](Self::pause); keys that are paused on their own stay so. False if it was not paused.
    pub fn resume(&self) -> bool {
        let (changed, chores) = self.inner.shell.resume();
        self.inner.perform(chores);
        changed
    }

    /// Starts nothing of `key`, known or not, until [`resume_key`](Self::resume_key). False if it was paused before.
    pub fn pause_key(&self, key: &K) -> bool {
        let (changed, chores) = self.inner.shell.pause_key(self.inner.hash(key), key);
        self.inner.perform(chores);
        changed
    }

    /// Ends [`pause_key`](Self::pause_key); a [`pause`](Self::pause) of the whole queue goes on. False if the key was not
    /// paused.
    pub fn resume_key(&self, key: &K) -> bool {
        let (changed, chores) = self.inner.shell.resume_key(self.inner.hash(key), key);
        self.inner.perform(chores);
        changed
    }

    /// What there is, at one instant.
    pub fn snapshot(&self) -> Snapshot<K> {
        let Look { counts, is_paused, paused_keys, takes_work } = self.inner.shell.look();
        Snapshot {
            running: counts.running,
            backing_off: counts.backing_off,
            queued: counts.queued,
            keys: counts.keys,
            paused: is_paused,
            paused_keys,
            submitted: counts.submitted,
            completed: counts.completed,
            failed: counts.failed,
            cancelled: counts.cancelled,
            abandoned: counts.abandoned,
            stopping: !takes_work,
        }
    }

    /// Ends when nothing is running and nothing is queued: at once if that is so now, else the next time it is, even if more
    /// is submitted right after. A task between two attempts is running; one behind a pause is queued.
    pub fn when_idle(&self) -> WhenIdle<K> {
        WhenIdle { inner: self.inner.clone(), seen: self.inner.shell.idle_count(), waiter: None }
    }

    /// Takes no more work from here on, and ends when all there is has ended, or after `deadline`. Until then tasks can be
    /// cancelled, and failed attempts are repeated.
    ///
    /// What is running or queued at the deadline is abandoned, and so is at once what a pause holds back, also one that
    /// begins while the queue drains: its result is [`TaskError::Stopped`]. A handler that runs at the deadline is not
    /// interrupted; what it comes to is dropped.
    ///
    /// Every call ends with the same report. A later call can bring the deadline forward, not put it off.
    pub fn stop(&self, deadline: Option<Duration>) -> Stopping<K> {
        let now = self.inner.now();
        let chores = self.inner.shell.stop(now, deadline.map(|deadline| now.plus(deadline)));
        self.inner.perform(chores);
        Stopping { inner: self.inner.clone(), waiter: None }
    }
}

impl<K: Key> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K: Key> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

/// What a queue holds and has done, at one instant.
///
/// `submitted` is the sum of `completed`, `failed`, `cancelled`, `abandoned`, `running` and `queued`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot<K> {
    /// Tasks that have started and are not over, in an attempt or between two.
    pub running: u64,
    /// Of `running`, those that wait for their backoff to end. The others may be more than the width only by those that
    /// wait for their turn after it.
    pub backing_off: u64,
    /// Tasks that have not started.
    pub queued: u64,
    /// Keys that have running or queued tasks.
    pub keys: u64,
    /// Whether the whole queue is paused.
    pub paused: bool,
    /// Keys that are paused on their own, each once, in no particular order.
    pub paused_keys: Vec<K>,
    /// Tasks accepted so far.
    pub submitted: u64,
    /// Tasks that came to a value so far.
    pub completed: u64,
    /// Tasks whose last attempt failed so far.
    pub failed: u64,
    /// Tasks that were cancelled so far.
    pub cancelled: u64,
    /// Tasks that were abandoned by a stop so far.
    pub abandoned: u64,
    /// Whether the queue was told to stop.
    pub stopping: bool,
}
