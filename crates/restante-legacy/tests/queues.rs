//! Both queues keep the contract; the durable one also across its own end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use restante_legacy::{Draft, LegacyQueue, MemoryQueue, OpenError, QueueError, SqliteQueue, block_on, suite};

type Clock = Arc<AtomicU64>;

/// Every check, each on a queue of its own; returns what was broken.
fn broken(queue_of: impl Fn(Clock) -> Box<dyn LegacyQueue>) -> BTreeSet<String> {
    let run = |check: &suite::Check| {
        let clock = Clock::default();
        let queue = queue_of(Arc::clone(&clock));
        let passes = move |time: Duration| _ = clock.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
        block_on((check.run)(&*queue, &passes)).err().map(|broken| format!("{}: {broken}", check.name))
    };
    suite::CHECKS.iter().filter_map(run).collect()
}

fn memory(clock: Clock) -> MemoryQueue {
    MemoryQueue::with_clock(move || clock.load(Ordering::SeqCst))
}

#[test]
fn the_queue_in_memory_keeps_the_contract() {
    assert_eq!(broken(|clock| Box::new(memory(clock))), BTreeSet::new());
}

#[test]
fn the_durable_queue_keeps_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = AtomicU64::new(0);
    let open = |clock: Clock| -> Box<dyn LegacyQueue> {
        let path = folder.path().join(format!("queue-{}", files.fetch_add(1, Ordering::SeqCst)));
        Box::new(SqliteQueue::open_with_clock(path, move || clock.load(Ordering::SeqCst)).expect("it opens"))
    };
    assert_eq!(broken(open), BTreeSet::new());
}

#[test]
fn a_message_survives_the_end_of_who_received_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, clock) = (folder.path().join("queue"), Clock::default());
    let open = || {
        let clock = Arc::clone(&clock);
        SqliteQueue::open_with_clock(&path, move || clock.load(Ordering::SeqCst)).expect("it opens")
    };
    let minute = Duration::from_secs(60);
    let first = open();
    block_on(first.enqueue(vec![Draft::new("a", &b"a"[..])])).expect("enqueued");
    let received = block_on(first.receive(minute)).expect("received").expect("it is there");
    drop(first);

    let second = open();
    assert_eq!(block_on(second.receive(minute)), Ok(None), "it is kept from others");
    clock.store(60_001, Ordering::SeqCst);
    let again = block_on(second.receive(minute)).expect("received").expect("it comes again");
    assert_eq!(again.received_count, 2);
    assert_eq!(block_on(second.complete(received.receipt)), Err(QueueError::Outdated));
    block_on(second.complete(again.receipt)).expect("completed");
    assert!(block_on(open().depth()).expect("counted").is_empty());
}

#[test]
fn what_is_no_queue_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other");
    rusqlite_file(&path);
    assert!(matches!(SqliteQueue::open(&path), Err(OpenError::Foreign { .. })));
    std::fs::write(folder.path().join("text"), "this is no database, and long enough to look at".repeat(30)).expect("written");
    assert!(matches!(SqliteQueue::open(folder.path().join("text")), Err(OpenError::Sqlite { .. })));
}

/// A database of somebody else.
fn rusqlite_file(path: &std::path::Path) {
    let other = rusqlite::Connection::open(path).expect("it opens");
    other.execute_batch("CREATE TABLE theirs (x)").expect("created");
}

// The suite notices: each of these queues breaks one clause.

/// A queue that is wrong on purpose.
#[derive(Debug)]
struct Wrong {
    inner: MemoryQueue,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum How {
    /// Removes a message when it is received.
    LosesWhatIsReceived,
    /// Any receipt will do.
    TakesAnyReceipt,
    /// Does not look at keys.
    IgnoresKeys,
    /// Does not look at ids.
    IgnoresIds,
    /// Does not wait.
    IgnoresDelays,
}

impl Wrong {
    fn changed(&self, draft: Draft) -> Draft {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        match self.how {
            How::IgnoresKeys => Draft { order_key: None, ..draft },
            How::IgnoresIds => Draft { id: NUMBER.fetch_add(1, Ordering::SeqCst).to_string().into(), ..draft },
            How::IgnoresDelays => Draft { delay: Duration::ZERO, ..draft },
            How::LosesWhatIsReceived | How::TakesAnyReceipt => draft,
        }
    }
}

impl LegacyQueue for Wrong {
    fn enqueue(&self, drafts: Vec<Draft>) -> restante_kv::BoxFuture<'_, Result<(), QueueError>> {
        self.inner.enqueue(drafts.into_iter().map(|draft| self.changed(draft)).collect())
    }
    fn receive(
        &self,
        visible_after: Duration,
    ) -> restante_kv::BoxFuture<'_, Result<Option<restante_legacy::Received>, QueueError>> {
        Box::pin(async move {
            let received = self.inner.receive(visible_after).await?;
            if let (How::LosesWhatIsReceived, Some(received)) = (self.how, &received) {
                self.inner.complete(received.receipt.clone()).await?;
            }
            Ok(received)
        })
    }
    fn complete(&self, receipt: restante_legacy::Receipt) -> restante_kv::BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            match self.inner.complete(receipt).await {
                Err(QueueError::Outdated) if self.how == How::TakesAnyReceipt => Ok(()),
                result => result,
            }
        })
    }
    fn put_back(
        &self,
        receipt: restante_legacy::Receipt,
        delay: Duration,
        body: restante_core::atoms::Bytes,
    ) -> restante_kv::BoxFuture<'_, Result<(), QueueError>> {
        self.inner.put_back(receipt, delay, body)
    }
    fn depth(&self) -> restante_kv::BoxFuture<'_, Result<restante_legacy::QueueDepth, QueueError>> {
        self.inner.depth()
    }
}

#[test]
fn the_suite_notices_what_is_wrong() {
    for (how, check) in [
        (How::LosesWhatIsReceived, "handed-out-again-after-its-time"),
        (How::TakesAnyReceipt, "an-outdated-receipt-is-refused"),
        (How::IgnoresKeys, "one-key-one-at-a-time-in-order"),
        (How::IgnoresIds, "an-id-is-put-in-once"),
        (How::IgnoresDelays, "not-before-its-delay"),
    ] {
        let found = broken(|clock| Box::new(Wrong { inner: memory(clock), how }));
        assert!(found.iter().any(|broken| broken.starts_with(check)), "{how:?}: {found:?}");
    }
}
