//! A panic of somebody else's code is that task's, and the queue goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use restante_keyed_queue::{Queue, TaskError};

use crate::bed::{Log, queue, retrying, settled, timed};

fn panicked(message: &str) -> Result<u32, TaskError<String>> {
    Err(TaskError::Panicked { message: message.to_owned() })
}

/// A value whose drop panics.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_attempt() {
    let (queue, calls) = (retrying(1), Arc::new(AtomicU32::new(0)));
    let counted = calls.clone();
    let handler = move || {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        assert!(call != 0, "in the handler itself");
        async move {
            tokio::task::yield_now().await;
            assert!(call != 1, "in its future");
            Ok::<_, String>(call)
        }
    };
    assert_eq!(queue.run("a", handler).expect("it takes work").await, Ok(2));
    assert_eq!((queue.snapshot().completed, queue.snapshot().failed), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_last_panic_is_the_result_and_the_next_task_runs() {
    let (queue, log) = (retrying(1), Log::default());
    let bad = queue.run("a", || async { panic!("attempt {}", 7) }).expect("it takes work");
    let good = timed(&queue, &log, "a", 2, 0);
    assert_eq!(bad.await, panicked("attempt 7"));
    assert_eq!((good.await, queue.snapshot().failed), (Ok(2), 1));
}

#[tokio::test(start_paused = true)]
async fn a_backoff_function_that_panics_fails_the_task() {
    let queue = Queue::builder().retry(3, |_| panic!("no number")).build().expect("valid");
    let log = Log::default();
    let task = timed(&queue, &log, "a", 1, 1);
    assert_eq!(task.await, panicked("its backoff function panicked: no number"));
    assert_eq!(timed(&queue, &log, "a", 2, 0).await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn drops_that_panic_take_nobody_with_them() {
    let (queue, log) = (queue(1), Log::default());
    let future = async {
        let _grenade = Grenade;
        tokio::task::yield_now().await;
        Ok(1)
    };
    assert_eq!(queue.run_future("a", future).expect("it takes work").await, panicked("dropped"));
    // A handler that is never called, a value that nobody wants.
    queue.pause();
    let grenade = Grenade;
    let handler = move || {
        let _ = &grenade;
        async { Ok::<u32, String>(1) }
    };
    let task = queue.run("a", handler).expect("it takes work");
    assert!(queue.cancel(task.id));
    queue.resume();
    assert_eq!(timed(&queue, &log, "a", 2, 0).await, Ok(2));
    assert_eq!(queue.snapshot().running, 0);
}

/// A key that panics when it is told to.
#[derive(Clone, Debug)]
struct Key(u32, Arc<AtomicU32>);

impl Key {
    fn perhaps(&self, what: u32) {
        assert!(self.1.load(Ordering::SeqCst) != what, "told to");
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.perhaps(1);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.perhaps(2);
        self.0.hash(state);
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_panic_refuse_a_submission_and_leave_the_queue_as_it_was() {
    let queue = Queue::builder().width(1).build().expect("valid");
    let trouble = Arc::new(AtomicU32::new(0));
    let submit = |number| {
        queue.run(Key(number, trouble.clone()), move || async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok::<_, ()>(number)
        })
    };
    let tasks: Vec<_> = (0..100).map(|number| submit(number % 3).expect("it takes work")).collect();
    for what in [1, 2] {
        trouble.store(what, Ordering::SeqCst);
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| submit(1)));
        assert!(refused.is_err());
        trouble.store(0, Ordering::SeqCst);
    }
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await, Ok(number as u32 % 3));
    }
    settled().await;
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.submitted, snapshot.completed, snapshot.keys), (100, 100, 0));
}
