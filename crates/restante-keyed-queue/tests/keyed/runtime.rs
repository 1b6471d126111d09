//! Where the queue runs, and what becomes of it when that ends.

use std::sync::Arc;
use std::time::Duration;

use restante_keyed_queue::{BuildError, Clock, DrainReport, Queue, QueueStopped, QueueTime, Sleep, TaskError};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::bed::{Log, settled, timed};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime")
}

#[test]
fn a_queue_is_built_inside_a_runtime_or_for_one_and_used_from_anywhere() {
    assert_eq!(Queue::<u8>::builder().build().err(), Some(BuildError::NoRuntime));
    let runtime = runtime();
    let queue = Queue::builder().runtime(runtime.handle().clone()).build().expect("valid");
    let task = queue.run(1, || async { Ok::<_, ()>(7) }).expect("it takes work");
    assert_eq!(runtime.block_on(task.into_future()), Ok(7));
}

#[test]
fn when_the_runtime_ends_everything_outstanding_is_abandoned() {
    let home = runtime();
    let queue = Queue::builder().runtime(home.handle().clone()).retry(2, |_| Duration::from_secs(3_600)).build().expect("valid");
    let hung = queue.run(1, std::future::pending::<Result<(), ()>>).expect("it takes work");
    let behind = queue.run(1, || async { Ok::<_, ()>(()) }).expect("it takes work");
    let backing_off = queue.run(2, || async { Err::<(), _>(()) }).expect("it takes work");
    while queue.snapshot().backing_off == 0 {
        std::thread::yield_now();
    }
    drop(home);
    let other = runtime();
    for task in [hung, behind, backing_off] {
        assert_eq!(other.block_on(task.into_future()), Err(TaskError::Stopped));
    }
    assert_eq!(queue.run(1, || async { Ok::<_, ()>(()) }).err(), Some(QueueStopped));
    let report = DrainReport { completed: 0, failed: 0, abandoned: 3, timed_out: true };
    assert_eq!(other.block_on(queue.stop(None)), report);
}

#[test]
fn a_backoff_alone_notices_that_the_runtime_ended() {
    let home = runtime();
    let queue = Queue::builder().runtime(home.handle().clone()).retry(2, |_| Duration::from_secs(3_600)).build().expect("valid");
    let task = queue.run(2, || async { Err::<(), _>(()) }).expect("it takes work");
    while queue.snapshot().backing_off == 0 {
        std::thread::yield_now();
    }
    drop(home);
    assert_eq!(runtime().block_on(task.into_future()), Err(TaskError::Stopped));
}

#[test]
fn a_submission_after_the_runtime_ended_is_abandoned() {
    let home = runtime();
    let queue = Queue::builder().runtime(home.handle().clone()).build().expect("valid");
    drop(home);
    let task = queue.run(1, || async { Ok::<_, ()>(()) }).expect("nothing has told the queue yet");
    assert_eq!(runtime().block_on(task.into_future()), Err(TaskError::Stopped));
}

/// A clock that a test turns by hand.
#[derive(Clone, Debug)]
struct ByHand(Arc<watch::Sender<u64>>);

impl Clock for ByHand {
    fn now(&self) -> QueueTime {
        QueueTime::new(Duration::from_secs(*self.0.borrow()))
    }

    fn sleep_until(&self, _at: QueueTime) -> Sleep {
        // Ends with every turn, mostly too early.
        let mut turns = self.0.subscribe();
        Box::pin(async move {
            let _ = turns.changed().await;
        })
    }
}

#[tokio::test]
async fn time_is_the_injected_clocks() {
    let clock = ByHand(Arc::new(watch::Sender::new(0)));
    let queue = Queue::builder().retry(2, |_| Duration::from_secs(10)).clock(clock.clone()).build().expect("valid");
    let log = Log::default();
    let task = queue.run("a", {
        let log = log.clone();
        move || {
            log.tell("attempt");
            async { Err::<(), _>(()) }
        }
    });
    for (now, attempts) in [(0, 1), (9, 1), (10, 2)] {
        clock.0.send_replace(now);
        settled().await;
        assert_eq!(log.told().len(), attempts, "at {now} s");
    }
    assert_eq!(task.expect("it takes work").await, Err(TaskError::Failed(())));
}

#[tokio::test(start_paused = true)]
async fn a_called_off_backoff_keeps_nothing_alive() {
    let queue = Queue::builder().retry(2, |_| Duration::from_secs(3_600)).build().expect("valid");
    let held = Arc::new(());
    let handler = {
        let held = held.clone();
        move || {
            let _held = held.clone();
            async { Err::<(), _>(()) }
        }
    };
    let task = queue.run("a", handler).expect("it takes work");
    settled().await;
    assert_eq!(queue.stop(Some(Duration::from_secs(1))).await.abandoned, 1);
    settled().await;
    assert_eq!(task.await, Err(TaskError::Stopped));
    assert_eq!(Arc::strong_count(&held), 1);
    // Another queue is none the wiser.
    let other = crate::bed::queue(1);
    assert_eq!(timed(&other, &Log::default(), "a", 1, 0).await, Ok(1));
}

#[test]
fn a_handler_that_blocks_its_thread_does_not_keep_other_keys_waiting() {
    let runtime = runtime();
    let queue = Queue::builder().width(4).runtime(runtime.handle().clone()).build().expect("valid");
    let (release, released) = std::sync::mpsc::channel::<()>();
    let blocked = queue.run_future(0, async move { released.recv().map_err(drop) }).expect("it takes work");
    for key in 1..=20 {
        let task = queue.run(key, || async { Ok::<_, ()>(()) }).expect("it takes work");
        assert_eq!(runtime.block_on(task.into_future()), Ok(()));
    }
    release.send(()).expect("it waits");
    assert_eq!(runtime.block_on(blocked.into_future()), Ok(()));
}

#[test]
fn handlers_that_keep_their_threads_run_beside_each_other() {
    let runtime = runtime();
    for _ in 0..20 {
        let queue = Queue::builder().width(2).runtime(runtime.handle().clone()).build().expect("valid");
        let (tell_a, hear_a) = std::sync::mpsc::channel();
        let (tell_b, hear_b) = std::sync::mpsc::channel();
        // Each tells the other that it runs, and keeps its thread until it hears the same.
        let meet = |tell: std::sync::mpsc::Sender<()>, hear: std::sync::mpsc::Receiver<()>| async move {
            tell.send(()).map_err(drop)?;
            hear.recv_timeout(Duration::from_secs(20)).map_err(drop)
        };
        let submitting = async move {
            let first = queue.run_future(1, meet(tell_a, hear_b)).expect("it takes work");
            let second = queue.run_future(2, meet(tell_b, hear_a)).expect("it takes work");
            (first.await, second.await)
        };
        let both = runtime.block_on(async { tokio::spawn(submitting).await.expect("it ends") });
        assert_eq!(both, (Ok(()), Ok(())));
    }
}
