//! What goes into the core and what comes out of it.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// A key, as the caller of the core numbers it. Numbers are to be small and used again: state is kept by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyId(u32);

impl KeyId {
    /// The key of that number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u32 {
        self.0
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.0)
    }
}

/// Names one task of one queue. Never used again for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId {
    number: u64,
    slot: u32,
}

impl TaskId {
    pub(super) const fn new(number: u64, slot: u32) -> Self {
        Self { number, slot }
    }

    /// Tasks are numbered from 1, in the order in which they were submitted.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// A place that no other outstanding task has; used again once the task is settled. Small, for tables by task.
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.number)
    }
}

/// An instant, as time since an origin that the clock chooses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct QueueTime(Duration);

impl QueueTime {
    /// The origin.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The instant `since_origin` after the origin.
    pub const fn new(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// Time since the origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// The instant `later` after this one, or the last there is.
    pub const fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }

    /// How long after `earlier` this is; zero if it is not.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// An attempt to begin.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Start {
    /// Of which task.
    pub task: TaskId,
    /// From 1.
    pub attempt: NonZeroU32,
}

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttemptEnd {
    /// The task is done.
    Succeeded,
    /// The attempt failed at `now`. If attempts are left, the next may begin `backoff` later.
    Failed {
        /// When.
        now: QueueTime,
        /// Least time until the next attempt.
        backoff: Duration,
    },
    /// The attempt failed and cannot be repeated, whatever the number of attempts left.
    GivenUp,
}

/// How a task ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// An attempt succeeded.
    Completed,
    /// The last attempt failed.
    Failed,
    /// It was cancelled before it started.
    Cancelled,
    /// It was abandoned when the queue stopped. If an attempt of it was running, that goes on, and nobody hears its outcome.
    Abandoned,
}

/// What is to be done now. Everything that a call asks for is asked for in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Call [`Core::on_backoff_elapsed`](super::Core::on_backoff_elapsed) at this instant.
    ArmBackoff {
        /// For this task.
        task: TaskId,
        /// After this attempt.
        attempt: NonZeroU32,
        /// When its next attempt may begin.
        at: QueueTime,
    },
    /// Call [`Core::on_deadline`](super::Core::on_deadline) at this instant.
    ArmDeadline {
        /// When draining ends.
        at: QueueTime,
    },
    /// Tell whoever waits for this task. It is not spoken of again.
    Settle {
        /// Which task.
        task: TaskId,
        /// What it came to.
        end: End,
    },
    /// Nothing is left of this key: its number may be used for another.
    FreeKey(KeyId),
    /// Tell whoever waits for that: nothing is running and nothing is queued.
    Idle,
    /// Tell whoever waits for that: the queue has stopped.
    Stopped(DrainReport),
}

/// What became of the work between a stop and its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DrainReport {
    /// Tasks that completed while the queue drained.
    pub completed: u64,
    /// Tasks whose last attempt failed while the queue drained.
    pub failed: u64,
    /// Tasks that were given up: queued behind a pause, or queued or running at the deadline.
    pub abandoned: u64,
    /// Whether the deadline came before the work was done.
    pub timed_out: bool,
}

/// How many tasks there were and are. `submitted` is the sum of the four ends and of what is outstanding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Counts {
    /// Tasks accepted so far.
    pub submitted: u64,
    /// Tasks that completed so far.
    pub completed: u64,
    /// Tasks whose last attempt failed so far.
    pub failed: u64,
    /// Tasks that were cancelled so far.
    pub cancelled: u64,
    /// Tasks that were abandoned so far.
    pub abandoned: u64,
    /// Tasks that have started and are not over: in an attempt, or between two.
    pub running: u64,
    /// Of `running`, those between two attempts.
    pub backing_off: u64,
    /// Tasks that have not started.
    pub queued: u64,
    /// Keys that have running or queued tasks.
    pub keys: u64,
}

/// The queue was told to stop and takes no more work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("the queue was told to stop and takes no more work: submit it to another queue, or leave it with whoever owns it")]
pub struct QueueStopped;
