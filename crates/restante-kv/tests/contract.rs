//! The contract on the model: strict, and as small as its limits may be.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use restante_kv::{Limits, MemoryKv, StoreTime};
use restante_kv_conformance::{Outcome, Subject, Suite};

fn suite(name: &str, limits: Limits, strict: bool) -> Suite {
    Suite::new(name, move || {
        let ms = AtomicU64::new(1000);
        // A clock that goes on by a millisecond whenever it is read.
        let clock = Arc::new(move || StoreTime::from_ms(ms.fetch_add(1, Ordering::Relaxed)));
        let store = MemoryKv::new(limits, clock).strict(strict);
        Ok::<_, Infallible>(Subject::new(move || Ok::<_, Infallible>(store.clone())))
    })
}

#[test]
fn strict_store_meets_the_contract() {
    suite("strict", Limits::FLOOR, true).run().assert_passed();
}

#[test]
fn store_without_a_clock_and_with_tiny_limits_meets_all_but_the_floor() {
    let limits = Limits {
        scan_page_max: 4,
        value_bytes_max: 512,
        txn_bytes_max: 20_000,
        txn_writes_max: 100,
        has_clock: false,
        ..Limits::FLOOR
    };
    let report = suite("tiny", limits, false).run();
    let failed: Vec<_> =
        report.ran.iter().filter(|ran| matches!(ran.outcome, Outcome::Failed(_))).map(|ran| ran.check.name).collect();
    assert_eq!(failed, ["limits-reach-the-floor"], "{report}");
}
