use std::path::Path;

use restante_engine::{SimTime, TapeEntry};
use serde_json::{Value, json};

use super::{Capsule, CapsuleError, Environment, FailureNote, Replay, ReplayError, replay};
use crate::campaign::{KeyedBound, Simulated};

const TEXT: &str = "why = \"test\"\n[workload]\nsends_count = 2\nproducers = 1";

fn capsule() -> Capsule {
    Capsule {
        schema: "restante-capsule/1".into(),
        world: Simulated::Backlog,
        scenario: "smoke/test".into(),
        scenario_text: TEXT.into(),
        seed: u64::MAX,
        tape: vec![TapeEntry { site: "net.post".into(), key: "A1".into(), choice: "network.dns".into() }].into(),
        mutant: None,
        environment: Environment::current(),
        failure: FailureNote {
            property: "lane-order".into(),
            sentence: "A sentence.".into(),
            fingerprint: "lane-order entry=A1".into(),
            at_us: SimTime::from_ms(3),
        },
        digest: "0".repeat(32),
        fired: Vec::new(),
        decisions: "AAECAw".parse().expect("one decision"),
        schedule: Vec::new(),
    }
}

fn read(text: &str) -> Result<Capsule, CapsuleError> {
    Capsule::from_json(Path::new("x.json"), text)
}

fn with(change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::to_value(capsule()).expect("it is JSON");
    change(&mut value);
    value.to_string()
}

#[test]
fn round_trip() {
    assert_eq!(read(&capsule().to_json()).expect("it reads what it writes"), capsule());
    let folder = tempfile::tempdir().expect("a folder");
    let path = capsule().write_into(&folder.path().join("new")).expect("it is writable");
    assert_eq!(Capsule::read(&path).expect("it reads what it writes"), capsule());
}

#[test]
fn strict() {
    let malformed = |text: &str, wants: &str| match read(text) {
        Err(CapsuleError::Malformed { message, .. }) => assert!(message.contains(wants), "{message}"),
        other => panic!("{other:?}"),
    };
    malformed("{", "EOF");
    malformed("{}", "schema");
    malformed("[]", "schema");
    malformed(&with(|value| value["schema"] = json!("restante-capsule/0")), "restante-capsule/0");
    malformed(&with(|value| value["schema"] = json!(1)), "schema");
    malformed(&with(|value| value["extra"] = json!(1)), "extra");
    malformed(&with(|value| value["failure"]["extra"] = json!(1)), "extra");
    malformed(&with(|value| value["environment"]["extra"] = json!(1)), "extra");
    malformed(&with(|value| value["tape"][0]["extra"] = json!(1)), "extra");
    malformed(&with(|value| value["seed"] = json!(-1)), "u64");
    malformed(&with(|value| value["decisions"] = json!("A")), "base64");
    malformed(&with(|value| drop(value.as_object_mut().expect("an object").remove("digest"))), "digest");
    let newer = read(&with(|value| *value = json!({"schema": "restante-capsule/2", "other": "fields"})));
    assert!(matches!(newer, Err(CapsuleError::Newer { .. })), "{newer:?}");
}

#[test]
fn file_names_stay_in_their_folder() {
    let name = |scenario: &str, mutant: Option<&str>| {
        Capsule { scenario: scenario.into(), seed: 7, mutant: mutant.map(Into::into), ..capsule() }.file_name()
    };
    assert_eq!(name("faults/crashes", None), "faults-crashes-7.json");
    assert_eq!(name("faults/crashes", Some("fence-restarts")), "faults-crashes-7-fence-restarts.json");
    assert_eq!(name("../../etc/pass wd", None), "etc-pass-wd-7.json");
    assert_eq!(name("/tmp/ü", None), "tmp---7.json");
}

#[test]
fn a_violation_that_does_not_come_back_is_stale_or_vanished() {
    let of = |capsule: &Capsule| replay(capsule).expect("it runs");
    assert_eq!(of(&capsule()).replay, Replay::Vanished);
    let mut other = capsule();
    other.environment.source = "another".into();
    let replayed = of(&other);
    assert_eq!(replayed.replay, Replay::Stale);
    assert_eq!(replayed.environment_differences.len(), 1);
    assert!(replayed.environment_differences[0].starts_with("source: another -> "));

    let mut unknown = capsule();
    unknown.mutant = Some("no-such".into());
    assert!(matches!(replay(&unknown), Err(ReplayError::Mutant(_))));
    unknown.mutant = None;
    unknown.scenario_text = "why = \"w\"\nno_such = 1".into();
    assert!(matches!(replay(&unknown), Err(ReplayError::Scenario(_))));
}

#[test]
fn a_capsule_of_the_keyed_queue_says_so_and_one_of_the_backlog_as_ever_says_nothing() {
    assert!(!capsule().to_json().contains("\"world\""));
    let keyed = Capsule { world: Simulated::Keyed, scenario: "keyed/small".into(), scenario_text: String::new(), ..capsule() };
    assert_eq!(read(&keyed.to_json()).expect("it reads what it writes"), keyed);
    assert_eq!(replay(&keyed).expect("it runs").replay, Replay::Vanished);
    // A planted bug of one world is none of the other.
    let strange = Capsule { mutant: Some("fence-restarts".into()), ..keyed.clone() };
    assert!(matches!(replay(&strange), Err(ReplayError::Mutant(_))));
    let strange = Capsule { mutant: Some("successor-first".into()), ..capsule() };
    assert!(matches!(replay(&strange), Err(ReplayError::Mutant(_))));
    // A schedule needs the bound that it is of.
    let scheduled = |text: String, name: &str| Capsule {
        scenario_text: text,
        schedule: vec![serde_json::from_value(json!({ "name": name })).expect("a move")],
        ..keyed.clone()
    };
    let [bound, _] = KeyedBound::all();
    assert!(matches!(replay(&scheduled(String::new(), "start")), Err(ReplayError::Bound(_))));
    let taken = |name: &str| replay(&scheduled(bound.text(), name)).expect("it runs").decisions;
    assert_eq!((taken("submit k0").matched, taken("submit k0").first_difference), (1, None));
    assert_eq!(taken("start").first_difference.as_deref(), Some("move 1, start: not possible here"));
}
