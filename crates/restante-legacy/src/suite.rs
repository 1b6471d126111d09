//! Holds any queue against the contract: named checks, each on an empty queue.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use restante_legacy::{MemoryQueue, block_on, suite};
//!
//! for check in suite::CHECKS {
//!     let clock = Arc::new(AtomicU64::new(0));
//!     let shown = Arc::clone(&clock);
//!     let queue = MemoryQueue::with_clock(move || shown.load(Ordering::SeqCst));
//!     let passes = move |time: std::time::Duration| _ = clock.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
//!     block_on((check.run)(&queue, &passes)).unwrap_or_else(|broken| panic!("{}: {broken}", check.name));
//! }
//! ```

use std::collections::BTreeSet;
use std::time::Duration;

use restante_core::atoms::Bytes;
use restante_kv::BoxFuture;

use crate::contract::{Draft, LegacyQueue, QueueError, Receipt, Received};

/// How a check makes time pass for the queue: by setting its clock, or by waiting.
pub type TimePasses<'c> = &'c (dyn Fn(Duration) + Sync);

/// A check: what it is called, and how to run it on an empty queue. It fails with what it found.
#[derive(Clone, Copy)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The check.
    pub run: for<'q> fn(&'q dyn LegacyQueue, TimePasses<'q>) -> BoxFuture<'q, Result<(), String>>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every check.
pub const CHECKS: &[Check] = &[
    Check { name: "what-is-put-in-comes-out", run: |queue, passes| Box::pin(comes_out(queue, passes)) },
    Check { name: "not-before-its-delay", run: |queue, passes| Box::pin(delayed(queue, passes)) },
    Check { name: "a-batch-is-whole", run: |queue, passes| Box::pin(batch(queue, passes)) },
    Check { name: "an-id-is-put-in-once", run: |queue, passes| Box::pin(once(queue, passes)) },
    Check { name: "one-key-one-at-a-time-in-order", run: |queue, passes| Box::pin(in_order(queue, passes)) },
    Check { name: "handed-out-again-after-its-time", run: |queue, passes| Box::pin(again(queue, passes)) },
    Check { name: "an-outdated-receipt-is-refused", run: |queue, passes| Box::pin(outdated(queue, passes)) },
    Check { name: "put-back-is-one-step", run: |queue, passes| Box::pin(put_back(queue, passes)) },
    Check { name: "two-listeners-share", run: |queue, passes| Box::pin(shared(queue, passes)) },
    Check { name: "depth-counts", run: |queue, passes| Box::pin(depth(queue, passes)) },
];

const KEPT: Duration = Duration::from_millis(400);
const LONGER: Duration = Duration::from_millis(600);

fn text(received: &Received) -> String {
    String::from_utf8_lossy(received.body.as_slice()).into_owned()
}

fn draft(name: &str) -> Draft {
    Draft::new(name, name.as_bytes())
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}")) }
}

async fn receive(queue: &dyn LegacyQueue) -> Result<Option<(String, Receipt, u32)>, String> {
    let received = queue.receive(KEPT).await.map_err(|error| error.to_string())?;
    Ok(received.map(|received| (text(&received), received.receipt.clone(), received.received_count)))
}

/// Receives one message that must be there.
async fn one(queue: &dyn LegacyQueue) -> Result<(String, Receipt), String> {
    receive(queue).await?.map(|(name, receipt, _)| (name, receipt)).ok_or_else(|| "nothing was handed out".into())
}

async fn none(queue: &dyn LegacyQueue, why: &str) -> Result<(), String> {
    match receive(queue).await? {
        None => Ok(()),
        Some((name, ..)) => Err(format!("{name} was handed out {why}")),
    }
}

async fn put(queue: &dyn LegacyQueue, drafts: Vec<Draft>) -> Result<(), String> {
    queue.enqueue(drafts).await.map_err(|error| error.to_string())
}

