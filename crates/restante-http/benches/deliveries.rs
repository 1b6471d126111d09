//! Deliveries a second over HTTP to a receiver on this machine, from SQLite: drained, live, and how long one takes.
//!
//! - **drain**: a backlog of `SENDS` is there, a worker starts; until the last arrival.
//! - **live**: 16 producers of single sends and the worker at once; until the last arrival.
//! - **latency**: `RATE` sends a second for `SECONDS`; from the instant at which a send was due to its arrival.
//!
//! The receiver runs in this process on a thread of its own and answers 202. `ROUNDS` (3), `SENDS` (5000), `PAYLOAD` (1500
//! bytes), `HOSTS` (50 destinations: ports), `CONCURRENCY` (64), `SLOTS` (128), `RATE` (200) and `SECONDS` (5) come from the
//! environment. `JOURNAL` names a file for a journal of the first round (slower): `restante-sim replay --journal` then counts
//! what each kind of command cost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use restante_core::Config;
use restante_driver::{Backlog, Journal, Message};
use restante_http::HttpSender;
use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Mutation, Page, Snapshot, StoreError, Txn};
use restante_kv_sqlite::SqliteKv;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Hands everything on and counts.
struct Counting {
    store: SqliteKv,
    commits: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    reads: AtomicU64,
    scans: AtomicU64,
    conflicts: AtomicU64,
}

impl Counting {
    fn figures(&self) -> [u64; 7] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            of(&self.commits),
            of(&self.rows),
            of(&self.bytes),
            of(&self.reads),
            of(&self.scans),
            of(&self.conflicts),
            self.store.groups_committed(),
        ]
    }
}

impl AtomicKv for Counting {
    fn limits(&self) -> Limits {
        self.store.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.get_many(keys)
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.store.scan(range, limit)
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let rows = txn.writes.len() as u64;
        let size = |write: &restante_kv::Write| {
            write.key.len() + if let Mutation::Put(value) = &write.mutation { value.len() } else { 0 }
        };
        let bytes: usize = txn.writes.iter().map(size).sum();
        Box::pin(async move {
            let result = self.store.cas_many(txn).await;
            match &result {
                Ok(_) => {
                    self.commits.fetch_add(1, Ordering::Relaxed);
                    self.rows.fetch_add(rows, Ordering::Relaxed);
                    self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                }
                Err(_) => drop(self.conflicts.fetch_add(1, Ordering::Relaxed)),
            }
            result
        })
    }
}

/// What arrived: how many, and when each first did.
#[derive(Default)]
struct Arrivals {
    count: AtomicUsize,
    at: Mutex<HashMap<u64, Instant>>,
}

/// Answers every POST with 202 and notes the number at the head of its payload.
async fn receive(mut stream: TcpStream, arrivals: Arc<Arrivals>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(16 * 1024);
    loop {
        let head_end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let end = head_end + length.unwrap_or_default();
        while bytes.len() < end {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        }
        let number = std::str::from_utf8(&bytes[head_end..head_end + 8]).ok().and_then(|text| text.trim().parse().ok());
        if let Some(number) = number
            && arrivals.at.lock().unwrap().insert(number, Instant::now()).is_none()
        {
            arrivals.count.fetch_add(1, Ordering::Relaxed);
        }
        bytes.drain(..end);
        stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await?;
    }
}

/// Ports that receive, on a thread of their own.
fn start_receiver(hosts: usize, arrivals: &Arc<Arrivals>) -> Vec<u16> {
    let listeners: Vec<std::net::TcpListener> = (0..hosts).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    let arrivals = Arc::clone(arrivals);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for listener in listeners {
                listener.set_nonblocking(true).unwrap();
                let (listener, arrivals) = (TcpListener::from_std(listener).unwrap(), Arc::clone(&arrivals));
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(receive(stream, Arc::clone(&arrivals)));
                    }
                });
            }
            std::future::pending::<()>().await;
        });
    });
    ports
}

struct Bench {
    backlog: Backlog,
    store: Arc<Counting>,
    arrivals: Arc<Arrivals>,
    ports: Vec<u16>,
    payload: usize,
    next: AtomicU64,
}

impl Bench {
    fn message(&self, number: u64) -> Message {
        let port = self.ports[number as usize % self.ports.len()];
        Message::new(format!("http://127.0.0.1:{port}/inbox"), format!("{number:<width$}", width = self.payload).into_bytes())
    }

