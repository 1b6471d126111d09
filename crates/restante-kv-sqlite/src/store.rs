//! The handle: checks requests, hands them to the threads, waits for answers.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use futures_channel::oneshot;
use restante_kv::{AtomicKv, BoxFuture, Committed, Durability, Key, KeyRange, Limits, Page, Snapshot, StoreError, Txn};

use crate::clock::Clock;
use crate::connection::Settings;
use crate::queue::Queue;
use crate::reader::{self, Reader};
use crate::worker::{self, Connect};
use crate::writer::{self, Writer};
use crate::{Builder, OpenError};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Chosen well below what SQLite itself allows, so that one request cannot fill the memory or hold the writer for long.
const LIMITS: Limits = Limits {
    key_bytes_max: 4 * KIB,
    value_bytes_max: MIB,
    txn_checks_max: 1000,
    txn_writes_max: 10_000,
    txn_bytes_max: 16 * MIB,
    get_keys_max: 1000,
    scan_page_max: 1000,
    durability: Durability::Fsync,
    has_clock: true,
};

/// A store in one SQLite file. See the [crate documentation](crate) for what it promises.
///
/// Share it between callers behind an [`Arc`]; its futures need no particular runtime. Dropping it does what
/// [`close`](Self::close) does.
pub struct SqliteKv {
    writes: Arc<Queue<writer::Job>>,
    reads: Arc<Queue<reader::Job>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    groups: Arc<AtomicU64>,
}

impl SqliteKv {
    /// Options for opening the store at `path`.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path.as_ref())
    }

    pub(crate) fn start(settings: Settings, writer: Connect, group_max: usize, readers: usize) -> Result<Self, OpenError> {
        let groups = Arc::new(AtomicU64::new(0));
        let work = Writer::new(group_max, Arc::clone(&groups));
        let store = Self { writes: Arc::new(Queue::new()), reads: Arc::new(Queue::new()), threads: Mutex::default(), groups };
        store.keep(worker::spawn("restante-kv-writer", work, writer, Arc::clone(&store.writes))?);
        // The writer has created the file.
        let settings = Settings { create: false, ..settings };
        let clock = Arc::new(Clock::new(SystemTime::now));
        for _ in 0..readers {
            let connect = Box::new(settings.connector());
            let reader = Reader::new(Arc::clone(&clock));
            store.keep(worker::spawn("restante-kv-reader", reader, connect, Arc::clone(&store.reads))?);
        }
        Ok(store)
    }

    fn keep(&self, thread: JoinHandle<()>) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// Groups committed through this handle so far: each is one sync to disk, shared by the transactions that waited together.
    pub fn groups_committed(&self) -> u64 {
        self.groups.load(Ordering::Relaxed)
    }

    /// Refuses new requests as unavailable, answers those that were sent, and waits for the threads to end. The last handle on
    /// a file writes its log back into it. Blocks for the disk; closing twice is no error.
    pub fn close(&self) {
        self.writes.close();
        self.reads.close();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A handle dropped by a waker, on one of its own threads, cannot wait for that thread.
            if thread.thread().id() != thread::current().id() {
                // A panic was reported when it happened, and its callers have their answers.
                let _ = thread.join();
            }
        }
    }

    async fn read<T>(&self, job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> reader::Job) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.reads.push(job(answer)).map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the reader ended".to_owned())))
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

impl Drop for SqliteKv {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for SqliteKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteKv").finish_non_exhaustive()
    }
}

impl AtomicKv for SqliteKv {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            LIMITS.check_get_many(&keys)?;
            self.read(|answer| reader::Job::GetMany { keys, answer }).await
        })
    }

    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            let limit = LIMITS.scan_page(limit)?;
            self.read(|answer| reader::Job::Scan { range, limit, answer }).await
        })
    }

    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(async move {
            LIMITS.check_txn(&txn)?;
            let (answer, answered) = oneshot::channel();
            self.writes.push(writer::Job { txn, answer }).map_err(|_| closed())?;
            answered.await.unwrap_or_else(|_| Err(StoreError::Ambiguous("the writer ended".to_owned())))
        })
    }
}
