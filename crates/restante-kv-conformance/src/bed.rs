//! What a check works with: handles on the store, a prefix of its own, and short words for keys, checks and writes.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use restante_kv::{
    AtomicKv, BoxFuture, Check, Committed, Expect, Guard, Key, KeyRange, Limits, Mutation, Page, Snapshot, StoreError, Txn,
    Value, Version, Versioned, Write,
};

use crate::breach::{Breach, Held, breach, ensure};
use crate::random::Random;
use crate::subject::{OpenError, Subject};
use crate::suite::Options;
use crate::wait::block_on_within;

/// A store under trial, and the prefix that the check keeps to.
pub(crate) struct Bed {
    // The handle goes before the subject, which may hold the folder that the store lies in.
    kv: Mutex<Option<Arc<dyn AtomicKv>>>,
    subject: Subject,
    prefix: Vec<u8>,
    options: Options,
    places: AtomicUsize,
}

impl Bed {
    pub(crate) fn new(subject: Subject, options: Options) -> Result<Self, OpenError> {
        let kv = Mutex::new(Some(subject.open()?));
        let random = RandomState::new().build_hasher().finish();
        let prefix = format!("restante-conformance/{random:016x}/").into_bytes();
        Ok(Self { kv, subject, prefix, options, places: AtomicUsize::new(0) })
    }

