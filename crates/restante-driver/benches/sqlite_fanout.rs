//! One message to many inboxes on SQLite, through the driver: what publishing costs, and what expanding it costs.
//!
//! `RECIPIENTS` (100000), `ENTRIES` (entries a commit; the settings' default) and `PAYLOAD` (512 bytes) come from the environment.
//! Every attempt succeeds at once, so that deliveries compete with the expansion for the worker and for the store as they would
//! with destinations that are fast. With `KEYED=1` the message has an order key, and while it is expanded others arrive: of the
//! same key, which have to wait for their turn, and of another, which do not. That they did is asserted.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use restante_core::keys::Kind;
use restante_core::machine::{Post, PostResult};
use restante_core::{Config, Env};
use restante_driver::{Backlog, Message};
use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Page, Snapshot, StoreError, Txn};
use restante_kv_sqlite::SqliteKv;

const DAY_MS: u64 = 86_400_000;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Hands everything on and counts: commits, rows and bytes of all, and of those that write an intent.
struct Counting {
    store: SqliteKv,
    env: Env,
    of_intents: Mutex<[usize; 3]>,
    all: Mutex<[usize; 3]>,
    scans: AtomicUsize,
}

impl Counting {
    fn take(&self) -> ([usize; 3], [usize; 3]) {
        (std::mem::take(&mut *self.all.lock().unwrap()), std::mem::take(&mut *self.of_intents.lock().unwrap()))
    }
}

impl AtomicKv for Counting {
    fn limits(&self) -> Limits {
        self.store.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.store.get_many(keys)
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.store.scan(range, limit)
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let is_of_intent = txn.writes.iter().any(|write| self.env.keys.kind_of(&write.key) == Some(Kind::Intent));
        let more = [1, txn.writes.len(), txn.bytes()];
        Box::pin(async move {
            let result = self.store.cas_many(txn).await;
            if result.is_ok() {
                let add =
                    |sums: &Mutex<[usize; 3]>| sums.lock().unwrap().iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                add(&self.all);
                if is_of_intent {
                    add(&self.of_intents);
                }
            }
            result
        })
    }
}

fn main() {
    let recipients = setting("RECIPIENTS", 100_000);
    let mut config = Config { prefix: "r/".into(), ..Config::new(7 * DAY_MS) };
    config.expand_entries_max = setting("ENTRIES", config.expand_entries_max);
    let folder = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
    let store = SqliteKv::builder(folder.path().join("fanout.sqlite3")).open().unwrap();
    let env = Env::new(config.clone());
    let store =
        Arc::new(Counting { store, env, of_intents: Mutex::default(), all: Mutex::default(), scans: AtomicUsize::default() });
    let posted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&posted);
    // What arrived at the first host, in this order: the first byte of each payload.
    let at_first: Arc<Mutex<Vec<u8>>> = Arc::default();
    let arrived = Arc::clone(&at_first);
    let sender = tower::service_fn(move |post: Post| {
        count.fetch_add(1, Ordering::Relaxed);
        if &*post.destination == "https://server-0.example" {
            arrived.lock().unwrap().push(post.payload.as_slice()[0]);
        }
        async { Ok::<_, Infallible>(PostResult::Status { code: 202, retry_after_ms: None }) }
    });
    let backlog = Backlog::builder(Arc::clone(&store) as _, config, sender).build().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let payload = vec![b'x'; setting("PAYLOAD", 512)];
        let inbox = |n: usize| format!("https://server-{n}.example/users/somebody/inbox");
        let first = Message::new(inbox(0), payload);
        let message = (1..recipients).fold(first, |message, n| message.and_to(inbox(n)));
        let is_keyed = setting("KEYED", 0) > 0;
        let message = if is_keyed { message.order_key("thread") } else { message };
        let began = Instant::now();
        backlog.send(message).await.unwrap();
        let ([commits, rows, bytes], [_, publish_rows, publish_bytes]) = store.take();
        println!("recipients      {recipients}");
        println!("accepted in     {:.3} s: {commits} commits, {rows} rows, {bytes} bytes", began.elapsed().as_secs_f64());
        println!("publish         1 commit, {publish_rows} rows, {publish_bytes} bytes");
        let began = Instant::now();
        let worker = backlog.start();
        let (mut same, mut other, mut longest) = (0, 0, Duration::ZERO);
        while backlog.depth().await.unwrap().pending_recipients > same as i64 {
            if is_keyed {
                let sent = Instant::now();
                backlog.send(Message::new(inbox(0), &b"same"[..]).order_key("thread")).await.unwrap();
                backlog.send(Message::new(inbox(0), &b"other"[..]).order_key("other thread")).await.unwrap();
                (same, other, longest) = (same + 1, other + 1, longest.max(sent.elapsed()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let took = began.elapsed().as_secs_f64();
        let (_, [commits, rows, bytes]) = store.take();
        println!("expanded in     {took:.3} s: {commits} commits (claims included), {rows} rows, {bytes} bytes");
        println!("entries a second {:.0}", recipients as f64 / took);
        println!("delivered then  {}", posted.load(Ordering::Relaxed));
        let is_left = |depth: restante_core::plan::DepthReport| depth.entries + depth.intents > 0;
        while is_left(backlog.depth().await.unwrap()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("all delivered   {:.3} s after the send was accepted", began.elapsed().as_secs_f64());
        assert_eq!(posted.load(Ordering::Relaxed), recipients + same + other);
        if is_keyed {
            let order = at_first.lock().unwrap().clone();
            let first_of = |what: u8| order.iter().position(|found| *found == what).unwrap();
            assert!(first_of(b'x') < first_of(b's'), "the fanout's own delivery comes before what was sent after it");
            println!("meanwhile       {same} sends of the same order key, {other} of another; two took {longest:.3?} at most");
        }
        worker.shutdown(Duration::from_millis(100)).await;
    });
}
