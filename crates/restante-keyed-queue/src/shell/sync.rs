//! What the shell needs of its platform, so that a model checker can be one.

/// A value that one thread at a time may touch.
pub(crate) trait Lock<T>: Send + Sync {
    /// Puts `value` under the lock.
    fn new(value: T) -> Self;

    /// Calls `f` while nobody else touches the value. Must not be nested.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

/// Where the shell runs.
pub(crate) trait Platform: Sized + 'static {
    /// Its lock.
    type Mutex<T: Send>: Lock<T>;
    /// Names a sleep that can be called off.
    type Timer: Send;
}

#[cfg(feature = "tokio")]
impl<T: Send> Lock<T> for std::sync::Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    /// A panic while the lock is held (a key's `eq`, `clone`) happens before anything is changed, so it poisons nothing.
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Threads of the operating system, and timers of tokio.
#[cfg(feature = "tokio")]
#[derive(Debug)]
pub(crate) enum Threads {}

#[cfg(feature = "tokio")]
impl Platform for Threads {
    type Mutex<T: Send> = std::sync::Mutex<T>;
    type Timer = tokio::task::AbortHandle;
}
