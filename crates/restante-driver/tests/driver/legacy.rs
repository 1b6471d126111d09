//! An old queue beside the backlog, from outside.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_core::atoms::{Bytes, Sealed};
use restante_core::machine::{LegacyMode, LegacySettings, OtherEnd, PostResult};
use restante_driver::{Backlog, BuildError, LegacyHandle, Message, NoLegacyQueue, NotOurs, OldPath, Owner, SendError};
use restante_kv::{BoxFuture, MemoryKv};
use restante_legacy::codec::{LegacyKey, LegacyMessage, OutboxMessage, PrivateKey, decode};
use restante_legacy::{Draft, KeyError, Keyring, LegacyQueue, MemoryQueue, QueueDepth, QueueError, Receipt, Received};

use crate::bed::{ACCEPTED, Log, config, delivering, memory};

const INBOX: &str = "https://a.example/inbox";

/// A reference is the id of the key it stands for.
#[derive(Debug)]
struct Keys;

impl Keyring for Keys {
    fn seal<'k>(&'k self, keys: &'k [LegacyKey]) -> BoxFuture<'k, Result<Sealed, KeyError>> {
        let id = keys.first().map_or("none", |key| &key.key_id);
        Box::pin(std::future::ready(Ok(Sealed::new(id.as_bytes()))))
    }
    fn open<'k>(&'k self, signing: &'k Sealed) -> BoxFuture<'k, Result<Vec<LegacyKey>, KeyError>> {
        let key_id = String::from_utf8_lossy(signing.expose()).into_owned();
        let private_key = PrivateKey::new(r#"{"kty":"OKP","d":"SECRET"}"#.into()).expect("JSON");
        let keys =
            if key_id == "unknown" { Err(KeyError("no such key".into())) } else { Ok(vec![LegacyKey { key_id, private_key }]) };
        Box::pin(std::future::ready(keys))
    }
    fn base_url(&self) -> &str {
        "https://here.example/"
    }
}

/// An old path that notes what it was asked for, and answers with one result.
struct Old {
    asked: Arc<Mutex<Vec<String>>>,
    answer: PostResult,
}

impl OldPath for Old {
    fn attempt(&self, message: OutboxMessage) -> BoxFuture<'_, PostResult> {
        self.asked.lock().unwrap().push(format!("{} {}", message.id(), message.attempt()));
        Box::pin(std::future::ready(self.answer))
    }
    fn other(&self, _body: Bytes, why: NotOurs) -> BoxFuture<'_, OtherEnd> {
        self.asked.lock().unwrap().push(why.to_string());
        Box::pin(std::future::ready(OtherEnd::Done))
    }
}

/// A queue that refuses to take anything.
#[derive(Debug)]
struct Full(QueueError);

impl LegacyQueue for Full {
    fn enqueue(&self, _: Vec<Draft>) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
    fn receive(&self, _: Duration) -> BoxFuture<'_, Result<Option<Received>, QueueError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
    fn complete(&self, _: Receipt) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(std::future::ready(Err(QueueError::Outdated)))
    }
    fn put_back(&self, _: Receipt, _: Duration, _: Bytes) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(std::future::ready(Err(QueueError::Outdated)))
    }
    fn depth(&self) -> BoxFuture<'_, Result<QueueDepth, QueueError>> {
        Box::pin(std::future::ready(Ok(QueueDepth::default())))
    }
}

fn settings(mode: LegacyMode) -> LegacySettings {
    LegacySettings { poll_ms: 5, ..LegacySettings::new(mode) }
}

fn beside(store: &Arc<MemoryKv>, log: &Log, queue: impl LegacyQueue, mode: LegacyMode) -> Backlog {
    Backlog::builder(Arc::clone(store) as _, config(), delivering(log))
        .allow_volatile_store()
        .legacy_queue(Arc::new(queue), settings(mode), Arc::new(Keys))
        .build()
        .unwrap()
}

fn outbox(id: &str, attempt: u32) -> Draft {
    let message = text_of(id, attempt);
    Draft::new(id, message.into_bytes())
}

fn text_of(id: &str, attempt: u32) -> String {
    format!(
        r#"{{"type":"outbox","id":"{id}","inbox":"{INBOX}","activity":{{"id":"{id}"}},"attempt":{attempt},"keys":[{{"keyId":"k1","privateKey":{{}}}}]}}"#
    )
}

fn listen(backlog: &Backlog, answer: PostResult) -> (LegacyHandle, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let handle = backlog.work_off(Old { asked: Arc::clone(&asked), answer }).expect("there is a legacy queue");
    (handle, asked)
}

