//! Versions: equal only for the same put, and never used twice.

use std::collections::HashSet;

use super::bed::{Bed, absent, assert_conflict, delete, is, put};
use crate::Version;

pub(super) fn every_put_changes_the_version(bed: &Bed<'_>) {
    let key = bed.key("k");
    let mut seen = HashSet::new();
    for _ in 0..20 {
        assert!(seen.insert(bed.put(&key, "same bytes")), "a version came twice");
    }
}

pub(super) fn puts_of_one_transaction_have_the_version_answered(bed: &Bed<'_>) {
    let (a, b) = (bed.key("a"), bed.key("b"));
    let version = bed.commit(vec![absent(&a), absent(&b)], vec![put(&a, "1"), put(&b, "2")]).expect("both absent").version;
    assert_eq!(bed.get(&a).expect("put").version, version);
    let scanned = bed.scan(&bed.range(), 10);
    assert_eq!(scanned.len(), 2);
    assert!(scanned.iter().all(|(_, record)| record.version == version));
}

pub(super) fn no_version_returns_after_delete_and_recreate(bed: &Bed<'_>) {
    let key = bed.key("k");
    let mut seen = HashSet::new();
    let mut first = None;
    for _ in 0..20 {
        let version = bed.commit(vec![absent(&key)], vec![put(&key, "x")]).expect("absent").version;
        assert!(seen.insert(version), "a version came back");
        if let Some(first) = first {
            assert_conflict(bed.commit(vec![is(&key, first)], vec![put(&key, "ABA")]));
        }
        first = first.or(Some(version));
        bed.commit(vec![is(&key, version)], vec![delete(&key)]).expect("current");
    }
}

pub(super) fn a_failed_transaction_leaves_versions_alone(bed: &Bed<'_>) {
    let (a, b) = (bed.key("a"), bed.key("b"));
    let version = bed.put(&a, "1");
    assert_conflict(bed.commit(vec![is(&a, version), is(&b, version)], vec![put(&a, "2"), put(&b, "2")]));
    assert_eq!(bed.get(&a).expect("still there").version, version);
    bed.commit(vec![is(&a, version)], vec![put(&a, "2")]).expect("the version still holds");
}

pub(super) fn a_version_from_elsewhere_conflicts(bed: &Bed<'_>) {
    let key = bed.key("k");
    let raw = bed.put(&key, "1").to_raw();
    for foreign in [0, u128::MAX, u128::from(u64::MAX), i64::MAX as u128, raw | 1 << 64, raw | 1 << 127, raw + 1] {
        if foreign != raw {
            assert_conflict(bed.commit(vec![is(&key, Version::from_raw(foreign))], vec![put(&key, "2")]));
        }
    }
    assert_eq!(bed.get(&key).expect("untouched").version.to_raw(), raw);
}
