//! Time, as a queue asks for it.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

use crate::core::QueueTime;

/// A sleep.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where a queue gets its time: only for backoff and for the deadline of a stop.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present, by a clock that does not run backwards.
    fn now(&self) -> QueueTime;

    /// Ends at `at` or later. One that ends before is repeated.
    fn sleep_until(&self, at: QueueTime) -> Sleep;
}

/// The clock of tokio: monotonic, and paused when tokio's is.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: Instant,
}

impl TokioClock {
    /// A clock whose origin is the present.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> QueueTime {
        QueueTime::new(self.origin.elapsed())
    }

    fn sleep_until(&self, at: QueueTime) -> Sleep {
        // Past what an instant can express, tokio sleeps for the longest time it knows.
        match self.origin.checked_add(at.since_origin()) {
            Some(instant) => Box::pin(tokio::time::sleep_until(instant)),
            None => Box::pin(tokio::time::sleep(Duration::MAX)),
        }
    }
}
