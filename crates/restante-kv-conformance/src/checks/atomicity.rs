//! All of a transaction or none of it, exactly when every check holds.

use restante_kv::{Key, StoreError, Version};

use crate::Check;
use crate::bed::{Bed, absent, delete, is, put, put_blind};
use crate::breach::{Held, breach, conflicts, ensure, equal, holds, invalid, missing, show};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "one-stale-check-stops-every-write",
        "A transaction with one check that does not hold, wherever it stands, writes nothing.",
        "an accept is whole or did not happen",
        one_stale_check_stops_every_write,
    ),
    Check::required(
        "put-delete-and-create-commit-together",
        "A replacement, a removal and a creation of one transaction are seen together.",
        "a settle removes the delivery and hands its lane on in one step",
        put_delete_and_create_commit_together,
    ),
    Check::required(
        "a-check-only-key-blocks-the-writes",
        "A key that is checked and not written decides like one that is written, and is left alone.",
        "a closed intake accepts nothing",
        a_check_only_key_blocks_the_writes,
    ),
    Check::required(
        "a-check-only-transaction-confirms-what-was-read",
        "A transaction without writes commits exactly while all its checks hold.",
        "an answer that commits nothing is confirmed before it is given",
        a_check_only_transaction_confirms_what_was_read,
    ),
    Check::required(
        "expecting-absence-of-a-present-key-conflicts",
        "A record, even an empty one, is not absent for a check.",
        "an accept happens once",
        expecting_absence_of_a_present_key_conflicts,
    ),
    Check::required(
        "expecting-a-version-of-an-absent-key-conflicts",
        "An absent key has no version.",
        "what was settled is not settled again",
        expecting_a_version_of_an_absent_key_conflicts,
    ),
    Check::required(
        "deleting-what-is-absent-is-no-error",
        "The removal of a key that is not there commits.",
        "a sweep may be repeated",
        deleting_what_is_absent_is_no_error,
    ),
    Check::required(
        "a-delete-removes-only-the-version-it-checked",
        "A removal with a stale version leaves the newer record.",
        "a pointer is only removed by the version that was read",
        a_delete_removes_only_the_version_it_checked,
    ),
    Check::required(
        "an-empty-transaction-is-refused",
        "A transaction with neither checks nor writes is an invalid request.",
        "a plan that says nothing is a mistake, not a success",
        an_empty_transaction_is_refused,
    ),
    Check::required(
        "a-key-twice-is-refused",
        "A key stands at most once among the checks and once among the writes; otherwise nothing is written.",
        "what a transaction does never depends on an order nobody promised",
        a_key_twice_is_refused,
    ),
    Check::required(
        "a-conflict-names-only-failed-checks",
        "A conflict names checks that failed, or none.",
        "a batch is divided where it really conflicts",
        a_conflict_names_only_failed_checks,
    ),
];

fn one_stale_check_stops_every_write(bed: &Bed) -> Held {
    let keys: Vec<Key> = (0..3).map(|i| bed.key([i])).collect();
    let old: Vec<Version> = keys.iter().map(|key| bed.put(key, "old")).collect::<Result<_, _>>()?;
    let created = bed.key("created");
    let txn = |stale: Option<usize>| {
        let expect = |i: usize| if stale == Some(i) { absent(&keys[i]) } else { is(&keys[i], old[i]) };
        let writes = [&created].into_iter().chain(&keys).map(|key| put_blind(key, "new")).collect();
        bed.commit((0..3).map(expect).collect(), writes)
    };
    for stale in 0..3 {
        let what = format!("check {stale} of 3 is stale");
        conflicts(&what, &txn(Some(stale))?)?;
        missing(&what, bed.get(&created)?.as_ref())?;
        for (key, version) in keys.iter().zip(&old) {
            let found = bed.record(key)?;
            let is_old = found.version == *version && found.value.as_bytes() == b"old";
            ensure(is_old, format!("{what}: \"old\", {version:?}"), show(Some(&found)))?;
        }
    }
    ensure(txn(None)?.is_ok(), "a commit when all checks hold", "an error")?;
    keys.iter().try_for_each(|key| holds("after the commit", bed.get(key)?.as_ref(), b"new"))
}

fn put_delete_and_create_commit_together(bed: &Bed) -> Held {
    let (replaced, deleted, created) = (bed.key("r"), bed.key("d"), bed.key("c"));
    let (r, d) = (bed.put(&replaced, "1")?, bed.put(&deleted, "1")?);
    let checks = vec![is(&replaced, r), is(&deleted, d), absent(&created)];
    bed.must("all checks hold", checks, vec![put(&replaced, "2"), delete(&deleted), put(&created, "2")])?;
    holds("replaced", bed.get(&replaced)?.as_ref(), b"2")?;
    holds("created", bed.get(&created)?.as_ref(), b"2")?;
    missing("deleted", bed.get(&deleted)?.as_ref())
}

