//! The two levels of the due index: pacing moves one pointer, and tidying never hides what a producer added.

use restante_core::keys::Kind;
use restante_core::plan::TidyPointer;
use restante_core::record::{Destination, Record};
use restante_core::{Command, Rejection};
use restante_kv::StoreTime;

use crate::bed::{Bed, retry_after, send};

fn pointers(bed: &Bed) -> Vec<(StoreTime, String)> {
    let all = bed.all(Kind::Pointer);
    let read = all.iter().map(|(key, _)| bed.env.keys.read_pointer(key).expect("a pointer"));
    read.map(|pointer| (pointer.bucket_at, pointer.destination.to_string())).collect()
}

#[test]
fn pacing_moves_the_pointer_once_and_leaves_the_entries_where_they_are() {
    let mut bed = Bed::default();
    bed.answers.push_back(retry_after(30_000));
    bed.accept(send(1, &["a.example/inbox"]));
    bed.once(1, 1);
    for number in 2..=6 {
        bed.accept(send(number, &["a.example/inbox"]));
    }
    let rows = bed.all(Kind::DueRow);
    let before = bed.commits.len();
    let ran = bed.once(1, 10);
    assert_eq!((ran.report.processed, ran.report.next_at), (0, Some(bed.now().plus_ms(30_000))));
    assert_eq!(bed.all(Kind::DueRow), rows);
    let names: Vec<_> = bed.commits[before..].iter().map(|(name, _)| *name).filter(|name| *name == "tidy-pointer").collect();
    assert!(!names.is_empty());
    assert!(pointers(&bed).iter().all(|(bucket_at, _)| *bucket_at >= bed.now().plus_ms(29_000)), "{:?}", pointers(&bed));
    bed.now_ms += 30_000;
    assert_eq!(bed.once(1, 10).report.processed, 6);
}

/// A snapshot may show several paced destinations: each has its pointer moved, and none has its entries claimed for nothing.
#[test]
fn every_paced_destination_of_a_page_has_its_pointer_moved() {
    let hosts = ["a.example/1", "b.example/1", "c.example/1", "d.example/1"];
    let mut bed = Bed::default();
    bed.answers.extend([retry_after(30_000); 4]);
    bed.accept(send(1, &hosts));
    assert_eq!(bed.once(1, 4).report.processed, 4);
    bed.accept(send(2, &hosts));
    let before = bed.commits.len();
    assert_eq!(bed.once(1, 10).report.processed, 0);
    assert!(bed.commits[before..].iter().all(|(name, _)| *name != "claim"), "{:?}", bed.actions);
}

#[test]
fn an_entry_claimed_before_the_pause_is_given_back_untried_until_it_ends() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/1", "a.example/2"]));
    let (key, until) = (bed.env.keys.destination("https://a.example"), bed.now().plus_ms(30_000));
    bed.before("gate", move |bed| bed.tamper(key, Some(Destination { paced_until: until, ..Destination::default() }.encode())));
    assert_eq!(bed.once(1, 2).report.processed, 2);
    for entry in [bed.entry(1, 0), bed.entry(1, 1)] {
        let entry = entry.expect("kept");
        assert_eq!((entry.failure_count, entry.vest_at, entry.lease), (0, until, None), "it was not tried");
    }
    assert!(bed.posts.is_empty());
    bed.assert_counted();
    bed.now_ms += 30_000;
    assert_eq!(bed.once(1, 10).report.processed, 2);
}

#[test]
fn a_pointer_to_nothing_is_removed_and_one_to_later_work_is_moved() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    assert!(!bed.once(1, 10).report.more);
    assert_eq!(pointers(&bed).len(), 1, "the claim's own, at the end of its lease");
    bed.now_ms += 61_000;
    assert!(!bed.once(1, 10).report.more);
    assert!(pointers(&bed).is_empty());
    bed.accept(send(2, &["a.example/inbox"]));
    bed.answers.push_back(crate::bed::status(500));
    bed.once(1, 10);
    let (later, lease_end) = (bed.now().plus_ms(1_000), bed.now().plus_ms(60_000));
    let destination = || "https://a.example".to_owned();
    assert_eq!(pointers(&bed), [(later, destination()), (lease_end, destination())]);
    bed.assert_discoverable();
}

#[test]
fn a_producer_that_comes_between_the_scan_and_the_removal_keeps_its_pointer() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    // The destination was scanned empty; its pointer was read before. Now a send arrives in the same bucket.
    bed.before("tidy-pointer", |bed| bed.accept(send(2, &["a.example/inbox"])));
    // And once more, between the planning of a removal and its commit.
    bed.before("tidy-pointer", |bed| {
        bed.before("tidy-pointer", |bed| bed.accept(send(3, &["a.example/inbox"])));
    });
    let mut processed = 0;
    for _ in 0..3 {
        processed += bed.once(1, 10).report.processed;
        bed.assert_discoverable();
    }
    assert_eq!(processed, 3);
}

#[test]
fn a_removal_by_an_older_version_is_not_needed() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    let destination = "https://a.example";
    let key = bed.env.keys.pointer(destination, bed.now());
    let version = bed.model.get(&key).expect("put").version;
    bed.accept(send(2, &["a.example/inbox"]));
    let tidy = TidyPointer { key: key.clone(), version, destination: destination.into(), next_vest_at: None };
    let refused = Err(restante_core::machine::Failure::Rejected(Rejection::NotNeeded));
    assert_eq!(bed.run(Command::TidyPointer(tidy)), refused);
    assert!(bed.model.get(&key).is_some());
}
