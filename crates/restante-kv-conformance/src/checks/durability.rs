//! What outlives a handle, for stores that claim that something does.

use std::collections::HashSet;

use restante_kv::KeyRange;

use crate::Check;
use crate::bed::{Bed, absent, delete, is, keys_of, put};
use crate::breach::{Held, conflicts, ensure, equal};

pub(super) const CHECKS: &[Check] = &[
    Check::durable(
        "records-survive-reopening",
        "What was acknowledged is there, with its versions, after the store was closed and opened again.",
        "an accepted delivery survives a restart",
        records_survive_reopening,
    ),
    Check::durable(
        "no-version-returns-after-reopening",
        "A store that was closed and opened again does not begin its versions anew.",
        "a claim from before a restart cannot settle what came after",
        no_version_returns_after_reopening,
    ),
    Check::durable(
        "a-cursor-works-after-reopening",
        "A scan begun before the store was closed goes on after it was opened again.",
        "a sweep goes on after a restart",
        a_cursor_works_after_reopening,
    ),
];

fn records_survive_reopening(bed: &Bed) -> Held {
    let keys = bed.fill((0..20u8).map(|i| [i]))?;
    let version = bed.record(&keys[3])?.version;
    bed.must("the version is current", vec![is(&keys[3], version)], vec![delete(&keys[3])])?;
    let before = bed.scan(&bed.range(), 100)?;
    bed.reopen()?;
    equal("all records, with their versions", bed.scan(&bed.range(), 100)?, before)
}

fn no_version_returns_after_reopening(bed: &Bed) -> Held {
    let key = bed.key("k");
    let mut seen = HashSet::new();
    let mut first = None;
    for _ in 0..4 {
        let version = bed.must("the key is absent", vec![absent(&key)], vec![put(&key, "same")])?;
        ensure(seen.insert(version), "a version that the key never had", format!("{version:?} again"))?;
        if let Some(first) = first {
            conflicts("a version of before", &bed.commit(vec![is(&key, first)], vec![put(&key, "ABA")])?)?;
        }
        first = first.or(Some(version));
        bed.must("the version is current", vec![is(&key, version)], vec![delete(&key)])?;
        bed.reopen()?;
    }
    Ok(())
}

fn a_cursor_works_after_reopening(bed: &Bed) -> Held {
    let all = bed.fill((0..9u8).map(|i| [i]))?;
    let page = bed.page(&bed.range(), 4)?;
    bed.reopen()?;
    let rest = match page.next {
        Some(next) => keys_of(bed.scan(&KeyRange { start: next, ..bed.range() }, 3)?),
        None => vec![],
    };
    equal("both parts of the scan", [keys_of(page.entries), rest].concat(), all)
}