fn a_check_only_key_blocks_the_writes(bed: &Bed) -> Held {
    let (fence, data, gone) = (bed.key("fence"), bed.key("data"), bed.key("gone"));
    let stale = bed.put(&fence, "1")?;
    let current = bed.put(&fence, "2")?;
    let write = || vec![put_blind(&data, "x")];
    conflicts("a checked key has another version", &bed.commit(vec![is(&fence, stale)], write())?)?;
    conflicts("a checked key is not absent", &bed.commit(vec![absent(&fence)], write())?)?;
    conflicts("a checked key is absent", &bed.commit(vec![is(&fence, current), is(&gone, current)], write())?)?;
    missing("after conflicts only", bed.get(&data)?.as_ref())?;
    bed.must("both checks hold", vec![is(&fence, current), absent(&gone)], write())?;
    equal("a checked key is not written: its version", bed.record(&fence)?.version, current)?;
    missing("a key checked for absence is not created", bed.get(&gone)?.as_ref())
}

fn a_check_only_transaction_confirms_what_was_read(bed: &Bed) -> Held {
    let (key, gone) = (bed.key("k"), bed.key("g"));
    let version = bed.put(&key, "1")?;
    let checks = || vec![is(&key, version), absent(&gone)];
    bed.must("both checks hold", checks(), vec![])?;
    equal("confirming writes nothing: the version", bed.record(&key)?.version, version)?;
    bed.put(&key, "1")?;
    conflicts("the version is no longer current", &bed.commit(checks(), vec![])?)
}

fn expecting_absence_of_a_present_key_conflicts(bed: &Bed) -> Held {
    for first in ["", "first"] {
        let key = bed.key(first);
        bed.must("the key is absent", vec![absent(&key)], vec![put(&key, first)])?;
        conflicts("the key is there", &bed.commit(vec![absent(&key)], vec![put(&key, "second")])?)?;
        holds("after the conflict", bed.get(&key)?.as_ref(), first.as_bytes())?;
    }
    Ok(())
}

fn expecting_a_version_of_an_absent_key_conflicts(bed: &Bed) -> Held {
    let (key, other) = (bed.key("k"), bed.key("o"));
    let version = bed.put(&other, "1")?;
    conflicts("the key was never there", &bed.commit(vec![is(&key, version)], vec![put(&key, "x")])?)?;
    missing("after the conflict", bed.get(&key)?.as_ref())?;
    bed.must("the version is current", vec![is(&other, version)], vec![delete(&other)])?;
    conflicts("the key is gone", &bed.commit(vec![is(&other, version)], vec![put(&other, "x")])?)?;
    missing("after the conflict", bed.get(&other)?.as_ref())
}

fn deleting_what_is_absent_is_no_error(bed: &Bed) -> Held {
    let (key, beside) = (bed.key("k"), bed.key("b"));
    bed.must("nothing is there to remove", vec![absent(&key)], vec![delete(&key), put_blind(&beside, "x")])?;
    missing("after the removal", bed.get(&key)?.as_ref())?;
    holds("written beside it", bed.get(&beside)?.as_ref(), b"x")
}

fn a_delete_removes_only_the_version_it_checked(bed: &Bed) -> Held {
    let key = bed.key("k");
    let stale = bed.put(&key, "1")?;
    let current = bed.put(&key, "2")?;
    conflicts("the version is stale", &bed.commit(vec![is(&key, stale)], vec![delete(&key)])?)?;
    holds("after the conflict", bed.get(&key)?.as_ref(), b"2")?;
    bed.must("the version is current", vec![is(&key, current)], vec![delete(&key)])?;
    missing("after the removal", bed.get(&key)?.as_ref())?;
    conflicts("it is removed already", &bed.commit(vec![is(&key, current)], vec![delete(&key)])?)
}

fn an_empty_transaction_is_refused(bed: &Bed) -> Held {
    invalid("no checks, no writes", &bed.commit(vec![], vec![])?)
}

fn a_key_twice_is_refused(bed: &Bed) -> Held {
    let key = bed.key("k");
    invalid("checked twice", &bed.commit(vec![absent(&key), absent(&key)], vec![put(&key, "x")])?)?;
    invalid("put twice", &bed.commit(vec![absent(&key)], vec![put(&key, "x"), put(&key, "x")])?)?;
    invalid("put and deleted", &bed.commit(vec![absent(&key)], vec![put(&key, "x"), delete(&key)])?)?;
    let writes = bed.limits().txn_writes_max.min(100);
    let mut many: Vec<_> = (1..writes).map(|i| put_blind(&bed.key([b'm', i as u8]), "x")).collect();
    many.push(put_blind(&bed.key([b'm', 1]), "y"));
    invalid("put twice among many", &bed.commit(vec![], many)?)?;
    equal("records after refusals only", bed.scan(&bed.range(), 10)?.len(), 0)
}

fn a_conflict_names_only_failed_checks(bed: &Bed) -> Held {
    let (good, bad) = (bed.key("g"), bed.key("b"));
    let version = bed.put(&good, "1")?;
    bed.put(&bad, "1")?;
    let expected = "a conflict that names check 1, or none";
    match bed.commit(vec![is(&good, version), absent(&bad)], vec![put(&good, "2")])? {
        // A store that does not know which one failed names none.
        Err(StoreError::Conflict { failed }) => {
            ensure(failed.is_empty() || failed == [1], expected, format!("one that names {failed:?}"))
        }
        other => Err(breach(expected, format!("{other:?}"))),
    }
}
