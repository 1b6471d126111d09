//! A durable queue in one SQLite file: one thread, one connection, one transaction an operation.
//!
//! An acknowledged operation survives power loss (WAL with `synchronous=FULL`). A message stays in its row from being put in to
//! being completed; receiving only says until when it is kept from others. So a crash in between loses nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_channel::oneshot;
use restante_core::atoms::Bytes;
use restante_kv::BoxFuture;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use thiserror::Error;

use crate::contract::{Draft, LegacyQueue, QueueDepth, QueueError, Receipt, Received};

/// Marks the file as one of ours, and says in which form: "rlq" and a version.
const APPLICATION_ID: i32 = 0x726c_7101;

const SCHEMA: &str = "
CREATE TABLE messages (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL,
    order_key TEXT,
    visible_at_ms INTEGER NOT NULL,
    receipt INTEGER NOT NULL DEFAULT 0,
    received_count INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX messages_by_time ON messages (visible_at_ms, place);
CREATE INDEX messages_by_key ON messages (order_key, place) WHERE order_key IS NOT NULL;
CREATE INDEX messages_by_receipt ON messages (receipt) WHERE receipt > 0;
CREATE TABLE numbers (name TEXT PRIMARY KEY, latest INTEGER NOT NULL) STRICT;
INSERT INTO numbers VALUES ('place', 0), ('receipt', 0);
";

/// The first message that may be handed out at ?1: none of its key is kept from others, and none before it may be handed out.
const FIRST: &str = "
SELECT place, body, received_count FROM messages AS message
WHERE visible_at_ms <= ?1 AND (order_key IS NULL OR NOT EXISTS (
    SELECT 1 FROM messages AS other
    WHERE other.order_key = message.order_key AND other.place <> message.place
      AND ((other.receipt > 0 AND other.visible_at_ms > ?1) OR (other.visible_at_ms <= ?1 AND other.place < message.place))
))
ORDER BY place LIMIT 1
";

/// Why a queue is not opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// SQLite refused it.
    #[error("{}: cannot be opened as a queue: {source}", .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The file is something else.
    #[error("{}: is not a queue of this version: give the path of another file", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The thread did not start.
    #[error("{}: the queue's thread did not start: {source}", .path.display())]
    Thread {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A durable queue. Clones are one queue; several processes may open one file.
#[derive(Clone)]
pub struct SqliteQueue {
    path: PathBuf,
    jobs: mpsc::Sender<Job>,
    now_ms: Clock,
}

impl fmt::Debug for SqliteQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteQueue").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteQueue {
    /// Opens the file, and makes it a queue if it is new. It goes by the machine's wall clock: a step backwards delays what
    /// waits, and loses nothing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with_clock(path, || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// Opens the file, and goes by this clock, in milliseconds.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_with_clock(path: impl AsRef<Path>, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let failed = |source| OpenError::Sqlite { path: path.clone(), source };
        let mut connection = Connection::open(&path).map_err(failed)?;
        if !prepare(&mut connection).map_err(failed)? {
            return Err(OpenError::Foreign { path });
        }
        let (jobs, work) = mpsc::channel::<Job>();
        let run = move || work.into_iter().for_each(|job| job(&mut connection));
        if let Err(source) = thread::Builder::new().name("legacy-queue".into()).spawn(run) {
            return Err(OpenError::Thread { path, source });
        }
        Ok(Self { path, jobs, now_ms: Arc::new(now_ms) })
    }

    /// Runs `work` in a transaction of its own on the queue's thread.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<Result<T, QueueError>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, QueueError>> {
        let now_ms = i64::try_from((self.now_ms)()).unwrap_or(i64::MAX);
        let (answer, answered) = oneshot::channel();
        let job = move |connection: &mut Connection| {
            // Nobody may be waiting any more: then it happened unheard.
            let _unheard = answer.send(transact(connection, |txn| work(txn, now_ms)));
        };
        let sent = self.jobs.send(Box::new(job));
        Box::pin(async move {
            match sent {
                Err(_) => Err(QueueError::Unavailable("its thread has ended".into())),
                Ok(()) => match answered.await {
                    Ok(result) => result,
                    Err(_) => Err(QueueError::Ambiguous("its thread ended under way".into())),
                },
            }
        })
    }
}

