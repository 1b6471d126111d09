//! `restante-sim conformance`, driven from outside.

use std::process::Command;

use serde_json::Value;

#[track_caller]
fn expect(code: i32, args: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante-sim"));
    let output = command.arg("conformance").args(args).output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{stdout}\n{stderr}");
    (stdout, stderr)
}

#[test]
fn stores_that_come_with_the_command_pass() {
    for store in ["memory", "simulated", "simulated-in-flight"] {
        let (stdout, _) = expect(0, &["--store", store]);
        assert!(stdout.contains("\none-of-64-creators-wins ... ok\n"), "{stdout}");
        assert!(stdout.contains("records-survive-reopening ... skipped: limits() says"), "{stdout}");
        let last = stdout.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("{store}: ")) && last.contains(" passed; 0 failed; 3 skipped"), "{last}");
    }
}

#[test]
fn results_and_list_are_also_json() {
    let (stdout, _) =
        expect(0, &["--store", "simulated", "--filter", "random-programs", "--seed", "7", "--stress", "0", "--json"]);
    let results: Value = serde_json::from_str(&stdout).expect("JSON alone");
    assert_eq!(results["schema"], "restante-sim/conformance/1");
    assert_eq!((&results["seed"], &results["passed"], &results["verdict"]), (&7.into(), &1.into(), &"pass".into()));
    let (stdout, _) = expect(0, &["--list", "--json"]);
    let listed: Value = serde_json::from_str(&stdout).expect("JSON alone");
    assert!(listed["checks"].as_array().is_some_and(|checks| checks.len() > 70));
    let (stdout, _) = expect(0, &["--list", "--filter", "clock"]);
    assert!(stdout.contains("the-clock-goes-on"), "{stdout}");
}

#[test]
fn what_cannot_be_run_is_said_in_one_line() {
    expect(2, &[]);
    expect(2, &["--store", "sqlite:"]);
    let (_, stderr) = expect(2, &["--store", "memory", "--filter", "no such check"]);
    assert!(stderr.contains("--list"), "{stderr}");
    let (stdout, _) = expect(5, &["--store", "memory", "--filter", "reopening"]);
    assert!(stdout.contains("0 passed; 0 failed; 3 skipped"), "{stdout}");
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn without_sqlite_the_command_says_how_to_build_it() {
    let (_, stderr) = expect(2, &["--store", "sqlite:some.db"]);
    let line = "cargo run --release --features sqlite -- conformance --store sqlite:some.db\n";
    assert!(stderr.ends_with(line) && stderr.lines().count() == 1, "{stderr}");
}

#[cfg(feature = "sqlite")]
#[test]
fn a_file_is_checked_and_a_folder_cannot_be_opened() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let (stdout, _) = expect(0, &["--store", &path("kv.db"), "--filter", "reopening"]);
    assert!(stdout.contains("3 passed; 0 failed; 0 skipped"), "{stdout}");
    let (_, stderr) = expect(4, &["--store", &path("missing/kv.db")]);
    assert!(stderr.contains("could not be opened"), "{stderr}");
}
