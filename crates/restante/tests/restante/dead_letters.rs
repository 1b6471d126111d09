//! What was given up: by command and over HTTP, without a payload.

use serde_json::json;

use crate::bed::Bed;
use crate::operators::{alter, entry_id, keys};
use crate::receiver::Receiver;

const PAYLOAD: &str = "what nobody is to read here";

/// Sends under every key there is, and lets it be refused for good.
fn refused(bed: &Bed, inbox: &str) -> String {
    let arguments = ["send", "--json", "--inbox", inbox, "--idempotency-key", "idem-7x7", "--order-key", "order-7x7"];
    let done = bed.run_with(&arguments, PAYLOAD.as_bytes());
    assert_eq!(done.code, 0, "{done:?}");
    bed.ask(&["run-once"]);
    format!("{}.0", done.json()["send"].as_str().expect("an id"))
}

#[test]
fn what_was_refused_for_good_is_listed_without_its_payload() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(410));
    assert_eq!(bed.ask(&["dead-letters"]), json!({"dead_intents": [], "dead_letters": [], "unreadable": []}));
    let inbox = receiver.inbox("/gone");
    let id = refused(&bed, &inbox);
    let page = bed.ask(&["dead-letters"]);
    let letter = &page["dead_letters"][0];
    let (origin, expires_at) =
        (letter["origin"].as_str().expect("an instant"), letter["expires_at"].as_str().expect("an instant"));
    assert_eq!(
        *letter,
        json!({"id": id, "inbox": inbox, "reason": "permanent", "status": 410, "attempts": 1, "origin": origin, "expires_at": expires_at})
    );
    let table = bed.run(&["dead-letters"]);
    let lines: Vec<_> = table.stdout.lines().collect();
    assert_eq!((table.code, lines.len()), (0, 2), "{table:?}");
    assert!(lines[0].starts_with("id ") && lines[0].ends_with("inbox"), "{table:?}");
    assert_eq!(lines[1], format!("{id}  permanent (410)  1         {origin}  {expires_at}  {inbox}"));
    for secret in [PAYLOAD, "7x7", "d2hhdCBub2JvZHkg"] {
        assert!(!page.to_string().contains(secret) && !table.stdout.contains(secret), "{secret}");
    }
}

#[test]
fn the_last_attempt_and_the_end_of_retention_have_reasons_of_their_own() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(500));
    bed.configure("attempts_max = 2");
    let exhausted = bed.send(&receiver.inbox("/"), "x");
    for _ in 0..2 {
        bed.ask(&["run-once"]);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let to = |n: usize| format!("https://h{n}.invalid/");
    let inboxes: Vec<_> = (0..6).flat_map(|n| ["--inbox".to_owned(), to(n)]).collect();
    let mut arguments = vec!["send", "--json"];
    arguments.extend(inboxes.iter().map(String::as_str));
    let send = bed.run_with(&arguments, PAYLOAD.as_bytes()).json()["send"].clone();
    std::thread::sleep(std::time::Duration::from_millis(20));
    bed.ask(&["run-once", "--max-retention", "10ms"]);

    let page = bed.ask(&["dead-letters"]);
    let letter = &page["dead_letters"][0];
    assert_eq!((&letter["id"], &letter["reason"]), (&exhausted.into(), &"attempts_exhausted".into()), "{page}");
    assert_eq!((&letter["attempts"], letter.get("status")), (&2.into(), None), "{page}");
    let trace = &page["dead_intents"][0];
    assert_eq!((&trace["send"], &trace["reason"]), (&send, &"expired".into()), "{page}");
    assert_eq!((&trace["recipients_given_up"], &trace["recipients_total"]), (&6.into(), &6.into()), "{page}");
    let table = bed.run(&["dead-letters"]).stdout;
    assert!(
        table.lines().any(|line| line.starts_with(send.as_str().expect("an id")) && line.ends_with("(6 of 6 recipients)")),
        "{table}"
    );
    assert!(!page.to_string().contains(PAYLOAD) && !page.to_string().contains("h0.invalid"), "{page}");
}

#[test]
fn pages_are_asked_for_over_http_and_what_cannot_be_read_is_named() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(404));
    let mut ids: Vec<_> = (0..3).map(|_| bed.send(&receiver.inbox("/"), "x")).collect();
    ids.sort();
    bed.ask(&["run-once"]);
    alter(&bed, keys().dead_letter(entry_id(&ids[1])).as_bytes(), |mut value| {
        value[0] = 99;
        Some(value)
    });
    let server = bed.serve(&[]);
    let stranger = server.client.ask("GET", "/v1/dead-letters", None, "");
    assert_eq!((stranger.status, stranger.code()), (401, "unauthorized"));
    let first = server.ask("GET", "/v1/dead-letters?limit=2", "");
    assert_eq!((first.status, &first.body["dead_letters"][0]["id"]), (200, &ids[0].clone().into()), "{first:?}");
    let unreadable = &first.body["unreadable"][0];
    assert_eq!(unreadable["id"], ids[1], "{first:?}");
    assert!(unreadable["why"].as_str().is_some_and(|why| why.contains("99")), "{first:?}");
    let cursor = first.body["next_cursor"].as_str().expect("a cursor");
    let rest = server.ask("GET", &format!("/v1/dead-letters?cursor={cursor}"), "");
    assert_eq!((&rest.body["dead_letters"][0]["id"], rest.body.get("next_cursor")), (&ids[2].clone().into(), None), "{rest:?}");
    assert!(bed.run(&["dead-letters"]).stdout.contains(&format!("{}  cannot be read: ", ids[1])));
}
