//! Attempts under way in this process: one at a time a key, as many keys as a worker has deliveries.

use std::sync::{Mutex, PoisonError};

use restante_core::machine::{ExecutionKey, Reply};
use restante_keyed_queue::{Queue, TaskError};
use tokio::runtime::{Handle, Id};

/// Workers of one process whose attempts never wait for each other.
const WORKERS_MAX: u32 = 16;

/// The queue that executes them. It runs on the runtime of whoever asks: a runtime that nobody drives any more, or that ended,
/// must not keep attempts of another one.
#[derive(Default)]
pub(crate) struct Attempts {
    queue: Mutex<Option<(Id, Queue<ExecutionKey>)>>,
}

/// There is no reply: the sender panicked, or the runtime ended.
pub(crate) struct AttemptLost;

impl Attempts {
    pub(crate) async fn run(
        &self,
        width: usize,
        key: ExecutionKey,
        attempt: impl Future<Output = Reply> + Send + 'static,
    ) -> Result<Reply, AttemptLost> {
        let queue = self.queue(width).ok_or(AttemptLost)?;
        let attempt = async move { Ok::<_, std::convert::Infallible>(attempt.await) };
        match queue.run_future(key, attempt).map_err(|_stopped| AttemptLost)?.await {
            Ok(reply) => Ok(reply),
            Err(TaskError::Panicked { message }) => {
                tracing::error!(message, "the sender panicked: the attempt's outcome is unknown");
                Err(AttemptLost)
            }
            Err(TaskError::Cancelled | TaskError::Stopped) => Err(AttemptLost),
            Err(TaskError::Failed(never)) => match never {},
        }
    }

    fn queue(&self, width: usize) -> Option<Queue<ExecutionKey>> {
        let here = Handle::current().id();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        match &*queue {
            Some((id, queue)) if *id == here => Some(queue.clone()),
            _ => {
                // Several workers of one process share it: the machines bound what each has under way.
                let width = u32::try_from(width).unwrap_or(u32::MAX).saturating_mul(WORKERS_MAX);
                let built = Queue::builder().width(width).build().ok()?;
                *queue = Some((here, built.clone()));
                Some(built)
            }
        }
    }
}
