//! The keyed queue: found, run, explored and replayed where the backlog is.

use serde_json::Value;

use super::{Bench, text};

#[test]
fn the_keyed_queue_runs_by_name_and_with_everything_else() {
    let bench = Bench::new();
    let (shown, stderr) = bench.expect(0, &["run", "keyed", "--seeds", "60"]);
    assert!(shown.starts_with("scenario     runs") && shown.contains("\nkeyed/small    60"), "{shown}");
    assert!(shown.contains(" tasks, ") && !shown.contains(" deliveries"), "{shown}");
    // The states of the backlog are no concern of a run without it.
    assert!(shown.contains("sometimes, not reached: none"), "{shown}");
    assert!(stderr.contains("keyed/small: 60 runs, no violation"), "{stderr}");
    assert_eq!(shown, bench.expect(0, &["run", "keyed/small", "keyed/", "--seeds", "60", "--jobs", "1"]).0);

    let report = bench.json(0, &["--seeds", "1", "--json"]);
    let scenarios = report["scenarios"].as_array().expect("a list");
    let keyed = scenarios.last().expect("there are some");
    assert_eq!((text(&keyed["name"]), text(&keyed["world"])), ("keyed/small", "keyed"));
    assert!(scenarios.len() > 30 && scenarios[..scenarios.len() - 1].iter().all(|scenario| scenario["world"] == "backlog"));
    // Tasks are no entries: each world adds up its own.
    assert_eq!(report["totals"]["tasks"], keyed["entries"]);
}

#[test]
fn a_planted_bug_of_the_keyed_queue_is_found_by_seeds_and_its_commands_show_it_again() {
    let bench = Bench::new();
    let report = bench.json(1, &["run", "--mutant", "key-pause-overtaken", "--json"]);
    let failure = &report["failures"][0];
    let (fingerprint, path) = (text(&failure["fingerprint"]), text(&failure["capsule_path"]));
    assert_eq!((text(&failure["scenario"]), text(&failure["property"])), ("keyed/small", "paused-starts-nothing"));
    assert!(!text(&failure["sentence"]).is_empty());
    let replayed = bench.json(1, &["replay", path, "--json"]);
    assert_eq!(text(&replayed["capsule"]["outcome"]), "reproduced");
    assert_eq!(replayed["capsule"]["is_digest_same"], true);
    let decisions = &replayed["capsule"]["decisions"];
    assert_eq!((&decisions["matched"], &decisions["made"]), (&decisions["recorded"], &decisions["recorded"]));

    let by_seed = text(failure["replay"].as_array().and_then(|commands| commands.last()).expect("a command"));
    let args: Vec<&str> = by_seed.strip_prefix("cargo run --release -- ").expect("a command").split(' ').collect();
    let traced = || bench.expect(1, &[&args[..], &["--trace"]].concat()).0;
    let shown = traced();
    assert!(shown.contains("| pause-key ") && shown.contains(fingerprint) && shown.contains(" tasks, "), "{shown}");
    assert_eq!(shown, traced());
    // Without the bug the seed passes.
    bench.expect(0, &args[..args.len() - 2]);

    let (_, stderr) = bench.expect(2, &["shrink", path]);
    assert!(stderr.contains(path) && stderr.contains("keyed queue"), "{stderr}");
}

#[test]
fn a_bound_of_the_keyed_queue_is_explored_and_its_schedule_replays() {
    let bench = Bench::new();
    let (shown, _) = bench.expect(1, &["check", "keyed", "--mutant", "successor-first"]);
    for width in [1, 2] {
        let path = format!("out/keyed-width-{width}-0-successor-first.json");
        let command = format!("cargo run --release -- replay {path} --trace");
        assert!(shown.contains(&format!("bound        keyed/width-{width}, planted bug")) && shown.contains(&command), "{shown}");
        let (replayed, _) = bench.expect(1, &["replay", &path, "--trace"]);
        assert!(replayed.contains("the capsule's violation came back\n3 of 3 moves taken\n"), "{replayed}");
        assert!(replayed.contains("the run is the same in everything") && replayed.contains("| begin "), "{replayed}");
    }
    assert_eq!(shown.matches("verdict: ").count(), 1);
    let reports = bench.json(1, &["check", "keyed", "--mutant", "successor-first", "--jobs", "1", "--json"]);
    assert_eq!((text(&reports["schema"]), &reports["exit_code"]), ("restante-sim/checks/1", &1.into()));
    assert_eq!(reports["bounds"].as_array().map(Vec::len), Some(2));
    // One bound is one report, as ever.
    let report = bench.json(6, &["check", "keyed/width-2", "--states-max", "1000", "--json"]);
    assert_eq!((text(&report["schema"]), text(&report["scenario"])), ("restante-sim/check/1", "keyed/width-2"));
    assert_eq!((&report["states"], &report["is_complete"]), (&1_000.into(), &false.into()));
    bench.file("in-the-way", "");
    bench.expect(4, &["check", "keyed/width-1", "--mutant", "successor-first", "--out", "in-the-way/inside"]);
}

#[test]
fn planted_bugs_of_both_worlds_are_measured_in_a_table_each() {
    let bench = Bench::new();
    let both = ["mutants", "acknowledged-as-failed", "idle-swallowed", "--seeds", "8"];
    let (shown, _) = bench.expect(0, &both);
    assert_eq!(shown.matches("planted bug ").count(), 2, "{shown}");
    assert!(shown.contains("keyed/width-1: 2 moves, ") && shown.contains("1 of 1 were caught in general"), "{shown}");
    let report = bench.json(0, &[&both[..], &["--json"]].concat());
    let keyed = &report["mutants"][1];
    assert_eq!((text(&keyed["world"]), &keyed["hunt"]["passes_without"]), ("keyed", &true.into()));
    assert_eq!((text(&keyed["explored"]["property"]), &keyed["in_general"]), ("idle-is-told", &Value::Null));
    // One that too few seeds find is part of the exit code.
    let (shown, _) = bench.expect(1, &["mutants", "pause-overtaken", "--seeds", "1"]);
    assert!(shown.contains("pause-overtaken: never caught in 1 seeds") && !shown.contains("in general"), "{shown}");

    let listed = bench.json(0, &["list", "--json"]);
    let (shown, _) = bench.expect(0, &["list"]);
    let properties = listed["keyed_properties"].as_array().expect("a list");
    assert!(!properties.is_empty() && properties.iter().all(|property| shown.contains(text(&property["sentence"]))));
}

#[test]
fn worlds_are_not_mixed_up() {
    let bench = Bench::new();
    for (args, wants) in [
        (&["run", "keyed", "--mutant", "fence-restarts"][..], "fence-restarts is a planted bug of the backlog"),
        (&["run", "small.toml", "--mutant", "key-kept"], "key-kept is a planted bug of the keyed queue"),
        (&["replay", "--seed", "1", "keyed/small", "--mutant", "panics"], "panics is a planted bug of the backlog"),
        (&["check", "keyed", "--mutant", "panics"], "panics is a planted bug of the backlog"),
        (&["check", "small", "--mutant", "key-kept"], "key-kept is a planted bug of the keyed queue"),
        (&["run", "keyed/width-1"], "check keyed/width-1"),
        (&["check", "keyed/small"], "run keyed/small"),
        (&["check", "keyed/width-3"], "keyed/width-3"),
        (&["replay", "--seed", "1", "keyed"], "keyed"),
    ] {
        let (stdout, stderr) = bench.expect(2, args);
        assert!(stderr.contains(wants), "{args:?} says {stderr}");
        assert_eq!(stdout, "", "{args:?}");
    }
}
