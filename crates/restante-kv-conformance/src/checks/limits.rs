//! Each advertised maximum works, and one more is refused by name with nothing written.

use restante_kv::{Key, LimitKind, Limits, Write};

use crate::Check;
use crate::bed::{Bed, absent, put_blind};
use crate::breach::{Breach, Held, breach, conflicts, ensure, equal, exceeds, holds, missing};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "limits-do-not-change",
        "A store answers the same limits for as long as it is open, through every handle.",
        "what fitted when it was planned fits when it is committed",
        limits_do_not_change,
    ),
    Check::required(
        "limits-reach-the-floor",
        "No limit is below the smallest store that Restante is designed for.",
        "an accept fits into one transaction",
        limits_reach_the_floor,
    ),
    Check::required(
        "the-longest-key-works-and-one-more-byte-does-not",
        "A key of the advertised length is written and read, a longer one is refused by name.",
        "an identity is kept whole or refused",
        the_longest_key_works_and_one_more_byte_does_not,
    ),
    Check::required(
        "the-longest-value-works-and-one-more-byte-does-not",
        "An incompressible value of the advertised length comes back, a longer one is refused by name.",
        "a payload is kept whole or refused",
        the_longest_value_works_and_one_more_byte_does_not,
    ),
    Check::required(
        "the-most-checks-work-and-one-more-does-not",
        "As many checks as advertised all count, one more is refused by name.",
        "a chunk of a fanout commits as planned",
        the_most_checks_work_and_one_more_does_not,
    ),
    Check::required(
        "the-most-writes-work-and-one-more-does-not",
        "As many writes as advertised are all made, one more is refused by name.",
        "a chunk of a fanout commits as planned",
        the_most_writes_work_and_one_more_does_not,
    ),
    Check::required(
        "the-largest-transaction-works-and-one-more-byte-does-not",
        "A transaction of the advertised size commits whole, a larger one is refused by name.",
        "a transaction is never divided",
        the_largest_transaction_works_and_one_more_byte_does_not,
    ),
    Check::required(
        "the-most-keys-are-read-and-one-more-is-not",
        "As many keys as advertised are read at one point, one more is refused by name.",
        "a plan sees its whole read set at once",
        the_most_keys_are_read_and_one_more_is_not,
    ),
];

/// Largest limits that can be tried.
const BYTES_TRIED_MAX: usize = 256 << 20;
const COUNT_TRIED_MAX: usize = 1 << 20;

fn triable(what: &str, limit: usize, max: usize) -> Held {
    ensure(
        limit <= max,
        format!("at most {max} {what}: a limit that can be tried, and that one request may use"),
        limit.to_string(),
    )
}

fn numbered(bed: &Bed, count: usize) -> Vec<Key> {
    (0..count).map(|i| bed.key((i as u32).to_be_bytes())).collect()
}

fn limits_do_not_change(bed: &Bed) -> Held {
    let before = bed.limits();
    bed.put(&bed.key("k"), "x")?;
    equal("the limits after a commit", bed.limits(), before)?;
    equal("the limits of another handle", bed.another()?.limits(), before)
}

fn limits_reach_the_floor(bed: &Bed) -> Held {
    let (limits, floor) = (bed.limits(), Limits::FLOOR);
    for (what, limit, least) in [
        ("key_bytes_max", limits.key_bytes_max, floor.key_bytes_max),
        ("value_bytes_max", limits.value_bytes_max, floor.value_bytes_max),
        ("txn_checks_max", limits.txn_checks_max, floor.txn_checks_max),
        ("txn_writes_max", limits.txn_writes_max, 1),
        ("txn_bytes_max", limits.txn_bytes_max, floor.txn_bytes_max),
        ("get_keys_max", limits.get_keys_max, floor.get_keys_max),
        ("scan_page_max", limits.scan_page_max, 1),
    ] {
        ensure(limit >= least, format!("{what} of {least} or more"), limit.to_string())?;
    }
    Ok(())
}

fn the_longest_key_works_and_one_more_byte_does_not(bed: &Bed) -> Held {
    let max = bed.limits().key_bytes_max;
    triable("bytes in a key", max, BYTES_TRIED_MAX)?;
    let key = bed.key_of_len(max, b'a');
    bed.put(&key, "A")?;
    holds("under the longest key", bed.get(&key)?.as_ref(), b"A")?;
    let long = bed.key_of_len(max + 1, b'a');
    exceeds("a longer key in a write", &bed.commit(vec![], vec![put_blind(&long, "x")])?, LimitKind::KeyBytes, max)?;
    exceeds("a longer key in a check", &bed.commit(vec![absent(&long)], vec![])?, LimitKind::KeyBytes, max)?;
    exceeds("a longer key in a read", &bed.wait(bed.kv().get_many(vec![long]))?, LimitKind::KeyBytes, max)?;
    equal("records after refusals", bed.scan(&bed.range(), 10)?.len(), 1)
}

