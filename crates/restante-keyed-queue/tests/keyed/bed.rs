//! Handlers that tell what they do and wait to be told what to come to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_keyed_queue::{Queue, Task};
use tokio::sync::Semaphore;

pub(crate) type TestTask = Task<&'static str, u32, String>;

/// What happened, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn tell(&self, what: impl Into<String>) {
        self.0.lock().expect("no test panics while it tells").push(what.into());
    }

    pub(crate) fn told(&self) -> Vec<String> {
        self.0.lock().expect("no test panics while it tells").clone()
    }
}

pub(crate) fn queue(width: u32) -> Queue<&'static str> {
    Queue::builder().width(width).build().expect("valid")
}

/// With three attempts and a second between them.
pub(crate) fn retrying(width: u32) -> Queue<&'static str> {
    Queue::builder().width(width).retry(3, |_| Duration::from_secs(1)).build().expect("valid")
}

/// Submits a task that tells its name with each attempt, sleeps for 100 ms, and fails as often as `failures` says.
pub(crate) fn timed(queue: &Queue<&'static str>, log: &Log, key: &'static str, number: u32, failures: u32) -> TestTask {
    let (log, mut left) = (log.clone(), failures);
    let handler = move || {
        log.tell(format!("{key}{number}"));
        let fails = left > 0;
        left = left.saturating_sub(1);
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if fails { Err(format!("{key}{number} failed")) } else { Ok(number) }
        }
    };
    queue.run(key, handler).expect("it takes work")
}

/// A door that handlers wait behind.
#[derive(Clone, Debug)]
pub(crate) struct Door(Arc<Semaphore>);

impl Door {
    pub(crate) fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets one handler go on.
    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }

    pub(crate) async fn pass(&self) {
        self.0.acquire().await.expect("a door is never taken away").forget();
    }
}

/// Submits a task that tells its name and waits behind `door`.
pub(crate) fn waiting(queue: &Queue<&'static str>, log: &Log, key: &'static str, number: u32, door: &Door) -> TestTask {
    let (log, door) = (log.clone(), door.clone());
    let handler = move || {
        let (log, door) = (log.clone(), door.clone());
        async move {
            log.tell(format!("{key}{number}"));
            door.pass().await;
            Ok(number)
        }
    };
    queue.run(key, handler).expect("it takes work")
}

/// Lets everything that can happen without time passing happen.
pub(crate) async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Results, in the order of the tasks.
pub(crate) async fn results(tasks: impl IntoIterator<Item = TestTask>) -> Vec<Result<u32, String>> {
    let mut results = Vec::new();
    for task in VecDeque::from_iter(tasks) {
        results.push(task.await.map_err(|error| error.to_string()));
    }
    results
}
