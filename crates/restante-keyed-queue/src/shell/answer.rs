//! Where a task's result waits for whoever wants it.

use std::task::{Context, Poll, Waker};

use super::sync::{Lock, Platform};
use crate::TaskError;
use crate::core::End;

/// The place of one result: written by attempts, published by the shell, taken once.
///
/// An attempt *stores* what it came to; nobody sees that before the core has been told and the result is *published*, so
/// that whoever has a result finds it counted. An end that the core decides (cancelled, abandoned) overrides what a late
/// attempt stores.
pub(crate) struct Answer<T: Send, E: Send, P: Platform> {
    state: P::Mutex<State<T, E>>,
}

enum State<T, E> {
    Open { stored: Option<Result<T, TaskError<E>>>, waker: Option<Waker> },
    Published(Result<T, TaskError<E>>),
    Taken,
}

/// An [`Answer`] whose types are forgotten.
pub(crate) trait Settle: Send + Sync {
    /// Makes the result final and visible. What an attempt stored counts if the task completed or failed.
    fn settle(&self, end: End);

    /// Stores that an attempt panicked.
    fn store_panic(&self, message: String);
}

impl<T: Send, E: Send, P: Platform> Answer<T, E, P> {
    pub(crate) fn new() -> Self {
        Self { state: P::Mutex::new(State::Open { stored: None, waker: None }) }
    }

    /// Notes what an attempt came to; the last one counts.
    pub(crate) fn store(&self, result: Result<T, TaskError<E>>) {
        // What is replaced, or comes too late, is dropped outside the lock: its `drop` is somebody else's code.
        drop(self.state.with(|state| match state {
            State::Open { stored, .. } => stored.replace(result),
            State::Published(_) | State::Taken => Some(result),
        }));
    }

    /// The result, once it is published.
    ///
    /// # Panics
    ///
    /// If it was taken before.
    pub(crate) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Result<T, TaskError<E>>> {
        self.state.with(|state| match state {
            State::Open { waker, .. } => {
                match waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            State::Published(_) => match std::mem::replace(state, State::Taken) {
                State::Published(result) => Poll::Ready(result),
                State::Open { .. } | State::Taken => unreachable!("it was published"),
            },
            State::Taken => panic!("the result of a task was polled after it was taken"),
        })
    }
}

impl<T: Send, E: Send, P: Platform> Settle for Answer<T, E, P> {
    fn settle(&self, end: End) {
        let (waker, superseded) = self.state.with(|state| {
            let State::Open { stored, waker } = state else { return (None, None) };
            let (stored, waker) = (stored.take(), waker.take());
            let (result, superseded) = match (end, stored) {
                (End::Completed | End::Failed, Some(result)) => (result, None),
                (End::Completed | End::Failed, None) => (Err(TaskError::Stopped), None),
                (End::Cancelled, stored) => (Err(TaskError::Cancelled), stored),
                (End::Abandoned, stored) => (Err(TaskError::Stopped), stored),
            };
            *state = State::Published(result);
            (waker, superseded)
        });
        if let Some(waker) = waker {
            waker.wake();
        }
        drop(superseded);
    }

    fn store_panic(&self, message: String) {
        self.store(Err(TaskError::Panicked { message }));
    }
}
