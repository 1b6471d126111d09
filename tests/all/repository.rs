//! Checks of the repository itself: arrows between crates, purity of the core, no orphan files, documents that keep step.

#[path = "../patches/mod.rs"]
mod patches;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use restante_engine::Quantifier;
use restante_sim::campaign::{Planted, Simulated};
use restante_sim::{Mutant, PROPERTIES, keyed, scenario};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files below `folder` (of the repository) whose names end in `ending`, sorted.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries.map(|entry| entry.expect("readable").path()) {
            let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("target") || name == ".git" || name == "out" {
                continue;
            }
            if entry.is_dir() {
                walk(&entry, ending, found);
            } else if name.ends_with(ending) {
                found.push(entry);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), ending, &mut found);
    found.sort();
    found
}

/// Normal and build dependencies of a package, all of them, by name.
fn dependency_tree(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--format", "{p}", "-p", package])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn nothing_that_users_depend_on_depends_on_the_simulator() {
    for manifest in files("crates", "Cargo.toml") {
        let package = manifest.parent().and_then(Path::file_name).expect("a folder").to_string_lossy().into_owned();
        let tree = dependency_tree(&package);
        for sim in ["restante-engine", "restante-sim", "restante-sim-keyed"] {
            assert!(!tree.contains(sim), "{package} depends on {sim}");
        }
    }
}

#[test]
fn the_core_has_no_runtime_clock_entropy_or_io() {
    let tree = dependency_tree("restante-core");
    for forbidden in ["tokio", "async-std", "smol", "rand", "getrandom", "chrono", "time", "jiff", "mio", "libc", "rusqlite"] {
        assert!(!tree.contains(forbidden), "restante-core depends on {forbidden}");
    }
    let forbidden = ["SystemTime", "Instant::now", "std::fs", "std::net", "std::thread", "HashMap", "HashSet", "async fn"];
    for file in files("crates/restante-core/src", ".rs") {
        let text = std::fs::read_to_string(&file).expect("readable");
        for word in forbidden {
            assert!(!text.contains(word), "{} names {word}", file.display());
        }
    }
}

#[test]
fn the_driver_knows_no_record_and_no_key() {
    // It hands keys and values through; what they mean is the machines' business.
    let forbidden = ["restante_core::record", "restante_core::keys", "record::", "keys::", "Keys::", "::decode(", ".encode("];
    for file in files("crates/restante-driver/src", ".rs") {
        let text = std::fs::read_to_string(&file).expect("readable");
        for word in forbidden {
            assert!(!text.contains(word), "{} names {word}", file.display());
        }
    }
}

#[test]
fn the_default_command_needs_no_runtime_client_or_c_library() {
    let tree = dependency_tree("restante-sim");
    for forbidden in ["tokio", "hyper", "reqwest", "rusqlite", "libsqlite3-sys", "openssl-sys", "cc"] {
        assert!(!tree.contains(forbidden), "restante-sim depends on {forbidden}");
    }
}

#[test]
fn folders_are_named_as_their_crates() {
    for manifest in files("crates", "Cargo.toml").into_iter().chain(files("sim", "Cargo.toml")) {
        let folder = manifest.parent().and_then(Path::file_name).expect("a folder").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&manifest).expect("readable");
        assert!(text.contains(&format!("name = \"{folder}\"\n")), "{}", manifest.display());
    }
}

#[test]
fn every_scenario_file_comes_with_the_command() {
    let on_disk: BTreeSet<String> = files("scenarios", ".toml")
        .iter()
        .map(|file| file.strip_prefix(root().join("scenarios")).expect("below").with_extension("").to_string_lossy().into_owned())
        .collect();
    let builtin: BTreeSet<String> = scenario::builtin_names().map(str::to_owned).collect();
    assert_eq!(on_disk, builtin);
    let patches = files("scenarios/negative", ".patch").len();
    assert_eq!(files("scenarios", "").len(), on_disk.len() + patches, "only scenarios and patches lie under scenarios/");
}

