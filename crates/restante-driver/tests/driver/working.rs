use std::time::{Duration, Instant};

use restante_core::Config;
use restante_core::keys::Kind;
use restante_core::machine::PostResult;
use restante_core::record::DropReason;
use restante_driver::{DrainReport, Message};
use restante_kv::{AtomicKv as _, Check, Expect, Guard, Mutation, Txn, Write};

use crate::bed::{ACCEPTED, Log, answering, backlog, config, delivering, delivering_within, hanging, memory};

const INBOX: &str = "https://a.example/inbox";

#[tokio::test]
async fn one_run_delivers_what_is_due_and_proves_that_nothing_is_left() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    for n in 0..20 {
        backlog.send(Message::new(INBOX, format!("{n}").into_bytes())).await.unwrap();
    }
    let report = backlog.run_once(15).await;
    assert_eq!((report.processed, report.more), (15, true));
    let report = backlog.run_once(15).await;
    assert_eq!((report.processed, report.more), (5, false));
    assert_eq!(log.posts().len(), 20);
}

#[tokio::test]
async fn what_is_given_up_is_listed_page_by_page() {
    let (store, log) = (memory(), Log::default());
    let gone = PostResult::Status { code: 410, retry_after_ms: None };
    let backlog = backlog(&store, config(), answering(&log, move |_| gone));
    for _ in 0..3 {
        backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    }
    assert!(backlog.dead_letters(None, 10).await.unwrap().rows.is_empty());
    backlog.run_once(10).await;
    let first = backlog.dead_letters(None, 2).await.unwrap();
    let rest = backlog.dead_letters(first.next, 2).await.unwrap();
    assert_eq!((first.rows.len(), rest.rows.len(), &rest.next), (2, 1, &None));
    for row in first.rows.iter().chain(&rest.rows) {
        assert_eq!((&*row.inbox, row.reason, row.attempts), (INBOX, DropReason::Permanent(410), 1));
    }
}

#[tokio::test]
async fn a_wake_reaches_a_started_worker_long_before_its_next_look() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, Config { poll_interval_ms: 3_600_000, ..config() }, delivering(&log));
    let handle = backlog.start();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    log.wait_for(1).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    handle.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_lost_index_row_is_found_by_the_sweep_without_traffic() {
    let (store, log) = (memory(), Log::default());
    let config = Config { sweep_interval_ms: 300, poll_interval_ms: 50, ..config() };
    let backlog = backlog(&store, config, delivering(&log));
    backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    for kind in [Kind::DueRow, Kind::Pointer] {
        let page = store.scan(backlog.env().keys.all(kind), 10).await.unwrap();
        for (key, found) in page.entries {
            let checks = vec![Check { key: key.clone(), expect: Expect::Version(found.version) }];
            let writes = vec![Write { key, mutation: Mutation::Delete, guard: Guard::Checked }];
            store.cas_many(Txn { checks, writes }).await.unwrap();
        }
    }
    let handle = backlog.start();
    log.wait_for(1).await;
    handle.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_shutdown_waits_for_the_deliveries_under_way() {
    let (store, log) = (memory(), Log::default());
    let slow = delivering_within(&log, Duration::from_millis(300));
    let backlog = backlog(&store, config(), slow);
    for n in 0..3 {
        backlog.send(Message::new(INBOX, format!("{n}").into_bytes())).await.unwrap();
    }
    let handle = backlog.start();
    log.wait_for(3).await;
    let report = handle.shutdown(Duration::from_secs(10)).await;
    assert_eq!(report, DrainReport { completed: 3, ..DrainReport::default() });
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
}

#[tokio::test]
async fn a_shutdown_cuts_off_at_its_deadline_and_what_it_cut_off_comes_back() {
    let (store, log) = (memory(), Log::default());
    let config = Config {
        lease_ms: 600,
        request_timeout_ms: 300,
        lease_margin_ms: 50,
        gate_freshness_ms: 50,
        poll_interval_ms: 50,
        ..config()
    };
    let first = backlog(&store, config.clone(), hanging(&log));
    first.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    let handle = first.start();
    log.wait_for(1).await;
    let report = handle.shutdown(Duration::from_millis(20)).await;
    assert_eq!(report, DrainReport { abandoned: 1, timed_out: true, ..DrainReport::default() });
    let second = backlog(&store, config, delivering(&log));
    let handle = second.start();
    log.wait_for(2).await;
    handle.shutdown(Duration::from_secs(5)).await;
    assert!(log.posts()[1].fence > log.posts()[0].fence);
    assert_eq!(second.depth().await.unwrap().entries, 0);
}

#[tokio::test]
async fn an_attempt_that_hangs_is_cut_off_before_its_lease_ends() {
    let (store, log) = (memory(), Log::default());
    let config = Config { lease_ms: 60_000, request_timeout_ms: 50, ..config() };
    let hangs_once = {
        let log = log.clone();
        tower::service_fn(move |post| {
            let first = log.posts().is_empty();
            log.note(&post);
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok::<_, std::convert::Infallible>(ACCEPTED)
            }
        })
    };
    let backlog = backlog(&store, config, hangs_once);
    backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    let handle = backlog.start();
    log.wait_for(2).await;
    handle.shutdown(Duration::from_secs(5)).await;
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
}

