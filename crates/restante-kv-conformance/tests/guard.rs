//! A suite keeps to its prefixes, takes its records away, and does not call a run of nothing a success.

use std::convert::Infallible;
use std::sync::Arc;

use restante_kv::{AtomicKv, Guard, Key, Limits, MemoryKv, Mutation, StoreTime, Txn, Value, Write};
use restante_kv_conformance::{OpenError, Outcome, Subject, Suite, block_on};

fn store_of_somebody_else() -> MemoryKv {
    let limits = Limits { has_clock: false, ..Limits::FLOOR };
    let store = MemoryKv::new(limits, Arc::new(|| StoreTime::from_ms(0)));
    for name in
        ["", "\0", "a", "restante-conformance", "restante-conformance/", "restante-conformance/f", "restante-conformance0", "z"]
    {
        let mutation = Mutation::Put(Value::from(name.as_bytes()));
        let write = Write { key: Key::from(name.as_bytes()), mutation, guard: Guard::Idempotent };
        block_on(store.cas_many(Txn { checks: vec![], writes: vec![write] })).expect("a put");
    }
    store
}

fn suite(store: &MemoryKv) -> Suite {
    let store = store.clone();
    Suite::new("shared", move || Ok::<_, Infallible>(Subject::shared(store.clone())))
}

#[test]
fn a_store_that_is_in_use_is_as_it_was_after_all_checks() {
    let store = store_of_somebody_else();
    let before = store.model();
    suite(&store).run().assert_passed();
    assert!(store.model().iter().eq(before.iter()), "the checks left or changed something");
}

#[test]
fn what_is_kept_lies_under_the_prefix_that_is_told() {
    let store = store_of_somebody_else();
    let before = store.model();
    let report = suite(&store).keep(true).filter("every-put").run();
    assert_eq!(report.passed(), 1);
    let kept: Vec<Key> = store.model().iter().map(|(key, _)| key.clone()).filter(|key| before.get(key).is_none()).collect();
    assert_eq!(kept.len(), 1);
    assert!(kept[0].as_bytes().starts_with(report.ran[0].prefix.as_bytes()));
}

#[test]
fn a_run_of_nothing_has_not_passed() {
    let store = store_of_somebody_else();
    assert!(!suite(&store).filter("no such check").run().is_passed());
    let skipped = suite(&store).filter("reopening").run();
    assert_eq!((skipped.skipped(), skipped.is_passed()), (3, false));
}

#[test]
fn a_store_that_does_not_open_has_not_passed() {
    let report = Suite::new("closed", || Err::<Subject, _>(OpenError::new("no such server"))).filter("every-put").run();
    assert!(matches!(report.ran[0].outcome, Outcome::NotOpened { .. }));
    assert!(!report.is_passed() && report.to_string().contains("no such server"));
}
