//! A right store that uses every liberty of the contract: checks that fail it ask for too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;

use restante_kv::{
    AtomicKv, BoxFuture, Committed, Expect, Key, KeyRange, Limits, MemoryKv, Page, Snapshot, StoreError, Txn, Version,
};

/// Pages are short or empty; conflicts name nobody; versions look like noise; answers come late; a transaction whose future was
/// dropped may happen all the same, on another thread and later.
#[derive(Clone)]
pub(crate) struct Awkward {
    kv: MemoryKv,
    calls: Arc<AtomicUsize>,
}

/// An odd number: multiplying by it loses nothing.
const SCRAMBLE: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
const UNSCRAMBLE: u128 = inverse(SCRAMBLE);

/// The inverse of an odd number modulo 2^128: each round doubles the right bits.
const fn inverse(odd: u128) -> u128 {
    let mut inverse = odd;
    let mut rounds = 0;
    while rounds < 7 {
        inverse = inverse.wrapping_mul(2u128.wrapping_sub(odd.wrapping_mul(inverse)));
        rounds += 1;
    }
    inverse
}

fn outside(version: Version) -> Version {
    Version::from_raw(version.to_raw().wrapping_mul(SCRAMBLE))
}

fn inside(version: Version) -> Version {
    Version::from_raw(version.to_raw().wrapping_mul(UNSCRAMBLE))
}

impl Awkward {
    pub(crate) fn new(kv: MemoryKv) -> Self {
        Self { kv, calls: Arc::default() }
    }

    fn call(&self) -> usize {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    async fn commit(kv: MemoryKv, mut txn: Txn) -> Result<Committed, StoreError> {
        for check in &mut txn.checks {
            if let Expect::Version(version) = &mut check.expect {
                *version = inside(*version);
            }
        }
        match kv.cas_many(txn).await {
            Ok(committed) => Ok(Committed { version: outside(committed.version) }),
            Err(StoreError::Conflict { .. }) => Err(StoreError::Conflict { failed: vec![] }),
            Err(error) => Err(error),
        }
    }
}

/// Pending once.
async fn later() {
    let mut is_first = true;
    std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

impl AtomicKv for Awkward {
    fn limits(&self) -> Limits {
        self.kv.limits()
    }

    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(async move {
            later().await;
            let mut snapshot = self.kv.get_many(keys).await?;
            snapshot.values.iter_mut().flatten().for_each(|record| record.version = outside(record.version));
            Ok(snapshot)
        })
    }

    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            later().await;
            let mut page = self.kv.scan(range.clone(), limit).await?;
            page.entries.iter_mut().for_each(|(_, record)| record.version = outside(record.version));
            let call = self.call();
            if call.is_multiple_of(5) && page.next.is_none() && range.end.as_ref() > Some(&range.start) {
                // It was read to its end, and does not say so yet.
                let last = page.entries.last().map_or(&range.start, |(key, _)| key);
                let after = Key::from([last.as_bytes(), b"\0"].concat());
                page.next = range.end.is_none_or(|end| after < end).then_some(after);
            } else if call.is_multiple_of(3) && page.entries.first().is_some_and(|(key, _)| *key > range.start) {
                // Nothing yet, although there is something.
                page.next = Some(page.entries[0].0.clone());
                page.entries.clear();
            } else if call % 3 == 1 && page.entries.len() > 1 {
                let kept = page.entries.len() / 2;
                page.next = Some(page.entries[kept].0.clone());
                page.entries.truncate(kept);
            }
            Ok(page)
        })
    }

    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(async move {
            if self.call().is_multiple_of(2) {
                later().await;
                return Self::commit(self.kv.clone(), txn).await;
            }
            let kv = self.kv.clone();
            let answer = Arc::new(std::sync::Mutex::new((None, None::<std::task::Waker>)));
            let place = Arc::clone(&answer);
            thread::spawn(move || {
                let outcome = restante_kv_conformance::block_on(Self::commit(kv, txn));
                let mut place = place.lock().expect("nobody panics while holding this");
                place.0 = Some(outcome);
                place.1.take().into_iter().for_each(std::task::Waker::wake);
            });
            std::future::poll_fn(|context| {
                let mut place = answer.lock().expect("nobody panics while holding this");
                place.1 = Some(context.waker().clone());
                place.0.take().map_or(Poll::Pending, Poll::Ready)
            })
            .await
        })
    }
}
