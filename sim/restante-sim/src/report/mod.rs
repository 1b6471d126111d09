//! What a person or a program gets to read: the same facts as text and as JSON.
//!
//! Everything is the same for the same work, except `timing`, which is kept apart.

mod canary;
mod check;
mod journal;
mod mutants;
mod replay;
mod run_json;
mod run_text;
mod shrink;
mod text;
mod vacuity;

use std::path::PathBuf;

pub(crate) use canary::{Alarm, CanaryReport};
pub(crate) use check::{CheckReport, ChecksReport, Symmetry, check_text};
pub(crate) use journal::JournalReplayReport;
pub(crate) use mutants::{Explored, MutantReport, MutantsReport};
pub(crate) use replay::ReplayReport;
pub(crate) use run_json::{RunReport, Timing};
pub(crate) use run_text::{run_text, speed_text};
pub(crate) use shrink::ShrinkReport;
pub(crate) use text::{found_text, list_of, quoted, table};
pub(crate) use vacuity::VacuityReport;

/// What became of a failure's capsule.
#[derive(Debug)]
pub(crate) enum Written {
    /// It was written to this file.
    To(PathBuf),
    /// It could not be written.
    Not {
        /// Why.
        why: String,
    },
}
