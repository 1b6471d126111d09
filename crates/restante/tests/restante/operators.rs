//! Quarantine and doctor.

use restante_core::keys::Keys;
use restante_core::{Config, atoms::EntryId, atoms::SendId};
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::bed::Bed;
use crate::receiver::Receiver;

pub(crate) fn keys() -> Keys {
    Keys::new(&Config { counter_slots: 128, ..Config::new(1) })
}

pub(crate) fn entry_id(text: &str) -> EntryId {
    let send = u128::from_str_radix(&text[..32], 16).expect("an id");
    EntryId { send: SendId::from_bytes(send.to_be_bytes()), index: 0 }
}

/// Changes the record under `key` behind the store's back, as a damaged disk would.
pub(crate) fn alter(bed: &Bed, key: &[u8], change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) {
    let db = Connection::open(bed.path("backlog.sqlite")).expect("the database");
    let find = "SELECT value FROM kv WHERE key = ?1";
    let value: Vec<u8> = db.query_row(find, params![key], |row| row.get(0)).expect("the record");
    let changed = match change(value) {
        Some(value) => db.execute("UPDATE kv SET value = ?2 WHERE key = ?1", params![key, value]),
        None => db.execute("DELETE FROM kv WHERE key = ?1", params![key]),
    };
    assert_eq!(changed.expect("a change"), 1);
}

/// An entry of a format that this version does not know, put aside by a run.
fn quarantined(bed: &Bed, inbox: &str) -> String {
    let id = bed.send(inbox, "x");
    alter(bed, keys().entry(entry_id(&id)).as_bytes(), |mut value| {
        value[0] = 99;
        Some(value)
    });
    bed.ask(&["run-once"]);
    assert_eq!(bed.ask(&["depth"])["quarantined"], 1);
    id
}

#[test]
fn what_was_put_aside_is_shown_and_dropped() {
    let bed = Bed::with_store();
    let id = quarantined(&bed, "https://a.invalid/");
    let list = bed.ask(&["quarantine", "list"]);
    assert_eq!(
        (&list["records"][0]["id"], &list["records"][0]["why"], &list["records"][0]["format"]),
        (&id.clone().into(), &"unknown_format".into(), &99.into())
    );
    assert!(bed.run(&["quarantine", "list"]).stdout.contains(&id));
    assert!(bed.run(&["quarantine", "show", &id]).stdout.contains("this version cannot read the record"));

    let revive = bed.run(&["quarantine", "revive", &id, "--json"]);
    assert_eq!((revive.code, &revive.fault()["code"]), (5, &"refused".into()), "{revive:?}");
    assert_eq!(bed.run(&["quarantine", "drop", &id]).stdout, format!("{id} is dropped\n"));
    assert_eq!(bed.ask(&["depth"])["quarantined"], 0);
    for act in ["show", "drop", "revive"] {
        let again = bed.run(&["quarantine", act, &id, "--json"]);
        assert_eq!((again.code, &again.fault()["code"]), (5, &"unknown_id".into()), "{act}: {again:?}");
    }
}

#[test]
fn what_can_be_read_again_is_revived_and_delivered() {
    let (bed, receiver) = (Bed::with_store(), Receiver::answering(202));
    let id = quarantined(&bed, &receiver.inbox("/late"));
    // The version that knows the format is this one, once the format is mended inside what was put aside.
    alter(&bed, keys().quarantined(entry_id(&id)).as_bytes(), |mut value| {
        let at = value.iter().rposition(|byte| *byte == 99).expect("the format");
        value[at] = 1;
        Some(value)
    });
    let server = bed.serve(&[]);
    let list = server.ask("GET", "/v1/quarantine", "");
    assert_eq!(list.body["records"][0]["entry"]["inbox"], receiver.inbox("/late"), "{list:?}");
    let revived = server.ask("POST", &format!("/v1/quarantine/{id}/revive"), "");
    assert_eq!((revived.status, &revived.body["done"]), (200, &id.clone().into()), "{revived:?}");
    assert_eq!(receiver.wait_for(1)[0].path, "/late");
    assert_eq!(server.ask("POST", &format!("/v1/quarantine/{id}/revive"), "").status, 404);
}

#[test]
fn the_doctor_finds_a_lost_index_row_and_puts_it_back() {
    let bed = Bed::with_store();
    let id = bed.send("https://a.invalid/", "x");
    assert_eq!(bed.run(&["doctor"]).code, 0);
    let due = due_row(&bed, &id);
    alter(&bed, &due, |_| None);

    let found = bed.run(&["doctor", "--json"]);
    assert_eq!(found.code, 1, "{found:?}");
    let report = found.json();
    assert_eq!((&report["clean"], &report["findings"][0]["finding"]), (&false.into(), &"undiscoverable".into()), "{report}");
    let repaired = bed.run(&["doctor", "--repair"]);
    assert_eq!(repaired.code, 0, "{repaired:?}");
    assert!(repaired.stdout.contains("(repaired)"), "{repaired:?}");
    assert_eq!(bed.ask(&["doctor"])["clean"], true);
}

/// The key of the entry's due row, from what is shown of it.
fn due_row(bed: &Bed, id: &str) -> Vec<u8> {
    let entry: Value = bed.ask(&["inspect", id]);
    let vest_at: jiff::Timestamp = entry["vest_at"].as_str().expect("an instant").parse().expect("an instant");
    let vest_at = restante_kv::StoreTime::from_ms(u64::try_from(vest_at.as_millisecond()).expect("after 1970"));
    keys().due("https://a.invalid", vest_at, entry_id(id)).as_bytes().to_vec()
}

#[test]
fn what_keeps_an_entry_back_stands_beside_it() {
    let bed = Bed::with_store();
    let (held, free) = (bed.send("https://a.invalid/inbox", "x"), bed.send("https://b.invalid/inbox", "x"));
    bed.ask(&["hold", "set", "https://a.invalid/"]);
    let shown = bed.ask(&["inspect", &held]);
    assert_eq!((&shown["wait"], &shown["blocked"]["by"]), (&"new".into(), &"held".into()), "{shown}");
    assert!(shown["blocked"]["until"].as_str().is_some_and(|until| until.ends_with('Z')), "{shown}");
    assert!(bed.run(&["inspect", &held]).stdout.contains("held until "));
    assert!(bed.ask(&["inspect", &free])["blocked"].is_null());
    let page = bed.run(&["inspect"]).stdout;
    assert!(page.contains("new, held") && page.lines().any(|line| line.contains(&free) && !line.contains("held")), "{page}");
    let server = bed.serve(&[]);
    let page = server.ask("GET", "/v1/entries?destination=a.invalid", "");
    assert_eq!(page.body["entries"][0]["blocked"]["by"], "held", "{page:?}");
    assert_eq!(server.ask("GET", &format!("/v1/entries/{held}"), "").body["blocked"]["by"], "held");
}
