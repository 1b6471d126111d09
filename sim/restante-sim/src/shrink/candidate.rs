//! What is changed while shrinking: the scenario's text, as a table, and the tape.

use restante_engine::{Tape, TapeEntry};
use toml::{Table, Value};

use super::counts::SKIP;
use crate::capsule::Capsule;
use crate::scenario::ScenarioError;
use crate::scenario::swarm::Edit;

/// Sections of a scenario file, in the order in which they are written; others follow.
const SECTIONS: [&str; 6] = ["world", "workload", "config", "latency", "faults", "expect"];

/// A scenario and a tape that may fail in the same way.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Candidate {
    table: Table,
    entries: Vec<TapeEntry>,
}

impl Candidate {
    pub(super) fn of(capsule: &Capsule) -> Result<Self, ScenarioError> {
        let mut table: Table = toml::from_str(&capsule.scenario_text).map_err(|error| ScenarioError::Inconsistent {
            name: capsule.scenario.clone(),
            message: error.message().to_owned(),
        })?;
        let why = format!("Shrunk from {}, seed {}.", capsule.scenario, capsule.seed);
        table.insert("why".into(), why.into());
        Ok(Self { table, entries: capsule.tape.entries.clone() })
    }

    /// The scenario's text.
    pub(super) fn text(&self) -> String {
        let part = |keys: &[&str]| {
            let known = keys.iter().filter_map(|key| Some(((*key).to_owned(), self.table.get(*key)?.clone())));
            toml::to_string(&known.collect::<Table>()).expect("a table that was read can be written")
        };
        let sections = self.sections().map(|section| part(&[section]));
        let parts = [part(&["why"]) + &part(&["planted"])].into_iter().chain(sections);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn tape(&self) -> Tape {
        self.entries.clone().into()
    }

    /// The sections there are, in the order in which they are written.
    fn sections(&self) -> impl Iterator<Item = &str> {
        let others = self.table.iter().filter(|(key, value)| value.is_table() && !SECTIONS.contains(&key.as_str()));
        SECTIONS.into_iter().chain(others.map(|(key, _)| key.as_str()))
    }

    /// Every setting: section (`world`, `faults.store`), key and value. What stands above the first section is none.
    pub(super) fn settings(&self) -> Vec<(String, String, Value)> {
        let mut found = Vec::new();
        for section in self.sections() {
            let Some(Value::Table(table)) = self.table.get(section) else { continue };
            for (key, value) in table {
                match value {
                    Value::Table(inner) => {
                        let path = format!("{section}.{key}");
                        found.extend(inner.iter().map(|(key, value)| (path.clone(), key.clone(), value.clone())));
                    }
                    value => found.push((section.to_owned(), key.clone(), value.clone())),
                }
            }
        }
        found
    }

    pub(super) fn has(&self, section: &str, key: &str) -> bool {
        let table = section.split('.').try_fold(&self.table, |table, part| table.get(part)?.as_table());
        table.is_some_and(|table| table.contains_key(key))
    }

    /// The same with another setting.
    pub(super) fn with(mut self, section: &str, key: &str, value: impl Into<Value>) -> Self {
        let mut table = &mut self.table;
        for part in section.split('.') {
            let entry = table.entry(part.to_owned()).or_insert_with(|| Value::Table(Table::new()));
            match entry {
                Value::Table(inner) => table = inner,
                // No section: the scenario would not have been read.
                _ => return self,
            }
        }
        table.insert(key.to_owned(), value.into());
        self
    }

    /// The same with what a seed took of a swarm, written as an ordinary scenario: no choice is left.
    pub(super) fn with_taken(mut self, edits: &[Edit]) -> Self {
        for Edit { section, key, value } in edits {
            self = match value {
                Some(value) => self.with(section, key, value.clone()),
                None => self.without(section, key),
            };
        }
        self.table.remove("swarm");
        self.entries.retain(|entry| !entry.site.starts_with("swarm."));
        self
    }

    /// The same without a setting, and without sections that are then empty.
    pub(super) fn without(mut self, section: &str, key: &str) -> Self {
        remove(&mut self.table, section, key);
        self
    }

    /// The same with this decision overridden.
    pub(super) fn overriding(mut self, entry: TapeEntry) -> Self {
        self.entries.retain(|known| !is_same_decision(known, &entry));
        self.entries.push(entry);
        self
    }

    /// The same with this fault not happening: it leaves the tape if it is on it, else it is overridden with `benign`.
    pub(super) fn calming(mut self, fault: &TapeEntry, benign: &str) -> Self {
        let count = self.entries.len();
        self.entries.retain(|known| !is_same_decision(known, fault));
        if self.entries.len() < count {
            return self;
        }
        self.overriding(TapeEntry { choice: benign.to_owned(), ..fault.clone() })
    }

    /// The same with its tape in order: by site, and `A2` before `A10`.
    pub(super) fn sorted(mut self) -> Self {
        self.entries.sort_by(|one, other| {
            let place = |entry: &TapeEntry| (entry.site == SKIP, entry.site.clone(), entry.key.chars().next(), entry.key.len());
            place(one).cmp(&place(other)).then_with(|| one.key.cmp(&other.key))
        });
        self
    }

    /// The same without these entries of the tape.
    pub(super) fn without_entries(mut self, entries: &[&TapeEntry]) -> Self {
        self.entries.retain(|known| !entries.contains(&known));
        self
    }
}

fn is_same_decision(one: &TapeEntry, other: &TapeEntry) -> bool {
    one.site == other.site && one.key == other.key
}

fn remove(table: &mut Table, section: &str, key: &str) {
    let (first, rest) = section.split_once('.').map_or((section, None), |(first, rest)| (first, Some(rest)));
    let Some(Value::Table(inner)) = table.get_mut(first) else { return };
    match rest {
        Some(rest) => remove(inner, rest, key),
        None => drop(inner.remove(key)),
    }
    if inner.is_empty() {
        table.remove(first);
    }
}
