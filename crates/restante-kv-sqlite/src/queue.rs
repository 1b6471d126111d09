//! The queue between callers and worker threads.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// First in, first out; closed once, for good. What is in it when it closes is still handed out.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    jobs: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { jobs: VecDeque::new(), closed: false }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job, unless the queue is closed.
    pub(crate) fn push(&self, job: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.closed {
            return Err(job);
        }
        state.jobs.push_back(job);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    fn wait_for_job(&self) -> Option<MutexGuard<'_, State<T>>> {
        let mut state = self.lock();
        while state.jobs.is_empty() {
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(state)
    }

    /// Waits until there is a job, and leaves it there. False when the queue is closed and empty.
    pub(crate) fn wait(&self) -> bool {
        // Whoever was woken for the job only looked at it; a second call finds it without being woken.
        self.wait_for_job().is_some()
    }

    /// Waits for a job, then takes up to `max` that wait. `None` when the queue is closed and empty.
    pub(crate) fn pop(&self, max: usize) -> Option<Vec<T>> {
        let mut state = self.wait_for_job()?;
        let count = state.jobs.len().min(max);
        Some(state.jobs.drain(..count).collect())
    }

    /// Refuses further jobs.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Takes up to `max` jobs that wait, without waiting for any.
    pub(crate) fn try_pop(&self, max: usize) -> Vec<T> {
        let mut state = self.lock();
        let count = state.jobs.len().min(max);
        state.jobs.drain(..count).collect()
    }
}
