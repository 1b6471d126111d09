//! Prefixes: several users of one store.

use restante_kv::Key;

use crate::Check;
use crate::bed::{Bed, absent, delete, is, keys_of, put, put_blind};
use crate::breach::{Breach, Held, conflicts, ensure, equal, holds, invalid, show};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "equal-keys-under-two-prefixes-are-two-records",
        "The same key under two prefixes is written, checked and read apart.",
        "two backlogs share a store without sharing a delivery",
        equal_keys_under_two_prefixes_are_two_records,
    ),
    Check::required(
        "a-prefix-that-begins-another-is-not-the-other",
        "Of two prefixes, one the beginning of the other, the longer is scanned by itself.",
        "one backlog's sweep does not see another's work",
        a_prefix_that_begins_another_is_not_the_other,
    ),
    Check::required(
        "clearing-one-prefix-leaves-the-other",
        "Removing all records of one prefix leaves every record of its neighbours.",
        "pruning one backlog loses nothing of another",
        clearing_one_prefix_leaves_the_other,
    ),
    Check::required(
        "what-no-transaction-names-is-not-touched",
        "A record that no transaction names keeps its bytes and its version through commits, conflicts and refusals.",
        "nothing vanishes that nobody settled",
        what_no_transaction_names_is_not_touched,
    ),
];

fn equal_keys_under_two_prefixes_are_two_records(bed: &Bed) -> Held {
    let (one, two) = (bed.key("one/k"), bed.key("two/k"));
    let version = bed.must("the key is absent", vec![absent(&one)], vec![put(&one, "1")])?;
    bed.must("the key under the other prefix is absent", vec![absent(&two)], vec![put(&two, "2")])?;
    holds("under the first prefix", bed.get(&one)?.as_ref(), b"1")?;
    holds("under the second prefix", bed.get(&two)?.as_ref(), b"2")?;
    bed.must("the version is current", vec![is(&one, version)], vec![delete(&one)])?;
    holds("under the second prefix, after a removal under the first", bed.get(&two)?.as_ref(), b"2")
}

fn a_prefix_that_begins_another_is_not_the_other(bed: &Bed) -> Held {
    bed.fill(["n", "n.", "n0", "nn", "n/a", "n/b", "n//", "n/\u{fffd}", "N/a", "n\0"])?;
    let mut inner = ["n/a", "n/b", "n//", "n/\u{fffd}"].map(|suffix| bed.key(suffix)).to_vec();
    inner.sort();
    for limit in [1, 3, 100] {
        equal("the keys under n/", keys_of(bed.scan(&bed.range_of("n/"), limit)?), inner.clone())?;
    }
    equal("the number of keys under n", bed.scan(&bed.range_of("n"), 100)?.len(), 9)
}

fn clearing_one_prefix_leaves_the_other(bed: &Bed) -> Held {
    let suffixes: Vec<Vec<u8>> = [&b"m\xFF"[..], b"n", b"n/", b"n\xFF", b"o"]
        .iter()
        .flat_map(|prefix| (0..5u8).map(move |i| [prefix, &[b'0' + i][..]].concat()))
        .collect();
    let all = bed.fill(&suffixes)?;
    let cleared = bed.range_of("n/");
    equal("records removed under n/", bed.clear(&cleared)?, 5)?;
    let rest: Vec<Key> = all.into_iter().filter(|key| !cleared.contains(key)).collect();
    equal("the keys left", keys_of(bed.scan(&bed.range(), 100)?), rest)
}

fn what_no_transaction_names_is_not_touched(bed: &Bed) -> Held {
    let keys = bed.fill(["", "a", "b", "c"])?;
    let sentinels: Vec<Key> = ["", "aa", "b\0", "\u{ff}", "c "].iter().map(|suffix| bed.key(suffix)).collect();
    for key in &sentinels {
        bed.put(key, "sentinel")?;
    }
    let read = || -> Result<_, Breach> { sentinels.iter().map(|key| bed.get(key)).collect::<Result<Vec<_>, _>>() };
    let before = read()?;
    let (a, b, c) = (&keys[1], &keys[2], &keys[3]);
    let version = bed.record(a)?.version;
    bed.must("the version is current", vec![is(a, version)], vec![put(a, "2"), put_blind(b, "2")])?;
    conflicts("the version is stale", &bed.commit(vec![is(a, version)], vec![delete(a), put_blind(c, "3")])?)?;
    invalid("a key twice", &bed.commit(vec![absent(b), absent(b)], vec![put(b, "3")])?)?;
    let version = bed.record(c)?.version;
    bed.must("the version is current", vec![is(c, version)], vec![delete(c)])?;
    for ((key, before), after) in sentinels.iter().zip(before).zip(read()?) {
        ensure(before == after, format!("{key:?} untouched: {}", show(before.as_ref())), show(after.as_ref()))?;
    }
    Ok(())
}
