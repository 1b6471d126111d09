//! Stores that cannot be used: exit code 3, words that say what to do, and what is in them stays as it was.

use restante_core::keys::Keys;
use restante_core::record::{Counters, Record as _};
use rusqlite::Connection;

use crate::bed::{Bed, Done};

#[track_caller]
fn is_refused(done: &Done, words: &[&str]) {
    assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{done:?}");
    for words in words {
        assert!(done.stderr.contains(words), "{words:?} is not in {done:?}");
    }
}

#[test]
fn an_unknown_store_url_lists_what_is_known() {
    let bed = Bed::new();
    for url in ["postgres://localhost/x", "backlog.sqlite", "", "SQLITE:x"] {
        is_refused(
            &bed.run(&["depth", "--store", url]),
            &["is none that is known", "sqlite:PATH", "memory:", "--allow-volatile"],
        );
    }
    is_refused(&bed.run(&["depth", "--store", "sqlite:"]), &["names no file"]);
    is_refused(&bed.run(&["depth", "--store", "memory:"]), &["forgets everything", "--allow-volatile"]);
    let json = bed.run(&["depth", "--store", "nothing", "--json"]);
    assert_eq!((json.code, &json.fault()["code"]), (3, &"store_refused".into()));
    assert_eq!(bed.run(&["depth", "--store", "memory:", "--allow-volatile"]).code, 0);
}

#[test]
fn a_missing_directory_and_a_missing_file_are_told_apart_and_neither_is_made() {
    let bed = Bed::new();
    let missing = format!("sqlite:{}", bed.path("no/backlog.sqlite").display());
    is_refused(
        &bed.run(&["depth", "--create", "--store", &missing]),
        &["there is no directory", "create it, or correct the path"],
    );
    for command in [&["depth"][..], &["drained"], &["run-once"], &["inspect"], &["intake", "close"], &["doctor"]] {
        is_refused(&bed.run(command), &["there is no file", "--create to begin a new store"]);
    }
    assert!(!bed.path("no").exists() && !bed.path("backlog.sqlite").exists());
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let bed = Bed::new();
    bed.write("backlog.sqlite", &"this is a letter to nobody. ".repeat(100));
    let before = std::fs::read(bed.path("backlog.sqlite")).expect("the file");
    is_refused(&bed.run(&["depth", "--create"]), &["is not an SQLite database", "restore the file from a backup"]);
    assert_eq!(std::fs::read(bed.path("backlog.sqlite")).expect("the file"), before);

    let other = bed.path("other.sqlite");
    Connection::open(&other).and_then(|db| db.execute_batch("CREATE TABLE letters (text)")).expect("a database");
    is_refused(&bed.run(&["depth", "--store", &format!("sqlite:{}", other.display())]), &["is a database of another program"]);
}

#[test]
fn a_newer_schema_is_left_to_the_newer_program() {
    let bed = Bed::with_store();
    bed.send("https://a.invalid/", "x");
    let db = Connection::open(bed.path("backlog.sqlite")).expect("the database");
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a version");
    db.pragma_update(None, "user_version", version + 1).expect("a newer version");
    is_refused(&bed.run(&["depth"]), &["run the newer program"]);
    db.pragma_update(None, "user_version", version).expect("the old version");
    assert_eq!(bed.ask(&["depth"])["entries"], 1);
}

#[test]
fn a_locked_database_is_waited_for_as_long_as_configured_and_loses_nothing() {
    let bed = Bed::with_store();
    let id = bed.send("https://a.invalid/", "x");
    let other = Connection::open(bed.path("backlog.sqlite")).expect("the database");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    bed.configure("tries_max = 2");
    for command in [&["intake", "close"][..], &["send", "--inbox", "https://a.invalid/"], &["run-once"]] {
        is_refused(&bed.run(command), &["the store is unavailable (database is locked): nothing happened", "try again"]);
    }
    other.execute_batch("ROLLBACK").expect("the end of it");
    assert_eq!(bed.ask(&["depth"])["intake"], "open");
    assert_eq!(bed.ask(&["inspect"])["entries"][0]["id"], id);
}

#[test]
fn a_server_whose_database_is_locked_says_so_and_accepts_again_later() {
    let bed = Bed::with_store();
    bed.configure("tries_max = 2");
    let server = bed.serve(&[]);
    let other = Connection::open(bed.path("backlog.sqlite")).expect("the database");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let body = r#"{"inboxes":["https://a.invalid/"],"payload":{"json":1},"idempotency_key":"k"}"#;
    let refused = server.ask("POST", "/v1/sends", body);
    assert_eq!((refused.status, refused.code()), (503, "store_unavailable"), "{refused:?}");
    other.execute_batch("ROLLBACK").expect("the end of it");
    let accepted = server.ask("POST", "/v1/sends", body);
    assert_eq!((accepted.status, &accepted.body["duplicate"]), (202, &false.into()), "{accepted:?}");
}

