//! Bounds: of time, of bytes, and of how long anybody waits for this attempt at all.

use std::future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_core::machine::{NotSent, PostResult};
use restante_http::{Addresses, Resolver};

use crate::receiver::{Act, Receiver, answer, eventually, open, post_to, write};

const LONG: Act = Act::Pause(Duration::from_secs(60));
const OK: PostResult = PostResult::Status { code: 200, retry_after_ms: None };

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_unknown() {
    for (what, script) in [("nothing", vec![LONG]), ("a slow head", vec![write("HTTP/1.1 200 OK\r\n"), LONG])] {
        let receiver = Receiver::start(script).await;
        let sender = open().build().expect("a sender");
        let mut post = post_to(&receiver.url("/inbox"));
        post.timeout_ms = 300;
        let began = Instant::now();
        assert_eq!(sender.send(post).await, PostResult::Unknown, "{what}");
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{what}: {took:?}");
        eventually("the end of the connection", || receiver.ended() == 1).await;
    }
}

#[tokio::test]
async fn the_senders_own_limit_holds_as_well() {
    let receiver = Receiver::start(vec![LONG]).await;
    let sender = open().connect_timeout(Duration::from_millis(100)).total_timeout(Duration::from_millis(300)).build();
    let began = Instant::now();
    assert_eq!(sender.expect("a sender").send(post_to(&receiver.url("/inbox"))).await, PostResult::Unknown);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_slow_body_does_not_hold_the_answer_up() {
    let receiver = Receiver::start(vec![write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab"), LONG]).await;
    let sender = open().drain_time_max(Duration::from_millis(200)).build().expect("a sender");
    let began = Instant::now();
    assert_eq!(sender.send(post_to(&receiver.url("/inbox"))).await, OK);
    assert!(began.elapsed() < Duration::from_secs(5));
    eventually("the end of the connection", || receiver.ended() == 1).await;
}

#[tokio::test]
async fn a_huge_body_is_not_read_to_its_end() {
    let receiver = Receiver::start(vec![write("HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n"), Act::Flood]).await;
    let sender = open().response_bytes_max(100_000).drain_time_max(Duration::from_secs(9)).build().expect("a sender");
    let began = Instant::now();
    assert_eq!(sender.send(post_to(&receiver.url("/inbox"))).await, OK);
    assert!(began.elapsed() < Duration::from_secs(5));
    eventually("the end of the connection", || receiver.ended() == 1).await;
}

#[tokio::test]
async fn a_head_without_end_is_not_read_for_ever() {
    let receiver = Receiver::start(vec![write("HTTP/1.1 200 OK\r\nX: "), Act::Flood]).await;
    let began = Instant::now();
    assert_eq!(open().build().expect("a sender").send(post_to(&receiver.url("/inbox"))).await, PostResult::Unknown);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_connection_that_is_too_slow_was_not_sent() {
    struct Never;
    impl Resolver for Never {
        fn resolve<'a>(&'a self, _: &'a str) -> Addresses<'a> {
            Box::pin(future::pending())
        }
    }
    let sender = open().resolver(Arc::new(Never)).connect_timeout(Duration::from_millis(100)).build().expect("a sender");
    assert_eq!(sender.send(post_to("http://social.example/inbox")).await, PostResult::NotSent(NotSent::Connect));
    // Where the attempt's own time is shorter than the limit for connecting, it ends without anybody knowing how far it was.
    let sender = open().resolver(Arc::new(Never)).build().expect("a sender");
    let mut post = post_to("http://social.example/inbox");
    post.timeout_ms = 100;
    assert_eq!(sender.send(post).await, PostResult::Unknown);
}

#[tokio::test]
async fn dropping_the_future_ends_the_request() {
    let receiver = Receiver::start(vec![LONG]).await;
    let sender = open().build().expect("a sender");
    let mut sending = Box::pin(sender.send(post_to(&receiver.url("/inbox"))));
    tokio::select! {
        result = &mut sending => panic!("an answer: {result:?}"),
        () = eventually("the request", || receiver.requests().len() == 1) => {}
    }
    assert_eq!(receiver.ended(), 0);
    drop(sending);
    eventually("the end of the connection", || receiver.ended() == 1).await;
}

#[tokio::test]
async fn the_longest_limit_there_is_does_no_harm() {
    let receiver = Receiver::start(vec![answer("200 OK", "")]).await;
    let mut post = post_to(&receiver.url("/inbox"));
    post.timeout_ms = u64::MAX;
    let sender = open().total_timeout(Duration::MAX).build().expect("a sender");
    assert_eq!(sender.send(post).await, OK);
}
