//! The keys that sign: from a PEM file into the store, and from there into a signature.

use crate::bed::{Bed, Done};
use crate::receiver::Receiver;

/// The test key that RFC 9421 publishes.
const PEM: &str =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
const MASTER: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn run(bed: &Bed, arguments: &[&str]) -> Done {
    bed.command(arguments).env("RESTANTE_MASTER_KEY", MASTER).output().expect("the program").into()
}

fn with_key() -> Bed {
    let bed = Bed::with_store();
    bed.write("ada.pem", PEM);
    let added = run(&bed, &["keys", "add", "ada", "--pem", "ada.pem"]);
    assert_eq!((added.code, added.stdout.as_str()), (0, "key ada (Ed25519) is there\n"), "{added:?}");
    bed
}

#[test]
fn a_send_that_names_a_key_arrives_signed_by_it() {
    let (bed, receiver) = (with_key(), Receiver::answering(202));
    let (inbox, key_id) = (receiver.inbox("/"), "https://social.example/users/ada#key");
    bed.write("note", "{}");
    let arguments = [
        "send",
        "--inbox",
        &inbox,
        "--payload",
        "note",
        "--sign-key",
        "ada",
        "--sign-key-id",
        key_id,
        "--sign-scheme",
        "rfc9421",
    ];
    assert_eq!(run(&bed, &arguments).code, 0);
    assert_eq!(run(&bed, &["run-once"]).code, 0);
    let head = &receiver.wait_for(1)[0].head;
    assert!(head.contains("signature-input: ") && head.contains(&format!("keyid=\"{key_id}\"")), "{head}");
}

#[test]
fn a_send_whose_key_is_gone_is_not_sent_unsigned_but_waits() {
    let (bed, receiver) = (with_key(), Receiver::answering(202));
    let inbox = receiver.inbox("/");
    let arguments =
        ["send", "--inbox", &inbox, "--payload", "ada.pem", "--sign-key", "bea", "--sign-key-id", "https://social.example/#k"];
    assert_eq!(run(&bed, &arguments).code, 0);
    assert_eq!(run(&bed, &["run-once"]).code, 0);
    assert_eq!(receiver.arrived().len(), 0);
    assert_eq!(bed.ask(&["depth"])["entries"], 1);
}

#[test]
fn keys_are_listed_replaced_and_removed() {
    let bed = with_key();
    let list = run(&bed, &["keys", "list", "--json"]);
    assert_eq!(list.stdout, "{\"keys\":[{\"name\":\"ada\",\"master_key\":1}]}\n");
    assert!(run(&bed, &["keys", "add", "ada", "--pem", "ada.pem"]).stdout.contains("in the place of the one that was there"));
    assert_eq!(run(&bed, &["keys", "remove", "ada"]).stdout, "key ada is gone\n");
    let again = run(&bed, &["keys", "remove", "ada", "--json"]);
    assert_eq!((again.code, &again.fault()["code"]), (5, &"unknown_id".into()));
}

#[test]
fn a_master_key_is_changed_in_steps() {
    let bed = with_key();
    bed.write("old", MASTER);
    bed.write("new", &MASTER.chars().rev().collect::<String>());
    let signing = |sealing: u32, numbers: &[(u32, &str)]| {
        let keys: Vec<_> = numbers
            .iter()
            .map(|(number, file)| format!("{{ number = {number}, file = \"{}\" }}", bed.path(file).display()))
            .collect();
        bed.write("restante.toml", &format!("[signing]\nsealing = {sealing}\nmaster_keys = [{}]", keys.join(", ")));
    };
    signing(2, &[(1, "old"), (2, "new")]);
    let rotated = bed.run(&["keys", "rotate"]);
    assert_eq!((rotated.code, rotated.stdout.as_str()), (0, "1 sealed anew, 0 were already, 0 are left\n"), "{rotated:?}");
    signing(2, &[(2, "new")]);
    assert_eq!(bed.ask(&["keys", "list"])["keys"][0]["master_key"], 2);

    signing(1, &[(1, "old")]);
    let left = bed.run(&["keys", "rotate", "--json"]);
    assert_eq!(left.code, 1, "{left:?}");
    assert!(left.json()["left"]["ada"].as_str().is_some_and(|why| why.contains("master key 2")), "{left:?}");
    signing(3, &[(1, "old")]);
    let none = bed.run(&["keys", "list"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.stderr.contains("seals with master key 3, which is not among its master_keys"), "{none:?}");
}

#[test]
fn what_is_no_key_is_refused_and_not_quoted() {
    let bed = Bed::with_store();
    bed.write("letter", "so very secret");
    for (arguments, code, words) in [
        (&["keys", "add", "ada", "--pem", "letter"][..], 2, "there is no PRIVATE KEY or RSA PRIVATE KEY section"),
        (&["keys", "add", "ada", "--pem", "nothing"], 2, "the private key in \"nothing\" cannot be read"),
        (&["keys", "add", "", "--pem", "letter"], 2, "a key name is 1 to 512 bytes"),
    ] {
        let done = run(&bed, arguments);
        assert_eq!(done.code, code, "{done:?}");
        assert!(done.stderr.contains(words) && !done.stderr.contains("so very secret"), "{done:?}");
    }
    let without = bed.run(&["keys", "list"]);
    assert_eq!(without.code, 2);
    assert!(without.stderr.contains("there is no master key to seal keys with; set RESTANTE_MASTER_KEY"), "{without:?}");
    let malformed = bed.command(&["keys", "list"]).env("RESTANTE_MASTER_KEY", "so very secret").output().expect("the program");
    let malformed = Done::from(malformed);
    assert_eq!(malformed.code, 2, "{malformed:?}");
    assert!(malformed.stderr.contains("master key 1 is malformed") && !malformed.stderr.contains("so very"), "{malformed:?}");
}