/// A limit on the size of files stands for a full disk: beyond it nothing can be written, and the program is told so. What a claim
/// writes is beyond it; what a probe writes may not be.
#[cfg(unix)]
#[test]
fn a_run_over_a_disk_that_takes_nothing_does_not_say_that_all_is_well() {
    let bed = Bed::with_store();
    bed.configure("tries_max = 2\nconflict_pause = \"1ms\"");
    // Enough that one claim changes more pages of the file than fit below the limit.
    let inboxes: Vec<_> = (0..200).map(|n| format!("http://127.0.0.1:1/{n}")).collect();
    for inboxes in inboxes.chunks(4) {
        let named: Vec<&str> = inboxes.iter().flat_map(|inbox| ["--inbox", inbox]).collect();
        let done = bed.run_with(&[&["send"][..], &named].concat(), &[b'x'; 3_000]);
        assert_eq!(done.code, 0, "{done:?}");
    }
    let command = bed.command(&["run-once"]);
    let mut limited = std::process::Command::new("sh");
    // The shared index of SQLite's log has 32 KiB: it must fit, and nothing may end the program by a signal.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 66 && exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    let done: Done = limited.current_dir(bed.path("")).output().expect("a shell").into();
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stderr.contains("does not take what a run commits, or does not confirm it"), "{done:?}");
    assert!(done.stderr.contains("look at its file and disk"), "{done:?}");
    assert_eq!(bed.ask(&["depth"])["entries"], 200, "nothing is lost");
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    let bed = Bed::new();
    let words = ["cannot be opened", "in a directory that is writable too"];
    // Permissions do not keep root out; this directory takes no file from anybody.
    #[cfg(target_os = "linux")]
    is_refused(&bed.run(&["depth", "--create", "--store", "sqlite:/proc/backlog.sqlite"]), &words);
    let folder = bed.run(&["depth", "--create", "--store", &format!("sqlite:{}", bed.path("").display())]);
    is_refused(&folder, &words);
    let below_a_file = bed.path("restante.toml/backlog.sqlite");
    assert_eq!(bed.run(&["depth", "--create", "--store", &format!("sqlite:{}", below_a_file.display())]).code, 3);
}

#[test]
fn a_read_only_database_is_refused_and_stays_as_it_is() {
    let bed = Bed::with_store();
    bed.send("https://a.invalid/", "x");
    // No permission keeps root from writing; a file that SQLite itself holds for read-only does, whoever asks.
    let db = Connection::open(bed.path("backlog.sqlite")).expect("the database");
    // Write version 255 in the header: "read-only" in SQLite's file format.
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE").expect("one file");
    drop(db);
    let mut bytes = std::fs::read(bed.path("backlog.sqlite")).expect("the file");
    bytes[18] = 255;
    std::fs::write(bed.path("backlog.sqlite"), &bytes).expect("the file");
    is_refused(
        &bed.run(&["depth"]),
        &["backlog.sqlite\" is read-only", "make the file, its directory and its file system writable"],
    );
    assert_eq!(std::fs::read(bed.path("backlog.sqlite")).expect("the file"), bytes);
}

#[test]
fn fewer_counter_slots_than_were_used_are_refused() {
    let bed = Bed::with_store();
    bed.send("https://a.invalid/", "x");
    bed.configure("counter_slots = 128");
    assert_eq!(bed.run(&["depth"]).code, 0);

    // The slot that was used is chosen at random: this one is used for certain.
    let config = restante_core::Config { counter_slots: 128, ..restante_core::Config::new(1) };
    let key = Keys::new(&config).counters(127);
    put(&bed, key.as_bytes(), Counters::default().encode().as_bytes());
    bed.configure("counter_slots = 8");
    for command in [&["depth"][..], &["drained"], &["run-once"]] {
        is_refused(&bed.run(command), &["used with more than 8 counter slots", "counter_slots must never become less"]);
    }
}

/// Puts a record through the store itself.
fn put(bed: &Bed, key: &[u8], value: &[u8]) {
    use restante_kv::{AtomicKv as _, Check, Expect, Guard, Mutation, Txn, Write};
    let store = restante_kv_sqlite::SqliteKv::builder(bed.path("backlog.sqlite")).open().expect("the store");
    let key = restante_kv::Key::from(key);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let found = store.get_many(vec![key.clone()]).await.expect("a read").values.remove(0);
        let expect = found.map_or(Expect::Absent, |found| Expect::Version(found.version));
        let write = Write { key: key.clone(), mutation: Mutation::Put(value.into()), guard: Guard::Checked };
        store.cas_many(Txn { checks: vec![Check { key, expect }], writes: vec![write] }).await.expect("a commit")
    });
}