/// Sets the connection up. Returns whether the file is a queue.
fn prepare(connection: &mut Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::from_secs(5))?;
    let application_id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application_id != APPLICATION_ID && objects > 0 {
        return Ok(false);
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    let txn = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let objects: i64 = txn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if objects == 0 {
        txn.execute_batch(SCHEMA)?;
        txn.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    txn.commit()?;
    Ok(true)
}

/// What fails before `COMMIT` is rolled back, and definite; what fails in it may have happened.
fn transact<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<T, QueueError>>,
) -> Result<T, QueueError> {
    let definite = |error: rusqlite::Error| QueueError::Unavailable(error.to_string());
    let txn = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(definite)?;
    let value = work(&txn).map_err(definite)??;
    txn.commit().map_err(|error| QueueError::Ambiguous(error.to_string()))?;
    Ok(value)
}

fn next(txn: &Transaction<'_>, name: &str) -> rusqlite::Result<i64> {
    let query = "UPDATE numbers SET latest = latest + 1 WHERE name = ?1 RETURNING latest";
    txn.prepare(query)?.query_row([name], |row| row.get(0))
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The number of a receipt; 0, which no message has, for words that are none of ours.
fn number(receipt: &Receipt) -> i64 {
    receipt.as_str().parse().unwrap_or(0)
}

impl LegacyQueue for SqliteQueue {
    fn enqueue(&self, drafts: Vec<Draft>) -> BoxFuture<'_, Result<(), QueueError>> {
        self.run(move |txn, now_ms| {
            for Draft { id, body, delay, order_key } in drafts {
                let place = next(txn, "place")?;
                let insert = "INSERT INTO messages (place, id, body, order_key, visible_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)
                              ON CONFLICT (id) DO NOTHING";
                let visible_at_ms = now_ms.saturating_add(ms(delay));
                txn.prepare(insert)?.execute(params![place, &*id, body.as_slice(), order_key.as_deref(), visible_at_ms])?;
            }
            Ok(Ok(()))
        })
    }

    fn receive(&self, visible_after: Duration) -> BoxFuture<'_, Result<Option<Received>, QueueError>> {
        self.run(move |txn, now_ms| {
            let first = txn
                .prepare(FIRST)?
                .query_row([now_ms], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, u32>(2)?)))
                .optional()?;
            let Some((place, body, received_count)) = first else { return Ok(Ok(None)) };
            let (receipt, received_count) = (next(txn, "receipt")?, received_count.saturating_add(1));
            let update = "UPDATE messages SET receipt = ?1, visible_at_ms = ?2, received_count = ?3 WHERE place = ?4";
            let visible_at_ms = now_ms.saturating_add(ms(visible_after).max(1));
            txn.prepare(update)?.execute(params![receipt, visible_at_ms, received_count, place])?;
            let receipt = Receipt::new(receipt.to_string());
            Ok(Ok(Some(Received { receipt, body: body.into(), received_count })))
        })
    }

    fn complete(&self, receipt: Receipt) -> BoxFuture<'_, Result<(), QueueError>> {
        self.run(move |txn, _| {
            let query = "DELETE FROM messages WHERE receipt = ?1 AND receipt > 0";
            let gone = txn.prepare(query)?.execute([number(&receipt)])?;
            Ok(if gone == 1 { Ok(()) } else { Err(QueueError::Outdated) })
        })
    }

    fn put_back(&self, receipt: Receipt, delay: Duration, body: Bytes) -> BoxFuture<'_, Result<(), QueueError>> {
        self.run(move |txn, now_ms| {
            let place = next(txn, "place")?;
            let query = "UPDATE messages SET place = ?1, body = ?2, visible_at_ms = ?3, receipt = 0, received_count = 0
                         WHERE receipt = ?4 AND receipt > 0";
            let visible_at_ms = now_ms.saturating_add(ms(delay));
            let changed = txn.prepare(query)?.execute(params![place, body.as_slice(), visible_at_ms, number(&receipt)])?;
            Ok(if changed == 1 { Ok(()) } else { Err(QueueError::Outdated) })
        })
    }

    fn depth(&self) -> BoxFuture<'_, Result<QueueDepth, QueueError>> {
        self.run(move |txn, now_ms| {
            let query = "SELECT count(*) FILTER (WHERE visible_at_ms <= ?1),
                                count(*) FILTER (WHERE visible_at_ms > ?1 AND receipt = 0),
                                count(*) FILTER (WHERE visible_at_ms > ?1 AND receipt > 0) FROM messages";
            let count = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(|count| count.unsigned_abs());
            txn.prepare(query)?
                .query_row([now_ms], |row| {
                    Ok(QueueDepth { ready: count(row, 0)?, delayed: count(row, 1)?, received: count(row, 2)? })
                })
                .map(Ok)
        })
    }
}
