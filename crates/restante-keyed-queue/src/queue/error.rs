//! What can go wrong with a task, and with the settings of a queue.

/// Why a task has no value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum TaskError<E> {
    /// The handler's last attempt failed with this.
    #[error(transparent)]
    Failed(E),
    /// The handler's last attempt panicked, or the backoff function did after it.
    #[error("the handler panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
    /// The task was cancelled before it started: it did nothing.
    #[error("the task was cancelled before it started: it did nothing")]
    Cancelled,
    /// The queue stopped before the task was over. If it had started, its handler may still be at work.
    #[error("the queue stopped before the task was over: leave it with whoever owns the work, or submit it to another queue")]
    Stopped,
}

/// Why a queue cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum BuildError {
    /// No key could ever run.
    #[error("a width of 0 runs nothing: let at least 1 key run")]
    ZeroWidth,
    /// No task could ever run.
    #[error("0 attempts run nothing: 1 is the first and only one, without a retry")]
    ZeroAttempts,
    /// There is no runtime to run handlers on.
    #[error("there is no tokio runtime here: build the queue inside one, or name one with `runtime`")]
    NoRuntime,
}
