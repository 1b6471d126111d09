//! Stores that are wrong on purpose: the model behind a wrapper with one fault.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use restante_kv::{
    AtomicKv, BoxFuture, Committed, Durability, Key, KeyRange, Limits, MemoryKv, Model, Page, Snapshot, StoreError, StoreTime,
    Txn,
};
use restante_kv_conformance::Subject;

mod commit;
mod fault;
mod read;
mod versions;

pub(crate) use fault::Fault;

/// What all handles share.
struct Shared {
    kv: MemoryKv,
    handles: AtomicUsize,
    calls: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The store as it was before its newest commit.
    before: Option<Model>,
    /// What the wrapper calls the versions of records, for faults of versions.
    names: versions::Names,
    /// Where pages said that they go on: by which handle, from which start, after how many records.
    cursors: BTreeMap<Key, (usize, Key, usize)>,
    /// Transactions whose futures were dropped.
    late: Vec<Txn>,
    /// First keys of transactions under way.
    under_way: BTreeSet<Key>,
    readers: usize,
    conflicted: bool,
}

/// A handle on the model with one fault.
pub(crate) struct Broken {
    fault: Fault,
    shared: Arc<Shared>,
    /// 1 for the first handle.
    handle: usize,
    /// What this handle saw when it last committed.
    seen: Mutex<Option<Model>>,
    /// Versions that this handle gave.
    given: AtomicU64,
}

impl Broken {
    /// A new store on which handles can be opened.
    pub(crate) fn subject(fault: Fault) -> Subject {
        let ms = AtomicU64::new(1_000_000);
        let step = match fault {
            Fault::ClockRunsBackwards => u64::MAX,
            Fault::ClockStands => 0,
            _ => 1,
        };
        let clock = move || StoreTime::from_ms(ms.fetch_add(step, Ordering::Relaxed));
        let kv = MemoryKv::new(fault.inner_limits(), Arc::new(clock));
        let shared = Shared { kv, handles: AtomicUsize::new(0), calls: AtomicUsize::new(0), state: Mutex::default() };
        let shared = Arc::new(shared);
        Subject::new(move || {
            let handle = 1 + shared.handles.fetch_add(1, Ordering::Relaxed);
            let shared = Arc::clone(&shared);
            let seen = Mutex::new(Some(shared.kv.model()));
            let broken = Self { fault, shared, handle, seen, given: AtomicU64::new(0) };
            if fault == Fault::ForgetsWhenOpened && handle > 1 {
                broken.forget();
            }
            Ok::<_, Infallible>(broken)
        })
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("nobody panics while holding this")
    }

    fn call(&self) -> usize {
        self.shared.calls.fetch_add(1, Ordering::Relaxed)
    }
}

impl AtomicKv for Broken {
    fn limits(&self) -> Limits {
        let floor = Limits::FLOOR;
        match self.fault {
            Fault::LimitsChange => Limits { get_keys_max: floor.get_keys_max + self.call() % 2, ..floor },
            Fault::BelowTheFloor => Limits { txn_checks_max: floor.txn_checks_max - 1, ..floor },
            Fault::ForgetsWhenOpened | Fault::VersionsOfAHandle => Limits { durability: Durability::Fsync, ..floor },
            _ => floor,
        }
    }

    fn get_many(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        Box::pin(self.read(keys))
    }

    fn scan(&self, range: KeyRange, limit: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(self.page(range, limit))
    }

    fn cas_many(&self, txn: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        if self.is(Fault::SentBeforeThePoll) {
            return Box::pin(std::future::ready(restante_kv_conformance::block_on(self.commit(txn))));
        }
        Box::pin(self.commit(txn))
    }
}
