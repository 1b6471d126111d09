//! What a trial works with: the store, a prefix, and short words for keys, checks and writes.

use super::block_on;
use crate::{
    AtomicKv, Check, Committed, Expect, Guard, Key, KeyRange, Mutation, Page, Snapshot, StoreError, Txn, Value, Version,
    Versioned, Write,
};

/// A store under trial, and the prefix that the trial keeps to.
#[derive(Clone, Copy)]
pub struct Bed<'a> {
    pub(super) kv: &'a dyn AtomicKv,
    prefix: &'a [u8],
}

impl std::fmt::Debug for Bed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bed").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl<'a> Bed<'a> {
    /// A bed for one trial; no other user of the store may write under `prefix` meanwhile.
    pub fn new(kv: &'a dyn AtomicKv, prefix: &'a [u8]) -> Self {
        Self { kv, prefix }
    }

    pub(super) fn key(&self, suffix: impl AsRef<[u8]>) -> Key {
        Key::from([self.prefix, suffix.as_ref()].concat())
    }

    /// A key of exactly `len` bytes that ends with `last`.
    pub(super) fn key_of_len(&self, len: usize, last: &[u8]) -> Key {
        self.key([vec![b'k'; len - self.prefix.len() - last.len()], last.to_vec()].concat())
    }

    /// All keys of the trial.
    pub(super) fn range(&self) -> KeyRange {
        KeyRange::prefix(self.prefix)
    }

    pub(super) fn commit(&self, checks: Vec<Check>, writes: Vec<Write>) -> Result<Committed, StoreError> {
        block_on(self.kv.cas_many(Txn { checks, writes }))
    }

    /// Creates or replaces without a check.
    pub(super) fn put(&self, key: &Key, value: impl AsRef<[u8]>) -> Version {
        self.commit(vec![], vec![put_blind(key, value)]).expect("a put without checks commits").version
    }

    pub(super) fn snapshot(&self, keys: &[&Key]) -> Snapshot {
        block_on(self.kv.get_many(keys.iter().copied().cloned().collect())).expect("a read within the limits is answered")
    }

    pub(super) fn get(&self, key: &Key) -> Option<Versioned> {
        self.snapshot(&[key]).values.pop().expect("one answer a key")
    }

    pub(super) fn page(&self, range: &KeyRange, limit: usize) -> Page {
        let page = block_on(self.kv.scan(range.clone(), limit)).expect("a scan is answered");
        assert!(page.entries.len() <= limit, "a page of {} records for a limit of {limit}", page.entries.len());
        page
    }

    /// Reads a range to its end.
    pub(super) fn scan(&self, range: &KeyRange, limit: usize) -> Vec<(Key, Versioned)> {
        let mut range = range.clone();
        let mut entries = Vec::new();
        loop {
            let page = self.page(&range, limit);
            entries.extend(page.entries);
            match page.next {
                Some(next) => {
                    assert!(next > range.start || entries.is_empty(), "the cursor did not move");
                    range.start = next;
                }
                None => return entries,
            }
        }
    }
}

pub(super) fn is(key: &Key, version: Version) -> Check {
    Check { key: key.clone(), expect: Expect::Version(version) }
}

pub(super) fn absent(key: &Key) -> Check {
    Check { key: key.clone(), expect: Expect::Absent }
}

/// A put of a key that the transaction checks.
pub(super) fn put(key: &Key, value: impl AsRef<[u8]>) -> Write {
    Write { guard: Guard::Checked, ..put_blind(key, value) }
}

pub(super) fn put_blind(key: &Key, value: impl AsRef<[u8]>) -> Write {
    Write { key: key.clone(), mutation: Mutation::Put(Value::from(value.as_ref())), guard: Guard::Idempotent }
}

/// A delete of a key that the transaction checks.
pub(super) fn delete(key: &Key) -> Write {
    Write { key: key.clone(), mutation: Mutation::Delete, guard: Guard::Checked }
}

#[track_caller]
pub(super) fn assert_conflict(answer: Result<Committed, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Conflict { .. })), "expected a conflict, got {answer:?}");
}

#[track_caller]
pub(super) fn assert_invalid<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::InvalidRequest(_))), "expected an invalid request, got {answer:?}");
}

/// The bytes of a record that must exist.
#[track_caller]
pub(super) fn bytes(record: Option<Versioned>) -> Vec<u8> {
    record.expect("the record exists").value.as_bytes().to_vec()
}
