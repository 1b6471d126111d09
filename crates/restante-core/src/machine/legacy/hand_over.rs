//! What a closed intake refuses goes to the old queue.

use super::super::{Io, SendError};
use super::QueueFailure;
use crate::machine::Failure;
use crate::plan::{Env, Rejection};

/// A hand-over under way. It begins only where it is certain that the backlog does not own the send and never will under this
/// request: a send of unknown outcome stays unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HandOver {
    tries: u32,
    /// Whether an earlier try may have succeeded.
    attempted: bool,
}

/// What a hand-over wants next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum HandOverStep {
    /// Put the message into the old queue, under the id that follows from the send's idempotency key; then
    /// [`HandOver::enqueued`].
    Enqueue,
    /// Wait; then [`HandOver::slept`].
    Sleep(Io),
    /// The old queue owns the send, or it does not.
    Done(Result<(), HandOverError>),
}

/// Why the old queue does not own a send.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum HandOverError {
    /// Neither the backlog nor the old queue has it.
    #[error("intake is closed, and the legacy queue refused the message: nobody owns it, send again later")]
    Refused,
    /// The old queue may have it.
    #[error(
        "intake is closed, and it is unknown whether the legacy queue has the message: repeat it under the same idempotency key"
    )]
    Unknown,
}

impl HandOver {
    /// Begins a hand-over if `error` says for certain that only a closed intake kept the send out.
    pub fn after(error: &SendError) -> Option<(Self, HandOverStep)> {
        match error {
            SendError::NotAccepted(Failure::Rejected(Rejection::IntakeClosed)) => {
                Some((Self { tries: 0, attempted: false }, HandOverStep::Enqueue))
            }
            SendError::NotAccepted(_) | SendError::Unknown => None,
        }
    }

    /// The old queue answered. The same id is put in once, so a try of unknown outcome may be repeated.
    pub fn enqueued(&mut self, env: &Env, result: Result<(), QueueFailure>) -> HandOverStep {
        match result {
            Ok(()) => return HandOverStep::Done(Ok(())),
            Err(QueueFailure::Unknown) => self.attempted = true,
            Err(QueueFailure::Unavailable | QueueFailure::Outdated) => {}
        }
        self.tries += 1;
        if self.tries >= env.config.tries_max {
            return HandOverStep::Done(Err(if self.attempted { HandOverError::Unknown } else { HandOverError::Refused }));
        }
        HandOverStep::Sleep(super::work::pause(env, self.tries))
    }

    /// The wait is over.
    pub fn slept(&mut self) -> HandOverStep {
        HandOverStep::Enqueue
    }
}
