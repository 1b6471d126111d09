//! How a worker and the runs beside it stop, and what is counted.

use std::time::{Duration, Instant};

use restante_core::keys::Kind;
use restante_core::{Config, Env};
use restante_driver::{Backlog, DrainReport, Message};
use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Mutation, Page, Snapshot, StoreError, Txn};

use crate::bed::{Log, backlog, config, delivering, delivering_within, hanging, memory};

const INBOX: &str = "https://a.example/inbox";

/// One delivery at a time, for a worker and for a run each.
fn one_at_a_time() -> Config {
    Config { concurrency: 1, poll_interval_ms: 20, ..config() }
}

async fn send(backlog: &Backlog, count: usize) {
    for n in 0..count {
        backlog.send(Message::new(INBOX, format!("{n}").into_bytes())).await.unwrap();
    }
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_is_cut_off_with_its_worker_and_counted() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, one_at_a_time(), hanging(&log));
    send(&backlog, 2).await;
    let handle = backlog.start();
    log.wait_for(1).await;
    let runs = handle.runs();
    let asked = tokio::spawn(async move { runs.run_once(10).await });
    log.wait_for(2).await;
    // Who asked is gone.
    asked.abort();
    let began = Instant::now();
    let report = handle.shutdown(Duration::from_millis(50)).await;
    assert_eq!(report, DrainReport { abandoned: 2, timed_out: true, ..DrainReport::default() });
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_run_under_way_ends_what_it_has_begun_takes_nothing_new_and_is_answered() {
    let (store, log) = (memory(), Log::default());
    let slow = delivering_within(&log, Duration::from_millis(300));
    let backlog = backlog(&store, one_at_a_time(), slow);
    send(&backlog, 20).await;
    let handle = backlog.start();
    log.wait_for(1).await;
    let runs = handle.runs();
    let asked = tokio::spawn(async move { runs.run_once(10).await });
    log.wait_for(2).await;
    let runs = handle.runs();
    let report = handle.shutdown(Duration::from_secs(10)).await;
    assert_eq!(report, DrainReport { completed: 2, ..DrainReport::default() });
    let told = asked.await.unwrap().expect("it came to its end").report;
    assert_eq!((told.processed, told.more), (1, true));
    assert_eq!(runs.run_once(10).await, None, "nothing is begun any more");
    assert_eq!(backlog.depth().await.unwrap().entries, 18);
}

#[tokio::test]
async fn a_dropped_handle_leaves_its_worker_running() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, one_at_a_time(), delivering(&log));
    drop(backlog.start());
    send(&backlog, 1).await;
    log.wait_for(1).await;
}

/// Commits what removes an entry, and does not say so.
struct Unsure(std::sync::Arc<restante_kv::MemoryKv>, Key);

impl AtomicKv for Unsure {
    fn limits(&self) -> Limits {
        self.0.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.0.get_many(keys)
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.0.scan(range, limit)
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let removes = txn.writes.iter().any(|write| write.key == self.1 && write.mutation == Mutation::Delete);
        Box::pin(async move {
            let committed = self.0.cas_many(txn).await?;
            if removes { Err(StoreError::Ambiguous("nobody knows".into())) } else { Ok(committed) }
        })
    }
}

#[tokio::test]
async fn a_delivery_whose_settle_turns_out_to_have_happened_counts_as_completed() {
    let (store, log) = (memory(), Log::default());
    let slow = delivering_within(&log, Duration::from_millis(100));
    send(&backlog(&store, config(), delivering(&log)), 1).await;
    let entries = Env::new(config()).keys.all(Kind::Entry);
    let (entry, _) = store.scan(entries, 1).await.unwrap().entries.remove(0);
    let unsure = std::sync::Arc::new(Unsure(store.clone(), entry));
    let backlog = Backlog::builder(unsure, config(), slow).allow_volatile_store().build().unwrap();
    let handle = backlog.start();
    log.wait_for(1).await;
    let report = handle.shutdown(Duration::from_secs(10)).await;
    assert_eq!(report, DrainReport { completed: 1, ..DrainReport::default() });
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
}
