//! How a server ends: what is under way comes to its end, or comes back later.

use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::bed::Bed;
use crate::receiver::Receiver;

#[test]
fn a_signal_ends_it_and_the_report_is_printed() {
    for signal in ["TERM", "INT"] {
        let server = Bed::with_store().serve(&[]);
        server.signal(signal);
        let (code, last, log) = server.end();
        assert_eq!(
            (code, &last["event"], &last["timed_out"], &last["abandoned"]),
            (0, &"stopped".into(), &false.into(), &0.into()),
            "{log}"
        );
    }
}

#[test]
fn a_delivery_under_way_is_cut_off_at_the_deadline_told_and_not_lost() {
    let (bed, receiver) = (Bed::with_store(), Receiver::silent());
    bed.send(&receiver.inbox("/"), "x");
    let server = bed.serve(&["--deadline", "300ms"]);
    receiver.wait_for(1);
    let began = Instant::now();
    server.signal("TERM");
    let (code, last, _) = server.end();
    assert!(began.elapsed() < Duration::from_secs(5), "the deadline holds");
    assert_eq!((code, &last["timed_out"], &last["abandoned"]), (1, &true.into(), &1.into()));
    assert_eq!(bed.ask(&["depth"])["entries"], 1, "it comes back when its lease ends");
}

/// One delivery at a time: the worker has one, and a run asked for over the API the other.
#[test]
fn a_run_whose_client_has_gone_is_cut_off_at_the_deadline_and_counted() {
    let (bed, receiver) = (Bed::with_store(), Receiver::silent());
    bed.configure("concurrency = 1");
    for _ in 0..2 {
        bed.send(&receiver.inbox("/"), "x");
    }
    let server = bed.serve(&["--deadline", "300ms"]);
    receiver.wait_for(1);
    let mut client = server.client.begin("POST", "/v1/run-once", "Content-Length: 2\r\n");
    client.write_all(b"{}").expect("the request is sent");
    receiver.wait_for(2);
    drop(client);
    let began = Instant::now();
    server.signal("TERM");
    let (code, last, _) = server.end();
    assert!(began.elapsed() < Duration::from_secs(5), "the deadline holds");
    assert_eq!((code, &last["timed_out"], &last["abandoned"]), (1, &true.into(), &2.into()));
    assert_eq!(bed.ask(&["depth"])["entries"], 2, "both come back");
}

#[test]
fn a_request_that_is_cut_off_is_told_and_exits_as_such() {
    let server = Bed::with_store().serve(&["--deadline", "700ms"]);
    let mut client = server.client.begin("POST", "/v1/sends", "Content-Length: 100\r\n");
    client.write_all(b"{").expect("a part of the request is sent");
    std::thread::sleep(Duration::from_millis(200));
    server.signal("TERM");
    let (code, last, log) = server.end();
    assert_eq!((code, &last["timed_out"], &last["abandoned"]), (1, &true.into(), &0.into()), "{log}");
    assert!(log.contains("requests were cut off"), "{log}");
}

#[test]
fn who_has_not_shown_the_token_holds_no_stop_up() {
    let server = Bed::with_store().serve(&[]);
    let mut stranger = std::net::TcpStream::connect(&server.client.address).expect("a connection");
    stranger.write_all(b"GET /v1/depth HTTP/1.1\r\nHost: a\r\n").expect("a part of a head");
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    server.signal("TERM");
    let (code, last, log) = server.end();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!((code, &last["timed_out"]), (0, &false.into()), "{log}");
}

#[test]
fn a_server_that_is_killed_loses_nothing_and_the_next_one_goes_on() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    let server = bed.serve(&[]);
    let nowhere = r#"{"inboxes":["http://127.0.0.1:1/"],"payload":{"json":1}}"#;
    assert_eq!(server.ask("POST", "/v1/sends", nowhere).status, 202);
    drop(server);
    assert_eq!(bed.ask(&["depth"])["entries"], 1);
    let server = bed.serve(&[]);
    let inbox = receiver.inbox("/");
    assert_eq!(server.ask("POST", "/v1/sends", &format!(r#"{{"inboxes":["{inbox}"],"payload":{{"json":2}}}}"#)).status, 202);
    receiver.wait_for(1);
}

#[test]
fn an_idle_connection_does_not_hold_the_server_up() {
    let server = Bed::with_store().serve(&[]);
    let _idle = std::net::TcpStream::connect(&server.client.address).expect("a connection");
    assert_eq!(server.client.ask("GET", "/healthz", None, "").status, 200);
    let began = Instant::now();
    server.signal("TERM");
    let (code, ..) = server.end();
    assert!(code == 0 && began.elapsed() < Duration::from_secs(5), "exit code {code} after {:?}", began.elapsed());
}

#[test]
fn what_was_asked_and_answered_is_recorded_where_that_is_asked_for() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    bed.send(&receiver.inbox("/"), "so very secret");
    let run = bed.run(&["run-once", "--journal", "journal"]);
    assert_eq!(run.code, 0, "{run:?}");
    let journal = std::fs::read_to_string(bed.path("journal")).expect("the journal");
    assert!(journal.lines().count() > 5 && !journal.contains("so very secret"), "{journal}");
    let again = bed.run(&["run-once", "--journal", "journal"]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.stderr.contains("the journal \"journal\" cannot be begun"), "{again:?}");
}

#[test]
fn whatever_was_accepted_before_a_kill_arrives_after_it() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    // Short leases: what the killed worker held is due again soon.
    let lease =
        "lease_ms = 1500\nrequest_timeout_ms = 1000\nlease_margin_ms = 100\ngate_freshness_ms = 100\npoll_interval_ms = 50";
    let sender =
        "[sender]\nconnect_timeout = \"500ms\"\nallow_http = true\nallow_private_addresses = true\nallow_unsigned = true";
    bed.write("restante.toml", &format!("max_retention = \"7d\"\n{lease}\n{sender}"));
    let inbox = receiver.inbox("/");
    let body = |n: u32| format!(r#"{{"inboxes":["{inbox}"],"payload":{{"json":{n}}},"idempotency_key":"{n}","order_key":"k"}}"#);
    for round in 0..3 {
        let server = bed.serve(&[]);
        for n in round * 10..round * 10 + 10 {
            assert_eq!(server.ask("POST", "/v1/sends", &body(n)).status, 202);
        }
        // As after an answer that never came: it is the same send.
        assert_eq!(server.ask("POST", "/v1/sends", &body(round * 10)).body["duplicate"], true);
        drop(server);
    }
    let server = bed.serve(&[]);
    let began = Instant::now();
    while server.ask("GET", "/v1/depth", "").body["entries"] != 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", server.ask("GET", "/v1/entries", ""));
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut first_arrivals: Vec<u32> = Vec::new();
    for arrived in receiver.arrived() {
        let number = arrived.body.parse().expect("a number");
        if !first_arrivals.contains(&number) {
            first_arrivals.push(number);
        }
    }
    assert_eq!(first_arrivals, (0..30).collect::<Vec<_>>(), "each, in accepted order");
    assert_eq!(bed.ask(&["doctor"])["clean"], true);
}
