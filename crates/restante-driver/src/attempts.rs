//! Attempts under way in this process: one at a time a key, as many keys as a worker has deliveries.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use restante_core::machine::{ExecutionKey, Reply};
use restante_keyed_queue::{Queue, TaskError};

/// The queue that executes them; built where the first one runs, so that building a backlog needs no runtime.
#[derive(Default)]
pub(crate) struct Attempts {
    queue: Mutex<Option<Queue<ExecutionKey>>>,
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
        let task = match queue.run_future(key, attempt) {
            Ok(task) => task,
            Err(_stopped) => {
                // Its runtime is gone, and with it all that ran there; the next attempt begins another queue.
                *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = None;
                return Err(AttemptLost);
            }
        };
        match task.await {
            Ok(reply) => Ok(reply),
            Err(TaskError::Panicked { .. } | TaskError::Cancelled | TaskError::Stopped) => Err(AttemptLost),
            Err(TaskError::Failed(never)) => match never {},
        }
    }

    fn queue(&self, width: usize) -> Option<Queue<ExecutionKey>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.is_none() {
            // Several workers of one process share it: the machines bound what each has under way.
            let width = u32::try_from(width).unwrap_or(u32::MAX).saturating_mul(WORKERS_MAX.get());
            *queue = Queue::builder().width(width).build().ok();
        }
        queue.clone()
    }
}

/// Workers of one process whose attempts never wait for each other.
const WORKERS_MAX: NonZero<u32> = NonZero::new(16).unwrap();