    /// The first handle.
    pub(crate) fn kv(&self) -> Arc<dyn AtomicKv> {
        let kv = self.kv.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kv.as_ref().expect("a handle is missing only inside `reopen`"))
    }

    /// Another handle on the same records.
    pub(crate) fn another(&self) -> Result<Arc<dyn AtomicKv>, Breach> {
        self.subject.open().map_err(|error| breach("another handle on the store", error.to_string()))
    }

    /// Lets go of the first handle, then opens a new one.
    pub(crate) fn reopen(&self) -> Held {
        let mut kv = self.kv.lock().unwrap_or_else(PoisonError::into_inner);
        let old = kv.take();
        drop(old);
        let opened = self.subject.open();
        let error = opened.as_ref().err().cloned();
        *kv = opened.ok();
        match error {
            None => Ok(()),
            Some(error) => Err(breach("the store opens again after it was closed", error.to_string())),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.kv().limits()
    }

    /// How much larger than usual a stress check is.
    pub(crate) fn stress(&self) -> usize {
        self.options.stress as usize
    }

    pub(crate) fn random(&self) -> Random {
        Random::new(self.options.seed)
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Some bytes for a part of the prefix that nothing else has used.
    pub(crate) fn place(&self) -> Vec<u8> {
        format!("{}/", self.places.fetch_add(1, Ordering::Relaxed)).into_bytes()
    }

    pub(crate) fn key(&self, suffix: impl AsRef<[u8]>) -> Key {
        Key::from([&self.prefix, suffix.as_ref()].concat())
    }

    /// A key of exactly `len` bytes that ends with `last`.
    pub(crate) fn key_of_len(&self, len: usize, last: u8) -> Key {
        let filled = len.saturating_sub(self.prefix.len() + 1);
        self.key([vec![b'k'; filled], vec![last]].concat())
    }

    /// All keys of the check.
    pub(crate) fn range(&self) -> KeyRange {
        KeyRange::prefix(&self.prefix)
    }

    /// All keys of the check that begin with `suffix`.
    pub(crate) fn range_of(&self, suffix: impl AsRef<[u8]>) -> KeyRange {
        KeyRange::prefix(self.key(suffix).as_bytes())
    }

    /// The end of a wait that should be short.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline {
            until: Instant::now() + self.options.patience,
            patience: self.options.patience,
            given_up: AtomicBool::new(false),
        }
    }

    /// Waits for an answer of the store, but not for ever.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Breach> {
        let patience = self.options.patience;
        block_on_within(patience, future).ok_or_else(|| breach(format!("an answer within {patience:?}"), "none"))
    }

    pub(crate) fn commit_on(
        &self,
        kv: &dyn AtomicKv,
        checks: Vec<Check>,
        writes: Vec<Write>,
    ) -> Result<Result<Committed, StoreError>, Breach> {
        self.wait(kv.cas_many(Txn { checks, writes }))
    }

    /// The outer error is a breach: no answer at all. The inner answer is for the check to judge.
    pub(crate) fn commit(&self, checks: Vec<Check>, writes: Vec<Write>) -> Result<Result<Committed, StoreError>, Breach> {
        self.commit_on(&*self.kv(), checks, writes)
    }

    /// A transaction whose checks hold.
    pub(crate) fn must(&self, what: &str, checks: Vec<Check>, writes: Vec<Write>) -> Result<Version, Breach> {
        match self.commit(checks, writes)? {
            Ok(committed) => Ok(committed.version),
            Err(error) => Err(breach(format!("{what}: a commit"), error.to_string())),
        }
    }

    /// Creates or replaces without a check.
    pub(crate) fn put(&self, key: &Key, value: impl AsRef<[u8]>) -> Result<Version, Breach> {
        self.must("a put without checks", vec![], vec![put_blind(key, value)])
    }

    pub(crate) fn snapshot_on(&self, kv: &dyn AtomicKv, keys: &[Key]) -> Result<Snapshot, Breach> {
        let snapshot = self.wait(kv.get_many(keys.to_vec()))?;
        let snapshot = snapshot.map_err(|error| breach("a read within the limits is answered", error.to_string()))?;
        let (answers, asked) = (snapshot.values.len(), keys.len());
        ensure(answers == asked, format!("{asked} answers to {asked} keys"), format!("{answers} answers"))?;
        Ok(snapshot)
    }

    pub(crate) fn snapshot(&self, keys: &[Key]) -> Result<Snapshot, Breach> {
        self.snapshot_on(&*self.kv(), keys)
    }

    pub(crate) fn get_on(&self, kv: &dyn AtomicKv, key: &Key) -> Result<Option<Versioned>, Breach> {
        Ok(self.snapshot_on(kv, std::slice::from_ref(key))?.values.remove(0))
    }

    pub(crate) fn get(&self, key: &Key) -> Result<Option<Versioned>, Breach> {
        self.get_on(&*self.kv(), key)
    }

    /// A record that must be there.
    pub(crate) fn record(&self, key: &Key) -> Result<Versioned, Breach> {
        self.get(key)?.ok_or_else(|| breach(format!("a record under {key:?}"), "none"))
    }

    pub(crate) fn page_on(&self, kv: &dyn AtomicKv, range: &KeyRange, limit: usize) -> Result<Page, Breach> {
        let page = self.wait(kv.scan(range.clone(), limit))?;
        let page = page.map_err(|error| breach("a scan is answered", error.to_string()))?;
        let max = limit.min(kv.limits().scan_page_max);
        let found = page.entries.len();
        ensure(found <= max, format!("at most {max} records in a page"), format!("{found} records"))?;
        Ok(page)
    }

    pub(crate) fn page(&self, range: &KeyRange, limit: usize) -> Result<Page, Breach> {
        self.page_on(&*self.kv(), range, limit)
    }

    /// Reads a range to its end.
    pub(crate) fn scan(&self, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Versioned)>, Breach> {
        self.scan_on(&*self.kv(), range, limit)
    }

    pub(crate) fn scan_on(&self, kv: &dyn AtomicKv, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Versioned)>, Breach> {
        const PAGES_MAX: usize = 100_000;
        let mut range = range.clone();
        let mut entries = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = self.page_on(kv, &range, limit)?;
            let latest = page.entries.last().map(|(key, _)| key.clone());
            let is_empty = page.entries.is_empty();
            entries.extend(page.entries);
            let Some(next) = page.next else { return Ok(entries) };
            let moved = if is_empty { next > range.start } else { latest.is_some_and(|latest| next > latest) };
            ensure(moved, "the next page begins after this one", format!("this one at {:?}, next {next:?}", range.start))?;
            range.start = next;
        }
        Err(breach("a scan comes to its end", format!("{PAGES_MAX} pages, and more to come")))
    }

    /// Creates keys in an order that is not theirs; answers them sorted. Each holds its own key.
    pub(crate) fn fill(&self, suffixes: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<Vec<Key>, Breach> {
        let mut keys: Vec<Key> = suffixes.into_iter().map(|suffix| self.key(suffix)).collect();
        keys.sort();
        keys.dedup();
        let backwards: Vec<Key> = keys.iter().rev().cloned().collect();
        for chunk in backwards.chunks(self.limits().txn_writes_max.clamp(1, 50)) {
            self.must("creating records", vec![], chunk.iter().map(|key| put_blind(key, key.as_bytes())).collect())?;
        }
        Ok(keys)
    }

    /// Deletes the versions that were read of all keys in `range`, and answers how many that were.
    pub(crate) fn clear(&self, range: &KeyRange) -> Result<usize, Breach> {
        let found = self.scan(range, usize::MAX)?;
        let limits = self.limits();
        for chunk in found.chunks(limits.txn_checks_max.min(limits.txn_writes_max).clamp(1, 200)) {
            // Whatever the store answered, nothing outside the check's own prefix is touched.
            let own = || chunk.iter().filter(|(key, _)| key.as_bytes().starts_with(&self.prefix));
            let checks: Vec<Check> = own().map(|(key, record)| is(key, record.version)).collect();
            if !checks.is_empty() {
                self.must("deleting what was read", checks, own().map(|(key, _)| delete(key)).collect())?;
            }
        }
        Ok(found.len())
    }
}

