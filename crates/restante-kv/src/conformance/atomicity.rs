//! All of a transaction or none of it, exactly when every check holds.

use super::bed::{Bed, absent, assert_conflict, assert_invalid, bytes, delete, is, put, put_blind};
use crate::{Key, StoreError, Version};

pub(super) fn all_or_nothing_whichever_check_fails(bed: &Bed<'_>) {
    let keys: Vec<Key> = (0..3).map(|i| bed.key([i])).collect();
    let old: Vec<Version> = keys.iter().map(|key| bed.put(key, "old")).collect();
    let txn = |stale: Option<usize>| {
        let expect = |i: usize| if stale == Some(i) { absent(&keys[i]) } else { is(&keys[i], old[i]) };
        bed.commit((0..3).map(expect).collect(), keys.iter().map(|key| put(key, "new")).collect())
    };
    for stale in 0..3 {
        assert_conflict(txn(Some(stale)));
        for (key, version) in keys.iter().zip(&old) {
            let found = bed.get(key).expect("a conflict deletes nothing");
            assert_eq!((found.version, found.value.as_bytes()), (*version, &b"old"[..]));
        }
    }
    txn(None).expect("all checks hold");
    for key in &keys {
        assert_eq!(bytes(bed.get(key)), b"new");
    }
}

pub(super) fn put_delete_and_create_commit_together(bed: &Bed<'_>) {
    let (replaced, deleted, created) = (bed.key("r"), bed.key("d"), bed.key("c"));
    let (r, d) = (bed.put(&replaced, "1"), bed.put(&deleted, "1"));
    let checks = vec![is(&replaced, r), is(&deleted, d), absent(&created)];
    bed.commit(checks, vec![put(&replaced, "2"), delete(&deleted), put(&created, "2")]).expect("all checks hold");
    assert_eq!(bytes(bed.get(&replaced)), b"2");
    assert_eq!(bytes(bed.get(&created)), b"2");
    assert_eq!(bed.get(&deleted), None);
}

pub(super) fn a_check_only_key_blocks_the_writes(bed: &Bed<'_>) {
    let (fence, data, missing) = (bed.key("fence"), bed.key("data"), bed.key("missing"));
    let stale = bed.put(&fence, "1");
    let current = bed.put(&fence, "2");
    assert_conflict(bed.commit(vec![is(&fence, stale)], vec![put_blind(&data, "x")]));
    assert_conflict(bed.commit(vec![absent(&fence)], vec![put_blind(&data, "x")]));
    assert_conflict(bed.commit(vec![is(&fence, current), is(&missing, current)], vec![put_blind(&data, "x")]));
    assert_eq!(bed.get(&data), None);
    bed.commit(vec![is(&fence, current), absent(&missing)], vec![put_blind(&data, "x")]).expect("both checks hold");
    assert_eq!(bed.get(&fence).expect("still there").version, current, "a checked key is not written");
}

pub(super) fn a_check_only_transaction_confirms_what_was_read(bed: &Bed<'_>) {
    let (key, missing) = (bed.key("k"), bed.key("m"));
    let version = bed.put(&key, "1");
    bed.commit(vec![is(&key, version), absent(&missing)], vec![]).expect("both checks hold");
    assert_eq!(bed.get(&key).expect("untouched").version, version);
    bed.put(&key, "1");
    assert_conflict(bed.commit(vec![is(&key, version), absent(&missing)], vec![]));
}

pub(super) fn expecting_absence_of_a_present_key_conflicts(bed: &Bed<'_>) {
    let key = bed.key("k");
    bed.commit(vec![absent(&key)], vec![put(&key, "")]).expect("the key is absent");
    assert_conflict(bed.commit(vec![absent(&key)], vec![put(&key, "second")]));
    assert_eq!(bytes(bed.get(&key)), b"");
}

pub(super) fn expecting_a_version_of_an_absent_key_conflicts(bed: &Bed<'_>) {
    let (key, other) = (bed.key("k"), bed.key("o"));
    let version = bed.put(&other, "1");
    assert_conflict(bed.commit(vec![is(&key, version)], vec![put(&key, "x")]));
    assert_eq!(bed.get(&key), None);
}

pub(super) fn deleting_what_is_absent_is_no_error(bed: &Bed<'_>) {
    let key = bed.key("k");
    bed.commit(vec![absent(&key)], vec![delete(&key)]).expect("nothing to remove is no error");
    assert_eq!(bed.get(&key), None);
}

pub(super) fn a_delete_removes_the_version_it_checked(bed: &Bed<'_>) {
    let key = bed.key("k");
    let stale = bed.put(&key, "1");
    let current = bed.put(&key, "2");
    assert_conflict(bed.commit(vec![is(&key, stale)], vec![delete(&key)]));
    assert_eq!(bytes(bed.get(&key)), b"2");
    bed.commit(vec![is(&key, current)], vec![delete(&key)]).expect("the version is current");
    assert_eq!(bed.get(&key), None);
    assert_conflict(bed.commit(vec![is(&key, current)], vec![delete(&key)]));
}

pub(super) fn an_empty_transaction_is_refused(bed: &Bed<'_>) {
    assert_invalid(bed.commit(vec![], vec![]));
}

pub(super) fn a_key_twice_is_refused(bed: &Bed<'_>) {
    let key = bed.key("k");
    assert_invalid(bed.commit(vec![absent(&key), absent(&key)], vec![put(&key, "x")]));
    assert_invalid(bed.commit(vec![absent(&key)], vec![put(&key, "x"), put(&key, "x")]));
    assert_invalid(bed.commit(vec![absent(&key)], vec![put(&key, "x"), delete(&key)]));
    let writes = bed.kv.limits().txn_writes_max.min(100);
    let mut many: Vec<_> = (1..writes).map(|i| put_blind(&bed.key([b'm', i as u8]), "x")).collect();
    many.push(put_blind(&bed.key([b'm', 1]), "y"));
    assert_invalid(bed.commit(vec![], many));
    assert!(bed.scan(&bed.range(), 10).is_empty(), "a refused transaction writes nothing");
}

pub(super) fn a_conflict_names_only_failed_checks(bed: &Bed<'_>) {
    let (good, bad) = (bed.key("g"), bed.key("b"));
    let version = bed.put(&good, "1");
    bed.put(&bad, "1");
    match bed.commit(vec![is(&good, version), absent(&bad)], vec![put(&good, "2")]) {
        // A store that does not know which one failed names none.
        Err(StoreError::Conflict { failed }) => assert!(failed.is_empty() || failed == [1], "named {failed:?}"),
        other => panic!("expected a conflict, got {other:?}"),
    }
}
