//! Stopping, with and without a deadline.

use std::time::Duration;

use restante_keyed_queue::{DrainReport, QueueStopped, TaskError};
use tokio::time::Instant;

use crate::bed::{Door, Log, queue, results, retrying, settled, timed, waiting};

fn report(completed: u64, failed: u64, abandoned: u64, timed_out: bool) -> DrainReport {
    DrainReport { completed, failed, abandoned, timed_out }
}

#[tokio::test(start_paused = true)]
async fn a_stop_awaits_what_runs_and_what_is_queued_and_counts_the_drain() {
    let (queue, log) = (retrying(1), Log::default());
    timed(&queue, &log, "a", 0, 0).await.expect("before the drain");
    let tasks = [timed(&queue, &log, "a", 1, 0), timed(&queue, &log, "a", 2, 1), timed(&queue, &log, "b", 1, 3)];
    assert_eq!(queue.stop(None).await, report(2, 1, 0, false));
    assert_eq!(results(tasks).await, [Ok(1), Ok(2), Err("b1 failed".to_owned())]);
}

#[tokio::test]
async fn new_work_is_refused_from_the_call_on() {
    let queue = queue(1);
    let stopping = queue.stop(None);
    let refused = queue.run("a", || async { Ok::<_, ()>(()) });
    assert_eq!(refused.err(), Some(QueueStopped));
    assert_eq!(stopping.await, report(0, 0, 0, false));
    assert_eq!(queue.run_future("a", async { Ok::<_, ()>(()) }).err(), Some(QueueStopped));
    assert_eq!((queue.snapshot().submitted, queue.snapshot().stopping), (0, true));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_abandons_what_runs_waits_and_is_queued() {
    let (queue, log, door, begun) = (retrying(2), Log::default(), Door::closed(), Instant::now());
    let done = timed(&queue, &log, "a", 1, 0);
    let hung = waiting(&queue, &log, "b", 1, &door);
    let backing_off = timed(&queue, &log, "c", 1, 9);
    let queued = waiting(&queue, &log, "b", 2, &door);
    let stopped = queue.stop(Some(Duration::from_millis(500))).await;
    assert_eq!((stopped, begun.elapsed()), (report(1, 0, 3, true), Duration::from_millis(500)));
    assert_eq!(done.await, Ok(1));
    for task in [hung, backing_off, queued] {
        assert_eq!(task.await, Err(TaskError::Stopped));
    }
    // The hung handler comes to an end after all.
    let before = queue.snapshot();
    door.open();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(queue.snapshot(), before, "a late result corrupts no counter");
    assert_eq!((before.running, before.queued, before.keys, before.abandoned), (0, 0, 0, 3));
    assert_eq!(before.submitted, before.completed + before.failed + before.cancelled + before.abandoned);
    let mut told = log.told();
    told.sort();
    assert_eq!(told, ["a1", "b1", "c1"], "and nothing starts any more");
}

#[tokio::test(start_paused = true)]
async fn paused_queued_work_is_abandoned_at_once() {
    let (queue, log, door) = (queue(8), Log::default(), Door::closed());
    let running = waiting(&queue, &log, "a", 1, &door);
    settled().await;
    queue.pause_key(&"a");
    let [held, free] = [waiting(&queue, &log, "a", 2, &door), timed(&queue, &log, "b", 1, 0)];
    let stopping = queue.stop(None);
    assert_eq!(held.await, Err(TaskError::Stopped), "although what runs goes on");
    door.open();
    assert_eq!(stopping.await, report(2, 0, 1, false));
    assert_eq!(results([running, free]).await, [Ok(1), Ok(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_while_the_queue_drains_abandons_what_it_holds_back() {
    let (queue, log) = (retrying(1), Log::default());
    let tasks = [timed(&queue, &log, "a", 1, 1), timed(&queue, &log, "a", 2, 0), timed(&queue, &log, "b", 1, 0)];
    let stopping = queue.stop(None);
    tokio::time::sleep(Duration::from_millis(50)).await;
    queue.pause();
    // The first fails, and its next attempt would be held back.
    assert_eq!(stopping.await, report(0, 0, 3, false));
    assert!(results(tasks).await.iter().all(Result::is_err));
}

#[tokio::test(start_paused = true)]
async fn every_stop_gives_the_same_report() {
    let (queue, log) = (queue(1), Log::default());
    let _task = timed(&queue, &log, "a", 1, 0);
    let (first, second) = (queue.stop(None), queue.stop(Some(Duration::from_secs(9))));
    let handle = queue.clone();
    let third = tokio::spawn(async move { handle.stop(None).await });
    let expected = report(1, 0, 0, false);
    assert_eq!((second.await, first.await, third.await.expect("it ends")), (expected, expected, expected));
    assert_eq!(queue.stop(Some(Duration::ZERO)).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_later_stop_can_bring_the_deadline_forward() {
    let (queue, log, door, begun) = (queue(1), Log::default(), Door::closed(), Instant::now());
    let _hung = waiting(&queue, &log, "a", 1, &door);
    let first = queue.stop(None);
    let second = queue.stop(Some(Duration::from_secs(1)));
    assert_eq!((first.await, begun.elapsed()), (report(0, 0, 1, true), Duration::from_secs(1)));
    assert_eq!(second.await, report(0, 0, 1, true));
}

#[tokio::test]
async fn a_stop_without_patience_abandons_everything_now() {
    let (queue, log, door) = (queue(1), Log::default(), Door::closed());
    let tasks = [1, 2].map(|number| waiting(&queue, &log, "a", number, &door));
    settled().await;
    assert_eq!(queue.stop(Some(Duration::ZERO)).await, report(0, 0, 2, true));
    assert!(results(tasks).await.iter().all(Result::is_err));
    queue.when_idle().await;
}

#[tokio::test(start_paused = true)]
async fn tasks_can_be_cancelled_while_the_queue_drains() {
    let (queue, log, door) = (queue(1), Log::default(), Door::closed());
    let [_first, second] = [1, 2].map(|number| waiting(&queue, &log, "a", number, &door));
    let stopping = queue.stop(None);
    assert!(queue.cancel(second.id));
    assert_eq!(second.await, Err(TaskError::Cancelled));
    door.open();
    assert_eq!(stopping.await, report(1, 0, 0, false), "a cancelled task was not abandoned");
}
