//! The coverage page keeps its word: each row's bug violates that row's property in that row's scenario, and nothing else does.

use std::collections::BTreeSet;
use std::path::Path;

use restante_sim::campaign::run_guarded;
use restante_sim::{Mutant, RunOptions, scenario};

const SEEDS_MAX: u64 = 300;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of every table row of a page, without the back quotes around names.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    page.lines().filter_map(|line| {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(cells.split(" | ").map(|cell| cell.trim_matches('`')).collect())
    })
}

#[test]
fn the_bug_of_every_row_violates_its_property_in_its_scenario_and_the_seed_passes_without_it() {
    let page = read("docs/coverage.md");
    let mut shown = 0;
    for row in rows(&page) {
        let [what, name, property, bug] = row[..] else { continue };
        let Some(mutant) = Mutant::by_name(bug) else {
            assert_eq!(bug, "planted bug", "{what}: {bug} is no planted bug");
            continue;
        };
        let (scenario, _) = scenario::load(name).unwrap_or_else(|error| panic!("{what}: {error}"));
        let run = |seed, mutant| {
            let run = run_guarded(&scenario, seed, &RunOptions { mutant, ..RunOptions::default() });
            run.expect("the simulator is not at fault").violation
        };
        let found = (1..=SEEDS_MAX).find_map(|seed| Some((seed, run(seed, Some(mutant))?)));
        let (seed, violation) = found.unwrap_or_else(|| panic!("{what}: {bug} is not found in {name} in {SEEDS_MAX} seeds"));
        assert_eq!(violation.property, property, "{what}: {bug} in {name} at seed {seed}");
        assert_eq!(run(seed, None), None, "{what}: {name} fails at seed {seed} without {bug} too");
        shown += 1;
    }
    assert!(shown > 50, "{shown} rows");
}

#[test]
fn every_requirement_that_is_met_is_on_the_page_and_every_test_on_it_exists() {
    let (page, requirements) = (read("docs/coverage.md"), read("docs/requirements.md"));
    let mut covered = BTreeSet::new();
    for row in rows(&page) {
        covered.extend(row[0].split(", ").map(str::to_owned));
        if let [_, test, file] = row[..]
            && test != "test"
        {
            assert!(read(file).contains(&format!("fn {test}(")), "{file} has no test {test}");
        }
    }
    let (backlog, _) = requirements.split_once("## Showing it").expect("the page has that part");
    for row in rows(backlog) {
        let is_id = row[0].rsplit_once('-').is_some_and(|(name, number)| {
            name.bytes().all(|byte| byte.is_ascii_uppercase()) && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let is_open = row.iter().any(|cell| cell.starts_with("not yet"));
        assert!(!is_id || is_open || covered.contains(row[0]), "{} is neither on the page nor open", row[0]);
    }
}
