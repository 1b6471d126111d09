//! Requests that cannot be used: each with its status and its words, and nothing is lost by any of them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::bed::{Bed, TOKEN};

const SENDS: &str = "/v1/sends";

/// The head of a request with the right token.
fn head(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n")
}

/// A send to these inboxes, with more fields.
fn a_send(inboxes: &str, more: &str) -> String {
    format!(r#"{{"inboxes":{inboxes},"payload":{{"json":1}}{more}}}"#)
}

#[test]
fn without_the_token_nothing_is_told_and_nothing_is_done() {
    let bed = Bed::with_store();
    let server = bed.serve(&[]);
    let body = r#"{"inboxes":["https://a.invalid/"],"payload":{"json":1}}"#;
    let short = &TOKEN[1..];
    let wrong = "the token is not the right one";
    for (token, message) in [(None, "there is no token"), (Some("wrong"), wrong), (Some(short), wrong), (Some(""), wrong)] {
        for (method, path) in [
            ("POST", SENDS),
            ("GET", "/v1/depth"),
            ("DELETE", "/v1/depth"),
            ("PUT", "/v1/holds"),
            ("POST", "/v1/holds/release"),
            ("GET", "/v1/destinations"),
            ("GET", "/v1/dead-letters"),
            ("GET", "/nowhere"),
            ("GET", "/healthz/"),
        ] {
            let answer = server.client.ask(method, path, token, body);
            assert_eq!((answer.status, answer.code(), answer.message()), (401, "unauthorized", message), "{method} {path}");
            assert!(answer.head.contains("\r\nwww-authenticate: bearer"), "{}", answer.head);
        }
    }
    let basic = server.client.raw(b"GET /v1/depth HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Basic abc\r\n\r\n");
    assert_eq!(basic.status, 401);
    let twice = head("GET", "/v1/depth", "Authorization: Bearer x\r\n");
    assert_eq!(server.client.raw(twice.as_bytes()).status, 401);
    assert_eq!(bed.ask(&["depth"])["entries"], 0);
}

#[test]
fn a_body_that_is_not_the_json_asked_for_says_where() {
    let bed = Bed::with_store();
    let server = bed.serve(&[]);
    for (body, message) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("[]", "invalid length 0, expected struct SendBody"),
        (r#"{"payload":{"json":1}}"#, "missing field `inboxes` at line 1 column 22"),
        (r#"{"inboxes":["https://a.invalid/"]}"#, "missing field `payload`"),
        (r#"{"inboxes":"https://a.invalid/","payload":{"json":1}}"#, "expected a sequence at line 1 column 31"),
        (r#"{"inboxes":[],"payload":{"xml":1}}"#, "unknown variant `xml`, expected `json` or `base64`"),
        (r#"{"inboxes":[],"payload":{"json":1},"order":"k"}"#, "unknown field `order`"),
        (r#"{"inboxes":[],"payload":{"json":1}} x"#, "trailing characters at line 1 column 37"),
        ("\u{0}", "expected value at line 1 column 1"),
    ] {
        let answer = server.ask("POST", SENDS, body);
        assert_eq!((answer.status, answer.code()), (400, "invalid_json"), "{body}: {answer:?}");
        assert!(answer.message().contains(message), "{body}: {answer:?}");
    }
    let not_text = [head("POST", SENDS, "Content-Length: 2\r\n").as_bytes(), &[0xff, 0xfe]].concat();
    let answer = server.client.raw(&not_text);
    assert_eq!((answer.status, answer.code()), (400, "invalid_json"));
    assert_eq!(bed.ask(&["depth"])["entries"], 0);
}

#[test]
fn a_value_out_of_its_bounds_is_named() {
    let bed = Bed::with_store();
    let server = bed.serve(&[]);
    let one = r#"["https://a.invalid/"]"#;
    let long = format!(r#","idempotency_key":"{}""#, "k".repeat(513));
    let nameless = r#","signing":{"key":"","scheme":"cavage","key_id":"https://b.invalid/#k"}"#;
    let relative = r#","signing":{"key":"ada","scheme":"cavage","key_id":"k"}"#;
    let base64 = r#"{"inboxes":["https://a.invalid/"],"payload":{"base64":"!"}}"#.to_owned();
    for (body, code, message) in [
        (a_send("[]", ""), "invalid_request", "there is no inbox"),
        (
            a_send(r#"["ftp://a.invalid/"]"#, ""),
            "invalid_inbox",
            "\"ftp://a.invalid/\" is no inbox: it is neither http nor https",
        ),
        (a_send(r#"["https://a.invalid/","nothing"]"#, ""), "invalid_inbox", "\"nothing\" is no inbox"),
        (base64, "invalid_request", "payload.base64 is no base64"),
        (a_send(one, &long), "invalid_request", "the request is invalid"),
        (a_send(one, r#","order_key":"""#), "invalid_request", "the request is invalid"),
        (a_send(one, nameless), "invalid_request", "a key name is 1 to 512 bytes"),
        (a_send(one, relative), "invalid_request", "a key id is an absolute URL"),
    ] {
        let answer = server.ask("POST", SENDS, &body);
        assert_eq!((answer.status, answer.code()), (400, code), "{body}: {answer:?}");
        assert!(answer.message().contains(message), "{body}: {answer:?}");
    }
    for (path, message) in [
        ("/v1/entries?limit=0", "limit is \"0\""),
        ("/v1/entries?limit=1001", "limit is \"1001\""),
        ("/v1/entries?limit=many", "limit is \"many\""),
        ("/v1/entries?limit=1&limit=2", "the parameter \"limit\" is given twice"),
        ("/v1/entries?page=1", "there is no parameter \"page\""),
        ("/v1/entries?cursor=%F0%9F", "is no cursor of this backlog"),
        ("/v1/entries?cursor=AAAA", "\"AAAA\" is no cursor of this backlog"),
        ("/v1/depth?verbose", "there is no parameter \"verbose\""),
        ("/v1/quarantine?limit=-1", "limit is \"-1\""),
        ("/v1/destinations?limit=0", "limit is \"0\""),
        ("/v1/destinations?cursor=AAAA", "\"AAAA\" is no cursor of this backlog"),
        ("/v1/destinations?destination=a.invalid", "there is no parameter \"destination\""),
        ("/v1/dead-letters?limit=1001", "limit is \"1001\""),
        ("/v1/dead-letters?cursor=AAAA", "\"AAAA\" is no cursor of this backlog"),
        ("/v1/dead-letters?reason=expired", "there is no parameter \"reason\""),
    ] {
        let answer = server.ask("GET", path, "");
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{path}: {answer:?}");
        assert!(answer.message().contains(message), "{path}: {answer:?}");
    }
    for body in [r#"{"limit":0}"#, r#"{"limit":10001}"#] {
        let answer = server.ask("POST", "/v1/run-once", body);
        assert_eq!((answer.status, answer.code()), (400, "invalid_request"), "{body}");
    }
    let answer = server.ask("PUT", "/v1/intake", r#"{"intake":"ajar"}"#);
    assert_eq!((answer.status, answer.code()), (400, "invalid_json"));
    assert_eq!(bed.ask(&["depth"])["entries"], 0);
}

#[test]
fn a_notice_that_says_nothing_is_refused_and_nothing_is_held() {
    let bed = Bed::with_store();
    let server = bed.serve(&[]);
    for (path, method, body, code, message) in [
        ("/v1/holds", "PUT", "{}", "invalid_json", "missing field `destination`"),
        ("/v1/holds", "PUT", r#"{"destination":7}"#, "invalid_json", "invalid type: integer"),
        ("/v1/holds", "PUT", r#"{"destination":"a.invalid","for":"1h"}"#, "invalid_json", "unknown field `for`"),
        ("/v1/holds", "PUT", r#"{"destination":""}"#, "invalid_request", "\"\" is no destination: empty host"),
        ("/v1/holds", "PUT", r#"{"destination":"ftp://a.invalid"}"#, "invalid_request", "it is neither http nor https"),
        ("/v1/holds", "PUT", r#"{"destination":"a.invalid b"}"#, "invalid_request", "white space or control characters"),
        ("/v1/holds", "PUT", r#"{"destination":"https://ada:x7x@a.invalid"}"#, "invalid_request", "it holds credentials"),
        (
            "/v1/holds",
            "PUT",
            r#"{"destination":"a.invalid","from":"now"}"#,
            "invalid_request",
            "from is \"now\", which is no instant",
        ),
        (
            "/v1/holds",
            "PUT",
            r#"{"destination":"a.invalid","until":""}"#,
            "invalid_request",
            "until is \"\", which is no instant",
        ),
        (
            "/v1/holds",
            "PUT",
            r#"{"destination":"a.invalid","until":"2020-01-01T00:00:00Z"}"#,
            "invalid_request",
            "the hold of https://a.invalid would end at 2020-01-01T00:00:00Z, and begins at ",
        ),
        (
            "/v1/holds",
            "PUT",
            r#"{"destination":"a.invalid","from":"2090-01-01T00:00:00Z","until":"2090-01-01T00:00:00Z"}"#,
            "invalid_request",
            "would end at 2090-01-01T00:00:00Z, and begins at 2090-01-01T00:00:00Z",
        ),
        ("/v1/holds", "PUT", r#"["a.invalid",null,null]"#, "invalid_json", "it is an array"),
        ("/v1/holds/release", "POST", "[", "invalid_json", "EOF while parsing"),
        ("/v1/holds/release", "POST", r#"{"destination":"::"}"#, "invalid_request", "\"::\" is no destination"),
        ("/v1/holds/release", "POST", r#"{"destination":"a.invalid","until":null}"#, "invalid_json", "unknown field `until`"),
        ("/v1/holds/release", "POST", r#"{"destination":"a.invalid","from":"12:00"}"#, "invalid_request", "from is \"12:00\""),
    ] {
        let answer = server.ask(method, path, body);
        assert_eq!((answer.status, answer.code()), (400, code), "{body}: {answer:?}");
        assert!(answer.message().contains(message) && !answer.message().contains("x7x"), "{body}: {answer:?}");
        assert!(!answer.body["what_to_do"].as_str().unwrap_or_default().is_empty());
    }
    assert_eq!(server.ask("GET", "/v1/destinations", "").body["destinations"], serde_json::json!([]));
}

#[test]
fn a_body_that_is_too_large_is_refused_whether_announced_or_not() {
    let bed = Bed::with_store();
    let server = bed.serve(&["--body-bytes-max", "1000"]);
    let large = format!(r#"{{"inboxes":["https://a.invalid/"],"payload":{{"json":"{}"}}}}"#, "x".repeat(300_000));
    let answer = server.ask("POST", SENDS, &large);
    assert_eq!((answer.status, answer.code(), answer.message()), (413, "body_too_large", "the body is larger than 1000 bytes"));

    let huge = head("POST", SENDS, "Content-Length: 99999999999\r\n");
    assert_eq!(server.client.raw(huge.as_bytes()).status, 413);

    let chunks = format!("{:x}\r\n{}\r\n0\r\n\r\n", 2_000, "x".repeat(2_000));
    let chunked = head("POST", SENDS, "Transfer-Encoding: chunked\r\n") + &chunks;
    assert_eq!(server.client.raw(chunked.as_bytes()).status, 413);

    let fits = r#"{"inboxes":["https://a.invalid/"],"payload":{"json":1}}"#;
    assert_eq!(server.ask("POST", SENDS, fits).status, 202, "the server goes on");
}

#[test]
fn an_id_of_nothing_is_unknown() {
    let server = Bed::with_store().serve(&[]);
    let id = format!("{}.0", "ab".repeat(16));
    for id in [id.as_str(), "x", "%00", "%ff", "%c3%28", "..%2f..%2fetc", &"9".repeat(3_000)] {
        for (method, path) in [
            ("GET", format!("/v1/entries/{id}")),
            ("DELETE", format!("/v1/quarantine/{id}")),
            ("POST", format!("/v1/quarantine/{id}/revive")),
        ] {
            let answer = server.ask(method, &path, "");
            assert_eq!((answer.status, answer.code()), (404, "unknown_id"), "{method} {path}: {answer:?}");
        }
    }
}

#[test]
fn a_wrong_method_names_the_right_ones_and_a_wrong_path_is_unknown() {
    let server = Bed::with_store().serve(&[]);
    for (method, path, allowed) in [
        ("GET", SENDS, "post"),
        ("DELETE", "/v1/intake", "put"),
        ("PUT", "/v1/depth", "get"),
        ("POST", "/v1/quarantine", "get"),
        ("DELETE", "/v1/holds", "put"),
    ] {
        let answer = server.ask(method, path, "");
        assert_eq!((answer.status, answer.code()), (405, "method_not_allowed"), "{method} {path}");
        let allow = answer.head.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap_or_default().to_owned();
        assert!(allow.contains(allowed), "{method} {path}: {}", answer.head);
    }
    let answer = server.ask("GET", "/v2/depth", "");
    assert_eq!((answer.status, answer.code(), answer.message()), (404, "unknown_route", "there is nothing under /v2/depth"));
}

#[test]
fn a_body_that_does_not_come_is_waited_for_and_given_up() {
    let server = Bed::with_store().serve(&[]);
    let began = std::time::Instant::now();
    let half = head("POST", SENDS, "Content-Length: 100\r\n") + "{";
    let answer = server.client.raw(half.as_bytes());
    assert_eq!((answer.status, answer.code(), answer.message()), (408, "request_timeout", "the body did not arrive within 10 s"));
    assert!(began.elapsed() >= Duration::from_secs(9));
}

#[test]
fn what_is_no_http_is_answered_or_hung_up_on_and_the_server_goes_on() {
    let server = Bed::with_store().serve(&[]);
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        &[0; 64],
        b"GET /v1/depth HTTP/1.1\r\n: x\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(&server.client.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a bound");
        let _ = stream.write_all(bytes);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // One that hangs up in the middle.
    drop(TcpStream::connect(&server.client.address).expect("a connection").write_all(b"POST /v1/sends HT"));
    assert_eq!(server.client.ask("GET", "/healthz", None, "").status, 200);
}

/// More connections than the server keeps, none of which ever shows the token: idle, in the middle of a head, in the middle of a body.
#[test]
fn strangers_keep_nobody_out() {
    let server = Bed::with_store().serve(&[]);
    let begin = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(&server.client.address).expect("a connection");
        // The server may have closed it already.
        let _ = stream.write_all(bytes);
        stream
    };
    let parts: [&[u8]; 3] =
        [b"", b"GET /v1/depth HTTP/1.1\r\nHost", b"POST /v1/sends HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{"];
    // Those of the third kind are answered and closed: the others alone are more than the server keeps.
    let _strangers: Vec<_> = (0..450).map(|n| begin(parts[n % 3])).collect();
    let began = std::time::Instant::now();
    assert_eq!(server.ask("GET", "/v1/depth", "").status, 200);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(server.client.ask("GET", "/healthz", None, "").status, 200);
}

/// Strangers that come while a request of the operator is under way send none of it away.
#[test]
fn strangers_send_nobody_away_who_has_shown_the_token() {
    let server = Bed::with_store().serve(&[]);
    let body = r#"{"inboxes":["https://a.invalid/"],"payload":{"json":1}}"#;
    let mut client = server.client.begin("POST", SENDS, &format!("Connection: close\r\nContent-Length: {}\r\n", body.len()));
    client.write_all(&body.as_bytes()[..10]).expect("a part of the body");
    std::thread::sleep(Duration::from_millis(200));
    let _strangers: Vec<_> = (0..300).map(|_| TcpStream::connect(&server.client.address).expect("a connection")).collect();
    std::thread::sleep(Duration::from_millis(200));
    client.write_all(&body.as_bytes()[10..]).expect("the rest of the body");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
}

#[test]
fn what_the_http_library_refuses_has_its_status_and_no_body() {
    let server = Bed::with_store().serve(&[]);
    let many: String = (0..200).map(|n| format!("X-{n}: x\r\n")).collect();
    for (request, status) in [
        ("GET /v1/depth HTTP/1.1\r\n: x\r\n\r\n".to_owned(), 400),
        (head("GET", &format!("/{}", "x".repeat(70_000)), ""), 414),
        (head("GET", "/v1/depth", &many), 431),
    ] {
        let answer = server.client.raw(request.as_bytes());
        assert_eq!((answer.status, answer.body.is_null()), (status, true), "{answer:?}");
        assert!(answer.head.contains("content-length: 0"), "{answer:?}");
    }
}
