//! The HTTP API where everything is as it should be.

use crate::bed::Bed;
use crate::receiver::Receiver;

#[test]
fn what_the_api_accepts_the_worker_delivers_byte_for_byte() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    let server = bed.serve(&[]);
    let inbox = receiver.inbox("/inbox");
    let json = server.ask("POST", "/v1/sends", &format!(r#"{{"inboxes":["{inbox}"],"payload":{{"json":{{"b" : 1,"a":2}}}}}}"#));
    assert_eq!((json.status, &json.body["duplicate"]), (202, &false.into()), "{json:?}");
    let base64 = server.ask("POST", "/v1/sends", &format!(r#"{{"inboxes":["{inbox}"],"payload":{{"base64":"aGVsbG8="}}}}"#));
    assert_eq!(base64.status, 202, "{base64:?}");

    let mut bodies: Vec<_> = receiver.wait_for(2).into_iter().map(|arrived| arrived.body).collect();
    bodies.sort();
    assert_eq!(bodies, ["hello", r#"{"b" : 1,"a":2}"#]);
}

#[test]
fn a_repetition_is_told_and_another_request_under_its_key_is_refused() {
    let bed = Bed::with_store();
    let server = bed.serve(&[]);
    let send = |payload: &str| {
        let body = format!(r#"{{"inboxes":["https://a.invalid/"],"payload":{{"json":{payload}}},"idempotency_key":"k"}}"#);
        server.ask("POST", "/v1/sends", &body)
    };
    let (first, again, other) = (send("1"), send("1"), send("2"));
    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!((&again.body["duplicate"], &again.body["send"]), (&true.into(), &first.body["send"]));
    assert_eq!((other.status, other.code()), (409, "idempotency_conflict"));
    assert_eq!(server.ask("GET", "/v1/depth", "").body["entries"], 1, "nothing of the refused one is there");
}

#[test]
fn intake_is_closed_for_every_process_and_drained_says_when() {
    let bed = Bed::with_store();
    let server = bed.serve(&[]);
    assert_eq!(server.ask("PUT", "/v1/intake", r#"{"intake":"closed"}"#).body["intake"], "closed");
    let refused = server.ask("POST", "/v1/sends", r#"{"inboxes":["https://a.invalid/"],"payload":{"json":1}}"#);
    assert_eq!((refused.status, refused.code()), (503, "intake_closed"));
    assert_eq!(bed.run_with(&["send", "--inbox", "https://a.invalid/"], b"x").code, 5);
    assert_eq!(server.ask("GET", "/v1/drained", "").body["drained"], true);
    assert_eq!(server.ask("PUT", "/v1/intake", r#"{"intake":"open"}"#).status, 200);
    assert_eq!(server.ask("GET", "/v1/drained", "").body["drained"], false);
}

#[test]
fn entries_are_shown_page_by_page_and_one_by_one() {
    let bed = Bed::with_store();
    let ids: Vec<_> = (0..3).map(|_| bed.send("https://a.invalid/", "x")).collect();
    let server = bed.serve(&[]);
    let page = server.ask("GET", "/v1/entries?limit=2", "");
    assert_eq!(page.body["entries"].as_array().map(Vec::len), Some(2), "{page:?}");
    let cursor = page.body["next_cursor"].as_str().expect("a cursor");
    let rest = server.ask("GET", &format!("/v1/entries?limit=2&cursor={cursor}"), "");
    assert_eq!(rest.body["entries"].as_array().map(Vec::len), Some(1), "{rest:?}");
    let one = server.ask("GET", &format!("/v1/entries/{}", ids[1]), "");
    assert_eq!((one.status, &one.body["id"]), (200, &ids[1].clone().into()));
    assert!(one.body["retention_end_at"].is_string());
    assert_eq!(server.ask("GET", "/v1/entries?destination=b.invalid", "").body["entries"], serde_json::json!([]));
}

#[test]
fn a_run_over_the_api_is_bounded_and_told() {
    let bed = Bed::with_store();
    let server = bed.serve(&[]);
    let run = server.ask("POST", "/v1/run-once", "{}");
    assert_eq!((run.status, &run.body["processed"]), (200, &0.into()), "{run:?}");
}

#[test]
fn health_needs_no_token_and_tells_nothing_else() {
    let server = Bed::with_store().serve(&[]);
    let health = server.client.ask("GET", "/healthz", None, "");
    assert_eq!((health.status, health.body.to_string()), (200, r#"{"status":"ok"}"#.to_owned()));
}

#[test]
fn a_token_file_goes_before_the_environment_and_one_that_others_can_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let bed = Bed::with_store();
    bed.write("token", "another-token-for-tests\n");
    let set_mode = |mode| std::fs::set_permissions(bed.path("token"), std::fs::Permissions::from_mode(mode)).expect("a mode");
    for (mode, is_warned_of) in [(0o644, true), (0o600, false)] {
        set_mode(mode);
        let server = bed.serve(&["--token-file", "token"]);
        assert_eq!(server.ask("GET", "/v1/depth", "").status, 401, "the token of the environment");
        assert_eq!(server.client.ask("GET", "/v1/depth", Some("another-token-for-tests"), "").status, 200);
        server.signal("TERM");
        let (_, _, log) = server.end();
        assert_eq!(log.contains("chmod 600"), is_warned_of, "{log}");
    }
}