/// That each is found by its property, `cargo run -p restante-tests --example source_patches` shows.
#[test]
fn every_source_patch_applies_and_names_a_property_and_a_scenario_that_exist() {
    let patches = patches::all(&root()).expect("they can be read");
    assert!(patches.len() >= 5);
    let page = read("docs/invariants.md");
    let mut properties = BTreeSet::new();
    for patch in &patches {
        patches::applies(patch, &root()).expect("it applies");
        let property = PROPERTIES.iter().find(|property| property.name == patch.property);
        assert!(property.is_some_and(|property| property.quantifier != Quantifier::Sometimes), "{}", patch.name);
        assert!(scenario::builtin_names().any(|name| name == patch.scenario), "{}", patch.name);
        assert!(properties.insert(patch.property.clone()), "{} has a property that another patch has", patch.name);
        let row = format!("| `{}` | {} | `{}` | `{}` |", patch.name, patch.why, patch.property, patch.scenario);
        assert!(page.contains(&row), "docs/invariants.md has no row for {}: {row}", patch.name);
    }
}

#[test]
fn every_planted_bug_names_a_property_and_a_scenario_that_exist() {
    for mutant in Mutant::ALL {
        assert!(PROPERTIES.iter().any(|property| property.name == mutant.property()), "{}", mutant.name());
        assert!(scenario::builtin_names().any(|name| name == mutant.scenario()), "{}", mutant.name());
    }
    for mutant in keyed::Mutant::ALL {
        assert!(keyed::PROPERTIES.iter().any(|property| property.name == mutant.property()), "{}", mutant.name());
    }
}

#[test]
fn every_property_that_must_hold_has_a_planted_bug_that_trips_it() {
    for world in Simulated::ALL {
        for property in world.properties().iter().filter(|property| property.quantifier != Quantifier::Sometimes) {
            let mut bugs = Planted::all().filter(|planted| planted.simulated() == world);
            assert!(bugs.any(|planted| planted.property() == property.name), "{}", property.name);
        }
    }
}

#[test]
fn the_invariants_page_says_what_the_code_says() {
    let page = read("docs/invariants.md");
    let (backlog, keyed) = page.split_once("\n## The keyed queue\n").expect("the keyed queue has a section");
    for (world, part) in [(Simulated::Backlog, backlog), (Simulated::Keyed, keyed)] {
        for property in world.properties() {
            let row = format!("| `{}` | {} | {} |", property.name, property.quantifier, property.sentence);
            assert!(part.contains(&row), "docs/invariants.md has no row of its own for {}", property.name);
        }
        for planted in Planted::all().filter(|planted| planted.simulated() == world) {
            let row = format!("| `{}` | {} | `{}` |", planted.name(), planted.sentence(), planted.property());
            assert!(part.contains(&row), "docs/invariants.md has no row of its own for {}", planted.name());
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut pages = files("docs", ".md");
    pages.extend([root().join("README.md"), root().join("CHANGELOG.md")]);
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("readable");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.contains(' ') {
                continue;
            }
            let target = page.parent().expect("a folder").join(path);
            assert!(target.exists(), "{} links to {link}", page.display());
        }
    }
}

/// The project speaks only of itself.
#[test]
fn nothing_points_outside_the_repository() {
    let listed = Command::new("git").args(["ls-files"]).current_dir(root()).output().expect("git runs");
    let listed = String::from_utf8(listed.stdout).expect("text");
    // Put together here, so that this file does not find itself.
    let forbidden = [["..", "/shared"].concat(), ["/wo", "rk/"].concat(), ["/ro", "ot/"].concat(), ["arti", "factory"].concat()];
    for name in listed.lines().filter(|name| *name != "Cargo.lock") {
        let Ok(text) = std::fs::read_to_string(root().join(name)) else { continue };
        for word in &forbidden {
            assert!(!text.contains(word.as_str()), "{name} contains {word}");
        }
    }
}

#[test]
fn every_decision_record_is_numbered_once() {
    let mut numbers = BTreeSet::new();
    for file in files("docs/adr", ".md") {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let number = name.split('-').next().expect("a number").to_owned();
        assert!(number.len() == 4 && number.parse::<u32>().is_ok(), "{name} has no number");
        assert!(numbers.insert(number), "{name} repeats a number");
    }
    assert!(!numbers.is_empty());
}
