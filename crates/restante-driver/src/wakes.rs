//! Wake signals inside this process. Losing one costs time, never work.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

/// Who wants to hear of due work.
#[derive(Default)]
pub(crate) struct Wakes {
    workers: Mutex<Vec<Weak<Notify>>>,
}

impl Wakes {
    /// Wakes reach `Notify` for as long as it lives; many at once are one.
    pub(crate) fn register(&self) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| worker.strong_count() > 0);
        workers.push(Arc::downgrade(&notify));
        notify
    }

    pub(crate) fn wake(&self) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.iter().filter_map(Weak::upgrade).for_each(|worker| worker.notify_one());
    }
}
