//! Reads of named keys.

use super::bed::{Bed, absent, bytes, delete, is, put};
use crate::Key;

pub(super) fn answers_stand_in_request_order(bed: &Bed<'_>) {
    let (a, b, missing) = (bed.key("a"), bed.key("b"), bed.key("m"));
    let (version_a, version_b) = (bed.put(&a, "A"), bed.put(&b, "B"));
    let values = bed.snapshot(&[&b, &missing, &a, &b]).values;
    let found: Vec<_> = values.iter().map(|v| v.as_ref().map(|v| (v.version, v.value.as_bytes()))).collect();
    let (a, b) = (Some((version_a, &b"A"[..])), Some((version_b, &b"B"[..])));
    assert_eq!(found, [b, None, a, b]);
}

pub(super) fn no_keys_have_an_empty_answer(bed: &Bed<'_>) {
    assert!(bed.snapshot(&[]).values.is_empty());
}

pub(super) fn an_empty_value_is_not_absence(bed: &Bed<'_>) {
    let key = bed.key("k");
    bed.put(&key, "");
    assert_eq!(bytes(bed.get(&key)), b"");
    assert_eq!(bed.scan(&bed.range(), 10).len(), 1);
}

pub(super) fn bytes_come_back_as_they_were(bed: &Bed<'_>) {
    let all: Vec<u8> = (0..=255).collect();
    for value in [&all[..], b"\0", b"\0\0", b"a\0", b"\xFF\xFE", b"'; DROP TABLE kv; --", b" ", "Ω≈ç".as_bytes()] {
        let key = bed.key(value);
        bed.put(&key, value);
        assert_eq!(bytes(bed.get(&key)), value);
    }
}

pub(super) fn similar_keys_are_different_keys(bed: &Bed<'_>) {
    // Case, normalisation forms, trailing blanks and zeros, and what patterns and subjects would treat specially.
    let names: &[&[u8]] = &[
        b"k",
        b"K",
        "\u{e9}".as_bytes(),
        "e\u{301}".as_bytes(),
        b"k ",
        b"k\0",
        b"k\0\0",
        b"%",
        b"_",
        b"*",
        b"k.*",
        b">",
        b"k.>",
        b"1",
        b"01",
    ];
    let keys: Vec<Key> = names.iter().map(|name| bed.key(name)).collect();
    for (key, name) in keys.iter().zip(names) {
        bed.commit(vec![absent(key)], vec![put(key, name)]).expect("no other key is this key");
    }
    for (key, name) in keys.iter().zip(names) {
        assert_eq!(bytes(bed.get(key)), *name);
    }
    assert_eq!(bed.scan(&bed.range(), 100).len(), names.len());
}

pub(super) fn own_writes_are_read(bed: &Bed<'_>) {
    let key = bed.key("k");
    for i in 0..200u8 {
        let version = bed.put(&key, [i]);
        assert_eq!(bed.get(&key).map(|r| (r.version, r.value.as_bytes().to_vec())), Some((version, vec![i])));
    }
    let version = bed.get(&key).expect("put").version;
    bed.commit(vec![is(&key, version)], vec![delete(&key)]).expect("current");
    assert_eq!(bed.get(&key), None);
    assert!(bed.scan(&bed.range(), 10).is_empty());
}

pub(super) fn the_clock_does_not_run_backwards(bed: &Bed<'_>) {
    let key = bed.key("k");
    let mut latest = None;
    for _ in 0..50 {
        for at in [bed.snapshot(&[&key]).at, bed.page(&bed.range(), 1).at] {
            assert_eq!(at.is_some(), bed.kv.limits().has_clock);
            assert!(at >= latest, "{at:?} after {latest:?}");
            latest = at;
        }
    }
}
