//! Versions: equal only for the same put, and never used twice.

use std::collections::HashSet;

use restante_kv::Version;

use crate::Check;
use crate::bed::{Bed, absent, delete, is, put};
use crate::breach::{Held, breach, conflicts, ensure, equal, holds};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "every-put-changes-the-version",
        "A put of the same bytes gives a new version all the same.",
        "a record that was touched is not taken for untouched",
        every_put_changes_the_version,
    ),
    Check::required(
        "the-version-answered-is-the-version-read",
        "Reads and scans show the puts of a transaction with the version that its commit answered.",
        "a winner recognises its own write",
        the_version_answered_is_the_version_read,
    ),
    Check::required(
        "no-version-returns-after-delete-and-recreate",
        "A key that was removed and created again never has a version that it had before.",
        "a claim of a former record cannot settle its successor",
        no_version_returns_after_delete_and_recreate,
    ),
    Check::required(
        "a-failed-transaction-leaves-versions-alone",
        "After a conflict every version is what it was.",
        "a refused attempt does not disturb the others",
        a_failed_transaction_leaves_versions_alone,
    ),
    Check::required(
        "a-version-from-elsewhere-conflicts",
        "A version that the store never gave, of any size, conflicts.",
        "a version is compared whole",
        a_version_from_elsewhere_conflicts,
    ),
    Check::required(
        "versions-of-two-handles-do-not-meet",
        "Two handles that write one key in turn never give it the same version.",
        "workers in two processes do not mistake each other's writes for their own",
        versions_of_two_handles_do_not_meet,
    ),
];

fn fresh(seen: &mut HashSet<Version>, version: Version) -> Held {
    ensure(seen.insert(version), "a version that the key never had", format!("{version:?} again"))
}

fn every_put_changes_the_version(bed: &Bed) -> Held {
    let key = bed.key("k");
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let version = bed.put(&key, "same bytes")?;
        fresh(&mut seen, version)?;
        equal("the version read", bed.record(&key)?.version, version)?;
    }
    Ok(())
}

fn the_version_answered_is_the_version_read(bed: &Bed) -> Held {
    let (a, b) = (bed.key("a"), bed.key("b"));
    let version = bed.must("both are absent", vec![absent(&a), absent(&b)], vec![put(&a, "1"), put(&b, "2")])?;
    for key in [&a, &b] {
        equal("the version read", bed.record(key)?.version, version)?;
    }
    let scanned: Vec<Version> = bed.scan(&bed.range(), 10)?.into_iter().map(|(_, record)| record.version).collect();
    equal("the versions scanned", scanned, vec![version; 2])
}

fn no_version_returns_after_delete_and_recreate(bed: &Bed) -> Held {
    let key = bed.key("k");
    let mut seen = HashSet::new();
    let mut first = None;
    for _ in 0..20 {
        let version = bed.must("the key is absent", vec![absent(&key)], vec![put(&key, "x")])?;
        fresh(&mut seen, version)?;
        equal("the version read", bed.record(&key)?.version, version)?;
        if let Some(first) = first {
            conflicts("a version of before the removal", &bed.commit(vec![is(&key, first)], vec![put(&key, "ABA")])?)?;
        }
        first = first.or(Some(version));
        bed.must("the version is current", vec![is(&key, version)], vec![delete(&key)])?;
    }
    Ok(())
}

fn a_failed_transaction_leaves_versions_alone(bed: &Bed) -> Held {
    let (a, b) = (bed.key("a"), bed.key("b"));
    let version = bed.put(&a, "1")?;
    conflicts("b is absent", &bed.commit(vec![is(&a, version), is(&b, version)], vec![put(&a, "2"), put(&b, "2")])?)?;
    equal("the version after a conflict", bed.record(&a)?.version, version)?;
    bed.must("the version still holds", vec![is(&a, version)], vec![put(&a, "2")])?;
    holds("after the commit", bed.get(&a)?.as_ref(), b"2")
}

fn a_version_from_elsewhere_conflicts(bed: &Bed) -> Held {
    let key = bed.key("k");
    let version = bed.put(&key, "1")?;
    let raw = version.to_raw();
    let near = [raw.wrapping_add(1), raw.wrapping_sub(1), raw ^ 1 << 32, raw ^ 1 << 64, raw ^ 1 << 127];
    let extreme = [0, u128::MAX, u128::from(u64::MAX), i64::MAX as u128];
    for foreign in near.into_iter().chain(extreme).filter(|foreign| *foreign != raw) {
        let answer = bed.commit(vec![is(&key, Version::from_raw(foreign))], vec![put(&key, "2")])?;
        conflicts(&format!("{foreign:#x}, the current version being {raw:#x}"), &answer)?;
    }
    equal("the version after conflicts only", bed.record(&key)?.version, version)
}

fn versions_of_two_handles_do_not_meet(bed: &Bed) -> Held {
    let key = bed.key("k");
    let other = bed.another()?;
    let mut seen = HashSet::new();
    for _ in 0..10 {
        for kv in [&bed.kv(), &other] {
            let current = bed.get_on(&**kv, &key)?.map_or_else(|| absent(&key), |record| is(&key, record.version));
            let answer = bed.commit_on(&**kv, vec![current], vec![put(&key, "same bytes")])?;
            let committed = answer.map_err(|error| breach("a commit on what was read", error.to_string()))?;
            fresh(&mut seen, committed.version)?;
        }
    }
    Ok(())
}
