//! Waiting for futures without a runtime.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread, without any runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    match within(None, future) {
        Some(output) => output,
        None => unreachable!("without a bound, only an output ends the wait"),
    }
}

/// Like [`block_on`], but gives up after `patience`; the future is then dropped.
pub(crate) fn block_on_within<T>(patience: Duration, future: impl Future<Output = T>) -> Option<T> {
    within(Instant::now().checked_add(patience), future)
}

fn within<T>(until: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_woken_from_elsewhere() {
        let mut polls = 0;
        let future = std::future::poll_fn(|context| {
            polls += 1;
            if polls > 1 {
                return Poll::Ready(polls);
            }
            let waker = context.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        });
        assert!(block_on(future) > 1);
    }

    #[test]
    fn patience_ends() {
        assert_eq!(block_on_within(Duration::from_millis(5), std::future::pending::<()>()), None);
        assert_eq!(block_on_within(Duration::ZERO, std::future::ready(1)), Some(1));
    }
}
