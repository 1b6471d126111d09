use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use restante_core::machine::FanoutChoice;
use restante_driver::{Backlog, Message, SendError};
use restante_kv_sqlite::SqliteKv;

use crate::bed::{Log, backlog, config, delivering, memory};

fn to(count: usize) -> Message {
    let inbox = |n: usize| format!("https://server-{}.example/users/u{n}/inbox", n % 7);
    (1..count).fold(Message::new(inbox(0), &b"hello"[..]), |message, n| message.and_to(inbox(n)))
}

#[tokio::test]
async fn a_message_to_many_inboxes_is_owned_as_an_intent_and_reaches_each_once() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let accepted = backlog.send(to(300)).await.unwrap();
    let depth = backlog.depth().await.unwrap();
    assert_eq!((depth.entries, depth.intents, depth.pending_recipients), (0, 1, 300));
    let page = backlog.intents(None, 10).await.unwrap();
    assert_eq!(page.rows.iter().map(|row| (row.send, row.expanded, row.total)).collect::<Vec<_>>(), [(accepted.send, 0, 300)]);
    backlog.set_intake(false).await.unwrap();
    assert!(!backlog.drained().await.unwrap(), "an intent is work");
    while backlog.run_once(1_000).await.more {}
    let inboxes: BTreeSet<String> = log.posts().iter().map(|post| post.inbox.to_string()).collect();
    assert_eq!((log.posts().len(), inboxes.len()), (300, 300));
    assert!(log.payloads().iter().all(|payload| payload == "hello"));
    assert!(backlog.drained().await.unwrap());
    let report = backlog.doctor(false).await.unwrap();
    // What the next sweep collects is all that is left to say.
    assert!(report.diagnoses.iter().all(|it| it.repair.is_some()), "{report:?}");
    assert!(backlog.doctor(true).await.unwrap().is_clean());
}

#[tokio::test]
async fn a_choice_forbids_and_forces() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    assert!(matches!(backlog.send(to(5).fanout(FanoutChoice::Skip)).await, Err(SendError::NotAccepted(_))));
    backlog.send(to(1).fanout(FanoutChoice::Force)).await.unwrap();
    assert_eq!(backlog.depth().await.unwrap().intents, 1);
}

#[tokio::test]
async fn order_holds_behind_a_large_send_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteKv::builder(folder.path().join("backlog.sqlite3")).open().unwrap();
    let log = Log::default();
    let backlog = Backlog::builder(Arc::new(store), config(), delivering(&log)).build().unwrap();
    backlog.send(to(60).order_key("thread")).await.unwrap();
    backlog.send(Message::new("https://server-0.example/users/u0/inbox", &b"second"[..]).order_key("thread")).await.unwrap();
    assert_eq!(backlog.depth().await.unwrap().intents, 2);
    let worker = backlog.start();
    log.wait_for(61).await;
    worker.shutdown(Duration::from_secs(5)).await;
    let there = log.posts().into_iter().filter(|post| &*post.destination == "https://server-0.example");
    let payloads: Vec<_> = there.map(|post| post.payload).collect();
    let second = payloads.iter().position(|payload| payload.as_slice() == b"second").unwrap();
    assert_eq!(second, payloads.len() - 1, "the later send came last");
}