#[tokio::test]
async fn two_workers_of_one_process_and_one_of_another_deliver_each_entry_once() {
    let (store, log) = (memory(), Log::default());
    let (here, there) = (backlog(&store, config(), delivering(&log)), backlog(&store, config(), delivering(&log)));
    let handles = [here.start(), here.start(), there.start()];
    let messages = (0..200).map(|n| Message::new(format!("https://h{}.example/in", n % 7), format!("{n}").into_bytes()));
    assert!(here.send_many(messages.collect()).await.iter().all(Result::is_ok));
    log.wait_for(200).await;
    for handle in handles {
        handle.shutdown(Duration::from_secs(10)).await;
    }
    let mut payloads = log.payloads();
    payloads.sort();
    payloads.dedup();
    assert_eq!((payloads.len(), log.posts().len()), (200, 200));
    assert_eq!(here.depth().await.unwrap().entries, 0);
}

#[tokio::test]
async fn a_destination_that_asks_for_a_pause_gets_it() {
    let (store, log) = (memory(), Log::default());
    let paused = |n| match n {
        0 => PostResult::Status { code: 429, retry_after_ms: Some(400) },
        _ => ACCEPTED,
    };
    let backlog = backlog(&store, config(), answering(&log, paused));
    backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    let handle = backlog.start();
    log.wait_for(1).await;
    let began = Instant::now();
    log.wait_for(2).await;
    assert!(began.elapsed() >= Duration::from_millis(350), "{:?}", began.elapsed());
    handle.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_quarantined_record_is_listed_and_dropped_and_the_doctor_finds_nothing_wrong() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let accepted = backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    let page = store.scan(backlog.env().keys.all(Kind::Entry), 1).await.unwrap();
    let (key, found) = page.entries[0].clone();
    let mut bytes = found.value.as_bytes().to_vec();
    bytes[0] = 200;
    let checks = vec![Check { key: key.clone(), expect: Expect::Version(found.version) }];
    let writes = vec![Write { key, mutation: Mutation::Put(bytes.into()), guard: Guard::Checked }];
    store.cas_many(Txn { checks, writes }).await.unwrap();
    backlog.run_once(10).await;
    let rows = backlog.quarantined(None, 10).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| (row.id.send, row.readable.is_some())).collect::<Vec<_>>(), [(accepted.send, false)]);
    assert!(backlog.doctor(false).await.unwrap().is_clean());
    assert!(backlog.revive(rows[0].id).await.is_err(), "this version cannot read it either");
    backlog.drop_quarantined(rows[0].id).await.unwrap();
    assert_eq!(backlog.depth().await.unwrap().quarantined, 0);
    assert!(backlog.doctor(false).await.unwrap().is_clean());
}

#[tokio::test]
async fn a_sender_that_panics_is_an_attempt_of_unknown_outcome() {
    let (store, log) = (memory(), Log::default());
    let panics_once = {
        let log = log.clone();
        tower::service_fn(move |post| {
            let first = log.posts().is_empty();
            log.note(&post);
            async move {
                assert!(!first, "the sender's own mistake");
                Ok::<_, std::convert::Infallible>(ACCEPTED)
            }
        })
    };
    let backlog = backlog(&store, config(), panics_once);
    backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    let handle = backlog.start();
    log.wait_for(2).await;
    handle.shutdown(Duration::from_secs(5)).await;
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
}

#[test]
fn a_backlog_outlives_the_runtime_it_first_worked_on() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    for number in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            backlog.send(Message::new(INBOX, format!("{number}").into_bytes())).await.unwrap();
            while backlog.depth().await.unwrap().entries > 0 {
                backlog.run_once(10).await;
            }
        });
    }
    assert_eq!(log.payloads(), ["0", "1", "2"]);
}

/// A runtime that is there and not driven must not keep the attempts of another one.
#[test]
fn attempts_run_on_the_runtime_of_whoever_works() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (idle, driven) = (runtime(), runtime());
    for (number, runtime) in [&idle, &driven].into_iter().enumerate() {
        let run = async {
            backlog.send(Message::new(INBOX, format!("{number}").into_bytes())).await.unwrap();
            backlog.run_once(10).await
        };
        let report = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), run).await });
        assert_eq!(report.expect("it returns").processed, 1);
    }
    drop(idle);
}