async fn complete(queue: &dyn LegacyQueue, receipt: Receipt) -> Result<(), String> {
    queue.complete(receipt).await.map_err(|error| error.to_string())
}

async fn comes_out(queue: &dyn LegacyQueue, _: TimePasses<'_>) -> Result<(), String> {
    none(queue, "by an empty queue").await?;
    let body: Vec<u8> = (0..=u8::MAX).collect();
    put(queue, vec![Draft::new("bytes", body.clone())]).await?;
    let received = queue.receive(KEPT).await.map_err(|error| error.to_string())?.ok_or("nothing was handed out")?;
    expect("its bytes", received.body.as_slice(), body.as_slice())?;
    expect("how often it was handed out", received.received_count, 1)?;
    complete(queue, received.receipt).await?;
    none(queue, "after it was completed").await
}

async fn delayed(queue: &dyn LegacyQueue, passes: TimePasses<'_>) -> Result<(), String> {
    put(queue, vec![draft("later").delay(KEPT), draft("now")]).await?;
    expect("first", one(queue).await?.0, "now".into())?;
    none(queue, "before its delay").await?;
    passes(LONGER);
    let mut names = BTreeSet::new();
    while let Some((name, receipt, _)) = receive(queue).await? {
        names.insert(name);
        complete(queue, receipt).await?;
    }
    expect("in the end", names, BTreeSet::from(["later".into(), "now".into()]))
}

async fn batch(queue: &dyn LegacyQueue, _: TimePasses<'_>) -> Result<(), String> {
    put(queue, (0..100).map(|n| draft(&format!("m{n:02}"))).collect()).await?;
    let mut names = Vec::new();
    while let Some((name, receipt, _)) = receive(queue).await? {
        names.push(name);
        complete(queue, receipt).await?;
    }
    expect("a hundred, each once", names.iter().collect::<BTreeSet<_>>().len(), 100)?;
    expect("in all", names.len(), 100)
}

async fn once(queue: &dyn LegacyQueue, passes: TimePasses<'_>) -> Result<(), String> {
    put(queue, vec![draft("a"), draft("a")]).await?;
    put(queue, vec![draft("a"), draft("b")]).await?;
    let first = one(queue).await?;
    put(queue, vec![draft("a")]).await?;
    let second = one(queue).await?;
    none(queue, "although its id was in the queue").await?;
    let both = BTreeSet::from([first.0.clone(), second.0.clone()]);
    expect("both", both, BTreeSet::from(["a".into(), "b".into()]))?;
    for (_, receipt) in [first, second] {
        complete(queue, receipt).await?;
    }
    put(queue, vec![draft("a")]).await?;
    expect("after it was completed", one(queue).await?.0, "a".into())?;
    passes(LONGER);
    Ok(())
}

async fn in_order(queue: &dyn LegacyQueue, _: TimePasses<'_>) -> Result<(), String> {
    let keyed = |name: &str, key: &str| draft(name).order_key(key);
    put(queue, vec![keyed("x1", "x"), keyed("x2", "x"), keyed("y1", "y"), draft("free")]).await?;
    put(queue, vec![keyed("x3", "x")]).await?;
    let mut under_way = Vec::new();
    while let Some((name, receipt, _)) = receive(queue).await? {
        under_way.push((name, receipt));
    }
    let names: BTreeSet<String> = under_way.iter().map(|(name, _)| name.clone()).collect();
    expect("at a time", names, BTreeSet::from(["free".into(), "x1".into(), "y1".into()]))?;
    let receipt = under_way.into_iter().find(|(name, _)| name == "x1").map(|(_, receipt)| receipt);
    complete(queue, receipt.ok_or("x1 was not handed out")?).await?;
    let (second, receipt) = one(queue).await?;
    expect("after x1", second, "x2".into())?;
    none(queue, "while an earlier one of its key was").await?;
    complete(queue, receipt).await?;
    expect("after x2", one(queue).await?.0, "x3".into())
}

