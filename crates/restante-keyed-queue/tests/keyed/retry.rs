//! Attempts, backoff, and what it holds.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_keyed_queue::{BuildError, Queue, TaskError};
use tokio::time::Instant;

use crate::bed::{Log, queue, results, retrying, timed};

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_from_the_first_and_backoff_is_told_the_one_just_made() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = asked.clone();
    let backoff = move |made: NonZeroU32| {
        told.lock().expect("not poisoned").push(made.get());
        Duration::from_secs(u64::from(made.get()))
    };
    let queue = Queue::builder().retry(4, backoff).build().expect("valid");
    let (log, begun) = (Log::default(), Instant::now());
    let result = timed(&queue, &log, "a", 1, 9).await;
    assert_eq!(result, Err(TaskError::Failed("a1 failed".to_owned())));
    assert_eq!(log.told().len(), 4, "the first is one of them");
    assert_eq!(*asked.lock().expect("not poisoned"), [1, 2, 3], "nothing comes after the last");
    assert!(begun.elapsed() >= Duration::from_millis(6_400), "1 s + 2 s + 3 s between four attempts");
}

#[tokio::test(start_paused = true)]
async fn the_key_is_held_through_attempts_and_backoff() {
    let (queue, log) = (retrying(8), Log::default());
    let tasks = [timed(&queue, &log, "a", 1, 2), timed(&queue, &log, "a", 2, 0)];
    assert_eq!(results(tasks).await, [Ok(1), Ok(2)]);
    assert_eq!(log.told(), ["a1", "a1", "a1", "a2"]);
}

#[tokio::test(start_paused = true)]
async fn a_final_failure_does_not_block_the_key() {
    let (queue, log) = (retrying(8), Log::default());
    let tasks = [timed(&queue, &log, "a", 1, 3), timed(&queue, &log, "a", 2, 0)];
    assert_eq!(results(tasks).await, [Err("a1 failed".to_owned()), Ok(2)]);
    assert_eq!((queue.snapshot().completed, queue.snapshot().failed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn backoff_takes_up_no_width() {
    let (queue, log) = (retrying(1), Log::default());
    let tasks = [timed(&queue, &log, "a", 1, 1), timed(&queue, &log, "b", 1, 0), timed(&queue, &log, "c", 1, 0)];
    tokio::time::sleep(Duration::from_millis(500)).await;
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.running, snapshot.backing_off, snapshot.completed), (1, 1, 2), "backoff counts as running");
    results(tasks).await;
    assert_eq!(log.told(), ["a1", "b1", "c1", "a1"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_retry_there_is_one_attempt_and_a_future_has_only_one() {
    let log = Log::default();
    assert_eq!(results([timed(&queue(1), &log, "a", 1, 1)]).await, [Err("a1 failed".to_owned())]);
    let task = retrying(1).run_future("a", async { Err::<(), _>("no") }).expect("it takes work");
    assert_eq!(task.await, Err(TaskError::Failed("no")));
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_a_delay_and_an_endless_one_is_cut() {
    let queue = Queue::builder().retry(3, |_| Duration::ZERO).build().expect("valid");
    assert_eq!(timed(&queue, &Log::default(), "a", 1, 2).await, Ok(1));
    let endless = Queue::builder().retry(2, |_| Duration::MAX).build().expect("valid");
    let (log, begun) = (Log::default(), Instant::now());
    let _stays = timed(&endless, &log, "a", 1, 1);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!((log.told().len(), endless.snapshot().backing_off), (1, 1));
    assert!(begun.elapsed() >= Duration::from_secs(86_400));
}

#[tokio::test]
async fn settings_that_run_nothing_are_refused() {
    assert_eq!(Queue::<u8>::builder().width(0).build().err(), Some(BuildError::ZeroWidth));
    assert_eq!(Queue::<u8>::builder().retry(0, |_| Duration::ZERO).build().err(), Some(BuildError::ZeroAttempts));
}
