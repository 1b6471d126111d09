//! A store as a value: no lock, no clock, no I/O.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::{Committed, Expect, Key, KeyRange, Limits, Mutation, Page, StoreError, Txn, Version, Versioned};

/// The contract as a plain value: what a store holds, and what each operation answers.
///
/// Versions are one counter for the whole store, which only a successful transaction with writes advances. A transaction that
/// only checks answers with the counter as it stands.
#[derive(Clone, Debug)]
pub struct Model {
    limits: Limits,
    records: BTreeMap<Key, Versioned>,
    /// Version of the newest transaction with writes; 0 before the first.
    newest: u128,
}

impl Model {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        Self { limits, records: BTreeMap::new(), newest: 0 }
    }

    /// The limits given at construction.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// See [`AtomicKv::get_many`](crate::AtomicKv::get_many).
    ///
    /// # Errors
    /// [`StoreError::LimitExceeded`].
    pub fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Versioned>>, StoreError> {
        self.limits.check_get_many(keys)?;
        Ok(keys.iter().map(|key| self.records.get(key).cloned()).collect())
    }

    /// See [`AtomicKv::scan`](crate::AtomicKv::scan); the page carries no clock.
    ///
    /// # Errors
    /// [`StoreError::InvalidRequest`] for a limit of 0.
    pub fn scan(&self, range: &KeyRange, limit: usize) -> Result<Page, StoreError> {
        let limit = self.limits.scan_page(limit)?;
        if range.end.as_ref().is_some_and(|end| *end <= range.start) {
            return Ok(Page { entries: Vec::new(), next: None, at: None });
        }
        let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = self.records.range::<Key, _>((Bound::Included(&range.start), end));
        let entries = found.by_ref().take(limit).map(|(key, record)| (key.clone(), record.clone())).collect();
        Ok(Page { entries, next: found.next().map(|(key, _)| key.clone()), at: None })
    }

    /// See [`AtomicKv::cas_many`](crate::AtomicKv::cas_many). A conflict names every failed check.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::InvalidRequest`], [`StoreError::LimitExceeded`]; the store is then unchanged.
    pub fn commit(&mut self, txn: &Txn) -> Result<Committed, StoreError> {
        self.limits.check_txn(txn)?;
        let holds = |expect: Expect, found: Option<&Versioned>| match expect {
            Expect::Absent => found.is_none(),
            Expect::Version(version) => found.is_some_and(|record| record.version == version),
        };
        let checks = txn.checks.iter().enumerate();
        let failed: Vec<usize> =
            checks.filter(|(_, check)| !holds(check.expect, self.records.get(&check.key))).map(|(i, _)| i).collect();
        if !failed.is_empty() {
            return Err(StoreError::Conflict { failed });
        }
        if !txn.writes.is_empty() {
            self.newest += 1;
        }
        let version = Version::from_raw(self.newest);
        for write in &txn.writes {
            match &write.mutation {
                Mutation::Put(value) => {
                    let record = Versioned { version, value: value.clone() };
                    self.records.insert(write.key.clone(), record);
                }
                Mutation::Delete => {
                    self.records.remove(&write.key);
                }
            }
        }
        Ok(Committed { version })
    }

    /// One record.
    pub fn get(&self, key: &Key) -> Option<&Versioned> {
        self.records.get(key)
    }

    /// All records, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Versioned)> {
        self.records.iter()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}