async fn again(queue: &dyn LegacyQueue, passes: TimePasses<'_>) -> Result<(), String> {
    put(queue, vec![draft("a").order_key("k"), draft("b").order_key("k")]).await?;
    let first = receive(queue).await?.ok_or("nothing was handed out")?;
    none(queue, "while it was kept from others").await?;
    passes(LONGER);
    let second = receive(queue).await?.ok_or("it was not handed out again")?;
    expect("handed out again", second.0.clone(), "a".into())?;
    expect("how often", second.2, 2)?;
    if first.1 == second.1 {
        return Err("its receipt is the old one".into());
    }
    complete(queue, second.1).await?;
    expect("then the next of its key", one(queue).await?.0, "b".into())
}

async fn outdated(queue: &dyn LegacyQueue, passes: TimePasses<'_>) -> Result<(), String> {
    put(queue, vec![draft("a")]).await?;
    let old = one(queue).await?.1;
    passes(LONGER);
    let current = one(queue).await?.1;
    expect("completed by an old receipt", queue.complete(old.clone()).await, Err(QueueError::Outdated))?;
    let back = queue.put_back(old, Duration::ZERO, Bytes::from(&b"changed"[..])).await;
    expect("put back by an old receipt", back, Err(QueueError::Outdated))?;
    let unknown = Receipt::new("no receipt of anybody");
    expect("completed by no receipt", queue.complete(unknown).await, Err(QueueError::Outdated))?;
    complete(queue, current.clone()).await?;
    expect("completed twice", queue.complete(current).await, Err(QueueError::Outdated))?;
    none(queue, "after it was completed").await
}

async fn put_back(queue: &dyn LegacyQueue, passes: TimePasses<'_>) -> Result<(), String> {
    put(queue, vec![draft("a"), draft("b")]).await?;
    let (first, receipt) = one(queue).await?;
    expect("first", first, "a".into())?;
    let changed = Bytes::from(&b"a, tried once"[..]);
    queue.put_back(receipt.clone(), KEPT, changed).await.map_err(|error| error.to_string())?;
    expect("its receipt then", queue.complete(receipt).await, Err(QueueError::Outdated))?;
    let (second, receipt) = one(queue).await?;
    expect("second", second, "b".into())?;
    complete(queue, receipt).await?;
    none(queue, "before its delay").await?;
    passes(LONGER);
    let (name, _, received_count) = receive(queue).await?.ok_or("what was put back is gone")?;
    expect("what it says then", name, "a, tried once".into())?;
    expect("how often it was handed out since", received_count, 1)
}

async fn shared(queue: &dyn LegacyQueue, _: TimePasses<'_>) -> Result<(), String> {
    put(queue, (0..100).map(|n| draft(&format!("m{n:02}"))).collect()).await?;
    let mut names = Vec::new();
    // Two listeners, each with something in its hands when the other asks.
    let mut hands: [Option<(String, Receipt)>; 2] = [None, None];
    for turn in 0..102 {
        let hand = &mut hands[turn % 2];
        if let Some((name, receipt)) = hand.take() {
            names.push(name);
            complete(queue, receipt).await?;
        }
        *hand = receive(queue).await?.map(|(name, receipt, _)| (name, receipt));
    }
    expect("each once", names.iter().collect::<BTreeSet<_>>().len(), 100)?;
    expect("in all", names.len(), 100)
}

async fn depth(queue: &dyn LegacyQueue, _: TimePasses<'_>) -> Result<(), String> {
    put(queue, vec![draft("a"), draft("b"), draft("c").delay(LONGER)]).await?;
    let (_, receipt) = one(queue).await?;
    let depth = queue.depth().await.map_err(|error| error.to_string())?;
    expect("ready, delayed, received", (depth.ready, depth.delayed, depth.received), (1, 1, 1))?;
    complete(queue, receipt).await?;
    let depth = queue.depth().await.map_err(|error| error.to_string())?;
    expect("after a completion", depth.received, 0)?;
    expect("whether it is empty", depth.is_empty(), false)
}
