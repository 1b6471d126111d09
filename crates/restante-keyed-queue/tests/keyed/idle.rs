//! When nothing is running and nothing is queued.

use std::time::Duration;

use crate::bed::{Door, Log, queue, retrying, settled, timed, waiting};

fn is_ready(future: impl Future<Output = ()>) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::pin!(future).poll(&mut context).is_ready()
}

#[tokio::test]
async fn an_idle_queue_is_idle_at_once() {
    let queue = queue(1);
    assert!(is_ready(queue.when_idle()));
    queue.pause();
    assert!(is_ready(queue.when_idle()), "nothing is held back");
}

#[tokio::test(start_paused = true)]
async fn backoff_is_not_idle() {
    let (queue, log) = (retrying(1), Log::default());
    let _task = timed(&queue, &log, "a", 1, 1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(queue.snapshot().backing_off, 1);
    assert!(!is_ready(queue.when_idle()));
    queue.when_idle().await;
    assert_eq!(log.told().len(), 2);
}

#[tokio::test]
async fn a_paused_backlog_is_not_idle() {
    let (queue, log, door) = (queue(1), Log::default(), Door::closed());
    queue.pause();
    let task = waiting(&queue, &log, "a", 1, &door);
    assert!(!is_ready(queue.when_idle()));
    queue.cancel(task.id);
    assert!(is_ready(queue.when_idle()));
}

#[tokio::test]
async fn everyone_who_waits_is_woken_even_if_more_is_submitted_right_after() {
    let (queue, log, door) = (queue(1), Log::default(), Door::closed());
    let _first = waiting(&queue, &log, "a", 1, &door);
    let waiters: Vec<_> = (0..3).map(|_| tokio::spawn(queue.when_idle())).collect();
    // Waiting is not given up by others who do.
    drop(queue.when_idle());
    settled().await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    let late = queue.when_idle();
    door.open();
    settled().await;
    let _second = waiting(&queue, &log, "a", 2, &door);
    for waiter in waiters {
        waiter.await.expect("it ends");
    }
    assert!(is_ready(late), "it waited since before");
    assert!(!is_ready(queue.when_idle()));
}
