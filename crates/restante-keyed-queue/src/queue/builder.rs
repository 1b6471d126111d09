//! Settings of a queue.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::clock::{Clock, TokioClock};
use super::error::BuildError;
use super::inner::{BackoffFn, Inner};
use super::{Key, Queue, WIDTH_DEFAULT};

/// Settings of a queue; every one has a default.
pub struct Builder<K> {
    width: u32,
    attempts: u32,
    backoff: BackoffFn,
    clock: Option<Arc<dyn Clock>>,
    runtime: Option<Handle>,
    key: PhantomData<fn(K)>,
}

impl<K: Key> Builder<K> {
    pub(super) fn new() -> Self {
        let backoff: BackoffFn = Box::new(|_| Duration::ZERO);
        Self { width: WIDTH_DEFAULT, attempts: 1, backoff, clock: None, runtime: None, key: PhantomData }
    }

    /// Most keys whose handlers run side by side, from 1; [`WIDTH_DEFAULT`] unless set. A key between two attempts does not
    /// count.
    pub fn width(mut self, width: u32) -> Self {
        self.width = width;
        self
    }

    /// Most attempts of a task, the first included, and how long to wait after each that failed, given its number from 1.
    /// Unless set there is one attempt.
    ///
    /// A delay of more than [`BACKOFF_MAX`](super::BACKOFF_MAX) is cut to that. If `backoff` panics, the task has failed.
    pub fn retry(mut self, attempts: u32, backoff: impl Fn(NonZeroU32) -> Duration + Send + Sync + 'static) -> Self {
        self.attempts = attempts;
        self.backoff = Box::new(backoff);
        self
    }

    /// Where backoff and deadlines get their time; [`TokioClock`] unless set.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Where handlers run; the runtime that [`build`](Self::build) is called in unless set.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// The queue.
    ///
    /// # Errors
    ///
    /// A width of 0, 0 attempts, or no runtime.
    pub fn build(self) -> Result<Queue<K>, BuildError> {
        let width = NonZeroU32::new(self.width).ok_or(BuildError::ZeroWidth)?;
        let attempts_max = NonZeroU32::new(self.attempts).ok_or(BuildError::ZeroAttempts)?;
        let runtime = match self.runtime {
            Some(runtime) => runtime,
            None => Handle::try_current().map_err(|_| BuildError::NoRuntime)?,
        };
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        Ok(Queue { inner: Arc::new(Inner::new(width, attempts_max, self.backoff, clock, runtime)) })
    }
}

impl<K> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("width", &self.width).field("attempts", &self.attempts).finish_non_exhaustive()
    }
}
