//! From what the user calls them to scenarios.

use restante_sim::campaign::Target;
use restante_sim::scenario;

use super::Failed;

/// The scenarios that `names` mean: built-in names, built-in folders and paths; each once.
pub(super) fn targets<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Target>, Failed> {
    let mut sources: Vec<String> = Vec::new();
    for name in names {
        for source in meant_by(name) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
    }
    sources.into_iter().map(target).collect()
}

/// The one scenario called `source`.
pub(super) fn target(source: String) -> Result<Target, Failed> {
    let (scenario, text) = scenario::load(&source).map_err(Failed::usage)?;
    Ok(Target { source, text, scenario })
}

fn meant_by(name: &str) -> Vec<String> {
    let folder = format!("{}/", name.trim_end_matches('/'));
    let inside: Vec<String> =
        scenario::builtin_names().filter(|builtin| builtin.starts_with(&folder)).map(str::to_owned).collect();
    if inside.is_empty() { vec![name.to_owned()] } else { inside }
}
