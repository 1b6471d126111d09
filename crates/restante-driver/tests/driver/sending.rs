use restante_core::machine::{Failure, PostResult};
use restante_core::plan::Rejection;
use restante_driver::{Message, SendError};

use crate::bed::{ACCEPTED, Log, answering, backlog, config, delivering, memory};

const INBOX: &str = "https://a.example/inbox";

#[tokio::test]
async fn a_send_is_owned_when_it_returns_and_nothing_was_posted_for_it() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let accepted = backlog.send(Message::new(INBOX, &b"hello"[..])).await.unwrap();
    assert_eq!(backlog.depth().await.unwrap().entries, 1);
    assert!(log.posts().is_empty());
    let page = backlog.inspect(None, 10).await.unwrap();
    assert_eq!(page.rows.iter().map(|row| (row.id.send, &*row.inbox)).collect::<Vec<_>>(), [(accepted.send, INBOX)]);
}

#[tokio::test]
async fn messages_under_one_idempotency_key_are_one_send() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let message = Message::new(INBOX, &b"hello"[..]).idempotency_key("create-1");
    let first = backlog.send(message.clone()).await.unwrap();
    let second = backlog.send(message).await.unwrap();
    assert_eq!((second.send, second.duplicate), (first.send, true));
    let other = backlog.send(Message::new(INBOX, &b"other"[..]).idempotency_key("create-1")).await;
    let Err(SendError::NotAccepted(Failure::Rejected(Rejection::IdempotencyConflict(send)))) = other else {
        panic!("{other:?}");
    };
    assert_eq!(send, first.send);
    assert_eq!(backlog.run_once(10).await.processed, 1);
}

#[tokio::test]
async fn a_closed_intake_is_an_error_of_its_own_and_nothing_goes_out_directly() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    backlog.set_intake(false).await.unwrap();
    assert_eq!(backlog.send(Message::new(INBOX, &b"x"[..])).await, Err(SendError::IntakeClosed));
    assert!(log.posts().is_empty());
    assert!(backlog.depth().await.unwrap().is_drained());
    backlog.set_intake(true).await.unwrap();
    assert!(backlog.send(Message::new(INBOX, &b"x"[..])).await.is_ok());
}

#[tokio::test]
async fn an_immediate_message_is_attempted_once_and_owned_by_nobody() {
    let (store, log) = (memory(), Log::default());
    let refused = PostResult::Status { code: 503, retry_after_ms: None };
    let backlog = backlog(&store, config(), answering(&log, move |n| if n == 0 { ACCEPTED } else { refused }));
    let results = backlog.immediate(Message::new(INBOX, &b"x"[..]).and_to("https://b.example/inbox")).await.unwrap();
    assert_eq!(results, [ACCEPTED, refused]);
    assert_eq!(backlog.depth().await.unwrap().entries, 0);
    assert_eq!(backlog.run_once(10).await.processed, 0);
    assert_eq!(log.posts().len(), 2);
}

#[tokio::test]
async fn many_sends_at_once_are_answered_each_in_its_place() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let mut messages: Vec<Message> = (0..100).map(|n| Message::new(INBOX, format!("{n}").into_bytes())).collect();
    messages[50] = Message::new("nonsense", &b"x"[..]);
    let answers = backlog.send_many(messages).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 99);
    assert!(matches!(answers[50], Err(SendError::InvalidInbox(_))));
    assert_eq!(backlog.depth().await.unwrap().entries, 99);
}

#[tokio::test]
async fn messages_of_one_order_key_arrive_in_accepted_order_through_a_failure() {
    let (store, log) = (memory(), Log::default());
    let unknown_first = |n| if n == 0 { PostResult::Unknown } else { ACCEPTED };
    let backlog = backlog(&store, config(), answering(&log, unknown_first));
    for n in 0..5 {
        backlog.send(Message::new(INBOX, format!("{n}").into_bytes()).order_key("thread")).await.unwrap();
    }
    let handle = backlog.start();
    log.wait_for(6).await;
    handle.shutdown(std::time::Duration::from_secs(5)).await;
    assert_eq!(log.payloads(), ["0", "0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_large_payload_arrives_whole() {
    let (store, log) = (memory(), Log::default());
    let backlog = backlog(&store, config(), delivering(&log));
    let payload: Vec<u8> = (0..200_000).map(|n: u32| (n % 251) as u8).collect();
    backlog.send(Message::new(INBOX, payload.clone())).await.unwrap();
    assert_eq!(backlog.run_once(10).await.processed, 1);
    assert_eq!(log.posts()[0].payload.as_slice(), payload);
}
