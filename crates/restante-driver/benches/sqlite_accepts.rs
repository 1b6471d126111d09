//! Accepts a second on SQLite, beside a plain grouped writer of the same rows and bytes, in the same run.
//!
//! The plain writer is what somebody would write who wants rows on disk and nothing else: one thread, one connection with the
//! same journal and sync settings, whatever waits shares a transaction, blind `INSERT OR REPLACE`. It reads nothing, checks
//! nothing and cannot conflict. Its rows are those that the accepts of the round before wrote, key for key and byte for byte.
//!
//! `ROUNDS` (5), `CALLERS` (64), `SENDS` (20000) and `PAYLOAD` (512 bytes) come from the environment.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use restante_core::Config;
use restante_core::machine::{Post, PostResult};
use restante_driver::{Backlog, Message};
use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Mutation, Page, Snapshot, StoreError, Txn, Write};
use restante_kv_sqlite::SqliteKv;
use tokio::sync::oneshot;

const DAY_MS: u64 = 86_400_000;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Hands everything on and remembers what was committed.
struct Recorder {
    store: SqliteKv,
    committed: Mutex<Vec<Vec<Write>>>,
    commits_tried: AtomicUsize,
    reads: AtomicUsize,
}

impl AtomicKv for Recorder {
    fn limits(&self) -> Limits {
        self.store.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.get_many(keys)
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.store.scan(range, limit)
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        self.commits_tried.fetch_add(1, Ordering::Relaxed);
        let writes = txn.writes.clone();
        Box::pin(async move {
            let result = self.store.cas_many(txn).await;
            if result.is_ok() {
                self.committed.lock().unwrap().push(writes);
            }
            result
        })
    }
}

struct Round {
    rate: f64,
    slowest: Duration,
    typical: Duration,
}

fn round(took: Duration, mut each: Vec<Duration>) -> Round {
    each.sort_unstable();
    Round { rate: each.len() as f64 / took.as_secs_f64(), typical: each[each.len() / 2], slowest: each[each.len() * 99 / 100] }
}

/// `callers` tasks share `count` calls.
async fn storm<F>(callers: usize, count: usize, call: impl Fn(usize) -> F + Send + Sync + 'static) -> Round
where
    F: Future<Output = ()> + Send,
{
    let (call, next) = (Arc::new(call), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (call, next) = (Arc::clone(&call), Arc::clone(&next));
            tokio::spawn(async move {
                let mut each = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return each;
                    }
                    let began = Instant::now();
                    call(number).await;
                    each.push(began.elapsed());
                }
            })
        })
        .collect();
    let mut each = Vec::new();
    for task in tasks {
        each.extend(task.await.unwrap());
    }
    round(began.elapsed(), each)
}

async fn accepts(path: &Path, callers: usize, count: usize, payload: usize) -> (Round, Arc<Recorder>) {
    let recorder = Arc::new(Recorder {
        store: SqliteKv::builder(path).open().unwrap(),
        committed: Mutex::default(),
        commits_tried: AtomicUsize::new(0),
        reads: AtomicUsize::new(0),
    });
    let config = Config { counter_slots: setting("SLOTS", 128) as u64, ..Config::new(DAY_MS) };
    let sender = tower::service_fn(|_: Post| async { Ok::<_, Infallible>(PostResult::Unknown) });
    let backlog = Backlog::builder(Arc::clone(&recorder) as Arc<dyn AtomicKv>, config, sender).build().unwrap();
    let payload = vec![b'x'; payload];
    let figures = storm(callers, count, move |number| {
        let message = Message::new(format!("https://host-{}.example/inbox", number % 200), payload.as_slice());
        let backlog = backlog.clone();
        async move {
            backlog.send(message).await.unwrap();
        }
    })
    .await;
    (figures, recorder)
}

type Job = (usize, oneshot::Sender<()>);

async fn plain(path: &Path, callers: usize, rows: Arc<Vec<Vec<Write>>>) -> Round {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 2048;
             CREATE TABLE kv (key BLOB PRIMARY KEY NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL) STRICT, WITHOUT ROWID;",
        )
        .unwrap();
    let (jobs, waiting) = mpsc::channel::<Job>();
    let writer = {
        let rows = Arc::clone(&rows);
        std::thread::spawn(move || {
            let mut put = connection.prepare("INSERT OR REPLACE INTO kv (key, version, value) VALUES (?1, ?2, ?3)").unwrap();
            let mut delete = connection.prepare("DELETE FROM kv WHERE key = ?1").unwrap();
            while let Ok(first) = waiting.recv() {
                let group: Vec<Job> = std::iter::once(first).chain(waiting.try_iter().take(63)).collect();
                connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                for (number, _) in &group {
                    for write in &rows[*number] {
                        match &write.mutation {
                            Mutation::Put(value) => put.execute((write.key.as_bytes(), 1, value.as_bytes())).unwrap(),
                            Mutation::Delete => delete.execute([write.key.as_bytes()]).unwrap(),
                        };
                    }
                }
                connection.execute_batch("COMMIT").unwrap();
                for (_, answer) in group {
                    let _ = answer.send(());
                }
            }
        })
    };
    let count = rows.len();
    let figures = storm(callers, count, move |number| {
        let (answer, answered) = oneshot::channel();
        jobs.send((number, answer)).unwrap();
        async move { answered.await.unwrap() }
    })
    .await;
    writer.join().unwrap();
    figures
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let (rounds, callers) = (setting("ROUNDS", 5), setting("CALLERS", 64));
    let (count, payload) = (setting("SENDS", 20_000), setting("PAYLOAD", 512));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    println!("{count} sends of {payload} bytes, {callers} callers, one unkeyed recipient each");
    for number in 1..=rounds {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (ours_now, recorder) = runtime.block_on(accepts(&directory.path().join("backlog"), callers, count, payload));
        recorder.store.close();
        let rows = std::mem::take(&mut *recorder.committed.lock().unwrap());
        let (row_count, bytes) = rows.iter().flatten().fold((0, 0), |(rows, bytes), write| {
            let value = if let Mutation::Put(value) = &write.mutation { value.len() } else { 0 };
            (rows + 1, bytes + write.key.len() + value)
        });
        let (tried, reads, commits) =
            (recorder.commits_tried.load(Ordering::Relaxed), recorder.reads.load(Ordering::Relaxed), rows.len());
        let theirs_now = runtime.block_on(plain(&directory.path().join("plain"), callers, Arc::new(rows)));
        println!(
            "round {number}: accepts {:.0}/s (p50 {:.1} ms, p99 {:.1} ms), plain writer {:.0}/s (p50 {:.1} ms, p99 {:.1} ms), ratio {:.2}",
            ours_now.rate,
            ours_now.typical.as_secs_f64() * 1e3,
            ours_now.slowest.as_secs_f64() * 1e3,
            theirs_now.rate,
            theirs_now.typical.as_secs_f64() * 1e3,
            theirs_now.slowest.as_secs_f64() * 1e3,
            ours_now.rate / theirs_now.rate
        );
        if number == 1 {
            let per = |what: usize| what as f64 / commits as f64;
            println!(
                "per accept: {:.2} rows, {:.0} bytes, {:.3} commits tried, {:.3} snapshots",
                per(row_count),
                per(bytes),
                per(tried),
                per(reads)
            );
        }
        ratios.push(ours_now.rate / theirs_now.rate);
        ours.push(ours_now.rate);
        theirs.push(theirs_now.rate);
    }
    println!("median: accepts {:.0}/s, plain writer {:.0}/s, ratio {:.2}", median(ours), median(theirs), median(ratios));
}
