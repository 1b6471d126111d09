//! Scans: order and ends.

use restante_kv::KeyRange;

use crate::Check;
use crate::bed::{Bed, keys_of};
use crate::breach::{Held, ensure, equal, invalid};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "keys-come-in-unsigned-byte-order",
        "A scan answers in the order of unsigned bytes, a prefix before what it begins.",
        "the earliest due work comes first",
        keys_come_in_unsigned_byte_order,
    ),
    Check::required(
        "the-start-is-in-the-range-and-the-end-is-not",
        "A range holds its start and not its end.",
        "work due now is seen and work due later is not",
        the_start_is_in_the_range_and_the_end_is_not,
    ),
    Check::required(
        "a-prefix-ending-in-ff-has-an-end",
        "A range that begins with the highest bytes ends where it should, and a range without an end goes on.",
        "a scan of one destination sees all of it and nothing else",
        a_prefix_ending_in_ff_has_an_end,
    ),
    Check::required(
        "an-empty-range-is-read-to-its-end",
        "A range without records, or whose end is not after its start, is read to its end without error.",
        "nothing due is an answer",
        an_empty_range_is_read_to_its_end,
    ),
    Check::required(
        "a-limit-of-0-is-refused",
        "A page of no records cannot be asked for.",
        "a scan always comes nearer to its end",
        a_limit_of_0_is_refused,
    ),
    Check::required(
        "a-scan-answers-what-a-read-answers",
        "Scans and reads show the same bytes and versions.",
        "what was found by a scan can be claimed by its version",
        a_scan_answers_what_a_read_answers,
    ),
];

fn keys_come_in_unsigned_byte_order(bed: &Bed) -> Held {
    let special = [0x00u8, 0x01, 0x7F, 0x80, 0xFE, 0xFF];
    let pairs = special.iter().flat_map(|a| special.iter().map(move |b| vec![*a, *b]));
    let sorted = bed.fill((0..=255u8).map(|b| vec![b]).chain(pairs).chain([vec![], vec![0, 0, 0], vec![0xFF; 3]]))?;
    equal("the keys scanned", keys_of(bed.scan(&bed.range(), 1000)?), sorted)
}

fn the_start_is_in_the_range_and_the_end_is_not(bed: &Bed) -> Held {
    let all = bed.fill(["a", "b", "b\0", "c"])?;
    let between = |start: usize, end: usize| KeyRange { start: all[start].clone(), end: Some(all[end].clone()) };
    let scanned = |range: &KeyRange| bed.scan(range, 10).map(keys_of);
    equal("from a to b", scanned(&between(0, 1))?, all[0..1].to_vec())?;
    equal("from b to c", scanned(&between(1, 3))?, all[1..3].to_vec())?;
    let range = KeyRange { start: bed.key("aa"), end: Some(bed.key("bb")) };
    equal("from aa to bb", scanned(&range)?, all[1..3].to_vec())
}

fn a_prefix_ending_in_ff_has_an_end(bed: &Bed) -> Held {
    let all = bed.fill([&b"\xFE"[..], b"\xFE\xFF", b"\xFE\xFF\xFF", b"\xFF", b"\xFF\xFF"])?;
    let scanned = |suffix: &[u8]| bed.scan(&bed.range_of(suffix), 10).map(keys_of);
    equal("the prefix FE FF", scanned(b"\xFE\xFF")?, all[1..3].to_vec())?;
    equal("the prefix FF", scanned(b"\xFF")?, all[3..5].to_vec())?;
    let from = |start| KeyRange { start, end: None };
    let first = |range: &KeyRange| -> Result<_, _> {
        // An empty page may come first.
        let mut range = range.clone();
        for _ in 0..100 {
            let page = bed.page(&range, 1)?;
            match (page.entries.is_empty(), page.next) {
                (true, Some(next)) => range.start = next,
                _ => return Ok(keys_of(page.entries)),
            }
        }
        Ok(vec![])
    };
    equal("the first record of a range without an end", first(&from(bed.key(b"\xFF")))?, all[3..4].to_vec())?;
    let highest = KeyRange::prefix(b"\xFF\xFF\xFF");
    let found = keys_of(bed.page(&highest, 3)?.entries);
    let is_inside = found.iter().all(|key| highest.contains(key));
    ensure(is_inside, "only keys that begin with FF FF FF", format!("{found:?}"))
}

fn an_empty_range_is_read_to_its_end(bed: &Bed) -> Held {
    bed.fill(["a", "b"])?;
    for (start, end) in [("a", "a"), ("b", "a"), ("aa", "b"), ("c", "d")] {
        let range = KeyRange { start: bed.key(start), end: Some(bed.key(end)) };
        equal(&format!("records from {start} to {end}"), bed.scan(&range, 10)?.len(), 0)?;
    }
    Ok(())
}

fn a_limit_of_0_is_refused(bed: &Bed) -> Held {
    invalid("a scan with a limit of 0", &bed.wait(bed.kv().scan(bed.range(), 0))?)
}

fn a_scan_answers_what_a_read_answers(bed: &Bed) -> Held {
    let keys = bed.fill((0..30u8).map(|i| [i]))?;
    for key in keys.iter().step_by(3) {
        bed.put(key, "replaced")?;
    }
    let scanned = bed.scan(&bed.range(), 4)?;
    equal("the number of records", scanned.len(), keys.len())?;
    for (key, record) in scanned {
        equal(&format!("{key:?} in a scan"), Some(record), bed.get(&key)?)?;
    }
    Ok(())
}
