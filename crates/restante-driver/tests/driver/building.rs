use std::sync::Arc;

use restante_core::{Config, ConfigError};
use restante_driver::{Backlog, BuildError};
use restante_kv::{AtomicKv, BoxFuture, Committed, Durability, Key, KeyRange, Limits, Page, Snapshot, StoreError, Txn};

use crate::bed::{DAY_MS, Log, config, delivering, memory};

/// A store that nobody may touch.
struct Untouchable(Limits);

impl AtomicKv for Untouchable {
    fn limits(&self) -> Limits {
        self.0
    }
    fn get_many(&self, _: Vec<Key>) -> BoxFuture<'_, Result<Snapshot, StoreError>> {
        panic!("read")
    }
    fn scan(&self, _: KeyRange, _: usize) -> BoxFuture<'_, Result<Page, StoreError>> {
        panic!("scanned")
    }
    fn cas_many(&self, _: Txn) -> BoxFuture<'_, Result<Committed, StoreError>> {
        panic!("written")
    }
}

fn build(limits: Limits, config: Config) -> Result<Backlog, BuildError> {
    Backlog::builder(Arc::new(Untouchable(limits)), config, delivering(&Log::default())).build()
}

const DURABLE: Limits = Limits { durability: Durability::Fsync, ..Limits::FLOOR };

#[test]
fn building_does_no_io() {
    assert!(build(DURABLE, config()).is_ok());
}

#[test]
fn a_store_that_forgets_is_refused_unless_it_is_allowed() {
    let built = Backlog::builder(memory(), config(), delivering(&Log::default())).build();
    assert!(matches!(built, Err(BuildError::NotDurable { durability: Durability::Volatile })), "{built:?}");
    let lazy = Limits { durability: Durability::Lazy { window_ms: 1_000 }, ..Limits::FLOOR };
    assert!(matches!(build(lazy, config()), Err(BuildError::NotDurable { .. })));
    assert!(Backlog::builder(memory(), config(), delivering(&Log::default())).allow_volatile_store().build().is_ok());
}

#[test]
fn a_store_without_a_clock_needs_a_stated_skew() {
    let limits = Limits { has_clock: false, ..DURABLE };
    assert!(matches!(build(limits, config()), Err(BuildError::NoClock)));
    assert!(build(limits, Config { max_clock_skew_ms: 500, ..config() }).is_ok());
}

#[test]
fn a_lease_that_an_attempt_can_outlive_is_refused() {
    let config = Config { lease_ms: 12_000, request_timeout_ms: 10_000, ..Config::new(DAY_MS) };
    assert!(matches!(build(DURABLE, config), Err(BuildError::Config(ConfigError::LeaseTooShort { .. }))));
}
