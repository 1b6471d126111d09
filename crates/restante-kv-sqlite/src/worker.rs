//! A thread with a connection of its own that works off a queue, and opens a new connection when one breaks.

use std::sync::Arc;
use std::thread;

use rusqlite::Connection;

use crate::OpenError;
use crate::queue::Queue;

/// Opens a worker's connection, at first and after one broke.
pub(crate) type Connect = Box<dyn FnMut() -> Result<Connection, OpenError> + Send>;

/// Why a worker stopped using a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SessionEnd {
    /// The queue is closed and empty.
    Closed,
    /// The connection reported what cannot be trusted to be over.
    Broken,
}

/// What a worker does with its connection and its jobs.
pub(crate) trait Work: Send + 'static {
    /// One request with the place for its answer.
    type Job: Send;

    /// Works off `queue` on `connection` for as long as the connection is sound.
    fn session(&mut self, connection: &Connection, queue: &Queue<Self::Job>) -> SessionEnd;

    /// Answers a job that was not begun.
    fn refuse(&self, job: Self::Job, reason: &OpenError);
}

/// Starts a worker. Its first connection is opened here, so that the caller learns why it cannot be.
pub(crate) fn spawn<W: Work>(
    name: &str,
    mut work: W,
    mut connect: Connect,
    queue: Arc<Queue<W::Job>>,
) -> Result<thread::JoinHandle<()>, OpenError> {
    let mut first = Some(connect()?);
    let body = move || {
        let _guard = CloseOnExit(&queue);
        while queue.wait() {
            let connection = match first.take().map_or_else(&mut connect, Ok) {
                Ok(connection) => connection,
                Err(reason) => {
                    queue.try_pop(usize::MAX).into_iter().for_each(|job| work.refuse(job, &reason));
                    continue;
                }
            };
            if work.session(&connection, &queue) == SessionEnd::Closed {
                return;
            }
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(body).map_err(|error| OpenError::Thread { detail: error.to_string() })
}

/// A worker that panics leaves nobody waiting for it: its queue closes, and waiting jobs are dropped with their answers.
struct CloseOnExit<'a, T>(&'a Queue<T>);

impl<T> Drop for CloseOnExit<'_, T> {
    fn drop(&mut self) {
        self.0.close();
        if thread::panicking() {
            drop(self.0.try_pop(usize::MAX));
        }
    }
}
