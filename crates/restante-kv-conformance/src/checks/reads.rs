//! Reads of named keys.

use crate::Check;
use crate::bed::{Bed, delete, is, put_blind};
use crate::breach::{Held, breach, ensure, equal, holds, missing, show};

pub(super) const CHECKS: &[Check] = &[
    Check::required(
        "answers-stand-in-request-order",
        "A read answers each key at its place, a key asked twice twice, an absent one with nothing.",
        "a plan looks at the record it asked for",
        answers_stand_in_request_order,
    ),
    Check::required(
        "no-keys-have-an-empty-answer",
        "A read of no keys is answered with no records.",
        "a command that needs nothing still runs",
        no_keys_have_an_empty_answer,
    ),
    Check::required(
        "an-empty-value-is-not-absence",
        "A record without bytes is there for reads and scans.",
        "a marker without content still marks",
        an_empty_value_is_not_absence,
    ),
    Check::required(
        "bytes-come-back-as-they-were",
        "A value comes back byte for byte, whatever it holds.",
        "a payload arrives whole",
        bytes_come_back_as_they_were,
    ),
    Check::required(
        "own-writes-are-read",
        "Who was told of a commit reads it.",
        "a worker that claimed sees its claim",
        own_writes_are_read,
    ),
    Check::required(
        "another-handle-reads-what-was-acknowledged",
        "An acknowledged commit is read through every handle, whoever made it.",
        "a lease is seen by every worker",
        another_handle_reads_what_was_acknowledged,
    ),
];

fn answers_stand_in_request_order(bed: &Bed) -> Held {
    let (a, b, gone) = (bed.key("a"), bed.key("b"), bed.key("g"));
    let (version_a, version_b) = (bed.put(&a, "A")?, bed.put(&b, "B")?);
    let values = bed.snapshot(&[b.clone(), gone, a, b])?.values;
    let found: Vec<_> = values.iter().map(|v| v.as_ref().map(|v| (v.version, v.value.as_bytes()))).collect();
    let (a, b) = (Some((version_a, &b"A"[..])), Some((version_b, &b"B"[..])));
    equal("answers to b, an absent key, a, b", found, vec![b, None, a, b])
}

fn no_keys_have_an_empty_answer(bed: &Bed) -> Held {
    bed.snapshot(&[]).map(|_| ())
}

fn an_empty_value_is_not_absence(bed: &Bed) -> Held {
    let key = bed.key("k");
    bed.put(&key, "")?;
    holds("read", bed.get(&key)?.as_ref(), b"")?;
    equal("records scanned", bed.scan(&bed.range(), 10)?.len(), 1)
}

fn bytes_come_back_as_they_were(bed: &Bed) -> Held {
    let key = bed.key("k");
    let all: Vec<u8> = (0..=255).collect();
    let values: [&[u8]; 10] = [
        &all,
        b"\0",
        b"\0\0",
        b"a\0",
        b" a ",
        b"a\r\n",
        b"\xFF\xFE",
        b"{\"a\": null}",
        b"'; DROP TABLE kv; --",
        "\u{3a9}\u{e9}e\u{301}".as_bytes(),
    ];
    for value in values {
        bed.put(&key, value)?;
        let found = bed.record(&key)?;
        let expected = format!("{:?}", value.escape_ascii().to_string());
        ensure(found.value.as_bytes() == value, expected, show(Some(&found)))?;
        let scanned = bed.scan(&bed.range(), 10)?;
        holds("scanned", scanned.first().map(|(_, record)| record), value)?;
    }
    Ok(())
}

fn own_writes_are_read(bed: &Bed) -> Held {
    let key = bed.key("k");
    for i in 0..50u8 {
        let version = bed.put(&key, [i])?;
        let found = bed.record(&key)?;
        let is_it = found.version == version && found.value.as_bytes() == [i];
        ensure(is_it, format!("[{i}], {version:?}, just committed"), show(Some(&found)))?;
    }
    let version = bed.record(&key)?.version;
    bed.must("the version is current", vec![is(&key, version)], vec![delete(&key)])?;
    missing("just removed", bed.get(&key)?.as_ref())?;
    equal("records after the removal", bed.scan(&bed.range(), 10)?.len(), 0)
}

fn another_handle_reads_what_was_acknowledged(bed: &Bed) -> Held {
    let key = bed.key("k");
    let (one, two) = (bed.kv(), bed.another()?);
    for i in 0..20u8 {
        let (writer, reader) = if i % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let answer = bed.commit_on(&**writer, vec![], vec![put_blind(&key, [i])])?;
        let version = answer.map_err(|error| breach("a put without checks commits", error.to_string()))?.version;
        let found = bed.get_on(&**reader, &key)?;
        let is_it = found.as_ref().is_some_and(|found| found.version == version);
        ensure(is_it, format!("[{i}], {version:?}, acknowledged to another handle"), show(found.as_ref()))?;
        let scanned = bed.scan_on(&**reader, &bed.range(), 10)?;
        let is_it = scanned.first().is_some_and(|(_, found)| found.version == version);
        ensure(is_it, format!("[{i}], {version:?}, in a scan by another handle"), show(scanned.first().map(|(_, r)| r)))?;
    }
    Ok(())
}