async fn until_empty(queue: &MemoryQueue) {
    let empty = async {
        while !queue.depth().await.expect("counted").is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), empty).await.expect("worked off within 20 s");
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn while_intake_is_closed_sends_go_to_the_old_queue() {
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::Drain);
    let message = || Message::new(INBOX, &br#"{"type":"Follow"}"#[..]).idempotency_key("f1").signing(Sealed::new(&b"k1"[..]));
    backlog.set_intake(false).await.unwrap();
    for _ in 0..2 {
        let accepted = backlog.send(message()).await.unwrap();
        assert_eq!((accepted.owner, accepted.duplicate), (Owner::LegacyQueue, false));
    }
    assert_eq!(queue.depth().await.unwrap().ready, 1, "under one key, one message");
    let received = queue.receive(LONG).await.unwrap().unwrap();
    let Ok(LegacyMessage::Outbox(outbox)) = decode(received.body.as_slice()) else { panic!("no delivery") };
    assert_eq!((&**outbox.inbox(), outbox.activity()), (INBOX, r#"{"type":"Follow"}"#));
    assert_eq!((&*outbox.keys()[0].key_id, outbox.keys()[0].private_key.expose().contains("SECRET")), ("k1", true));
    assert!(backlog.drained().await.unwrap());
}

#[tokio::test]
async fn a_repetition_of_what_the_backlog_owns_is_not_handed_over() {
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::Drain);
    let message = || Message::new(INBOX, &b"{}"[..]).idempotency_key("once");
    assert_eq!(backlog.send(message()).await.unwrap().owner, Owner::Backlog);
    backlog.set_intake(false).await.unwrap();
    let again = backlog.send(message()).await.unwrap();
    assert_eq!((again.owner, again.duplicate), (Owner::Backlog, true));
    assert!(queue.depth().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_nobody_owns_is_said_to_be_nobodys_and_what_is_unknown_unknown() {
    let (store, log) = (memory(), Log::default());
    let refusing = beside(&store, &log, Full(QueueError::Unavailable("full".into())), LegacyMode::Drain);
    refusing.set_intake(false).await.unwrap();
    let message = || Message::new(INBOX, &b"{}"[..]).idempotency_key("k");
    assert_eq!(refusing.send(message()).await, Err(SendError::NotHandedOver));
    let unsure = beside(&store, &log, Full(QueueError::Ambiguous("cut off".into())), LegacyMode::Drain);
    assert_eq!(unsure.send(message()).await, Err(SendError::Unknown { idempotency_key: "k".into() }));
    let not_json = Message::new(INBOX, &b"no activity"[..]);
    assert!(matches!(unsure.send(not_json).await, Err(SendError::NotTranslated { .. })));
    let unsigned = message().signing(Sealed::new(&b"unknown"[..]));
    assert!(matches!(unsure.send(unsigned).await, Err(SendError::NotTranslated { .. })));
}

#[tokio::test]
async fn old_messages_finish_on_the_old_path() {
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    let fanout = format!(
        r#"{{"type":"fanout","id":"f","activity":{{}},"inboxes":{{"{INBOX}":{{}},"https://b.example/inbox":{{"sharedInbox":true}}}}}}"#
    );
    let drafts = vec![
        outbox("one", 3),
        Draft::new("f", fanout.into_bytes()),
        Draft::new("task", &br#"{"type":"task"}"#[..]),
        Draft::new("broken", &b"no message"[..]),
    ];
    queue.enqueue(drafts).await.unwrap();
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::AdoptOnHold);
    let (handle, asked) = listen(&backlog, ACCEPTED);
    until_empty(&queue).await;
    let report = handle.shutdown(LONG).await;
    assert_eq!((report.delivered, report.expanded, report.others, report.timed_out), (3, 1, 2, false), "{report:?}");
    let mut asked = asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(asked, ["f/0 0", "f/1 0", "it is no JSON object: line 1, column 2", "it is of the kind \"task\"", "one 3"]);
    assert_eq!(log.posts().len(), 0, "the backlog had nothing to do with it");
}

#[tokio::test]
async fn a_held_message_is_adopted_and_delivered_once_the_hold_is_over() {
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    queue.enqueue(vec![outbox("one", 3)]).await.unwrap();
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::AdoptOnHold);
    backlog.set_hold(INBOX, None, None).await.unwrap();
    let (handle, asked) = listen(&backlog, ACCEPTED);
    until_empty(&queue).await;
    assert_eq!(handle.shutdown(LONG).await.adopted, 1);
    assert!(asked.lock().unwrap().is_empty(), "it was not tried on the old path");
    let page = backlog.inspect(None, 10).await.unwrap();
    assert_eq!(page.rows.iter().map(|row| row.failure_count).collect::<Vec<_>>(), [3]);
    backlog.release_hold(INBOX, None).await.unwrap();
    assert_eq!(backlog.run_once(10).await.processed, 1);
    let posts = log.posts();
    assert_eq!((posts[0].payload.as_slice(), posts[0].signing.expose()), (&br#"{"id":"one"}"#[..], &b"k1"[..]));

    // The same message again, after the backlog has delivered it and forgotten its entry: the marker is found.
    queue.enqueue(vec![outbox("one", 3)]).await.unwrap();
    let (handle, asked) = listen(&backlog, ACCEPTED);
    until_empty(&queue).await;
    assert_eq!(handle.shutdown(LONG).await.adopted, 1);
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
}

#[tokio::test]
async fn draining_leaves_a_held_message_where_it_is() {
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    queue.enqueue(vec![outbox("one", 0)]).await.unwrap();
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::Drain);
    backlog.set_hold(INBOX, None, None).await.unwrap();
    let (handle, asked) = listen(&backlog, ACCEPTED);
    let waits = async {
        while queue.depth().await.unwrap().delayed == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LONG, waits).await.expect("it is put back");
    assert_eq!(handle.shutdown(LONG).await.put_back, 1);
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
}

#[tokio::test]
async fn a_failed_attempt_is_counted_in_the_message() {
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    queue.enqueue(vec![outbox("one", 0)]).await.unwrap();
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::Drain);
    let (handle, asked) = listen(&backlog, PostResult::Status { code: 429, retry_after_ms: Some(1) });
    until_empty(&queue).await;
    let report = handle.shutdown(LONG).await;
    assert_eq!((report.put_back, report.given_up), (10, 1));
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked, (0..11).map(|attempt| format!("one {attempt}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn bounded_runs_alone_work_the_old_queue_off_and_deliver_what_they_adopted() {
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    let fanout = r#"{"type":"fanout","id":"f","activity":{},"inboxes":{"https://free.example/inbox":{}}}"#;
    queue.enqueue(vec![outbox("one", 3), Draft::new("f", fanout.as_bytes())]).await.unwrap();
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::AdoptOnHold);
    backlog.set_hold(INBOX, None, None).await.unwrap();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let path = Arc::new(Old { asked: Arc::clone(&asked), answer: ACCEPTED });

    let first = backlog.work_off_once(Arc::clone(&path), 1).await.unwrap();
    assert!(first.more, "the limit was reached");
    let second = backlog.work_off_once(Arc::clone(&path), 100).await.unwrap();
    assert!(!second.more, "also what the fanout became was worked off");
    let ends = |run: restante_driver::LegacyRun| (run.report.adopted, run.report.expanded, run.report.delivered);
    assert_eq!((ends(first), ends(second)), ((1, 0, 0), (0, 1, 1)));
    assert!(queue.depth().await.unwrap().is_empty());
    assert_eq!(*asked.lock().unwrap(), ["f/0 0"]);

    backlog.release_hold(INBOX, None).await.unwrap();
    assert_eq!(backlog.run_once(10).await.processed, 1);
    assert_eq!(log.posts().len(), 1);
}

#[tokio::test]
async fn a_bounded_run_ends_though_the_old_queue_keeps_something_for_later() {
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    queue.enqueue(vec![outbox("one", 0)]).await.unwrap();
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::Drain);
    let path = Old { asked: Arc::default(), answer: PostResult::Unknown };
    let run = backlog.work_off_once(path, 100).await.unwrap();
    assert_eq!((run.report.put_back, run.more), (1, false));
    assert_eq!(queue.depth().await.unwrap().delayed, 1);
}

#[tokio::test]
async fn what_is_under_way_at_the_deadline_comes_again() {
    struct Hangs;
    impl OldPath for Hangs {
        fn attempt(&self, _: OutboxMessage) -> BoxFuture<'_, PostResult> {
            Box::pin(std::future::pending())
        }
    }
    let (store, log, queue) = (memory(), Log::default(), MemoryQueue::new());
    queue.enqueue(vec![outbox("one", 0)]).await.unwrap();
    let backlog = beside(&store, &log, queue.clone(), LegacyMode::Drain);
    let handle = backlog.work_off(Hangs).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let report = handle.shutdown(Duration::from_millis(20)).await;
    assert_eq!((report.abandoned, report.timed_out), (1, true));
    assert_eq!(queue.depth().await.unwrap().received, 1, "kept from others until its time is over");
}

#[tokio::test]
async fn without_an_old_queue_nothing_of_this_is_there() {
    let (store, log) = (memory(), Log::default());
    let backlog = crate::bed::backlog(&store, config(), delivering(&log));
    let path = || Old { asked: Arc::default(), answer: ACCEPTED };
    assert_eq!(backlog.work_off(path()).map(drop), Err(NoLegacyQueue));
    assert_eq!(backlog.work_off_once(path(), 1).await.map(drop), Err(NoLegacyQueue));
    backlog.set_intake(false).await.unwrap();
    assert_eq!(backlog.send(Message::new(INBOX, &b"{}"[..])).await, Err(SendError::IntakeClosed));
}

#[test]
fn messages_that_could_come_again_in_mid_attempt_are_refused() {
    let (store, log) = (memory(), Log::default());
    let settings = LegacySettings { visible_ms: 15_000, ..LegacySettings::new(LegacyMode::Drain) };
    let built = Backlog::builder(store as _, config(), delivering(&log))
        .allow_volatile_store()
        .legacy_queue(Arc::new(MemoryQueue::new()), settings, Arc::new(Keys))
        .build();
    assert_eq!(built.map(drop).unwrap_err(), BuildError::VisibilityTooShort { visible_ms: 15_000, needed_ms: 15_000 });
}
