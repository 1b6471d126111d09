//! Each advertised maximum works, and one more is refused by name with nothing written.

use super::bed::{Bed, absent, put_blind};
use super::block_on;
use crate::{Key, LimitKind, StoreError, Write};

#[track_caller]
fn assert_exceeded<T: std::fmt::Debug>(answer: Result<T, StoreError>, kind: LimitKind, limit: usize) {
    match answer {
        Err(StoreError::LimitExceeded { which, max, actual }) => assert_eq!((which, max, actual), (kind, limit, limit + 1)),
        other => panic!("expected {kind:?} to be exceeded, got {other:?}"),
    }
}

fn numbered(bed: &Bed<'_>, count: usize) -> Vec<Key> {
    (0..count).map(|i| bed.key((i as u32).to_be_bytes())).collect()
}

pub(super) fn limits_do_not_change(bed: &Bed<'_>) {
    let before = bed.kv.limits();
    bed.put(&bed.key("k"), "x");
    assert_eq!(bed.kv.limits(), before);
}

pub(super) fn the_longest_key_works_and_one_more_byte_does_not(bed: &Bed<'_>) {
    let max = bed.kv.limits().key_bytes_max;
    let (a, b) = (bed.key_of_len(max, b"a"), bed.key_of_len(max, b"b"));
    bed.put(&a, "A");
    assert_eq!(bed.get(&b), None, "keys that differ in their last byte differ");
    bed.put(&b, "B");
    assert_eq!(bed.scan(&bed.range(), 10).len(), 2);

    let long = bed.key_of_len(max + 1, b"a");
    assert_exceeded(bed.commit(vec![], vec![put_blind(&long, "x")]), LimitKind::KeyBytes, max);
    assert_exceeded(bed.commit(vec![absent(&long)], vec![]), LimitKind::KeyBytes, max);
    assert_exceeded(block_on(bed.kv.get_many(vec![long])), LimitKind::KeyBytes, max);
    assert_eq!(bed.scan(&bed.range(), 10).len(), 2);
}

pub(super) fn the_longest_value_works_and_one_more_byte_does_not(bed: &Bed<'_>) {
    let max = bed.kv.limits().value_bytes_max;
    let key = bed.key("k");
    // Incompressible enough: an increment that does not divide a byte's period at the places that repeat.
    let value: Vec<u8> = (0..max as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    bed.put(&key, &value);
    assert_eq!(bed.get(&key).expect("put").value.as_bytes(), value);
    assert_exceeded(bed.commit(vec![], vec![put_blind(&key, vec![7; max + 1])]), LimitKind::ValueBytes, max);
    assert_eq!(bed.get(&key).expect("untouched").value.len(), max);
}

pub(super) fn the_most_checks_work_and_one_more_does_not(bed: &Bed<'_>) {
    let max = bed.kv.limits().txn_checks_max;
    let mut checks: Vec<_> = numbered(bed, max + 1).iter().map(absent).collect();
    let write = || vec![put_blind(&bed.key("w"), "x")];
    assert_exceeded(bed.commit(checks.clone(), write()), LimitKind::TxnChecks, max);
    assert_eq!(bed.get(&bed.key("w")), None);
    checks.pop();
    bed.commit(checks, write()).expect("the most checks are allowed");
}

pub(super) fn the_most_writes_work_and_one_more_does_not(bed: &Bed<'_>) {
    let max = bed.kv.limits().txn_writes_max;
    let mut writes: Vec<_> = numbered(bed, max + 1).iter().map(|key| put_blind(key, "x")).collect();
    assert_exceeded(bed.commit(vec![], writes.clone()), LimitKind::TxnWrites, max);
    assert!(bed.scan(&bed.range(), 10).is_empty());
    writes.pop();
    bed.commit(vec![], writes).expect("the most writes are allowed");
    assert_eq!(bed.scan(&bed.range(), usize::MAX).len(), max);
}

pub(super) fn the_largest_transaction_works_and_one_more_byte_does_not(bed: &Bed<'_>) {
    let limits = bed.kv.limits();
    let mut left = limits.txn_bytes_max;
    let mut writes: Vec<Write> = Vec::new();
    for key in numbered(bed, limits.txn_writes_max) {
        if left <= key.len() {
            break;
        }
        let value = limits.value_bytes_max.min(left - key.len());
        left -= key.len() + value;
        writes.push(put_blind(&key, vec![7; value]));
    }
    // The rest is too small for a record: it goes into a check, which counts by its key.
    let checks = if left > 0 { vec![absent(&Key::from(vec![b'z'; left]))] } else { vec![] };
    let too_large = vec![absent(&Key::from(vec![b'z'; left + 1]))];
    assert_exceeded(bed.commit(too_large, writes.clone()), LimitKind::TxnBytes, limits.txn_bytes_max);
    assert!(bed.scan(&bed.range(), 1).is_empty());
    let count = writes.len();
    bed.commit(checks, writes).expect("the largest transaction is allowed");
    assert_eq!(bed.scan(&bed.range(), 3).len(), count);
}

pub(super) fn the_most_keys_are_read_and_one_more_is_not(bed: &Bed<'_>) {
    let max = bed.kv.limits().get_keys_max;
    let mut keys = numbered(bed, max + 1);
    assert_exceeded(block_on(bed.kv.get_many(keys.clone())), LimitKind::GetKeys, max);
    keys.pop();
    assert_eq!(block_on(bed.kv.get_many(keys)).expect("the most keys are read").values.len(), max);
}
