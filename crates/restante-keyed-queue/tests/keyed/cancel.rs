//! Cancelling: only what has not started.

use std::time::Duration;

use restante_keyed_queue::TaskError;

use crate::bed::{Door, Log, queue, results, retrying, settled, timed, waiting};

#[tokio::test]
async fn a_queued_task_is_cancelled_and_never_starts() {
    let (queue, log, door) = (queue(1), Log::default(), Door::closed());
    let [first, second, third] = [1, 2, 3].map(|number| waiting(&queue, &log, "a", number, &door));
    assert!(queue.cancel(second.id));
    assert_eq!(second.await, Err(TaskError::Cancelled));
    door.open();
    door.open();
    assert_eq!(results([first, third]).await, [Ok(1), Ok(3)]);
    assert_eq!((log.told(), queue.snapshot().cancelled), (vec!["a1".to_owned(), "a3".to_owned()], 1));
}

#[tokio::test]
async fn a_running_task_is_not_cancelled() {
    let (queue, log, door) = (queue(1), Log::default(), Door::closed());
    let task = waiting(&queue, &log, "a", 1, &door);
    settled().await;
    assert!(!queue.cancel(task.id));
    door.open();
    assert_eq!(task.await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_task_between_two_attempts_has_started_and_is_not_cancelled() {
    let (queue, log) = (retrying(1), Log::default());
    let task = timed(&queue, &log, "a", 1, 1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(queue.snapshot().backing_off, 1);
    assert!(!queue.cancel(task.id));
    assert_eq!(task.await, Ok(1));
}

#[tokio::test]
async fn a_finished_cancelled_or_unknown_task_is_not_cancelled() {
    let (queue, log, door) = (queue(1), Log::default(), Door::closed());
    let [first, second] = [1, 2].map(|number| waiting(&queue, &log, "a", number, &door));
    let elsewhere = crate::bed::queue(1);
    assert!(!elsewhere.cancel(second.id), "another queue's");
    assert!(queue.cancel(second.id) && !queue.cancel(second.id));
    let id = first.id;
    door.open();
    assert_eq!(first.await, Ok(1));
    assert!(!queue.cancel(id));
    assert_eq!(queue.snapshot().cancelled, 1);
}