/// Takes away what the check wrote, unless it is to be kept. A store that failed a check may fail this too.
impl Drop for Bed {
    fn drop(&mut self) {
        let is_open = self.kv.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if !self.options.keep && is_open && !thread::panicking() {
            let _ = self.clear(&self.range());
        }
    }
}

/// The end of a wait that several callers share: when time is up, or one of them found a breach.
pub(crate) struct Deadline {
    until: Instant,
    patience: Duration,
    given_up: AtomicBool,
}

/// What callers say that end because another one found a breach.
const GIVEN_UP: &str = "no breach found by another caller";

impl Deadline {
    pub(crate) fn check(&self, expected: &str) -> Held {
        ensure(!self.given_up.load(Ordering::Acquire), GIVEN_UP, "one")?;
        ensure(Instant::now() < self.until, format!("{expected}, within {:?}", self.patience), "not yet")
    }

    /// Runs `caller` in `count` threads that start together; answers in thread order, or with the first breach.
    pub(crate) fn at_once<T: Send>(
        &self,
        count: usize,
        caller: impl Fn(usize) -> Result<T, Breach> + Sync,
    ) -> Result<Vec<T>, Breach> {
        let start = Barrier::new(count);
        let run = |i| {
            start.wait();
            let result = caller(i);
            if result.is_err() {
                self.given_up.store(true, Ordering::Release);
            }
            result
        };
        let joined: Vec<Result<T, Breach>> = thread::scope(|scope| {
            let callers: Vec<_> = (0..count).map(|i| scope.spawn(move || run(i))).collect();
            let joined: Vec<_> = callers.into_iter().map(|caller| caller.join()).collect();
            joined.into_iter().map(|joined| joined.unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let breach = joined.iter().filter_map(|result| result.as_ref().err()).find(|breach| breach.expected != GIVEN_UP);
        match breach.cloned() {
            Some(breach) => Err(breach),
            None => joined.into_iter().collect(),
        }
    }
}

/// A request that was sent; its answer may be there already.
pub(crate) struct Sent<'a, T> {
    future: BoxFuture<'a, T>,
    answer: Option<T>,
}

/// Polls once, which sends the request.
pub(crate) fn sent<T: Unpin>(future: BoxFuture<'_, T>) -> Sent<'_, T> {
    let mut sent = Sent { future, answer: None };
    sent.answer = match Pin::new(&mut sent).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    };
    sent
}

impl<T: Unpin> Future for Sent<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match self.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => self.future.as_mut().poll(context),
        }
    }
}

pub(crate) fn is(key: &Key, version: Version) -> Check {
    Check { key: key.clone(), expect: Expect::Version(version) }
}

pub(crate) fn absent(key: &Key) -> Check {
    Check { key: key.clone(), expect: Expect::Absent }
}

/// A put of a key that the transaction checks.
pub(crate) fn put(key: &Key, value: impl AsRef<[u8]>) -> Write {
    Write { guard: Guard::Checked, ..put_blind(key, value) }
}

pub(crate) fn put_blind(key: &Key, value: impl AsRef<[u8]>) -> Write {
    Write { key: key.clone(), mutation: Mutation::Put(Value::from(value.as_ref())), guard: Guard::Idempotent }
}

/// A delete of a key that the transaction checks.
pub(crate) fn delete(key: &Key) -> Write {
    Write { key: key.clone(), mutation: Mutation::Delete, guard: Guard::Checked }
}

pub(crate) fn keys_of(entries: Vec<(Key, Versioned)>) -> Vec<Key> {
    entries.into_iter().map(|(key, _)| key).collect()
}

/// The number that a check wrote as 8 bytes.
pub(crate) fn number(record: &Versioned) -> Result<u64, Breach> {
    let bytes = record.value.as_bytes().try_into();
    bytes.map(u64::from_be_bytes).map_err(|_| breach("the 8 bytes written", crate::breach::show(Some(record))))
}
