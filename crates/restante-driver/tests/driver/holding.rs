//! Holds and circuits, as an operator meets them.

use std::time::Duration;

use restante_core::Config;
use restante_core::machine::{Failure, PostResult};
use restante_core::record::{Block, CircuitState};
use restante_core::{Rejection, machine};
use restante_driver::Message;
use restante_kv::{AtomicKv as _, StoreTime};

use crate::bed::{ACCEPTED, Log, answering, backlog, config, delivering, memory};

const INBOX: &str = "https://a.example/inbox";

async fn shown(backlog: &restante_driver::Backlog) -> Vec<machine::DestinationRow> {
    backlog.destinations(None, 10).await.unwrap().rows
}

#[tokio::test]
async fn a_held_destination_is_left_alone_until_it_is_released() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    backlog.set_hold(INBOX, None, None).await.unwrap();
    backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    assert_eq!(backlog.run_once(10).await.processed, 0);
    let rows = shown(&backlog).await;
    assert_eq!((rows.len(), &*rows[0].destination), (1, "https://a.example"));
    assert!(matches!(rows[0].blocked, Some((Block::Held, _))) && rows[0].held.is_some_and(|hold| hold.is_open));
    backlog.release_hold("https://a.example", None).await.unwrap();
    assert_eq!(backlog.run_once(10).await.processed, 1);
    assert_eq!(log.posts().len(), 1);
}

#[tokio::test]
async fn a_release_reaches_a_started_worker_at_once() {
    let (store, log) = (memory(), Log::default());
    let far = 3_600_000;
    let config = Config { poll_interval_ms: far, held_recheck_interval_ms: far, sweep_interval_ms: far, ..config() };
    let backlog = backlog(&store, config, delivering(&log));
    backlog.set_hold(INBOX, None, None).await.unwrap();
    backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    let handle = backlog.start();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(log.posts().is_empty());
    backlog.release_hold(INBOX, None).await.unwrap();
    log.wait_for(1).await;
    handle.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn what_is_no_destination_is_refused() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let past = Some(StoreTime::from_ms(1));
    for (destination, until) in [("nowhere", None), (INBOX, past)] {
        let refused = backlog.set_hold(destination, None, until).await;
        assert!(matches!(refused, Err(Failure::Rejected(Rejection::Invalid(_)))), "{refused:?}");
    }
    assert!(shown(&backlog).await.is_empty());
}

#[tokio::test]
async fn a_circuit_opens_and_a_probe_closes_it() {
    let (store, log) = (memory(), Log::default());
    let config = Config { breaker_failures: 3, breaker_recovery_ms: 200, resume_jitter_ms: 0, ..config() };
    let broken = PostResult::Status { code: 500, retry_after_ms: None };
    let backlog = backlog(&store, config, answering(&log, move |n| if n < 3 { broken } else { ACCEPTED }));
    for _ in 0..6 {
        backlog.send(Message::new(INBOX, &b"x"[..])).await.unwrap();
    }
    backlog.run_once(3).await;
    assert!(matches!(shown(&backlog).await[0].circuit, CircuitState::Open(_)));
    assert_eq!((backlog.run_once(10).await.processed, log.posts().len()), (0, 3));
    tokio::time::sleep(Duration::from_millis(250)).await;
    for _ in 0..50 {
        backlog.run_once(10).await;
        if backlog.depth().await.unwrap().entries == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
    assert_eq!(shown(&backlog).await.iter().filter(|row| row.circuit != CircuitState::Closed).count(), 0);
}

#[tokio::test]
async fn what_has_a_deadline_is_dropped_when_it_is_over() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let at = store.get_many(Vec::new()).await.unwrap().at.unwrap();
    backlog.send(Message::new(INBOX, &b"x"[..]).deadline(at)).await.unwrap();
    backlog.run_once(10).await;
    assert!(log.posts().is_empty());
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
}
