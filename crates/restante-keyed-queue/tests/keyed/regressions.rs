//! Defects of an earlier keyed queue, as tests that would catch them. What concerns records (a lease that ran out and was
//! never found again) is tested where the records are, in `restante-core`.

use std::time::Duration;

use restante_keyed_queue::DrainReport;

use crate::bed::{Door, Log, queue, results, retrying, timed, waiting};

/// The failed head was skipped while its delay ran, so that a later task of its key ran first.
#[tokio::test(start_paused = true)]
async fn a_later_task_of_the_key_does_not_run_during_the_backoff_of_the_head() {
    let (queue, log) = (retrying(8), Log::default());
    let head = timed(&queue, &log, "a", 1, 1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(queue.snapshot().backing_off, 1);
    // One was there before, one comes now.
    let later = [timed(&queue, &log, "a", 2, 0), timed(&queue, &log, "a", 3, 0)];
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(log.told(), ["a1"]);
    assert_eq!(head.await, Ok(1));
    results(later).await;
    assert_eq!(log.told(), ["a1", "a1", "a2", "a3"]);
}

/// A stop set a flag and reported nothing.
#[tokio::test(start_paused = true)]
async fn a_stop_says_what_became_of_the_work() {
    let (queue, log, door) = (queue(2), Log::default(), Door::closed());
    let _done = timed(&queue, &log, "a", 1, 0);
    let _failed = timed(&queue, &log, "a", 2, 1);
    let _hung = waiting(&queue, &log, "b", 1, &door);
    let report = queue.stop(Some(Duration::from_secs(1))).await;
    assert_eq!(report, DrainReport { completed: 1, failed: 1, abandoned: 1, timed_out: true });
}

/// Submitting returned an id and no value.
#[tokio::test(start_paused = true)]
async fn a_task_comes_to_its_handlers_value() {
    let (queue, log) = (queue(1), Log::default());
    assert_eq!(timed(&queue, &log, "a", 41, 0).await.map(|value| value + 1), Ok(42));
}
