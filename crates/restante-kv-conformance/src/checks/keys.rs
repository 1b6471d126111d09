//! Keys are bytes and nothing else.

use restante_kv::Key;
use restante_kv::tuple::KeyBuilder;

use crate::Check;
use crate::bed::{Bed, absent, keys_of, put};
use crate::breach::{Held, breach, conflicts, ensure, equal, holds};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "every-byte-may-stand-in-a-key",
        "Keys that differ in one byte, of all 256, are different records.",
        "identities are told apart by every byte",
        every_byte_may_stand_in_a_key,
    ),
    Check::required(
        "case-and-normal-forms-differ",
        "Upper and lower case, and composed and decomposed letters, are different keys.",
        "two senders never share a record because their names look alike",
        case_and_normal_forms_differ,
    ),
    Check::required(
        "trailing-blanks-and-zeros-differ",
        "Keys that differ only in blanks or zero bytes at their end are different records.",
        "a lane is never mistaken for its neighbour",
        trailing_blanks_and_zeros_differ,
    ),
    Check::required(
        "patterns-and-wildcards-are-plain-bytes",
        "What a query language, a pattern or a subject treats specially is an ordinary part of a key.",
        "a destination chooses no key but its own",
        patterns_and_wildcards_are_plain_bytes,
    ),
    Check::required(
        "long-keys-differ-in-their-last-byte",
        "Keys of the greatest length that differ only in their last byte are different records.",
        "a long identity is never cut short",
        long_keys_differ_in_their_last_byte,
    ),
    Check::required(
        "tuple-keys-keep-their-order",
        "Encoded tuples are scanned in the order of the tuples, and a part of a tuple finds exactly what begins with it.",
        "due work is found in the order in which it is due",
        tuple_keys_keep_their_order,
    ),
];

/// Creates each key as absent, then finds each with its own bytes, by read and by scan.
fn all_different(bed: &Bed, suffixes: &[&[u8]]) -> Held {
    let mut keys: Vec<Key> = suffixes.iter().map(|suffix| bed.key(suffix)).collect();
    for key in &keys {
        let created = bed.commit(vec![absent(key)], vec![put(key, key.as_bytes())])?;
        created.map_err(|error| breach(format!("{key:?} is a key of its own, and absent"), error.to_string()))?;
    }
    for key in &keys {
        holds(&format!("{key:?}"), bed.get(key)?.as_ref(), key.as_bytes())?;
        conflicts(&format!("{key:?} is there now"), &bed.commit(vec![absent(key)], vec![put(key, "twice")])?)?;
    }
    keys.sort();
    equal("the keys scanned", keys_of(bed.scan(&bed.range(), 1000)?), keys)
}

fn every_byte_may_stand_in_a_key(bed: &Bed) -> Held {
    let keys = bed.fill((0..=255u8).map(|b| [b'k', b, b'k']))?;
    let scanned = bed.scan(&bed.range(), 1000)?;
    let is_own = scanned.iter().all(|(key, record)| key.as_bytes() == record.value.as_bytes());
    ensure(is_own, "every record under its own key", "records under other keys")?;
    equal("the keys scanned", keys_of(scanned), keys.clone())?;
    for chunk in keys.chunks(bed.limits().get_keys_max.max(1)) {
        let found = bed.snapshot(chunk)?.values;
        chunk.iter().zip(&found).try_for_each(|(key, found)| holds(&format!("{key:?}"), found.as_ref(), key.as_bytes()))?;
    }
    Ok(())
}

fn case_and_normal_forms_differ(bed: &Bed) -> Held {
    let texts = ["k", "K", "\u{e9}", "e\u{301}", "E\u{301}", "\u{df}", "ss", "\u{131}", "i", "I", "\u{fb01}", "fi"];
    all_different(bed, &texts.map(str::as_bytes))
}

fn trailing_blanks_and_zeros_differ(bed: &Bed) -> Held {
    all_different(bed, &[b"", b"\0", b" ", b"k", b"k ", b"k  ", b"k\t", b"k\n", b"k\0", b"k\0\0", b"k \0", b"k\0 ", b" k"])
}

fn patterns_and_wildcards_are_plain_bytes(bed: &Bed) -> Held {
    let plain: &[&[u8]] = &[b"ab", b"a.b", b"a..b", b"aXb", b"1", b"01", b"1.0", b"null", b"k=1&l"];
    let special: &[&[u8]] = &[
        b"%", b"_", b"a_b", b"a%b", b"*", b"a*", b"?", b"[ab]", b".*", b"a.*", b">", b"a.>", b"$", b"^a", b"\\", b"a\\0b", b"'",
        b"\"", b";", b"--", b"/*", b"${k}", b"{k}", b"{k", b"..", b"/", b"//", b"a/../b", b":", b"a b", b"\r\n", b"\x1b[0m",
    ];
    all_different(bed, &[plain, special].concat())
}

fn long_keys_differ_in_their_last_byte(bed: &Bed) -> Held {
    let max = bed.limits().key_bytes_max;
    let keys = [b'a', b'b', 0xFF].map(|last| bed.key_of_len(max, last));
    for key in &keys {
        bed.must("a key of the greatest length", vec![absent(key)], vec![put(key, &key.as_bytes()[max - 1..])])?;
    }
    for key in &keys {
        holds("read under a long key", bed.get(key)?.as_ref(), &key.as_bytes()[max - 1..])?;
    }
    equal("the long keys scanned", keys_of(bed.scan(&bed.range(), 10)?), keys.to_vec())
}

fn tuple_keys_keep_their_order(bed: &Bed) -> Held {
    let tuple = |first: &str, second: &str, number: u64| KeyBuilder::new(bed.prefix()).str(first).str(second).u64(number).key();
    let mut tuples = Vec::new();
    for (first, second) in [("", "a"), ("a", ""), ("a", "bc"), ("ab", "c"), ("a\0", "b"), ("a\u{1}", "b"), ("b", "")] {
        tuples.extend([0, 1, 255, 256, 65_536, u64::MAX].map(|number| (first, second, number)));
    }
    tuples.sort();
    let in_order: Vec<Key> = tuples.iter().map(|(first, second, number)| tuple(first, second, *number)).collect();
    let suffixes: Vec<&[u8]> = in_order.iter().map(|key| &key.as_bytes()[bed.prefix().len()..]).collect();
    bed.fill(suffixes)?;
    equal("the tuples scanned", keys_of(bed.scan(&bed.range(), 7)?), in_order.clone())?;
    let of_a: Vec<Key> =
        tuples.iter().zip(&in_order).filter(|((first, ..), _)| *first == "a").map(|(_, key)| key.clone()).collect();
    let range = KeyBuilder::new(bed.prefix()).str("a").range();
    equal("the tuples that begin with \"a\"", keys_of(bed.scan(&range, 100)?), of_a)
}
