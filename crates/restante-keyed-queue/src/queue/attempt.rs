//! One attempt of a handler as a future whose types are forgotten.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;

use crate::TaskError;
use crate::shell::{Answer, Threads};

/// One attempt. It stores what it came to in the task's answer, and says how it ended.
pub(super) type Work = Pin<Box<dyn Future<Output = Attempted> + Send>>;

/// How an attempt ended.
pub(super) enum Attempted {
    Succeeded,
    /// With the next attempt, unless this was the last.
    Failed(Option<Work>),
}

pub(super) type TaskAnswer<T, E> = Answer<T, E, Threads>;

/// An attempt of `handler`, with `left` more to come should it fail. Nothing of the handler runs before the first poll.
pub(super) fn attempt<F, Fut, T, E>(mut handler: F, left: u32, answer: Arc<TaskAnswer<T, E>>) -> Work
where
    F: FnMut() -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    Box::pin(async move {
        let result = match catch_unwind(AssertUnwindSafe(&mut handler)) {
            Ok(future) => end_of(pin!(future)).await,
            Err(payload) => Err(panicked(&*payload)),
        };
        let succeeded = result.is_ok();
        answer.store(result);
        match (succeeded, left.checked_sub(1)) {
            (true, _) => Attempted::Succeeded,
            (false, None) => Attempted::Failed(None),
            (false, Some(left)) => Attempted::Failed(Some(attempt(handler, left, answer))),
        }
    })
}

/// The only attempt of `future`.
pub(super) fn only_attempt<Fut, T, E>(future: Fut, answer: Arc<TaskAnswer<T, E>>) -> Work
where
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    Box::pin(async move {
        let result = end_of(pin!(future)).await;
        let succeeded = result.is_ok();
        answer.store(result);
        if succeeded { Attempted::Succeeded } else { Attempted::Failed(None) }
    })
}

/// What `future` comes to, a panic included.
async fn end_of<T, E>(mut future: Pin<&mut impl Future<Output = Result<T, E>>>) -> Result<T, TaskError<E>> {
    // The future is not polled again after a panic, so nobody sees what the panic left half done.
    let polled = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(payload) => std::task::Poll::Ready(Err(payload)),
    });
    match polled.await {
        Ok(result) => result.map_err(TaskError::Failed),
        Err(payload) => Err(panicked(&*payload)),
    }
}

fn panicked<E>(payload: &(dyn Any + Send)) -> TaskError<E> {
    TaskError::Panicked { message: message(payload) }
}

/// What a panic said.
pub(super) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(it did not say what)").to_owned()
}

/// Runs somebody's code whose panic is of no consequence: the panic hook has told of it.
pub(super) fn quietly(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        // Dropping a payload may panic in its turn.
        std::mem::forget(payload);
    }
}
