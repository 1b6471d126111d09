//! What was decided, compactly, and how two runs compare.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Arguments, Write},
    str::FromStr,
};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{Alternative, Tape, TapeEntry, key::name_hash};
use crate::mix::avalanche;

/// The decisions made since [`Decider::recording`](super::Decider::recording), in order, and what became of the tape.
#[derive(Clone, Debug)]
pub struct DecisionLog {
    recording: bool,
    items: Vec<Item>,
    /// What the items are about, to name them with; as many as there are items.
    made: Vec<Made>,
    /// The keys' texts, one after the other.
    texts: String,
    /// The names of the alternatives that each site has had, to read a record with.
    names: BTreeMap<&'static str, Vec<&'static str>>,
    fired: Vec<TapeEntry>,
    fired_ids: BTreeSet<u64>,
    overrides: Vec<(TapeEntry, Fate)>,
}

/// 24 bits of a decision's id and 8 bits of a hash of what it chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item(u32);

impl Item {
    fn new(id: u64, choice: u8) -> Self {
        Self(((id >> 40) as u32) << 8 | u32::from(choice))
    }

    fn id(self) -> u32 {
        self.0 >> 8
    }

    fn choice(self) -> u8 {
        self.0 as u8
    }
}

#[derive(Clone, Debug)]
struct Made {
    site: &'static str,
    text_end: usize,
    choice: Choice,
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Name(&'static str),
    Number(u64),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => number.fmt(f),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Unused,
    Used,
    Unknown,
}

fn name_choice(name: &str) -> u8 {
    (name_hash(name) >> 56) as u8
}

fn number_choice(number: u64) -> u8 {
    (avalanche(number) >> 56) as u8
}

impl DecisionLog {
    pub(super) fn new(tape: &Tape) -> Self {
        Self {
            recording: false,
            items: Vec::new(),
            texts: String::new(),
            made: Vec::new(),
            names: BTreeMap::new(),
            fired: Vec::new(),
            fired_ids: BTreeSet::new(),
            overrides: tape.entries.iter().map(|entry| (entry.clone(), Fate::Unused)).collect(),
        }
    }

    pub(super) fn record_from_now(&mut self) {
        self.recording = true;
    }

    /// Whether decisions are recorded.
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// How many decisions were recorded.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no decisions were recorded.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The recorded decisions of [`choose`](super::Decider::choose) that were not benign, as a tape would say them: in order,
    /// each key once.
    pub fn fired(&self) -> &[TapeEntry] {
        &self.fired
    }

    /// All recorded decisions, as a tape would say them: in order; what was asked twice comes twice.
    pub fn entries(&self) -> impl Iterator<Item = TapeEntry> {
        let starts = std::iter::once(0).chain(self.made.iter().map(|made| made.text_end));
        self.made.iter().zip(starts).map(|(made, start)| TapeEntry {
            site: made.site.into(),
            key: self.texts[start..made.text_end].into(),
            choice: made.choice.to_string(),
        })
    }

    /// The tape's entries that no decision asked for. Kept also when not recording.
    pub fn unused_overrides(&self) -> Vec<&TapeEntry> {
        self.overrides_that_were(Fate::Unused)
    }

    /// The tape's entries that were asked for, but name no alternative of their site as it is now, or no number in its range;
    /// the seed answered instead. Kept also when not recording.
    pub fn unknown_overrides(&self) -> Vec<&TapeEntry> {
        self.overrides_that_were(Fate::Unknown)
    }

    fn overrides_that_were(&self, fate: Fate) -> Vec<&TapeEntry> {
        self.overrides.iter().filter(|(_, was)| *was == fate).map(|(entry, _)| entry).collect()
    }

    /// The recorded decisions, four bytes each.
    pub fn record(&self) -> DecisionRecord {
        DecisionRecord { items: self.items.clone() }
    }

    /// Compares this, new, log with the record of an older run: by id, whatever the order.
    pub fn compare(&self, recorded: &DecisionRecord) -> Match {
        let mut open: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for item in &recorded.items {
            open.entry(item.id()).or_default().push(item.choice());
        }
        let mut comparison = Match { matched: 0, recorded: recorded.items.len(), made: self.items.len(), first_difference: None };
        for (index, item) in self.items.iter().enumerate() {
            let choices = open.entry(item.id()).or_default();
            match choices.iter().position(|choice| *choice == item.choice()) {
                Some(place) => {
                    choices.remove(place);
                    comparison.matched += 1;
                }
                None if comparison.first_difference.is_none() => {
                    comparison.first_difference = Some(self.difference(index, choices.first().copied()));
                }
                None => {}
            }
        }
        comparison
    }

