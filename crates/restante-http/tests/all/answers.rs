//! What arrives at the receiver, and what its answers become.

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use restante_core::machine::{NotSent, PostResult};
use tower_service::Service;

use crate::receiver::{Act, BODY, Receiver, Stub, answer, attempt, open, post_to, write};

fn status(code: u16) -> PostResult {
    PostResult::Status { code, retry_after_ms: None }
}

#[tokio::test]
async fn every_status_is_an_answer() {
    for (line, code) in [
        ("200 OK", 200),
        ("202 Accepted", 202),
        ("401 Unauthorized", 401),
        ("404 Not Found", 404),
        ("410 Gone", 410),
        ("429 Too Many Requests", 429),
        ("500 Internal Server Error", 500),
        ("503 Service Unavailable", 503),
        ("599 Odd", 599),
    ] {
        assert_eq!(attempt(vec![answer(line, "")]).await, status(code), "{line}");
    }
    assert_eq!(attempt(vec![write("HTTP/1.1 204 No Content\r\n\r\n")]).await, status(204));
    let interim = write("HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_eq!(attempt(vec![interim, answer("200 OK", "")]).await, status(200));
}

#[tokio::test]
async fn retry_after_is_read_in_both_forms() {
    let in_seconds = attempt(vec![answer("429 Too Many Requests", "Retry-After: 120\r\n")]).await;
    assert_eq!(in_seconds, PostResult::Status { code: 429, retry_after_ms: Some(120_000) });
    let at = SystemTime::now() + Duration::from_secs(3600);
    let line = format!("Retry-After: {}\r\n", httpdate::fmt_http_date(at));
    match attempt(vec![answer("503 Service Unavailable", &line)]).await {
        PostResult::Status { code: 503, retry_after_ms: Some(ms) } => assert!((3_590_000..=3_600_000).contains(&ms), "{ms}"),
        other => panic!("{other:?}"),
    }
    let past = attempt(vec![answer("503 Service Unavailable", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n")]).await;
    assert_eq!(past, PostResult::Status { code: 503, retry_after_ms: Some(0) });
    assert_eq!(attempt(vec![answer("503 Service Unavailable", "Retry-After: soon\r\n")]).await, status(503));
}

#[tokio::test]
async fn a_redirect_is_a_status_and_is_not_followed() {
    let elsewhere = Receiver::start(vec![answer("200 OK", "")]).await;
    for (line, code) in [("301 Moved Permanently", 301), ("303 See Other", 303), ("307 Temporary Redirect", 307), ("308 P", 308)]
    {
        let location = format!("Location: {}\r\n", elsewhere.url("/inbox"));
        assert_eq!(attempt(vec![answer(line, &location)]).await, status(code));
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_request_carries_what_was_set_and_one_idempotency_key_for_all_attempts() {
    let receiver = Receiver::start(vec![answer("503 Service Unavailable", "")]).await;
    let mut sender = open().user_agent("ada/1.0").header("X-Instance", "social.example").build().expect("a sender");
    for _ in 0..2 {
        let posted: Result<PostResult, Infallible> = sender.call(post_to(&receiver.url("/users/eve/inbox?page=1#x"))).await;
        assert_eq!(posted, Ok(status(503)));
    }
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert!(request.head.starts_with("POST /users/eve/inbox?page=1 HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(request.header("host"), Some(receiver.address.to_string().as_str()));
        assert_eq!(request.header("content-type"), Some("application/activity+json"));
        assert_eq!(request.header("user-agent"), Some("ada/1.0"));
        assert_eq!(request.header("x-instance"), Some("social.example"));
        assert_eq!(request.header("idempotency-key"), Some(format!("{}.3", "ab".repeat(16)).as_str()));
        assert_eq!(request.header("signature"), None);
        assert_eq!(request.body, BODY);
    }
}

#[tokio::test]
async fn two_posts_to_one_host_use_one_connection() {
    let receiver = Receiver::start(vec![answer("202 Accepted", "")]).await;
    let sender = open().build().expect("a sender");
    for _ in 0..2 {
        assert_eq!(sender.send(post_to(&receiver.url("/inbox"))).await, status(202));
    }
    assert_eq!(receiver.requests().iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 0]);
    let none_kept = open().idle_connections_max(0).build().expect("a sender");
    for _ in 0..2 {
        assert_eq!(none_kept.send(post_to(&receiver.url("/inbox"))).await, status(202));
    }
    assert_eq!(receiver.connections(), 3);
}

#[tokio::test]
async fn what_breaks_before_the_status_is_unknown() {
    for (what, script) in [
        ("closed", vec![Act::Close]),
        ("reset", vec![Act::Reset]),
        ("cut in the status line", vec![write("HTTP/1.1 20"), Act::Close]),
        ("reset in the head", vec![write("HTTP/1.1 200 OK\r\nContent-Le"), Act::Reset]),
        ("not HTTP", vec![write("SSH-2.0-OpenSSH\r\n"), Act::Close]),
        ("two lengths", vec![write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), Act::Close]),
    ] {
        assert_eq!(attempt(script).await, PostResult::Unknown, "{what}");
    }
}

#[tokio::test]
async fn a_status_that_arrived_stands_whatever_becomes_of_the_body() {
    let head = "HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\nhalf";
    for end in [Act::Close, Act::Reset] {
        assert_eq!(attempt(vec![write(head), Act::Pause(Duration::from_millis(50)), end]).await, status(202));
    }
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_was_not_sent_to() {
    let receiver = Receiver::start(Vec::new()).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    assert_ne!(free, receiver.address);
    let sender = open().build().expect("a sender");
    assert_eq!(sender.send(post_to(&format!("http://{free}/inbox"))).await, PostResult::NotSent(NotSent::Connect));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_was_not_sent_to() {
    let stubbed = open().resolver(std::sync::Arc::new(Stub(Vec::new()))).build().expect("a sender");
    assert_eq!(stubbed.send(post_to("http://social.example/inbox")).await, PostResult::NotSent(NotSent::Dns));
    // The top level "invalid" resolves nowhere, by RFC 6761.
    let of_system = open().build().expect("a sender");
    assert_eq!(of_system.send(post_to("http://receiver.invalid/inbox")).await, PostResult::NotSent(NotSent::Dns));
}
