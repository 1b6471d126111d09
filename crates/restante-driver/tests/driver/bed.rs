//! A backlog over a memory store or a file, with a sender that a test controls.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use restante_core::Config;
use restante_core::machine::{Post, PostResult};
use restante_driver::{Backlog, Sender};
use restante_kv::{Limits, MemoryKv, StoreTime};

pub(crate) const DAY_MS: u64 = 86_400_000;
pub(crate) const ACCEPTED: PostResult = PostResult::Status { code: 202, retry_after_ms: None };

/// A store in memory with the machine's clock.
pub(crate) fn memory() -> Arc<MemoryKv> {
    let clock = || StoreTime::from_ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64);
    Arc::new(MemoryKv::new(Limits::FLOOR, Arc::new(clock)))
}

pub(crate) fn config() -> Config {
    Config { backoff_initial_ms: 20, conflict_pause_ms: 2, ..Config::new(DAY_MS) }
}

/// What a sender was asked to deliver, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Post>>>);

impl Log {
    pub(crate) fn posts(&self) -> Vec<Post> {
        self.0.lock().unwrap().clone()
    }
    pub(crate) fn payloads(&self) -> Vec<String> {
        self.posts().iter().map(|post| String::from_utf8_lossy(post.payload.as_slice()).into_owned()).collect()
    }
    pub(crate) fn note(&self, post: &Post) {
        self.0.lock().unwrap().push(post.clone());
    }
    /// Waits until `count` attempts were made.
    pub(crate) async fn wait_for(&self, count: usize) {
        let reached = async {
            while self.posts().len() < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reached).await.unwrap_or_else(|_| {
            panic!("{} attempts of {count} within 20 s", self.posts().len());
        });
    }
}

/// Answers attempt number n (from 0) with `answer(n)`.
pub(crate) fn answering(log: &Log, answer: impl Fn(usize) -> PostResult + Send + Sync + 'static) -> impl Sender {
    let (log, next, answer) = (log.clone(), Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    tower::service_fn(move |post: Post| {
        log.note(&post);
        let result = answer(next.fetch_add(1, Ordering::Relaxed));
        async move { Ok::<_, Infallible>(result) }
    })
}

/// Everything arrives.
pub(crate) fn delivering(log: &Log) -> impl Sender {
    answering(log, |_| ACCEPTED)
}

/// Everything arrives, and takes its time.
pub(crate) fn delivering_within(log: &Log, took: Duration) -> impl Sender {
    let log = log.clone();
    tower::service_fn(move |post: Post| {
        log.note(&post);
        async move {
            tokio::time::sleep(took).await;
            Ok::<_, Infallible>(ACCEPTED)
        }
    })
}

/// Never answers.
pub(crate) fn hanging(log: &Log) -> impl Sender {
    let log = log.clone();
    tower::service_fn(move |post: Post| {
        log.note(&post);
        std::future::pending::<Result<PostResult, Infallible>>()
    })
}

pub(crate) fn backlog(store: &Arc<MemoryKv>, config: Config, sender: impl Sender) -> Backlog {
    Backlog::builder(Arc::clone(store) as _, config, sender).allow_volatile_store().build().unwrap()
}
