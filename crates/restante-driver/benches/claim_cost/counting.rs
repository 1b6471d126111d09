//! A store that hands everything on and counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use restante_core::Env;
use restante_core::keys::Kind;
use restante_kv::{AtomicKv, BoxFuture, Committed, Key, KeyRange, Limits, Page, Snapshot, StoreError, Txn};
use restante_kv_sqlite::SqliteKv;

/// What was asked of all stores that share it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    snapshots: AtomicU64,
    keys: AtomicU64,
    pages: AtomicU64,
    records: AtomicU64,
    commits: AtomicU64,
    rows: AtomicU64,
    conflicts: AtomicU64,
    refusals: AtomicU64,
    /// Commits that write the record of a destination, and most rows that one of them writes.
    changes: AtomicU64,
    change_rows_max: AtomicU64,
}

/// The counts at one moment, or between two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) snapshots: u64,
    pub(crate) keys: u64,
    pub(crate) pages: u64,
    pub(crate) records: u64,
    pub(crate) commits: u64,
    pub(crate) rows: u64,
    pub(crate) conflicts: u64,
    pub(crate) refusals: u64,
    pub(crate) changes: u64,
    /// Most rows of one change since this was asked before.
    pub(crate) change_rows_max: u64,
}

impl Counts {
    pub(crate) fn now(&self) -> Figures {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Figures {
            snapshots: get(&self.snapshots),
            keys: get(&self.keys),
            pages: get(&self.pages),
            records: get(&self.records),
            commits: get(&self.commits),
            rows: get(&self.rows),
            conflicts: get(&self.conflicts),
            refusals: get(&self.refusals),
            changes: get(&self.changes),
            change_rows_max: self.change_rows_max.swap(0, Ordering::Relaxed),
        }
    }
}

impl Figures {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            snapshots: self.snapshots - before.snapshots,
            keys: self.keys - before.keys,
            pages: self.pages - before.pages,
            records: self.records - before.records,
            commits: self.commits - before.commits,
            rows: self.rows - before.rows,
            conflicts: self.conflicts - before.conflicts,
            refusals: self.refusals - before.refusals,
            changes: self.changes - before.changes,
            change_rows_max: self.change_rows_max,
        }
    }

    /// In words, divided by a number of whatever it was done for.
    pub(crate) fn each(self, number: u64) -> String {
        let each = |count: u64| count as f64 / number.max(1) as f64;
        format!(
            "{:.2} snapshots, {:.2} keys, {:.2} pages, {:.1} records, {:.2} commits, {:.2} rows",
            each(self.snapshots),
            each(self.keys),
            each(self.pages),
            each(self.records),
            each(self.commits),
            each(self.rows)
        )
    }
}

pub(crate) struct Counting {
    pub(crate) store: Arc<SqliteKv>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) env: Arc<Env>,
}

impl AtomicKv for Counting {
    fn limits(&self) -> Limits {
        self.store.limits()
    }
    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        self.counts.snapshots.fetch_add(1, Ordering::Relaxed);
        self.counts.keys.fetch_add(keys.len() as u64, Ordering::Relaxed);
        self.store.get_many(keys)
    }
    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            let page = self.store.scan(range, limit).await;
            self.counts.pages.fetch_add(1, Ordering::Relaxed);
            self.counts.records.fetch_add(page.as_ref().map_or(0, |page| page.entries.len() as u64), Ordering::Relaxed);
            page
        })
    }
    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let (counts, rows) = (&self.counts, txn.writes.len() as u64);
        counts.commits.fetch_add(1, Ordering::Relaxed);
        counts.rows.fetch_add(rows, Ordering::Relaxed);
        if txn.writes.iter().any(|write| self.env.keys.kind_of(&write.key) == Some(Kind::Destination)) {
            counts.changes.fetch_add(1, Ordering::Relaxed);
            counts.change_rows_max.fetch_max(rows, Ordering::Relaxed);
        }
        Box::pin(async move {
            let result = self.store.cas_many(txn).await;
            match &result {
                Ok(_) => {}
                Err(StoreError::Conflict { .. }) => drop(counts.conflicts.fetch_add(1, Ordering::Relaxed)),
                Err(_) => drop(counts.refusals.fetch_add(1, Ordering::Relaxed)),
            }
            result
        })
    }
}