    async fn produce(self: &Arc<Self>, producers: usize, count: u64) {
        let end = self.next.load(Ordering::Relaxed) + count;
        let tasks: Vec<_> = (0..producers)
            .map(|_| {
                let bench = Arc::clone(self);
                tokio::spawn(async move {
                    loop {
                        let number = bench.next.fetch_add(1, Ordering::Relaxed);
                        if number >= end {
                            return;
                        }
                        bench.backlog.send(bench.message(number)).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        self.next.store(end, Ordering::Relaxed);
    }

    async fn wait_for(&self, count: usize) {
        while self.arrivals.count.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Until nothing is owned: the last settles come after the last arrivals.
    async fn drained(&self) {
        while self.backlog.depth().await.unwrap().entries > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn per(after: [u64; 7], before: [u64; 7], count: u64) -> String {
    let each: Vec<f64> = after.iter().zip(before).map(|(after, before)| (after - before) as f64 / count as f64).collect();
    format!(
        "{:.2} commits, {:.1} rows, {:.0} bytes, {:.2} snapshots, {:.2} pages, {:.3} conflicts, {:.2} syncs",
        each[0], each[1], each[2], each[3], each[4], each[5], each[6]
    )
}

fn percentile(sorted: &[Duration], hundredths: usize) -> f64 {
    sorted[(sorted.len() * hundredths / 100).min(sorted.len() - 1)].as_secs_f64() * 1e3
}

async fn round(number: usize) {
    let (count, hosts) = (setting("SENDS", 5_000) as u64, setting("HOSTS", 50));
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Arc::new(Counting {
        store: SqliteKv::builder(directory.path().join("backlog")).readers(setting("READERS", 1)).open().unwrap(),
        commits: AtomicU64::new(0),
        rows: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        scans: AtomicU64::new(0),
        conflicts: AtomicU64::new(0),
    });
    let arrivals = Arc::new(Arrivals::default());
    let ports = start_receiver(hosts, &arrivals);
    let sender = HttpSender::builder().allow_http(true).allow_private_addresses(true).allow_unsigned(true).build().unwrap();
    let config = Config {
        counter_slots: setting("SLOTS", 128) as u64,
        concurrency: setting("CONCURRENCY", 64),
        window: setting("WINDOW", 64),
        ..Config::new(86_400_000)
    };
    let builder = Backlog::builder(Arc::clone(&store) as _, config, sender);
    let builder = match std::env::var_os("JOURNAL") {
        Some(path) if number == 1 => builder.journal(Journal::create(path.as_ref(), u64::MAX).unwrap()),
        _ => builder,
    };
    let backlog = builder.build().unwrap();
    let payload = setting("PAYLOAD", 1_500);
    let bench = Arc::new(Bench { backlog, store, arrivals, ports, payload, next: AtomicU64::new(0) });

    let (began, before) = (Instant::now(), bench.store.figures());
    bench.produce(16, count).await;
    let accepts = count as f64 / began.elapsed().as_secs_f64();
    println!("round {number}: accepts {accepts:.0}/s; per accept {}", per(bench.store.figures(), before, count));

    let (began, before) = (Instant::now(), bench.store.figures());
    let handle = bench.backlog.start();
    bench.wait_for(count as usize).await;
    let drain = count as f64 / began.elapsed().as_secs_f64();
    bench.drained().await;
    println!("round {number}: drain {drain:.0}/s; per delivery {}", per(bench.store.figures(), before, count));

    let (began, before) = (Instant::now(), bench.store.figures());
    bench.produce(16, count).await;
    bench.wait_for(2 * count as usize).await;
    let live = count as f64 / began.elapsed().as_secs_f64();
    bench.drained().await;
    println!("round {number}: live {live:.0}/s; per accept and delivery {}", per(bench.store.figures(), before, count));

    let (rate, seconds) = (setting("RATE", 200) as u64, setting("SECONDS", 5) as u64);
    let (began, first) = (tokio::time::Instant::now(), bench.next.load(Ordering::Relaxed));
    let mut due = Vec::new();
    for sent in 0..rate * seconds {
        let at = began + Duration::from_micros(sent * 1_000_000 / rate);
        tokio::time::sleep_until(at).await;
        due.push(at.into_std());
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.backlog.send(bench.message(first + sent)).await.unwrap() });
    }
    bench.wait_for((2 * count + rate * seconds) as usize).await;
    let mut waits: Vec<Duration> = {
        let at = bench.arrivals.at.lock().unwrap();
        due.iter().zip(first..).map(|(due, number)| at[&number].saturating_duration_since(*due)).collect()
    };
    waits.sort_unstable();
    println!(
        "round {number}: at {rate}/s p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        percentile(&waits, 50),
        percentile(&waits, 99),
        percentile(&waits, 100)
    );
    handle.shutdown(Duration::from_secs(10)).await;
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for number in 1..=setting("ROUNDS", 3) {
        runtime.block_on(round(number));
    }
}
