//! One at a time per key, in submission order; keys side by side up to the width.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use restante_keyed_queue::Queue;
use tokio::time::Instant;

use crate::bed::{Door, Log, queue, results, settled, timed, waiting};

#[tokio::test(start_paused = true)]
async fn tasks_of_a_key_run_one_at_a_time_in_submission_order() {
    let (queue, log, begun) = (queue(8), Log::default(), Instant::now());
    let tasks = (1..=5).map(|number| timed(&queue, &log, "a", number, 0)).collect::<Vec<_>>();
    assert_eq!(results(tasks).await, [1, 2, 3, 4, 5].map(Ok));
    assert_eq!(log.told(), ["a1", "a2", "a3", "a4", "a5"]);
    assert!(begun.elapsed() >= Duration::from_millis(500), "they did not overlap");
}

#[tokio::test(start_paused = true)]
async fn keys_run_side_by_side() {
    let (queue, log, begun) = (queue(8), Log::default(), Instant::now());
    let tasks = ["a", "b", "c", "d"].map(|key| timed(&queue, &log, key, 1, 0));
    results(tasks).await;
    assert!(begun.elapsed() < Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn no_more_keys_run_than_the_width() {
    let queue = Queue::<u32>::builder().width(3).build().expect("valid");
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let tasks = (0..20).map(|key| {
        let (running, most) = (running.clone(), most.clone());
        let work = async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(u64::from(key % 7))).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, ()>(())
        };
        queue.run_future(key, work).expect("it takes work")
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("it completes");
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_long_key_does_not_keep_others_from_their_turn() {
    let (queue, log) = (queue(1), Log::default());
    let mut tasks: Vec<_> = (1..=3).map(|number| timed(&queue, &log, "a", number, 0)).collect();
    tasks.push(timed(&queue, &log, "b", 1, 0));
    results(tasks).await;
    assert_eq!(log.told(), ["a1", "b1", "a2", "a3"]);
}

#[tokio::test]
async fn the_value_has_the_handlers_type_and_the_task_tells_its_key() {
    let queue = Queue::builder().build().expect("valid");
    let task = queue.run(String::from("key"), || async { Ok::<_, std::io::Error>(vec![1_u8, 2]) }).expect("it takes work");
    assert_eq!((task.key.as_str(), task.id.number(), task.id.to_string().as_str()), ("key", 1, "task 1"));
    assert_eq!(task.result.await.expect("it completes"), [1, 2]);
}

#[tokio::test]
async fn a_handler_that_needs_no_time_is_a_handler() {
    let queue = Queue::builder().build().expect("valid");
    let task = queue.run(1, || std::future::ready(Ok::<_, ()>("now"))).expect("it takes work");
    assert_eq!(task.await, Ok("now"));
}

#[tokio::test]
async fn dropping_a_task_or_all_handles_stops_nothing() {
    let (queue, log, door) = (queue(1), Log::default(), Door::closed());
    let first = waiting(&queue, &log, "a", 1, &door);
    drop(waiting(&queue, &log, "a", 2, &door));
    drop(queue);
    door.open();
    first.await.expect("it completes");
    settled().await;
    assert_eq!(log.told(), ["a1", "a2"]);
}

#[tokio::test]
async fn a_result_finds_its_task_counted() {
    let queue = Queue::builder().build().expect("valid");
    for round in 1..=100 {
        queue.run(round % 3, || async { Ok::<_, ()>(()) }).expect("it takes work").await.expect("it completes");
        assert_eq!((queue.snapshot().completed, queue.snapshot().running), (round, 0));
    }
}

#[tokio::test]
async fn keys_are_freed_when_nothing_of_them_is_left() {
    let key: Arc<str> = "a key".into();
    let queue = Queue::builder().build().expect("valid");
    queue.run(key.clone(), || async { Ok::<_, ()>(()) }).expect("it takes work").await.expect("it completes");
    queue.when_idle().await;
    settled().await;
    assert_eq!((Arc::strong_count(&key), queue.snapshot().keys), (1, 0));
}
