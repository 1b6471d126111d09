//! Holds and destinations: told by command and over HTTP, shown as a table and as JSON.

use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use crate::bed::Bed;
use crate::receiver::Receiver;

fn in_hours(hours: i64) -> String {
    let at = Timestamp::from_second(Timestamp::now().as_second()).expect("an instant");
    (at + hours.hours()).to_string()
}

/// Hours from now, rounded, of an instant in an answer.
fn hours(at: &Value) -> i64 {
    let at: Timestamp = at.as_str().expect("an instant").parse().expect("an instant");
    (at.as_second() - Timestamp::now().as_second() + 1_800).div_euclid(3_600)
}

#[test]
fn a_held_destination_is_left_alone_until_it_is_released() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    let id = bed.send(&receiver.inbox("/inbox"), "x");
    let destination = receiver.inbox("");
    let held = bed.ask(&["hold", "set", &destination]);
    assert_eq!((&held["destination"], &held["held"]["end_known"]), (&destination.clone().into(), &false.into()), "{held}");
    assert_eq!((hours(&held["held"]["from"]), hours(&held["held"]["until"])), (0, 24), "hold_cap: {held}");
    assert_eq!(bed.ask(&["run-once"])["processed"], 0);
    assert_eq!(bed.ask(&["inspect", &id])["blocked"]["by"], "held");
    assert_eq!(bed.ask(&["destinations"])["destinations"], json!([held]), "the list says the same");

    // Any URL there will do.
    let released = bed.run(&["hold", "release", &receiver.inbox("/inbox")]);
    assert_eq!((released.code, released.stdout), (0, format!("{destination} is not held\n")), "{}", released.stderr);
    assert_eq!(bed.ask(&["run-once"])["processed"], 1);
    assert_eq!(receiver.arrived().len(), 1);
    // Saying it again is harmless, also of what was never held.
    assert_eq!(bed.run(&["hold", "release", &destination]).code, 0);
    let never = bed.ask(&["hold", "release", "b.invalid"]);
    let nothing =
        json!({"destination": "https://b.invalid", "holds_to_come": [], "circuit": {"state": "closed", "failure_count": 0}});
    assert_eq!(never, nothing);
}

#[test]
fn an_answer_says_what_is_so_and_not_what_was_asked_for() {
    let bed = Bed::with_store();
    let (two, three, five, six) = (in_hours(2), in_hours(3), in_hours(5), in_hours(6));
    let said = |arguments: &[&str]| {
        let done = bed.run(&[&["hold"], arguments].concat());
        assert_eq!(done.code, 0, "{done:?}");
        done.stdout
    };
    let until_three = format!("https://a.example is held until {three}\n");
    assert_eq!(said(&["set", "a.example", "--until", &three]), until_three);
    assert_eq!(said(&["set", "a.example", "--until", &two]), until_three, "an earlier end changes nothing");
    let later = format!("{until_three}https://a.example is to be held from {five} until {six}\n");
    assert_eq!(said(&["set", "https://a.example", "--from", &five, "--for", "1h"]), later);
    let cut = format!("https://a.example is held until {two}\n");
    assert_eq!(said(&["release", "a.example", "--from", &two]), cut);
    let open = said(&["set", "b.example:8443"]);
    assert!(open.starts_with("https://b.example:8443 is held until it is released, at most until "), "{open}");
    let page = bed.run(&["destinations"]).stdout;
    let lines: Vec<_> = page.lines().collect();
    assert_eq!(lines.len(), 3, "{page}");
    assert_eq!(
        lines[0].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>(),
        ["destination", "circuit", "failures", "probe at", "paced until", "held"]
    );
    assert!(lines[1].starts_with("https://a.example ") && lines[1].ends_with(&format!("  until {two}")), "{page}");
    assert!(lines[2].contains("  until it is released, at most until "), "{page}");
}

#[test]
fn a_hold_lasts_as_long_as_is_said() {
    let bed = Bed::with_store();
    let held = bed.ask(&["hold", "set", "a.example", "--for", "90d"]);
    assert_eq!((&held["held"]["end_known"], hours(&held["held"]["until"])), (&true.into(), 90 * 24), "{held}");
    // With no known end it is over hold_cap after it was last said.
    bed.configure("hold_cap = \"2h\"");
    let held = bed.ask(&["hold", "set", "b.example"]);
    assert_eq!((&held["held"]["end_known"], hours(&held["held"]["until"])), (&false.into(), 2), "{held}");
}

#[test]
fn a_notice_that_says_nothing_is_refused() {
    let bed = Bed::with_store();
    let past = in_hours(-1);
    for (arguments, message, what_to_do) in [
        (
            &["set", "ftp://a.example"][..],
            "\"ftp://a.example\" is no destination: it is neither http nor https",
            "give https://host",
        ),
        (&["set", "a b"], "\"a b\" is no destination: it holds white space", "give https://host"),
        (&["release", ""], "\"\" is no destination: empty host", "give https://host"),
        (
            &["set", "a.example", "--until", &past],
            "the hold of https://a.example would end at",
            "give an end after its beginning",
        ),
        (&["set", "a.example", "--for", "0s"], "the hold of https://a.example would end at", "give an end after its beginning"),
    ] {
        let refused = bed.run(&[&["hold"], arguments, &["--json"]].concat());
        let fault = refused.fault();
        assert_eq!((refused.code, &fault["code"]), (2, &"invalid_request".into()), "{arguments:?}: {refused:?}");
        assert!(fault["message"].as_str().is_some_and(|it| it.contains(message)), "{fault}");
        assert!(fault["what_to_do"].as_str().is_some_and(|it| it.starts_with(what_to_do)), "{fault}");
    }
    assert_eq!(bed.ask(&["destinations"])["destinations"], json!([]), "nothing was done");
}

