//! What a delivery costs as the backlog grows: keys and calls counted, time beside them.
//!
//! Fills SQLite files with `SIZES` entries (`1000,10000,100000`; add 1000000 for the whole picture) for `HOSTS` (1,000)
//! destinations, then delivers `DELIVERIES` (500) of them and counts what discovery, claims, gates and settles asked of the
//! store; the sweep is not due. Also: bytes of the file per entry, and what a look at the depth costs.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use restante_core::Config;
use restante_core::machine::{Post, PostResult};
use restante_driver::{Backlog, Message};
use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Page, Snapshot, StoreError, Txn};
use restante_kv_sqlite::SqliteKv;

const DAY_MS: u64 = 86_400_000;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Hands everything on and counts.
struct Counting {
    store: SqliteKv,
    snapshots: AtomicU64,
    keys: AtomicU64,
    pages: AtomicU64,
    records: AtomicU64,
    commits: AtomicU64,
}

impl Counting {
    fn figures(&self) -> [u64; 5] {
        [&self.snapshots, &self.keys, &self.pages, &self.records, &self.commits].map(|count| count.load(Ordering::Relaxed))
    }
}

impl AtomicKv for Counting {
    fn limits(&self) -> Limits {
        self.store.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.snapshots.fetch_add(1, Ordering::Relaxed);
        self.keys.fetch_add(keys.len() as u64, Ordering::Relaxed);
        self.store.get_many(keys)
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            let page = self.store.scan(range, limit).await;
            self.pages.fetch_add(1, Ordering::Relaxed);
            self.records.fetch_add(page.as_ref().map_or(0, |page| page.entries.len() as u64), Ordering::Relaxed);
            page
        })
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.store.cas_many(txn)
    }
}

async fn measure(size: usize) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("backlog");
    let zero = || AtomicU64::new(0);
    let store = Arc::new(Counting {
        store: SqliteKv::builder(&path).open().unwrap(),
        snapshots: zero(),
        keys: zero(),
        pages: zero(),
        records: zero(),
        commits: zero(),
    });
    let config = Config { counter_slots: 128, concurrency: 64, window: 64, sweep_interval_ms: DAY_MS, ..Config::new(DAY_MS) };
    let sender =
        tower::service_fn(|_: Post| async { Ok::<_, Infallible>(PostResult::Status { code: 202, retry_after_ms: None }) });
    let backlog = Backlog::builder(Arc::clone(&store) as _, config, sender).build().unwrap();
    // An empty backlog is swept in no time, and then the sweep is not due for a day.
    assert!(!backlog.run_once(1).await.more);

    let (hosts, began) = (setting("HOSTS", 1_000), Instant::now());
    for from in (0..size).step_by(1_000) {
        let message = |number: usize| Message::new(format!("https://host-{}.example/inbox", number % hosts), vec![b'x'; 512]);
        let answers = backlog.send_many((from..size.min(from + 1_000)).map(message).collect()).await;
        assert!(answers.iter().all(Result::is_ok));
    }
    let accepts = size as f64 / began.elapsed().as_secs_f64();
    let file_bytes: u64 = ["", "-wal"]
        .iter()
        .filter_map(|ending| std::fs::metadata(directory.path().join(format!("backlog{ending}"))).ok())
        .map(|metadata| metadata.len())
        .sum();

    let (deliveries, began, before) = (setting("DELIVERIES", 500) as u64, Instant::now(), store.figures());
    let report = backlog.run_once(deliveries).await;
    let took = began.elapsed();
    let each: Vec<f64> =
        store.figures().iter().zip(before).map(|(after, before)| (after - before) as f64 / report.processed as f64).collect();
    let began = Instant::now();
    let depth = backlog.depth().await.unwrap();
    println!(
        "{size:>8} entries | accepts {accepts:>6.0}/s | {:>5} bytes an entry | per delivery: {:.2} snapshots, {:.2} keys, {:.2} pages, \
         {:.1} records, {:.2} commits | {:.2} ms | depth in {:.2} ms ({} left)",
        file_bytes / size as u64,
        each[0],
        each[1],
        each[2],
        each[3],
        each[4],
        took.as_secs_f64() * 1e3 / report.processed as f64,
        began.elapsed().as_secs_f64() * 1e3,
        depth.entries
    );
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let sizes = std::env::var("SIZES").unwrap_or_else(|_| "1000,10000,100000".to_owned());
    for size in sizes.split(',').filter_map(|size| size.trim().parse().ok()) {
        runtime.block_on(measure(size));
    }
}
