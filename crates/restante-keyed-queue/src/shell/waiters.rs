//! Those who wait for the queue to be idle or stopped.

use std::collections::BTreeMap;
use std::task::{Context, Waker};

/// Wakers, by a number that whoever waits keeps to take its own back.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    last: u64,
}

impl Waiters {
    /// Has `context` woken at the next [`take`](Self::take). `waiter` is its number, once it has one.
    pub(crate) fn wait(&mut self, waiter: &mut Option<u64>, context: &Context<'_>) {
        let number = *waiter.get_or_insert_with(|| {
            self.last += 1;
            self.last
        });
        self.wakers.entry(number).or_insert_with(|| context.waker().clone()).clone_from(context.waker());
    }

    /// Forgets a waiter.
    pub(crate) fn forget(&mut self, waiter: Option<u64>) -> Option<Waker> {
        waiter.and_then(|number| self.wakers.remove(&number))
    }

    /// All of them, if there are any, to be woken outside the lock.
    pub(crate) fn take(&mut self) -> Option<BTreeMap<u64, Waker>> {
        (!self.wakers.is_empty()).then(|| std::mem::take(&mut self.wakers))
    }
}
