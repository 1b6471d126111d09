//! Arguments and configurations that cannot be used: exit code 2, words that say what to do, and no store is begun.

use std::net::TcpListener;

use crate::bed::{Bed, Done, TOKEN, program};

fn serve(bed: &Bed, arguments: &[&str]) -> Done {
    let all = [&["serve", "--create", "--listen", "127.0.0.1:0"], arguments].concat();
    bed.command(&all).env("RESTANTE_TOKEN", TOKEN).output().expect("the program").into()
}

#[track_caller]
fn is_refused(bed: &Bed, done: &Done, words: &[&str]) {
    assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{done:?}");
    for words in words {
        assert!(done.stderr.contains(words), "{words:?} is not in {done:?}");
    }
    assert!(!bed.path("backlog.sqlite").exists(), "a store was begun");
}

#[test]
fn a_server_without_a_token_is_refused() {
    let bed = Bed::new();
    let without = bed.command(&["serve", "--create", "--listen", "127.0.0.1:0"]).output().expect("the program").into();
    is_refused(&bed, &without, &["there is no token for the HTTP API", "--token-file", "RESTANTE_TOKEN"]);
    is_refused(&bed, &serve(&bed, &["--token-file", "nothing"]), &["the token file \"nothing\" cannot be read"]);
    bed.write("short", "tiny-secret");
    let short = serve(&bed, &["--token-file", "short"]);
    is_refused(&bed, &short, &["has 11 bytes, fewer than 16", "openssl rand -hex 32"]);
    assert!(!short.stderr.contains("tiny-secret"), "{short:?}");
}

#[test]
fn an_address_that_is_taken_or_that_others_reach_is_refused() {
    let bed = Bed::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let listen = |address: &str| -> Done {
        let arguments = ["serve", "--create", "--listen", address];
        bed.command(&arguments).env("RESTANTE_TOKEN", TOKEN).output().expect("the program").into()
    };
    is_refused(&bed, &listen(&address), &[&format!("{address} cannot be listened on"), "give another --listen"]);
    is_refused(&bed, &listen("0.0.0.0:0"), &["0.0.0.0:0 can be reached from other machines", "--allow-non-loopback"]);
    is_refused(&bed, &listen("[::]:0"), &["can be reached from other machines"]);
    is_refused(&bed, &listen("nowhere"), &["invalid value 'nowhere' for '--listen <ADDRESS>'"]);
}

#[test]
fn a_configuration_that_cannot_be_used_is_refused_with_its_line() {
    let bed = Bed::new();
    let depth = |text: &str| {
        bed.write("restante.toml", text);
        bed.run(&["depth", "--create"])
    };
    is_refused(&bed, &depth("\nleese = \"60s\""), &["line 2: there is no field leese; did you mean lease?", "correct the file"]);
    is_refused(&bed, &depth("lease = \"1s\""), &["lease_ms is 1000, but a POST", "correct the configuration file"]);
    is_refused(&bed, &depth("attempts_max = 0"), &["attempts_max is 0"]);
    is_refused(&bed, &depth("prefix = \"v\""), &["overlap"]);
    is_refused(&bed, &bed.run(&["depth", "--create", "--config", "nothing.toml"]), &["\"nothing.toml\" cannot be read"]);
    is_refused_late(&depth("counter_slots = 5000"), "the store allows 1000 keys in a snapshot, these settings need 5001");
}

#[test]
fn who_delivers_must_say_for_how_long_and_signed_or_not() {
    let bed = Bed::new();
    bed.write("restante.toml", "[sender]\nallow_unsigned = true");
    is_refused(&bed, &serve(&bed, &[]), &["nobody says how long a delivery may live", "--max-retention 7d"]);
    is_refused(&bed, &bed.run(&["run-once", "--create"]), &["nobody says how long a delivery may live"]);
    is_refused(&bed, &bed.run(&["run-once", "--create", "--max-retention", "soon"]), &["\"soon\" is no duration"]);
    bed.write("restante.toml", "max_retention = \"7d\"");
    is_refused(&bed, &serve(&bed, &[]), &["there is no master key", "allow_unsigned = true under [sender]"]);
    bed.write("restante.toml", "max_retention = \"7d\"\n[sender]\nallow_unsigned = true\nallow_networks = [\"10.0.0.0/99\"]");
    is_refused_late(&serve(&bed, &[]), "\"10.0.0.0/99\" is no network");
}

/// Found only when the store is open: it is told what it can do, or the sender is made.
#[track_caller]
fn is_refused_late(done: &Done, words: &str) {
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains(words), "{done:?}");
}

#[test]
fn arguments_that_mean_nothing_are_refused_with_the_nearest_that_do() {
    let folder = std::env::temp_dir();
    for (arguments, words) in [
        (&["dept"][..], "a similar subcommand exists: 'depth'"),
        (&["depth"], "--store <URL>"),
        (&["depth", "--store", "sqlite:x", "--jsn"], "a similar argument exists: '--json'"),
        (&["run-once", "--store", "sqlite:x", "--limit", "0"], "0 is not in 1.."),
        (&["inspect", "--store", "sqlite:x", "--limit", "1001"], "1001 is not in 1..=1000"),
        (&["inspect", "x", "--store", "sqlite:x", "--cursor", "y"], "cannot be used with"),
        (&["send", "--store", "sqlite:x"], "--inbox <URL>"),
        (&["send", "--store", "sqlite:x", "--inbox", "https://a.invalid/", "--sign-key", "ada"], "--sign-key-id <URL>"),
        (&["completions", "dos"], "possible values"),
        (&["depth", "--store", "sqlite:x", "--log", "loud"], "invalid value 'loud' for '--log <LEVEL>'"),
        (&["intake"], "Usage: restante intake"),
        (&["hold"], "Usage: restante hold"),
        (&["hold", "set", "--store", "sqlite:x"], "<DESTINATION>"),
        (
            &["hold", "set", "a.example", "--store", "sqlite:x", "--until", "tomorrow"],
            "write it in RFC 3339, as in 2026-01-01T12:00:00Z",
        ),
        (&["hold", "set", "a.example", "--store", "sqlite:x", "--from", "1969-12-31T23:59:59Z"], "no instant since 1970"),
        (&["hold", "set", "a.example", "--store", "sqlite:x", "--for", "a while"], "\"a while\" is no duration"),
        (
            &["hold", "set", "a.example", "--store", "sqlite:x", "--for", "1h", "--until", "2026-01-01T12:00:00Z"],
            "cannot be used with",
        ),
        (
            &["hold", "release", "a.example", "--store", "sqlite:x", "--until", "2026-01-01T12:00:00Z"],
            "unexpected argument '--until'",
        ),
        (&["hold", "release", "--store", "sqlite:x"], "<DESTINATION>"),
        (&["destinations", "--store", "sqlite:x", "--limit", "0"], "0 is not in 1..=1000"),
        (&["dead-letters", "--store", "sqlite:x", "--limit", "many"], "invalid digit"),
        (&["dead-letter", "--store", "sqlite:x"], "a similar subcommand exists: 'dead-letters'"),
        (&[], "Usage: restante"),
    ] {
        let done: Done = program(&folder).args(arguments).output().expect("the program").into();
        assert_eq!(done.code, 2, "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(words), "{arguments:?}: {done:?}");
    }
}
