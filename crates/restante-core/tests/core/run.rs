//! `run_once` and a serving worker: what they prove, and that they end or rest.

use restante_core::Config;
use restante_core::keys::Kind;
use restante_core::machine::DeliveryEnd;
use restante_core::plan::Settled;
use restante_kv::Value;

use crate::bed::{Bed, Fault, config, entry_id, send, status};

#[test]
fn an_empty_backlog_is_proved_empty() {
    let ran = Bed::default().once(1, 10);
    assert_eq!((ran.report.processed, ran.report.more, ran.report.next_at), (0, false, None));
}

#[test]
fn more_is_true_when_the_limit_is_reached_and_false_only_when_it_is_proved() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/1", "a.example/2", "b.example/1"]));
    for (limit, processed, more) in [(0, 0, true), (1, 1, true), (2, 2, true), (2, 0, false)] {
        let report = bed.once(1, limit).report;
        assert_eq!((report.processed, report.more), (processed, more));
    }
}

#[test]
fn a_store_that_refuses_proves_nothing() {
    for what in ["scan-pointers", "scan-due", "read-destinations", "sweep-scan"] {
        let mut bed = Bed::default();
        bed.accept(send(1, &["a.example/inbox"]));
        bed.fault(what, Fault::Unavailable);
        assert!(bed.once(1, 10).report.more, "{what}");
        assert!(!bed.once(2, 10).report.more || what == "sweep-scan", "{what}: and once it answers again, it is");
    }
}

#[test]
fn next_at_says_when_the_next_work_vests() {
    let mut bed = Bed::default();
    bed.answers.push_back(status(500));
    bed.accept(send(1, &["a.example/inbox"]));
    let report = bed.once(1, 10).report;
    assert_eq!((report.more, report.next_at), (false, Some(bed.now().plus_ms(1_000))));
}

#[test]
fn a_restart_without_traffic_delivers_what_was_accepted() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    crate::claim::claim(&mut bed, 1).expect("due");
    // The worker is gone. Nobody sends anything.
    bed.now_ms += 60_000;
    let ended = bed.serve(2, 2_000, 500);
    assert_eq!(ended, [(entry_id(1, 0), DeliveryEnd::Settled(Settled::Delivered))]);
}

#[test]
fn a_serving_worker_finds_lost_work_within_the_sweep_interval() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.serve(1, 1_000, 500);
    bed.accept(send(2, &["a.example/inbox"]));
    bed.delete_all(Kind::DueRow);
    bed.delete_all(Kind::Pointer);
    bed.serve(2, 61_000, 5_000);
    assert_eq!(bed.posts.len(), 2);
}

#[test]
fn a_serving_worker_delivers_a_backlog_larger_than_its_window_without_resting() {
    let mut bed = Bed::default();
    for number in 1..=60 {
        bed.accept(send(number, &["a.example/1", "a.example/2"]));
    }
    let ended = bed.serve(1, 500, 20_000);
    assert_eq!(ended.len(), 120, "all within half a poll interval");
}

/// A due row that can never be claimed must not make a worker spin.
#[test]
fn a_serving_worker_rests_when_what_it_finds_leads_nowhere() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    // No counter slot can be read: every claim fails, and the due row stays.
    for slot in 0..8 {
        let key = bed.env.keys.counters(slot);
        bed.tamper(key, Some(Value::from(&[9][..])));
    }
    let ended = bed.serve(1, 10_000, 2_000);
    assert!(ended.iter().all(|(_, end)| matches!(end, DeliveryEnd::Yielded(_))));
    assert!(!ended.is_empty() && ended.len() < 100, "{}", ended.len());
}

#[test]
fn a_run_ends_although_nothing_it_finds_can_be_claimed() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    for slot in 0..8 {
        let key = bed.env.keys.counters(slot);
        bed.tamper(key, Some(Value::from(&[9][..])));
    }
    let report = bed.once(1, u64::MAX).report;
    assert_eq!((report.processed, report.more), (0, true), "nothing was claimed");
}

#[test]
fn one_hundred_orphaned_due_rows_do_not_hide_the_work_behind_them() {
    let mut bed = Bed::default();
    for number in 1..=50 {
        bed.accept(send(number, &["a.example/1", "a.example/2"]));
    }
    for (key, _) in bed.all(Kind::Entry) {
        bed.tamper(key, None);
    }
    bed.now_ms += 1;
    bed.accept(send(51, &["a.example/1"]));
    for _ in 0..3 {
        bed.once(1, u64::MAX);
    }
    assert_eq!(bed.posts.len(), 1);
    assert!(bed.all(Kind::DueRow).is_empty());
}

#[test]
fn two_destinations_are_served_although_one_answers_only_with_errors() {
    let mut bed = Bed::new(Config { concurrency: 1, ..config() });
    bed.accept(send(1, &["a.example/1", "b.example/1"]));
    bed.answers.push_back(status(500));
    let report = bed.once(1, 2).report;
    assert_eq!((report.processed, bed.posts.len()), (2, 2));
}

#[test]
fn workers_do_not_claim_what_another_one_holds() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/inbox"]));
    bed.before("post", |bed| {
        let ran = bed.once(2, 10);
        assert_eq!(ran.report.processed, 0);
    });
    bed.once(1, 10);
    assert_eq!(bed.posts.len(), 1);
}

#[test]
fn a_claim_lost_to_a_faster_worker_is_no_end_of_the_run() {
    let mut bed = Bed::default();
    bed.accept(send(1, &["a.example/1", "a.example/2"]));
    bed.before("claim", |bed| _ = bed.once(2, 1));
    let report = bed.once(1, 10).report;
    assert_eq!((report.processed, report.more, bed.posts.len()), (1, false, 2));
    bed.assert_counted();
}
