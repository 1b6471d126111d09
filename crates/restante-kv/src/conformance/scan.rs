//! Scans: order, ends, pages.

use super::bed::{Bed, assert_invalid, delete, is};
use super::block_on;
use crate::{Key, KeyRange};

fn keys(entries: Vec<(Key, crate::Versioned)>) -> Vec<Key> {
    entries.into_iter().map(|(key, _)| key).collect()
}

/// Creates keys in an order that is not theirs; answers them sorted.
fn fill(bed: &Bed<'_>, suffixes: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<Key> {
    let mut keys: Vec<Key> = suffixes.into_iter().map(|suffix| bed.key(suffix)).collect();
    for key in keys.iter().rev() {
        bed.put(key, key.as_bytes());
    }
    keys.sort();
    keys
}

pub(super) fn keys_come_in_unsigned_byte_order(bed: &Bed<'_>) {
    let special = [0x00u8, 0x01, 0x7F, 0x80, 0xFE, 0xFF];
    let pairs = special.iter().flat_map(|a| special.iter().map(move |b| vec![*a, *b]));
    let sorted = fill(bed, (0..=255u8).map(|b| vec![b]).chain(pairs).chain([vec![], vec![0, 0, 0]]));
    let found = bed.scan(&bed.range(), 1000);
    assert!(found.iter().all(|(key, record)| key.as_bytes() == record.value.as_bytes()));
    assert_eq!(keys(found), sorted);
}

pub(super) fn the_end_is_not_in_the_range(bed: &Bed<'_>) {
    let all = fill(bed, ["a", "b", "b\0", "c"]);
    let between = |start: usize, end: usize| KeyRange { start: all[start].clone(), end: Some(all[end].clone()) };
    assert_eq!(keys(bed.scan(&between(0, 1), 10)), all[0..1]);
    assert_eq!(keys(bed.scan(&between(1, 3), 10)), all[1..3]);
    assert_eq!(keys(bed.scan(&KeyRange { start: bed.key("aa"), end: Some(bed.key("bb")) }, 10)), all[1..3]);
}

pub(super) fn a_prefix_ending_in_ff_has_an_end(bed: &Bed<'_>) {
    let all = fill(bed, [&b"\xFE"[..], b"\xFE\xFF", b"\xFE\xFF\xFF", b"\xFF", b"\xFF\xFF"]);
    let prefix = |suffix: &[u8]| KeyRange::prefix(bed.key(suffix).as_bytes());
    assert_eq!(keys(bed.scan(&prefix(b"\xFE\xFF"), 10)), all[1..3]);
    assert_eq!(keys(bed.scan(&prefix(b"\xFF"), 10)), all[3..5]);
    let from = KeyRange { start: bed.key(b"\xFF"), end: None };
    assert_eq!(keys(bed.page(&from, 1).entries), all[3..4], "a range without an end begins where it says");
}

pub(super) fn an_empty_range_is_read_to_its_end(bed: &Bed<'_>) {
    fill(bed, ["a", "b"]);
    let range = |start: &str, end: &str| KeyRange { start: bed.key(start), end: Some(bed.key(end)) };
    for range in [range("a", "a"), range("b", "a"), range("aa", "b")] {
        let page = bed.page(&range, 10);
        assert_eq!((page.entries.len(), page.next), (0, None));
    }
}

pub(super) fn a_limit_of_0_is_refused(bed: &Bed<'_>) {
    assert_invalid(block_on(bed.kv.scan(bed.range(), 0)));
}

pub(super) fn every_limit_gives_the_same_records(bed: &Bed<'_>) {
    let all = fill(bed, (0..25u8).map(|i| vec![i * 10, i]));
    for limit in (1..=all.len() + 1).chain([bed.kv.limits().scan_page_max, usize::MAX]) {
        assert_eq!(keys(bed.scan(&bed.range(), limit)), all, "limit {limit}");
    }
}

pub(super) fn a_page_goes_on_after_its_cursor_was_deleted(bed: &Bed<'_>) {
    let all = fill(bed, ["a", "b", "c", "d"]);
    let page = bed.page(&bed.range(), 2);
    let seen = page.entries.len();
    let next = page.next.expect("more records follow");
    for key in &all[seen..=seen] {
        let version = bed.get(key).expect("there").version;
        bed.commit(vec![is(key, version)], vec![delete(key)]).expect("current");
    }
    let rest = KeyRange { start: next, ..bed.range() };
    assert_eq!(keys(bed.scan(&rest, 10)), all[seen + 1..]);
}

pub(super) fn a_neighbouring_prefix_is_not_touched(bed: &Bed<'_>) {
    let inner = fill(bed, ["n/a", "n/b"]);
    let outer = fill(bed, ["n", "n.", "n0", "n//"]);
    let found = keys(bed.scan(&KeyRange::prefix(bed.key("n/").as_bytes()), 1));
    assert_eq!(found.len(), 3, "n//, n/a and n/b");
    assert!(inner.iter().all(|key| found.contains(key)));
    assert_eq!(outer.iter().filter(|key| found.contains(key)).count(), 1);
}
