//! Pauses of the queue and of keys.

use std::time::Duration;

use crate::bed::{Door, Log, queue, results, retrying, settled, timed, waiting};

#[tokio::test]
async fn a_paused_queue_accepts_and_starts_nothing_while_what_runs_goes_on() {
    let (queue, log, door) = (queue(8), Log::default(), Door::closed());
    let first = waiting(&queue, &log, "a", 1, &door);
    settled().await;
    assert!(queue.pause() && !queue.pause());
    let more = [waiting(&queue, &log, "a", 2, &door), waiting(&queue, &log, "b", 1, &door)];
    door.open();
    assert_eq!(first.await, Ok(1));
    settled().await;
    let snapshot = queue.snapshot();
    assert_eq!((log.told().len(), snapshot.running, snapshot.queued, snapshot.paused), (1, 0, 2, true));
    assert!(queue.resume() && !queue.resume());
    door.open();
    door.open();
    assert_eq!(results(more).await, [Ok(2), Ok(1)]);
}

#[tokio::test]
async fn a_paused_key_waits_and_others_do_not() {
    let (queue, log, door) = (queue(8), Log::default(), Door::closed());
    assert!(queue.pause_key(&"a") && !queue.pause_key(&"a"));
    let [held, free] = ["a", "b"].map(|key| waiting(&queue, &log, key, 1, &door));
    door.open();
    assert_eq!(free.await, Ok(1));
    settled().await;
    assert_eq!((log.told(), queue.snapshot().paused_keys), (vec!["b1".to_owned()], vec!["a"]));
    assert!(queue.resume_key(&"a") && !queue.resume_key(&"a") && !queue.resume_key(&"unknown"));
    door.open();
    assert_eq!(held.await, Ok(1));
}

#[tokio::test]
async fn work_that_runs_when_its_key_is_paused_finishes() {
    let (queue, log, door) = (queue(8), Log::default(), Door::closed());
    let [first, second] = [1, 2].map(|number| waiting(&queue, &log, "a", number, &door));
    settled().await;
    queue.pause_key(&"a");
    door.open();
    assert_eq!(first.await, Ok(1));
    settled().await;
    assert_eq!(log.told(), ["a1"]);
    queue.resume_key(&"a");
    door.open();
    assert_eq!(second.await, Ok(2));
}

#[tokio::test]
async fn the_two_pauses_are_independent() {
    let (queue, log, door) = (queue(8), Log::default(), Door::closed());
    queue.pause();
    queue.pause_key(&"a");
    let _held = waiting(&queue, &log, "a", 1, &door);
    queue.resume();
    settled().await;
    assert_eq!(log.told().len(), 0, "the key is paused still");
    queue.pause();
    queue.resume_key(&"a");
    settled().await;
    assert_eq!(log.told().len(), 0, "the queue is");
    queue.resume();
    settled().await;
    assert_eq!(log.told(), ["a1"]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_during_backoff_holds_the_next_attempt() {
    for whole in [true, false] {
        let (queue, log) = (retrying(8), Log::default());
        let task = timed(&queue, &log, "a", 1, 1);
        tokio::time::sleep(Duration::from_millis(500)).await;
        if whole {
            queue.pause()
        } else {
            queue.pause_key(&"a")
        };
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((log.told().len(), queue.snapshot().running), (1, 1));
        if whole {
            queue.resume()
        } else {
            queue.resume_key(&"a")
        };
        assert_eq!(task.await, Ok(1));
    }
}