fn the_longest_value_works_and_one_more_byte_does_not(bed: &Bed) -> Held {
    let max = bed.limits().value_bytes_max;
    triable("bytes in a value", max, BYTES_TRIED_MAX)?;
    let key = bed.key("k");
    let value = bed.random().bytes(max);
    bed.put(&key, &value)?;
    holds("the longest value", bed.get(&key)?.as_ref(), &value)?;
    let longer = bed.commit(vec![], vec![put_blind(&key, vec![7; max + 1])])?;
    exceeds("a longer value", &longer, LimitKind::ValueBytes, max)?;
    holds("after the refusal", bed.get(&key)?.as_ref(), &value)
}

fn the_most_checks_work_and_one_more_does_not(bed: &Bed) -> Held {
    let max = bed.limits().txn_checks_max;
    triable("checks in a transaction", max, COUNT_TRIED_MAX)?;
    let keys = numbered(bed, max + 1);
    let checks: Vec<_> = keys.iter().map(absent).collect();
    let target = bed.key("w");
    let write = || vec![put_blind(&target, "x")];
    exceeds("one check more", &bed.commit(checks.clone(), write())?, LimitKind::TxnChecks, max)?;
    missing("after the refusal", bed.get(&target)?.as_ref())?;
    bed.must("the most checks", checks[..max].to_vec(), write())?;
    // The last of them counts like the first.
    bed.put(&keys[max - 1], "there")?;
    conflicts("the last check does not hold", &bed.commit(checks[..max].to_vec(), write())?)
}

fn the_most_writes_work_and_one_more_does_not(bed: &Bed) -> Held {
    let max = bed.limits().txn_writes_max;
    triable("writes in a transaction", max, COUNT_TRIED_MAX)?;
    let mut writes: Vec<_> = numbered(bed, max + 1).iter().map(|key| put_blind(key, "x")).collect();
    exceeds("one write more", &bed.commit(vec![], writes.clone())?, LimitKind::TxnWrites, max)?;
    equal("records after the refusal", bed.scan(&bed.range(), 10)?.len(), 0)?;
    writes.pop();
    bed.must("the most writes", vec![], writes)?;
    equal("records after the commit", bed.scan(&bed.range(), usize::MAX)?.len(), max)
}

/// Writes of exactly `bytes`, and how many.
fn writes_of(bed: &Bed, bytes: usize) -> Result<Vec<Write>, Breach> {
    let limits = bed.limits();
    let key_bytes = bed.prefix().len() + 4;
    let record_max = key_bytes + limits.value_bytes_max;
    let count = bytes.div_ceil(record_max).max(1);
    let largest = limits.txn_writes_max.saturating_mul(record_max);
    ensure(
        count <= limits.txn_writes_max,
        format!("limits that allow a transaction of {bytes} bytes"),
        format!("at most {largest}"),
    )?;
    let values = bytes.checked_sub(count * key_bytes).ok_or_else(|| breach("room for keys", format!("{bytes} bytes")))?;
    let share = |i: usize| values / count + usize::from(i < values % count);
    Ok(numbered(bed, count).iter().enumerate().map(|(i, key)| put_blind(key, vec![7; share(i)])).collect())
}

fn the_largest_transaction_works_and_one_more_byte_does_not(bed: &Bed) -> Held {
    let limits = bed.limits();
    let max = limits.txn_bytes_max;
    triable("bytes in a transaction", max, BYTES_TRIED_MAX)?;
    let reachable = limits.txn_writes_max.saturating_mul(bed.prefix().len() + 4 + limits.value_bytes_max);
    if max >= reachable {
        // Other limits are met first: the largest transaction is the one with the most of the largest writes.
        bed.must("the largest transaction", vec![], writes_of(bed, reachable)?)?;
        return equal("its records", bed.scan(&bed.range(), usize::MAX)?.len(), limits.txn_writes_max);
    }
    let too_large = writes_of(bed, max + 1)?;
    exceeds("one byte more", &bed.commit(vec![], too_large)?, LimitKind::TxnBytes, max)?;
    equal("records after the refusal", bed.scan(&bed.range(), 1)?.len(), 0)?;
    let writes = writes_of(bed, max)?;
    let count = writes.len();
    bed.must("the largest transaction", vec![], writes)?;
    let found = bed.scan(&bed.range(), 3)?;
    equal("its records", found.len(), count)?;
    equal("its bytes", found.iter().map(|(key, record)| key.len() + record.value.len()).sum::<usize>(), max)
}

fn the_most_keys_are_read_and_one_more_is_not(bed: &Bed) -> Held {
    let max = bed.limits().get_keys_max;
    triable("keys in a read", max, COUNT_TRIED_MAX)?;
    let keys = numbered(bed, max + 1);
    exceeds("one key more", &bed.wait(bed.kv().get_many(keys.clone()))?, LimitKind::GetKeys, max)?;
    let version = bed.put(&keys[max - 1], "last")?;
    let found = bed.snapshot(&keys[..max])?.values;
    equal("records found", found.iter().flatten().count(), 1)?;
    equal("the last answer", found[max - 1].as_ref().map(|record| record.version), Some(version))
}
