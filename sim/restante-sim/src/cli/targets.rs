//! From what the user calls them to scenarios, workloads and bounds.

use restante_sim::campaign::{KEYED, KeyedBound, Planted, Target, Workload};
use restante_sim::scenario;

use super::Failed;

/// The folder of the keyed queue's workload and bounds.
const KEYED_FOLDER: &str = "keyed/";

/// The workloads that `names` mean: built-in names, built-in folders and paths; each once.
pub(super) fn workloads<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Workload>, Failed> {
    let mut sources: Vec<String> = Vec::new();
    for name in names {
        for source in meant_by(name) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
    }
    sources.into_iter().map(workload).collect()
}

/// The one workload called `source`.
pub(super) fn workload(source: String) -> Result<Workload, Failed> {
    if source == KEYED {
        return Ok(Workload::Keyed);
    }
    if KeyedBound::all().iter().any(|bound| bound.name == source) {
        return Err(Failed::usage(format!("{source} is a bound: `check {source}` explores it; the workload is {KEYED}")));
    }
    target(source).map(Workload::from)
}

/// The scenarios called `names`.
pub(super) fn targets<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Target>, Failed> {
    names.into_iter().map(str::to_owned).map(target).collect()
}

/// The one scenario called `source`.
pub(super) fn target(source: String) -> Result<Target, Failed> {
    let (scenario, text) = scenario::load(&source).map_err(Failed::usage)?;
    Ok(Target { source, text, scenario })
}

/// The bounds of the keyed queue that `name` means: one, or all of its folder; none if it means something else.
pub(super) fn keyed_bounds(name: &str) -> Result<Vec<KeyedBound>, Failed> {
    if name == KEYED {
        return Err(Failed::usage(format!(
            "{KEYED} is run under seeds: `run {KEYED}`; `check keyed` explores the bounds beside it"
        )));
    }
    let is_meant = |bound: &KeyedBound| bound.name == name || is_folder(name, KEYED_FOLDER);
    Ok(KeyedBound::all().into_iter().filter(is_meant).collect())
}

/// That `planted` is of the world of `name`, which is planted there.
pub(super) fn fits(planted: Option<Planted>, workload: &Workload) -> Result<(), Failed> {
    match planted.filter(|planted| planted.simulated() != workload.simulated()) {
        Some(planted) => Err(misplaced(planted, workload.source())),
        None => Ok(()),
    }
}

/// `planted` cannot be planted in what is called `name`.
pub(super) fn misplaced(planted: Planted, name: &str) -> Failed {
    let (bug, whose, there) = (planted.name(), planted.simulated().noun(), planted.workload());
    Failed::usage(format!("{bug} is a planted bug of {whose}, for {there} and its like; it cannot be planted in {name}"))
}

fn meant_by(name: &str) -> Vec<String> {
    if is_folder(name, KEYED_FOLDER) {
        return vec![KEYED.to_owned()];
    }
    let folder = format!("{}/", name.trim_end_matches('/'));
    let inside: Vec<String> =
        scenario::builtin_names().filter(|builtin| builtin.starts_with(&folder)).map(str::to_owned).collect();
    if inside.is_empty() { vec![name.to_owned()] } else { inside }
}

/// Whether `name` is `folder`, with or without its slash.
fn is_folder(name: &str, folder: &str) -> bool {
    name.trim_end_matches('/') == folder.trim_end_matches('/')
}