#[test]
fn one_hold_too_many_is_refused_and_a_release_makes_room() {
    let bed = Bed::with_store();
    let set = |n: i64| bed.run(&["hold", "set", "a.example", "--json", "--from", &in_hours(2 * n), "--for", "1h"]);
    for n in 1..=16 {
        assert_eq!(set(n).code, 0);
    }
    let refused = set(17);
    assert_eq!((refused.code, &refused.fault()["code"]), (5, &"refused".into()));
    let message = "the notice about https://a.example is refused: more than 16 holds for now and later";
    assert_eq!(
        (&refused.fault()["message"], &refused.fault()["what_to_do"]),
        (&message.into(), &"release the later ones (from an instant on), and set those that matter".into())
    );
    assert_eq!(bed.ask(&["hold", "release", "a.example"])["holds_to_come"], json!([]));
    assert_eq!(set(17).code, 0);
}

#[test]
fn pauses_and_circuits_are_shown_beside_holds() {
    let bed = Bed::with_store();
    bed.configure("breaker_failures = 2\nbreaker_recovery = \"3h\"");
    let (broken, slow) = (Receiver::answering(500), Receiver::pausing(7_200));
    bed.send(&broken.inbox("/"), "x");
    bed.send(&slow.inbox("/"), "x");
    bed.ask(&["run-once", "--limit", "2"]);
    let known = |receiver: &Receiver| {
        let page = bed.ask(&["destinations"]);
        let rows = page["destinations"].as_array().expect("destinations").clone();
        rows.into_iter().find(|row| row["destination"] == receiver.inbox("").as_str()).unwrap_or_else(|| panic!("{page}"))
    };
    let counting = known(&broken);
    assert_eq!(
        (&counting["circuit"]["state"], &counting["circuit"]["failure_count"]),
        (&"closed".into(), &1.into()),
        "{counting}"
    );
    std::thread::sleep(std::time::Duration::from_millis(60));
    bed.ask(&["run-once"]);
    let open = known(&broken);
    assert_eq!((&open["circuit"]["state"], &open["circuit"]["failure_count"]), (&"open".into(), &0.into()), "{open}");
    assert_eq!((hours(&open["circuit"]["probe_at"]), hours(&open["circuit"]["since"])), (3, 0), "{open}");
    assert_eq!(open["blocked"]["by"], "circuit");

    let paced = known(&slow);
    assert_eq!((hours(&paced["paced_until"]), &paced["blocked"]["by"]), (2, &"paced".into()), "{paced}");
    bed.ask(&["hold", "set", &slow.inbox(""), "--for", "5h"]);
    let both = known(&slow);
    assert_eq!((hours(&both["held"]["until"]), hours(&both["paced_until"])), (5, 2), "a pause is not hidden by a hold: {both}");
    let table = bed.run(&["destinations"]).stdout;
    let probe_at = open["circuit"]["probe_at"].as_str().expect("an instant");
    assert!(table.lines().any(|line| line.contains(" open ") && line.contains(probe_at)), "{table}");
    assert!(table.contains(paced["paced_until"].as_str().expect("an instant")), "{table}");
}

#[test]
fn pages_of_destinations_join_to_everything() {
    let bed = Bed::with_store();
    let hosts: Vec<_> = (0..5).map(|n| format!("https://h{n}.example")).collect();
    for host in &hosts {
        bed.ask(&["hold", "set", host]);
    }
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let more: Vec<&str> = cursor.as_deref().map_or(Vec::new(), |cursor| vec!["--cursor", cursor]);
        let page = bed.ask(&[&["destinations", "--limit", "2"], &more[..]].concat());
        let rows = page["destinations"].as_array().expect("destinations");
        seen.extend(rows.iter().map(|row| row["destination"].as_str().expect("a name").to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen, hosts);
    assert!(bed.run(&["destinations", "--limit", "2"]).stdout.contains("there may be more: --cursor "));
    let entries = bed.ask(&["destinations", "--limit", "1"]);
    let elsewhere = bed.run(&["dead-letters", "--json", "--cursor", entries["next_cursor"].as_str().expect("a cursor")]);
    assert_eq!((elsewhere.code, &elsewhere.fault()["code"]), (2, &"invalid_request".into()), "a cursor of another list");
}

#[test]
fn a_server_is_told_over_http_and_its_worker_goes_on_at_once() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    // Nobody would look again before the test is over.
    bed.write("slow.toml", &std::fs::read_to_string(bed.path("restante.toml")).expect("a file").replace("50ms", "1h"));
    let server = bed.serve(&["--config", &bed.path("slow.toml").display().to_string()]);
    let (destination, until) = (receiver.inbox(""), in_hours(2));
    let held = server.ask("PUT", "/v1/holds", &json!({"destination": destination, "until": until}).to_string());
    assert_eq!((held.status, &held.body["held"]["until"]), (200, &until.clone().into()), "{held:?}");
    let again = server.ask("PUT", "/v1/holds", &json!({"destination": destination, "until": until}).to_string());
    assert_eq!((again.status, &again.body), (200, &held.body), "saying it twice changes nothing");
    bed.send(&receiver.inbox("/"), "x");
    assert_eq!(server.ask("GET", "/v1/destinations", "").body, json!({"destinations": [held.body], "unreadable": []}));
    assert!(receiver.arrived().is_empty());
    let released = server.ask("POST", "/v1/holds/release", &json!({"destination": destination}).to_string());
    assert_eq!((released.status, released.body.get("held")), (200, None), "{released:?}");
    receiver.wait_for(1);
}