    /// Says how the decision `index` differs from the recorded choice hash, if there was one.
    fn difference(&self, index: usize, recorded: Option<u8>) -> String {
        let Made { site, text_end, choice } = self.made[index];
        let text_start = if index == 0 { 0 } else { self.made[index - 1].text_end };
        let key = &self.texts[text_start..text_end];
        let Some(recorded) = recorded else { return format!("{site} | {key}: not recorded -> {choice}") };
        let names = self.names.get(site).map_or(&[][..], Vec::as_slice);
        match (choice, names.iter().find(|name| name_choice(name) == recorded)) {
            (Choice::Name(_), Some(name)) => format!("{site} | {key}: {name} -> {choice}"),
            (Choice::Name(_), None) => format!("{site} | {key}: an alternative of that time -> {choice}"),
            (Choice::Number(_), _) => format!("{site} | {key}: another number -> {choice}"),
        }
    }

    pub(super) fn use_override<T>(&mut self, index: usize, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let (entry, fate) = &mut self.overrides[index];
        let parsed = parse(&entry.choice);
        *fate = if parsed.is_some() && *fate != Fate::Unknown { Fate::Used } else { Fate::Unknown };
        parsed
    }

    pub(super) fn choice(&mut self, id: u64, site: &'static str, key: Arguments<'_>, all: &[Alternative], index: usize) {
        let name = all[index].name;
        self.push(id, site, key, Choice::Name(name), name_choice(name));
        let known = self.names.entry(site).or_default();
        for alternative in all {
            if !known.contains(&alternative.name) {
                known.push(alternative.name);
            }
        }
        if index != 0 && self.fired_ids.insert(id) {
            self.fired.push(TapeEntry { site: site.into(), key: key.to_string(), choice: name.into() });
        }
    }

    pub(super) fn number(&mut self, id: u64, site: &'static str, key: Arguments<'_>, number: u64) {
        self.push(id, site, key, Choice::Number(number), number_choice(number));
    }

    fn push(&mut self, id: u64, site: &'static str, key: Arguments<'_>, choice: Choice, hash: u8) {
        self.items.push(Item::new(id, hash));
        // Writing to a string fails only when the key's own `Display` does; then its text is cut short.
        let _ = self.texts.write_fmt(key);
        self.made.push(Made { site, text_end: self.texts.len(), choice });
    }
}

/// The decisions of a run, for comparing with a later one: four bytes each, in order. In text (and in serde) it is their
/// base64, without padding.
///
/// 24 bits say which decision, 8 bits are a hash of its answer: another answer goes unnoticed once in 256 times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DecisionRecord {
    items: Vec<Item>,
}

impl DecisionRecord {
    /// How many decisions were recorded.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no decisions were recorded.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl fmt::Display for DecisionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<u8> = self.items.iter().flat_map(|item| item.0.to_be_bytes()).collect();
        f.write_str(&STANDARD_NO_PAD.encode(bytes))
    }
}

impl From<DecisionRecord> for String {
    fn from(record: DecisionRecord) -> Self {
        record.to_string()
    }
}

/// Why a text is no [`DecisionRecord`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is not base64 without padding.
    #[error("a decision record has to be base64 without padding: {0}")]
    Base64(String),
    /// It does not hold whole items of four bytes.
    #[error("a decision record has four bytes a decision, this one has {0} bytes")]
    Length(usize),
}

impl FromStr for DecisionRecord {
    type Err = RecordError;

    fn from_str(text: &str) -> Result<Self, RecordError> {
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|error| RecordError::Base64(error.to_string()))?;
        match bytes.as_chunks::<4>() {
            (items, []) => Ok(Self { items: items.iter().map(|item| Item(u32::from_be_bytes(*item))).collect() }),
            _ => Err(RecordError::Length(bytes.len())),
        }
    }
}

impl TryFrom<String> for DecisionRecord {
    type Error = RecordError;

    fn try_from(text: String) -> Result<Self, RecordError> {
        text.parse()
    }
}

/// How the decisions of a run compare with a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// Decisions of the new run that the record has, with the same answer.
    pub matched: usize,
    /// Decisions in the record.
    pub recorded: usize,
    /// Decisions of the new run.
    pub made: usize,
    /// The first decision of the new run that is not in the record or was answered otherwise:
    /// `site | key: recorded -> now`.
    pub first_difference: Option<String>,
}

impl Match {
    /// Whether both runs made the same decisions.
    pub fn is_exact(&self) -> bool {
        self.matched == self.recorded && self.matched == self.made
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} decisions matched", self.matched, self.recorded)?;
        if self.made != self.recorded {
            write!(f, " ({} made)", self.made)?;
        }
        match &self.first_difference {
            Some(difference) => write!(f, ", first difference: {difference}"),
            None => Ok(()),
        }
    }
}
