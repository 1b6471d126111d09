//! What every task of one backlog shares, and the execution of one action.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rand::Rng as _;
use restante_core::Env;
use restante_core::atoms::{Bytes, EntryId, Fence, OwnerId, Sealed, SendId};
use restante_core::machine::{ExecutionKey, Io, LocalTime, Post, PostResult, Reply};
use restante_core::plan::Recipient;
use restante_journal::Journal;
use restante_kv::{AtomicKv, StoreTime};
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};
use tracing::Instrument as _;

use crate::attempts::{AttemptLost, Attempts};
use crate::legacy::LegacySide;
use crate::sender::DynSender;
use crate::slots::SlotPool;
use crate::telemetry::Telemetry;
use crate::wakes::Wakes;

pub(crate) struct Shared {
    pub(crate) env: Arc<Env>,
    pub(crate) store: Arc<dyn AtomicKv>,
    pub(crate) sender: Arc<dyn DynSender>,
    pub(crate) attempts: Attempts,
    pub(crate) slots: SlotPool,
    pub(crate) wakes: Wakes,
    pub(crate) telemetry: Telemetry,
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) legacy: Option<LegacySide>,
    /// The zero of [`LocalTime`].
    pub(crate) epoch: Instant,
}

impl Shared {
    /// This process's monotonic clock.
    pub(crate) fn local(&self) -> LocalTime {
        LocalTime::from_ms(u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Executes one action. `woken` ends a wait that may be woken.
    pub(crate) async fn execute(self: &Arc<Self>, io: Io, woken: Option<oneshot::Receiver<()>>) -> Reply {
        match io {
            Io::Read(keys) => {
                let result = self.store.get_many(keys).await;
                let at = result.as_ref().ok().and_then(|snapshot| snapshot.at).unwrap_or_else(wall_clock);
                Reply::Snapshot { result: result.map(|snapshot| snapshot.values), at }
            }
            Io::Scan { range, limit } => {
                let result = self.store.scan(range, limit).await;
                let at = result.as_ref().ok().and_then(|page| page.at).unwrap_or_else(wall_clock);
                Reply::Page { result, at, entropy: entropy() }
            }
            Io::Commit(txn) => Reply::Committed(self.store.cas_many(txn).await),
            Io::Sleep { ms, jitter_ms, .. } => {
                let jitter_ms = ((u128::from(entropy()) * u128::from(jitter_ms)) >> 64) as u64;
                let nap = tokio::time::sleep(Duration::from_millis(ms.saturating_add(jitter_ms)));
                match woken {
                    // A dropped waker is no wake: the worker that would send it is gone, and so is this wait.
                    Some(woken) => tokio::select! { () = nap => {} Ok(()) = woken => {} },
                    None => nap.await,
                }
                Reply::Slept
            }
            Io::Post(post) => self.post(post).await,
        }
    }

    /// Takes its turn among attempts of its key, and begins in time or not at all. Dropping this drops the attempt.
    async fn post(self: &Arc<Self>, post: Post) -> Reply {
        let (shared, (wanted, unwanted)) = (Arc::clone(self), oneshot::channel::<()>());
        let (key, begun) = (post.execution_key.clone(), Arc::new(AtomicBool::new(false)));
        let begins = Arc::clone(&begun);
        let attempt = async move {
            begins.store(true, Ordering::Release);
            tokio::select! {
                biased;
                _ = unwanted => Reply::PostTooLate,
                reply = shared.post_now(post) => reply,
            }
        };
        let reply = self.attempts.run(self.env.config.concurrency, key, attempt).await;
        drop(wanted);
        match reply {
            Ok(reply) => reply,
            // A sender that panicked, or whose runtime ended, may have sent.
            Err(AttemptLost) if begun.load(Ordering::Acquire) => {
                Reply::Posted { result: PostResult::Unknown, entropy: entropy() }
            }
            Err(AttemptLost) => Reply::PostTooLate,
        }
    }

    async fn post_now(&self, post: Post) -> Reply {
        if self.local() >= post.post_by {
            return Reply::PostTooLate;
        }
        Reply::Posted { result: self.attempt(post).await, entropy: entropy() }
    }

    /// One attempt to deliver.
    pub(crate) async fn attempt(&self, post: Post) -> PostResult {
        let (entry, destination) = (post.entry, post.destination.clone());
        let began = Instant::now();
        let _in_flight = self.telemetry.post_began();
        // Whatever the sender does, an attempt ends in time: its lease is longer than this, and nobody works past it.
        let limit = Duration::from_millis(post.timeout_ms);
        let span = tracing::debug_span!("attempt", %entry, fence = post.fence.get(), %destination);
        let attempt = tokio::time::timeout(limit, self.sender.send(post)).instrument(span);
        let result = attempt.await.unwrap_or(PostResult::Unknown);
        self.telemetry.post_ended(entry, &destination, result, began.elapsed());
        result
    }

    /// An attempt that no claim stands behind.
    pub(crate) fn direct_post(&self, send: SendId, index: usize, to: Recipient, payload: Bytes, signing: Sealed) -> Post {
        let entry = EntryId { send, index: u32::try_from(index).unwrap_or(u32::MAX) };
        Post {
            entry,
            fence: Fence::default(),
            inbox: to.inbox,
            destination: to.destination,
            payload,
            signing,
            post_by: LocalTime::from_ms(u64::MAX),
            timeout_ms: self.env.config.request_timeout_ms,
            execution_key: ExecutionKey::Entry(entry),
        }
    }
}

pub(crate) fn wall_clock() -> StoreTime {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    StoreTime::from_ms(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

pub(crate) fn entropy() -> u64 {
    rand::rng().next_u64()
}

/// A random id: unique per start of a worker.
pub(crate) fn new_owner() -> OwnerId {
    OwnerId::from_bytes(rand::random())
}

/// An id that begins with the time, so that sends of one time lie side by side in a store and its pages stay few.
pub(crate) fn new_send() -> SendId {
    let id = uuid::Builder::from_unix_timestamp_millis(wall_clock().as_ms(), &rand::random()).into_uuid();
    SendId::from_bytes(id.into_bytes())
}
