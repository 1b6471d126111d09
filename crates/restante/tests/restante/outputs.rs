//! What is written, and to whom.

use std::process::Stdio;

use crate::bed::{Bed, TOKEN};

#[test]
fn nobody_listening_is_no_error() {
    let bed = Bed::with_store();
    for number in 0..20 {
        bed.send("https://a.example/", &number.to_string());
    }
    let mut child = bed.command(&["inspect"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
    drop(child.stdout.take());
    let done = child.wait_with_output().expect("its end");
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()), (Some(0), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_the_answer_counts_as_unknown() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the disk that is always full");
    let done = Bed::with_store().command(&["depth"]).stdout(full).output().expect("the program");
    assert_eq!(done.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&done.stderr).contains("the answer is lost"));
}

#[test]
fn neither_payload_nor_token_is_in_any_output_or_log() {
    let bed = Bed::with_store();
    let server = bed.serve(&["--log", "trace"]);
    let sent = server.ask("POST", "/v1/sends", r#"{"inboxes":["http://127.0.0.1:9/"],"payload":{"json":"so very secret"}}"#);
    assert_eq!(sent.status, 202);
    let id = format!("{}.0", sent.body["send"].as_str().expect("an id"));
    let shown = [server.ask("GET", &format!("/v1/entries/{id}"), "").body.to_string(), bed.run(&["inspect", &id]).stdout];
    server.signal("TERM");
    let (_, last, log) = server.end();
    assert!(log.contains("stopping"), "{log}");
    for text in shown.iter().chain([&last.to_string(), &log]) {
        assert!(!text.contains("so very secret") && !text.contains(TOKEN), "{text}");
    }
}

#[test]
fn logs_are_json_where_that_is_asked_for() {
    let bed = Bed::with_store();
    let server = bed.serve(&["--log-format", "json"]);
    server.signal("TERM");
    let (_, _, log) = server.end();
    let line = log.lines().find(|line| line.contains("stopping")).unwrap_or_else(|| panic!("{log:?}"));
    let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!((&event["message"], &event["level"]), (&"stopping".into(), &"INFO".into()));
}
