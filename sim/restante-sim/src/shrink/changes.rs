//! What was removed or changed, in words.

use std::collections::BTreeMap;

use super::candidate::Candidate;
use super::counts::Counts;
use super::passes::ARMED;
use super::settings::{is_chance, is_family};

/// One sentence for each kind of change.
pub(super) fn changes(before: &Candidate, after: &Candidate, counts_before: &Counts, counts_after: &Counts) -> Vec<String> {
    let settings = |candidate: &Candidate| {
        let settings = candidate.settings().into_iter();
        let shown = |value: toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        settings.map(|(section, key, value)| ((section, key), shown(value))).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (settings(before), settings(after));
    let (mut off, mut taped, mut changed, mut forgotten) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (path, value) in &old {
        let (section, key) = path;
        let name = format!("{section}.{key}");
        match new.get(path) {
            None if is_family(section, key) => off.push(name.trim_start_matches("faults.").to_owned()),
            None => forgotten.push(name),
            Some(now) if now == ARMED && is_chance(section, key) => taped.push(name.trim_start_matches("faults.").to_owned()),
            Some(now) if now != value => changed.push(format!("{name} {value} -> {now}")),
            Some(_) => {}
        }
    }
    let added = new.iter().filter(|(path, _)| !old.contains_key(*path));
    changed.extend(added.map(|((section, key), now)| format!("{section}.{key} -> {now}")));
    let mut sentences = Vec::new();
    let mut list = |what: &str, names: Vec<String>| {
        if !names.is_empty() {
            sentences.push(format!("{what}: {}", names.join(", ")));
        }
    };
    list("faults switched off", off);
    list("faults that happen only where the tape says so", taped);
    for (what, was, is) in [
        ("faults", counts_before.faults, counts_after.faults),
        ("sends", counts_before.sends, counts_after.sends),
        ("operations", counts_before.operations, counts_after.operations),
    ] {
        if is < was {
            list(&format!("{what} left out"), vec![format!("{} of {was}", was - is)]);
        }
    }
    list("changed", changed);
    list("back to the default", forgotten);
    sentences
}
