//! What a caller holds of the work it submitted.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::attempt::TaskAnswer;
use super::error::TaskError;
use crate::core::TaskId;

/// A task that was accepted. Awaiting it awaits its result; dropping it changes nothing for the task.
#[derive(Debug)]
pub struct Task<K, T: Send, E: Send> {
    /// Names it, to [`cancel`](super::Queue::cancel) it.
    pub id: TaskId,
    /// The key it was submitted under.
    pub key: K,
    /// What it comes to.
    pub result: TaskResult<T, E>,
}

/// What a task comes to: the handler's value, or why there is none.
///
/// # Panics
///
/// Polling it again after it was ready.
#[must_use = "a task runs whether its result is awaited or not; its error is only seen here"]
pub struct TaskResult<T: Send, E: Send> {
    pub(super) answer: Arc<TaskAnswer<T, E>>,
}

impl<T: Send, E: Send> Future for TaskResult<T, E> {
    type Output = Result<T, TaskError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.answer.poll_take(context)
    }
}

impl<K, T: Send, E: Send> IntoFuture for Task<K, T, E> {
    type Output = Result<T, TaskError<E>>;
    type IntoFuture = TaskResult<T, E>;

    fn into_future(self) -> Self::IntoFuture {
        self.result
    }
}

impl<T: Send, E: Send> fmt::Debug for TaskResult<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskResult").finish_non_exhaustive()
    }
}
