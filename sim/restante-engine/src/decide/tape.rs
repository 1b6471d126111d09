//! Sparse overrides of single decisions.

use serde::{Deserialize, Serialize};

/// One decision, by name: what the decision `key` at `site` answers. May be written by hand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapeEntry {
    /// The place in the world that asks: `net.send`.
    pub site: String,
    /// What it asks about, as the site formats it: `send A3 -> host b, attempt 2`.
    pub key: String,
    /// The name of an alternative, or the number for a quantity or a draw, in decimal.
    pub choice: String,
}

/// Overrides in any order. When two name the same decision, the later counts and the earlier is reported as unused.
///
/// ```
/// use restante_engine::{Alternative, Decider, Tape, TapeEntry};
///
/// const LOSS: [Alternative; 2] = [Alternative::new("arrives", 98), Alternative::new("lost", 2)];
/// let entry = TapeEntry { site: "net.send".into(), key: "A3 to b".into(), choice: "lost".into() };
/// let mut decider = Decider::with_tape(7, &Tape { entries: vec![entry] });
/// assert_eq!(decider.choose("net.send", format_args!("A{} to b", 3), &LOSS), 1);
/// assert!(decider.log().unused_overrides().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tape {
    /// The overrides.
    pub entries: Vec<TapeEntry>,
}

impl Tape {
    /// No overrides.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Whether there are no overrides.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many overrides there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

impl From<Vec<TapeEntry>> for Tape {
    fn from(entries: Vec<TapeEntry>) -> Self {
        Self { entries }
    }
}
