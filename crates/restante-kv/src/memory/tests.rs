//! What is the model's own: strict mode, the clock, exact conflicts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use restante_kv_conformance::block_on;

use super::{MemoryKv, Model, StrictViolation, check_strict};
use crate::{AtomicKv, Check, Expect, Guard, Key, KeyRange, Limits, Mutation, StoreError, StoreTime, Txn, Value, Version, Write};

/// A clock that goes on by a millisecond whenever it is read.
fn ticking() -> Arc<dyn Fn() -> StoreTime + Send + Sync> {
    let ms = AtomicU64::new(1000);
    Arc::new(move || StoreTime::from_ms(ms.fetch_add(1, Ordering::Relaxed)))
}

fn key(name: &str) -> Key {
    Key::from(name.as_bytes())
}

fn write(name: &str, guard: Guard) -> Write {
    Write { key: key(name), mutation: Mutation::Put(Value::from(&b"v"[..])), guard }
}

fn delete(name: &str, guard: Guard) -> Write {
    Write { mutation: Mutation::Delete, ..write(name, guard) }
}

fn absent(name: &str) -> Check {
    Check { key: key(name), expect: Expect::Absent }
}

fn txn(checks: &[Check], writes: &[Write]) -> Txn {
    Txn { checks: checks.to_vec(), writes: writes.to_vec() }
}

#[test]
fn a_conflict_names_every_failed_check() {
    let mut model = Model::new(Limits::FLOOR);
    model.commit(&txn(&[], &[write("a", Guard::Idempotent), write("b", Guard::Idempotent)])).unwrap();
    let before = model.clone();
    let conflict = model.commit(&txn(&[absent("a"), absent("c"), absent("b")], &[write("c", Guard::Checked)]));
    assert_eq!(conflict, Err(StoreError::Conflict { failed: vec![0, 2] }));
    assert!(model.iter().eq(before.iter()), "a conflict changes nothing");
}

#[test]
fn only_successful_writes_advance_the_version() {
    let mut model = Model::new(Limits::FLOOR);
    let first = model.commit(&txn(&[], &[write("a", Guard::Idempotent)])).unwrap().version;
    model.commit(&txn(&[absent("a")], &[write("a", Guard::Checked)])).unwrap_err();
    let confirmed = model.commit(&txn(&[absent("b")], &[])).unwrap().version;
    let second = model.commit(&txn(&[], &[delete("a", Guard::Idempotent)])).unwrap().version;
    assert_eq!(confirmed, first);
    assert_ne!(second, first);
}

#[test]
fn a_page_ends_exactly_at_the_last_record() {
    let mut model = Model::new(Limits::FLOOR);
    for name in ["a", "b", "c"] {
        model.commit(&txn(&[], &[write(name, Guard::Idempotent)])).unwrap();
    }
    let all = KeyRange { start: key(""), end: None };
    assert_eq!(model.scan(&all, 2).unwrap().next, Some(key("c")));
    assert_eq!(model.scan(&all, 3).unwrap().next, None);
    assert_eq!(model.scan(&KeyRange { end: Some(key("c")), ..all }, 2).unwrap().next, None);
    assert_eq!((model.len(), model.is_empty()), (3, false));
    assert_eq!(model.get(&key("b")).map(|r| r.value.len()), Some(1));
}

#[test]
fn a_clone_of_the_model_goes_its_own_way() {
    let mut model = Model::new(Limits::FLOOR);
    let fork = model.clone();
    model.commit(&txn(&[], &[write("a", Guard::Idempotent)])).unwrap();
    assert!(fork.is_empty());
}

#[test]
fn clones_of_a_handle_are_the_same_store() {
    let one = MemoryKv::new(Limits::FLOOR, ticking());
    let two = one.clone();
    block_on(one.cas_many(txn(&[], &[write("a", Guard::Idempotent)]))).unwrap();
    assert!(block_on(two.get_many(vec![key("a")])).unwrap().values[0].is_some());
    assert_eq!(two.model().len(), 1);
}

#[test]
fn nothing_happens_before_the_first_poll() {
    let store = MemoryKv::new(Limits::FLOOR, ticking());
    drop(store.cas_many(txn(&[], &[write("a", Guard::Idempotent)])));
    assert!(store.model().is_empty());
}

#[test]
fn strict_rules_accept_what_is_guarded() {
    let lane = || Guard::Under(key("lane"));
    for good in [
        txn(&[absent("a")], &[write("a", Guard::Checked)]),
        txn(&[absent("a")], &[delete("a", Guard::Checked)]),
        txn(&[absent("lane")], &[write("lane", Guard::Checked), write("entry", lane()), delete("gone", lane())]),
        txn(&[absent("lane")], &[write("entry", lane()), delete("lane", Guard::Checked)]),
        txn(&[], &[write("pointer", Guard::Idempotent)]),
        txn(&[absent("a")], &[]),
    ] {
        assert_eq!(check_strict(&good), Ok(()));
    }
}

#[test]
fn strict_rules_name_the_key_that_breaks_them() {
    let (a, lane) = (key("a"), key("lane"));
    let under = || Guard::Under(lane.clone());
    for (bad, violation) in [
        (txn(&[absent("b")], &[write("a", Guard::Checked)]), StrictViolation::NotChecked { key: a.clone() }),
        (
            txn(&[], &[write("a", under()), write("lane", Guard::Idempotent)]),
            StrictViolation::GuardNotChecked { key: a.clone(), guard: lane.clone() },
        ),
        (
            txn(&[absent("lane")], &[write("a", under())]),
            StrictViolation::GuardNotWritten { key: a.clone(), guard: lane.clone() },
        ),
        (txn(&[absent("a")], &[delete("a", Guard::Idempotent)]), StrictViolation::IdempotentDelete { key: a.clone() }),
    ] {
        assert_eq!(check_strict(&bad), Err(violation));
        let store = MemoryKv::new(Limits::FLOOR, ticking());
        let strict = store.clone().strict(true);
        assert!(matches!(block_on(strict.cas_many(bad.clone())), Err(StoreError::InvalidRequest(_))));
        assert!(store.model().is_empty());
        block_on(store.cas_many(bad)).expect("without strict mode, guards are ignored");
    }
}

#[test]
fn an_error_is_definite_unless_it_is_ambiguous() {
    assert!(StoreError::Conflict { failed: vec![] }.is_definite());
    assert!(StoreError::Unavailable(String::new()).is_definite());
    assert!(!StoreError::Ambiguous(String::new()).is_definite());
}

#[test]
fn store_time_saturates() {
    assert_eq!(StoreTime::MAX.plus_ms(1), StoreTime::MAX);
    assert_eq!(StoreTime::from_ms(1).minus_ms(2), StoreTime::from_ms(0));
    assert_eq!(StoreTime::from_ms(1).since_ms(StoreTime::from_ms(2)), 0);
    assert_eq!(Version::from_raw(7).to_raw(), 7);
}
