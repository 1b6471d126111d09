//! What every adapter checks before it sends anything: sizes, counts, duplicates.

use crate::{Check, Key, LimitKind, Limits, Mutation, StoreError, Txn, Write};

fn within(which: LimitKind, max: usize, actual: usize) -> Result<(), StoreError> {
    if actual <= max { Ok(()) } else { Err(StoreError::LimitExceeded { which, max, actual }) }
}

/// Below this count, comparing all pairs is faster than sorting and allocates nothing.
const PAIRWISE_MAX: usize = 16;

fn duplicate<T>(items: &[T], key: impl Fn(&T) -> &Key) -> Option<&Key> {
    if items.len() <= PAIRWISE_MAX {
        let seen_before = |(i, item): (usize, &T)| items[..i].iter().any(|earlier| key(earlier) == key(item));
        return items.iter().enumerate().position(|(i, item)| seen_before((i, item))).map(|i| key(&items[i]));
    }
    let mut keys: Vec<&Key> = items.iter().map(key).collect();
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

impl Limits {
    /// Checks a transaction as every adapter must before it sends anything.
    ///
    /// # Errors
    /// [`StoreError::InvalidRequest`] for a transaction without checks and writes, and for a key that stands twice among the
    /// checks or twice among the writes; [`StoreError::LimitExceeded`].
    pub fn check_txn(&self, txn: &Txn) -> Result<(), StoreError> {
        if txn.checks.is_empty() && txn.writes.is_empty() {
            return Err(StoreError::InvalidRequest("a transaction without checks and writes".to_owned()));
        }
        within(LimitKind::TxnChecks, self.txn_checks_max, txn.checks.len())?;
        within(LimitKind::TxnWrites, self.txn_writes_max, txn.writes.len())?;
        for check in &txn.checks {
            within(LimitKind::KeyBytes, self.key_bytes_max, check.key.len())?;
        }
        for write in &txn.writes {
            within(LimitKind::KeyBytes, self.key_bytes_max, write.key.len())?;
            if let Mutation::Put(value) = &write.mutation {
                within(LimitKind::ValueBytes, self.value_bytes_max, value.len())?;
            }
        }
        within(LimitKind::TxnBytes, self.txn_bytes_max, txn.bytes())?;
        if let Some(key) = duplicate(&txn.checks, |c: &Check| &c.key) {
            return Err(StoreError::InvalidRequest(format!("{key:?} is checked twice")));
        }
        if let Some(key) = duplicate(&txn.writes, |w: &Write| &w.key) {
            return Err(StoreError::InvalidRequest(format!("{key:?} is written twice")));
        }
        Ok(())
    }

    /// Checks the keys of an [`AtomicKv::get_many`](crate::AtomicKv::get_many) as every adapter must.
    ///
    /// # Errors
    /// [`StoreError::LimitExceeded`].
    pub fn check_get_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        within(LimitKind::GetKeys, self.get_keys_max, keys.len())?;
        keys.iter().try_for_each(|key| within(LimitKind::KeyBytes, self.key_bytes_max, key.len()))
    }

    /// The size of the page that answers an [`AtomicKv::scan`](crate::AtomicKv::scan) asked with `limit`.
    ///
    /// # Errors
    /// [`StoreError::InvalidRequest`] for a limit of 0.
    pub fn scan_page(&self, limit: usize) -> Result<usize, StoreError> {
        if limit == 0 {
            return Err(StoreError::InvalidRequest("a scan with a limit of 0".to_owned()));
        }
        Ok(limit.min(self.scan_page_max).max(1))
    }
}
