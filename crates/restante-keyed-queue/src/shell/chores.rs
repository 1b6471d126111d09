//! What is left to do outside the lock.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Waker;

use super::answer::Settle;
use super::sync::Platform;
use crate::core::{End, QueueTime, TaskId};

/// An attempt to begin.
#[derive(Debug)]
pub(crate) struct Start<W> {
    pub(crate) task: TaskId,
    pub(crate) attempt: NonZeroU32,
    pub(crate) work: W,
}

/// What one call of the shell leaves to its caller: everything that runs somebody else's code (wakers, `drop`) or needs the
/// runtime. In this order. It is made twice a task, so what is rare is kept apart.
#[must_use = "results, wakers and workers wait for it"]
pub(crate) struct Chores<K, W, P: Platform> {
    /// The first result to publish.
    pub(crate) settled: Option<(Arc<dyn Settle>, End)>,
    /// Whether a worker is to be sent for the attempts that wait for one; it announces itself with
    /// [`Shell::worker_comes`](super::Shell::worker_comes).
    pub(crate) needs_worker: bool,
    /// The first key that nobody needs any more, to be dropped.
    pub(crate) key: Option<K>,
    pub(crate) more: Option<Box<MoreChores<K, W, P>>>,
}

/// What is seldom left to do.
pub(crate) struct MoreChores<K, W, P: Platform> {
    /// Further results to publish.
    pub(crate) settled: Vec<(Arc<dyn Settle>, End)>,
    /// To be woken.
    pub(crate) wakers: BTreeMap<u64, Waker>,
    /// Backoffs to sleep through: after which attempt of which task, until when.
    pub(crate) backoffs: Vec<(TaskId, NonZeroU32, QueueTime)>,
    /// A deadline to sleep until.
    pub(crate) deadline: Option<QueueTime>,
    /// Sleeps to call off.
    pub(crate) timers: Vec<P::Timer>,
    /// Handlers that nobody needs any more, to be dropped.
    pub(crate) works: Vec<W>,
    /// Further keys to be dropped.
    pub(crate) keys: Vec<K>,
}

impl<K, W, P: Platform> Chores<K, W, P> {
    pub(super) const fn none() -> Self {
        Self { settled: None, needs_worker: false, key: None, more: None }
    }

    pub(super) fn settle(&mut self, answer: Arc<dyn Settle>, end: End) {
        match &mut self.settled {
            settled @ None => *settled = Some((answer, end)),
            Some(_) => self.more().settled.push((answer, end)),
        }
    }

    pub(super) fn drop_key(&mut self, key: K) {
        match &mut self.key {
            first @ None => *first = Some(key),
            Some(_) => self.more().keys.push(key),
        }
    }

    pub(super) fn more(&mut self) -> &mut MoreChores<K, W, P> {
        self.more.get_or_insert_with(|| {
            Box::new(MoreChores {
                settled: Vec::new(),
                wakers: BTreeMap::new(),
                backoffs: Vec::new(),
                deadline: None,
                timers: Vec::new(),
                works: Vec::new(),
                keys: Vec::new(),
            })
        })
    }
}
