//! Patches of the source, each with one real bug: applied to a copy of the repository, built, and run.
//!
//! A planted bug rewrites what crosses the boundary of production code; a patch is a mistake in that code itself. A patch
//! begins with lines that say why it is there, which property must find it, and in which scenario.

#![allow(dead_code, reason = "the test and the example each use a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Seeds in which a patch has to be found, and in which its scenario has to pass without it.
pub(crate) const SEEDS: u64 = 60;

/// A patch, with what its first lines say.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) why: String,
    pub(crate) property: String,
    pub(crate) scenario: String,
}

/// Where the patches lie, in the repository at `root`.
fn folder(root: &Path) -> PathBuf {
    root.join("scenarios/negative")
}

/// All patches of the repository at `root`, by name.
///
/// # Errors
///
/// What is wrong with one of them, or with the folder.
pub(crate) fn all(root: &Path) -> Result<Vec<Patch>, String> {
    let folder = folder(root);
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|file| file.extension().is_some_and(|it| it == "patch"));
    let mut patches = files.map(|file| read(&file)).collect::<Result<Vec<Patch>, String>>()?;
    patches.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(patches)
}

fn read(file: &Path) -> Result<Patch, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let head = |word: &str| {
        let found = text.lines().take_while(|line| !line.starts_with("diff ")).find_map(|line| line.strip_prefix(word));
        found.map(|rest| rest.trim().to_owned()).filter(|rest| !rest.is_empty())
    };
    let said = |word: &str| head(word).ok_or_else(|| format!("{}: no line begins with {word:?}", file.display()));
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Patch { name, file: file.to_owned(), why: said("Why:")?, property: said("Property:")?, scenario: said("Scenario:")? })
}

/// Runs git below `folder` as if no repository were around it, so that a copy is patched and not what it was copied from.
fn git(folder: &Path, args: &[&str], patch: &Path) -> Result<(), String> {
    let above = folder.parent().unwrap_or(folder);
    let mut command = Command::new("git");
    command.args(args).arg(patch).current_dir(folder).env("GIT_CEILING_DIRECTORIES", above).env_remove("GIT_DIR");
    let output = command.output().map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{} does not apply: {}", patch.display(), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Whether the patch applies to the files below `folder`.
///
/// # Errors
///
/// What git says.
pub(crate) fn applies(patch: &Patch, folder: &Path) -> Result<(), String> {
    let output = Command::new("git").args(["apply", "--check"]).arg(&patch.file).current_dir(folder).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    let says = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{} does not apply: {says}", patch.name)) }
}

/// A copy of the repository with a place to build it.
pub(crate) struct Copy {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
}

impl Copy {
    /// Copies what is needed to build the simulator to below `target/` of the repository at `root`. A file that is there
    /// already, and the same, is left alone: what was built of it is up to date.
    ///
    /// # Errors
    ///
    /// The file that cannot be copied, and why.
    pub(crate) fn new(root: &Path) -> Result<Self, String> {
        let home = root.join("target/source-patches");
        let copy = Self { root: root.to_owned(), tree: home.join("tree"), target: home.join("target") };
        copy.restore()?;
        Ok(copy)
    }

    /// Makes every file of the copy what it is in the repository.
    fn restore(&self) -> Result<(), String> {
        for part in ["Cargo.toml", "Cargo.lock", "crates", "sim", "tests", "scenarios"] {
            self.bring(Path::new(part))?;
        }
        Ok(())
    }

    fn bring(&self, part: &Path) -> Result<(), String> {
        let (from, to) = (self.root.join(part), self.tree.join(part));
        let named = |error: std::io::Error| format!("{}: {error}", from.display());
        if from.is_dir() {
            fs::create_dir_all(&to).map_err(named)?;
            for entry in fs::read_dir(&from).map_err(named)? {
                let name = entry.map_err(named)?.file_name();
                if name != "target" && name != "out" {
                    self.bring(&part.join(name))?;
                }
            }
            return Ok(());
        }
        let wanted = fs::read(&from).map_err(named)?;
        if fs::read(&to).is_ok_and(|there| there == wanted) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(named)?;
        }
        fs::write(&to, wanted).map_err(named)
    }

    /// Builds the copy and runs `scenario` in it.
    ///
    /// # Errors
    ///
    /// That it does not build, with what the compiler says.
    fn run(&self, scenario: &str) -> Result<Output, String> {
        let mut command = Command::new(option_env!("CARGO").unwrap_or("cargo"));
        command.args(["build", "--quiet", "--offline", "--package", "restante-sim", "--bin", "restante-sim"]);
        // No more than is needed to run some seeds: what is built here is run once.
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "1");
        let built = command.current_dir(&self.tree).output().map_err(|error| format!("cargo: {error}"))?;
        if !built.status.success() {
            return Err(format!("it does not build: {}", String::from_utf8_lossy(&built.stderr)));
        }
        let mut command = Command::new(self.target.join("debug/restante-sim"));
        command.args(["run", scenario, "--seeds", &SEEDS.to_string(), "--json"]);
        command.current_dir(&self.target).output().map_err(|error| format!("restante-sim: {error}"))
    }

    /// Whether `scenario` passes in the copy as it is.
    ///
    /// # Errors
    ///
    /// That it does not, and how.
    pub(crate) fn passes(&self, scenario: &str) -> Result<(), String> {
        let output = self.run(scenario)?;
        match output.status.code() {
            Some(0) => Ok(()),
            code => Err(format!("{scenario} ends with exit code {code:?} without any patch: {}", shown(&output))),
        }
    }

    /// Applies `patch`, runs its scenario, and takes the patch back. Returns the seed that found it.
    ///
    /// # Errors
    ///
    /// That its property does not find it.
    pub(crate) fn finds(&self, patch: &Patch) -> Result<u64, String> {
        git(&self.tree, &["apply"], &patch.file)?;
        let output = self.run(&patch.scenario);
        self.restore()?;
        let output = output?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("its report: {error}"))?;
        let failure = &report["failures"][0];
        match (output.status.code(), failure["property"].as_str(), failure["seed"].as_u64()) {
            (Some(1), Some(property), Some(seed)) if property == patch.property => Ok(seed),
            (code, property, _) => Err(format!(
                "{} was to be found by {} in {SEEDS} seeds of {}, and its runs end with exit code {code:?} and {property:?}",
                patch.name, patch.property, patch.scenario
            )),
        }
    }
}

fn shown(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().take(40).collect::<Vec<_>>().join("\n")
}
