//! Pages: only `next == None` means the end.

use std::sync::atomic::{AtomicBool, Ordering};

use restante_kv::{Key, KeyRange, Page};

use crate::Check;
use crate::bed::{Bed, absent, delete, is, keys_of, put_blind};
use crate::breach::{Breach, Held, breach, ensure, equal, won};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "every-limit-gives-the-same-records",
        "Pages of any size, put together, are the whole range.",
        "no due work is passed over",
        every_limit_gives_the_same_records,
    ),
    Check::required(
        "only-no-next-page-means-the-end",
        "A page says that more follows for as long as more follows.",
        "drained means that nothing is left",
        only_no_next_page_means_the_end,
    ),
    Check::required(
        "a-page-keeps-its-limit",
        "No page has more records than were asked for, nor than the largest page.",
        "a look takes bounded memory",
        a_page_keeps_its_limit,
    ),
    Check::required(
        "a-page-goes-on-after-its-cursor-was-deleted",
        "A scan goes on where it stood although the record there is gone.",
        "a settle beside a sweep does not make the sweep skip",
        a_page_goes_on_after_its_cursor_was_deleted,
    ),
    Check::required(
        "a-cursor-works-on-another-handle",
        "A scan begun on one handle goes on on another.",
        "a sweep is taken over where its worker died",
        a_cursor_works_on_another_handle,
    ),
    Check::required(
        "a-page-may-begin-at-any-key",
        "A range may start at a key that no page ever named, whether it is there or not.",
        "a look begins at the present instant",
        a_page_may_begin_at_any_key,
    ),
    Check::required(
        "large-records-do-not-stop-a-scan",
        "Records of the greatest size are scanned, in as many pages as it takes.",
        "a large payload does not hide what lies behind it",
        large_records_do_not_stop_a_scan,
    ),
    Check::required(
        "unchanged-keys-are-seen-once-while-others-change",
        "A scan sees every record that does not change exactly once, whatever happens around it.",
        "no bad neighbour makes work invisible",
        unchanged_keys_are_seen_once_while_others_change,
    ),
];

fn every_limit_gives_the_same_records(bed: &Bed) -> Held {
    let all = bed.fill((0..25u8).map(|i| [i * 10, i]))?;
    for limit in (1..=all.len() + 1).chain([bed.limits().scan_page_max, usize::MAX]) {
        equal(&format!("pages of {limit}"), keys_of(bed.scan(&bed.range(), limit)?), all.clone())?;
    }
    Ok(())
}

fn only_no_next_page_means_the_end(bed: &Bed) -> Held {
    let all = bed.fill((0..10u8).map(|i| [i]))?;
    for limit in 1..all.len() {
        let mut seen = 0;
        let mut range = bed.range();
        // A legal store gives at most a few empty pages; a wrong one ends too early, which is what is looked for.
        for _ in 0..100 {
            let page = bed.page(&range, limit)?;
            seen += page.entries.len();
            let Some(next) = page.next else { break };
            range.start = next;
        }
        let found = format!("the end after {seen} of {} records, in pages of {limit}", all.len());
        ensure(seen == all.len(), "a next page for as long as records follow", found)?;
    }
    Ok(())
}

fn a_page_keeps_its_limit(bed: &Bed) -> Held {
    let max = bed.limits().scan_page_max;
    let count = max.saturating_add(3).min(2003);
    bed.fill((0..count as u32).map(u32::to_be_bytes))?;
    for limit in [1, 2, 3, max, usize::MAX] {
        bed.page(&bed.range(), limit)?;
    }
    equal("records in pages as large as can be", bed.scan(&bed.range(), usize::MAX)?.len(), count)
}

/// A page of `range` that has records and a next page.
fn first_page(bed: &Bed, range: &KeyRange, limit: usize) -> Result<(Page, Key), Breach> {
    let mut range = range.clone();
    for _ in 0..100 {
        let page = bed.page(&range, limit)?;
        let next = page.next.clone().ok_or_else(|| breach("a next page, as records follow", "the end"))?;
        if !page.entries.is_empty() {
            return Ok((page, next));
        }
        range.start = next;
    }
    Err(breach("a page with records", "100 empty pages"))
}

fn a_page_goes_on_after_its_cursor_was_deleted(bed: &Bed) -> Held {
    let all = bed.fill(["a", "b", "c", "d", "e"])?;
    let (page, next) = first_page(bed, &bed.range(), 2)?;
    let seen = page.entries.len();
    // The last record of the page and the first of the next go.
    for key in &all[seen - 1..=seen] {
        let version = bed.record(key)?.version;
        bed.must("the version is current", vec![is(key, version)], vec![delete(key)])?;
    }
    let rest = KeyRange { start: next, ..bed.range() };
    equal("the rest of the scan", keys_of(bed.scan(&rest, 10)?), all[seen + 1..].to_vec())
}

