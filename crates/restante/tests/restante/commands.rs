//! Every command where everything is as it should be.

use crate::bed::{Bed, program};
use crate::receiver::Receiver;

#[test]
fn what_is_sent_is_owned_and_what_is_due_is_delivered_by_a_run() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    let id = bed.send(&receiver.inbox("/inbox"), "{\"a\": 1}");
    assert_eq!(bed.ask(&["depth"])["entries"], 1);
    assert_eq!(bed.ask(&["inspect", &id])["wait"], "new");

    let run = bed.ask(&["run-once"]);
    assert_eq!((&run["processed"], &run["more"]), (&1.into(), &false.into()), "{run}");
    let arrived = receiver.arrived();
    assert_eq!((arrived.len(), arrived[0].path.as_str(), arrived[0].body.as_str()), (1, "/inbox", "{\"a\": 1}"));
    assert!(arrived[0].head.contains("content-type: application/activity+json"), "{}", arrived[0].head);
    assert_eq!(bed.ask(&["depth"])["entries"], 0);
}

#[test]
fn a_run_tells_when_the_next_work_is_due() {
    let bed = Bed::with_store();
    let sender = "[sender]\nallow_http = true\nallow_private_addresses = true\nallow_unsigned = true";
    bed.write("slow.toml", &format!("max_retention = \"7d\"\nbackoff_initial = \"1h\"\nbackoff_max = \"3h\"\n{sender}"));
    let receiver = Receiver::answering(500);
    bed.send(&receiver.inbox("/"), "x");
    let slow = bed.path("slow.toml").display().to_string();
    let run = bed.ask(&["run-once", "--config", &slow]);
    assert_eq!((&run["processed"], &run["more"]), (&1.into(), &false.into()));
    // No later than the work is due, and no earlier than its last lease ends: what points there is tidied by the run after.
    let in_ms = run["next_in_ms"].as_u64().expect("the next work");
    assert!((30_000..=7_300_000).contains(&in_ms), "{run}");
    let entries = bed.ask(&["inspect"]);
    assert_eq!((&entries["entries"][0]["failure_count"], &entries["entries"][0]["wait"]), (&1.into(), &"backoff".into()));
}

#[test]
fn a_limit_leaves_more() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    for number in 0..3 {
        bed.send(&receiver.inbox("/"), &number.to_string());
    }
    let run = bed.ask(&["run-once", "--limit", "2"]);
    assert_eq!((&run["processed"], &run["more"]), (&2.into(), &true.into()));
    assert_eq!(bed.ask(&["run-once"])["processed"], 1);
}

#[test]
fn requests_under_one_key_are_one_send() {
    let bed = Bed::with_store();
    let send = |payload: &str| {
        let arguments = ["send", "--json", "--inbox", "https://a.example/", "--idempotency-key", "note-1"];
        bed.run_with(&arguments, payload.as_bytes())
    };
    let (first, again, other) = (send("x"), send("x"), send("y"));
    assert_eq!(first.json()["duplicate"], false);
    assert_eq!((&again.json()["duplicate"], &again.json()["send"]), (&true.into(), &first.json()["send"]));
    assert_eq!((other.code, &other.fault()["code"]), (5, &"idempotency_conflict".into()));
    assert_eq!(bed.ask(&["depth"])["entries"], 1);
}

#[test]
fn intake_is_closed_and_opened_and_drained_says_when() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    bed.send(&receiver.inbox("/"), "x");
    assert_eq!(bed.run(&["intake", "close"]).stdout, "intake is closed\n");
    assert_eq!(bed.ask(&["intake", "show"])["intake"], "closed");

    let refused = bed.run_with(&["send", "--json", "--inbox", "https://a.example/"], b"x");
    assert_eq!((refused.code, &refused.fault()["code"]), (5, &"intake_closed".into()));
    let drained = bed.run(&["drained"]);
    assert_eq!(drained.code, 1, "an entry is left: {drained:?}");
    bed.ask(&["run-once"]);
    assert_eq!(bed.run(&["drained"]).code, 0);
    bed.ask(&["intake", "open"]);
    assert_eq!(bed.run(&["drained"]).code, 1, "intake is open");
}

#[test]
fn pages_join_to_everything_and_a_destination_is_picked_out() {
    let bed = Bed::with_store();
    let mut sent: Vec<_> =
        (0..5).map(|n| bed.send(&format!("https://{}.example/{n}", if n % 2 == 0 { "a" } else { "b" }), "x")).collect();
    sent.sort();
    let page = |arguments: &[&str]| {
        let (mut ids, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let more: Vec<&str> = cursor.as_deref().map_or(Vec::new(), |cursor| vec!["--cursor", cursor]);
            let page = bed.ask(&[&["inspect", "--limit", "2"], arguments, &more].concat());
            ids.extend(
                page["entries"].as_array().expect("entries").iter().map(|entry| entry["id"].as_str().expect("an id").to_owned()),
            );
            match page["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return ids,
            }
        }
    };
    assert_eq!(page(&[]), sent);
    assert_eq!(page(&["--destination", "a.example"]).len(), 3);
    assert_eq!(page(&["--destination", "https://b.example"]).len(), 2);
    assert_eq!(page(&["--destination", "c.example"]).len(), 0);
}

#[test]
fn a_payload_comes_from_a_file_too_and_goes_to_every_inbox_in_order_of_its_key() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    bed.write("note.json", "{}");
    let (a, b) = (receiver.inbox("/a"), receiver.inbox("/b"));
    let sent = bed.run(&["send", "--inbox", &a, "--inbox", &b, "--payload", "note.json", "--order-key", "notes"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(sent.stdout.starts_with("accepted as "), "{sent:?}");
    let run = bed.ask(&["run-once"]);
    assert_eq!(run["processed"], 2, "{run}");
    let paths: Vec<_> = receiver.arrived().into_iter().map(|arrived| arrived.path).collect();
    assert_eq!(paths, ["/a", "/b"], "one destination, one order key: one lane");
}

#[test]
fn completions_are_there_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = program(&std::env::temp_dir()).args(["completions", shell]).output().expect("the program");
        assert!(done.status.success() && String::from_utf8_lossy(&done.stdout).contains("run-once"), "{shell}");
    }
}

#[test]
fn the_script_for_cron_delivers_everything_and_hands_on_what_went_wrong() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    for number in 0..3 {
        bed.send(&receiver.inbox("/"), &number.to_string());
    }
    let script = |store: &str| {
        let folder = std::path::Path::new(env!("CARGO_BIN_EXE_restante")).parent().expect("a folder");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = std::process::Command::new("sh");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/deliver.sh")).arg(store).arg(bed.path("restante.toml"));
        command.env("PATH", path).output().expect("sh")
    };
    let done = script(&bed.store());
    assert_eq!((done.status.code(), receiver.arrived().len()), (Some(0), 3), "{done:?}");
    let done = script("sqlite:/no/backlog.sqlite");
    assert_eq!(done.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&done.stderr).contains("there is no directory"), "{done:?}");
}
