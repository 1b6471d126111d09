//! A journal of production, run again: the same machines are told what they were told then, and must ask for the same.
//!
//! Two things can be wrong with a journal. Its first *difference* is where a machine asks for something else than what is
//! recorded, or is told what it did not ask for: then the program that wrote it was another, or the record was altered. A
//! *violation* is a property that what happened does not have, whoever decided it.

mod costs;
mod operations;
mod properties;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use restante_core::{Config, Env};
use restante_journal::{Event, IoRecord, ReadError, Recorded, ReplyRecord};

use costs::Costs;
use operations::Operations;
use properties::Properties;

pub use costs::Cost;
pub use properties::JOURNAL_PROPERTIES;

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// The line, from 1.
    pub line: u64,
    /// The operation.
    pub op: u64,
    /// What the step was for.
    pub about: String,
    /// What is wrong.
    pub what: String,
}

/// A property that does not hold, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalViolation {
    /// The property's name.
    pub property: &'static str,
    /// Where, and with what evidence.
    pub wrong: Wrong,
}

/// What replaying a journal came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JournalReport {
    /// Lines read.
    pub events: u64,
    /// Operations that began.
    pub operations: u64,
    /// Steps that a machine made again.
    pub steps: u64,
    /// Commits that were answered as committed.
    pub commits: u64,
    /// Attempts to deliver.
    pub posts: u64,
    /// Whether the last line is torn, as a killed process leaves it.
    pub torn: bool,
    /// Whether the journal reached its size.
    pub full: bool,
    /// What each kind of command cost the store.
    pub costs: BTreeMap<String, Cost>,
    /// The first step that was different.
    pub difference: Option<Wrong>,
    /// The first violation.
    pub violation: Option<JournalViolation>,
}

impl JournalReport {
    /// Whether nothing is wrong.
    pub const fn is_clean(&self) -> bool {
        self.difference.is_none() && self.violation.is_none()
    }
}

/// Replays the journal at `path`.
///
/// # Errors
/// [`ReadError`] if it cannot be read, or is damaged.
pub fn replay(path: &Path) -> Result<JournalReport, ReadError> {
    Ok(check(restante_journal::read(path)?))
}

/// Replays a journal from anywhere.
///
/// # Errors
/// [`ReadError`] if it cannot be read, or is damaged.
pub fn replay_from(source: impl Read) -> Result<JournalReport, ReadError> {
    Ok(check(restante_journal::read_from(source)?))
}

/// The property that an `Opened` event must come first is the reader's.
fn config_of(events: &[(u64, Event)]) -> Config {
    match events.first() {
        Some((_, Event::Opened { config, .. })) => (**config).clone(),
        _ => Config::new(1),
    }
}

fn check(recorded: Recorded) -> JournalReport {
    let env = std::sync::Arc::new(Env::new(config_of(&recorded.events)));
    let mut report = JournalReport { torn: recorded.torn, ..JournalReport::default() };
    let (mut operations, mut properties, mut costs) = (Operations::new(env.clone()), Properties::new(env), Costs::default());
    for (line, event) in &recorded.events {
        report.events += 1;
        costs.note(event);
        match event {
            Event::Began { .. } => report.operations += 1,
            Event::Answered { reply: ReplyRecord::Committed { .. }, .. } => report.commits += 1,
            Event::Asked { io: IoRecord::Post { .. }, .. } => report.posts += 1,
            Event::Full {} => report.full = true,
            _ => {}
        }
        if let Err(wrong) = operations.step(*line, event) {
            report.difference = Some(wrong);
        }
        // A property is judged by what was recorded, whatever the machine would have asked for.
        if let Err(violation) = properties.step(*line, event) {
            report.violation = Some(violation);
        }
        if !report.is_clean() {
            break;
        }
    }
    report.steps = operations.steps();
    report.costs = costs.finish();
    report
}