fn a_cursor_works_on_another_handle(bed: &Bed) -> Held {
    let all = bed.fill((0..9u8).map(|i| [i]))?;
    let (page, next) = first_page(bed, &bed.range(), 4)?;
    let other = bed.another()?;
    let rest = KeyRange { start: next, ..bed.range() };
    let rest = keys_of(bed.scan_on(&*other, &rest, 2)?);
    equal("both parts of the scan", [keys_of(page.entries), rest].concat(), all)
}

fn a_page_may_begin_at_any_key(bed: &Bed) -> Held {
    let all = bed.fill([&b"b"[..], b"d", b"d\0"])?;
    let starts: [(&[u8], usize); 8] =
        [(b"", 0), (b"a\xFF", 0), (b"b", 0), (b"b\0", 1), (b"c", 1), (b"d", 1), (b"d\0", 2), (b"d\0\0", 3)];
    for (start, first) in starts {
        let range = KeyRange { start: bed.key(start), ..bed.range() };
        let what = format!("from \"{}\" on", start.escape_ascii());
        equal(&what, keys_of(bed.scan(&range, 2)?), all[first..].to_vec())?;
    }
    // A start before the prefix, and one after it.
    let all_of_it = KeyRange { start: Key::from(bed.prefix()), ..bed.range() };
    equal("from the prefix itself on", keys_of(bed.scan(&all_of_it, 2)?), all)
}

fn large_records_do_not_stop_a_scan(bed: &Bed) -> Held {
    let limits = bed.limits();
    let size = limits.value_bytes_max.min(limits.txn_bytes_max.saturating_sub(bed.prefix().len() + 1)).min(4 << 20);
    let keys: Vec<Key> = (0..6u8).map(|i| bed.key([i])).collect();
    for key in &keys {
        bed.put(key, vec![7; size])?;
    }
    for limit in [1, 100] {
        let found = bed.scan(&bed.range(), limit)?;
        let is_whole = found.iter().all(|(_, record)| record.value.len() == size);
        ensure(is_whole, format!("values of {size} bytes"), "others")?;
        equal("the keys of large records", keys_of(found), keys.clone())?;
    }
    Ok(())
}

fn unchanged_keys_are_seen_once_while_others_change(bed: &Bed) -> Held {
    const SCANS: usize = 12;
    let steady = bed.fill((0..20u8).map(|i| [i, 0]))?;
    let moving: Vec<Key> = (0..20u8).flat_map(|i| [bed.key([i, 0, 1]), bed.key([i, 1])]).collect();
    // By hand first: between any two pages, records before and after the cursor come or go.
    for is_delete in [false, true] {
        let mut found = Vec::new();
        let mut range = bed.range();
        let mut changed = moving.iter();
        loop {
            let page = bed.page(&range, 3)?;
            found.extend(keys_of(page.entries));
            let Some(next) = page.next else { break };
            range.start = next;
            for key in changed.by_ref().take(2) {
                match bed.get(key)? {
                    Some(record) if is_delete => bed.must("beside a scan", vec![is(key, record.version)], vec![delete(key)])?,
                    _ => bed.put(key, "x")?,
                };
            }
        }
        found.retain(|key| steady.contains(key));
        equal("the records that do not change, between changes", found, steady.clone())?;
    }
    let is_done = AtomicBool::new(false);
    let deadline = bed.deadline();
    let change = || -> Held {
        let kv = bed.another()?;
        for i in 0.. {
            if is_done.load(Ordering::Acquire) {
                return Ok(());
            }
            deadline.check("scans end although records change")?;
            let key = &moving[i * 7 % moving.len()];
            let write = if i % 3 == 0 { delete(key) } else { put_blind(key, "x") };
            let current = bed.get_on(&*kv, key)?.map_or_else(|| absent(key), |record| is(key, record.version));
            won("a change beside a scan", &bed.commit_on(&*kv, vec![current], vec![write])?)?;
        }
        Ok(())
    };
    let scan = || -> Held {
        for round in 0..SCANS {
            let mut found = keys_of(bed.scan(&bed.range(), 1 + round)?);
            ensure(found.windows(2).all(|pair| pair[0] < pair[1]), "keys in order, each once", format!("{found:?}"))?;
            found.retain(|key| steady.contains(key));
            equal("the records that do not change", found, steady.clone())?;
        }
        Ok(())
    };
    deadline
        .at_once(2, |caller| {
            if caller == 0 {
                return change();
            }
            let held = scan();
            is_done.store(true, Ordering::Release);
            held
        })
        .map(|_| ())
}
