//! What an examination came to.

use restante_core::machine::{Diagnosis, DoctorReport, Finding};
use serde::{Deserialize, Serialize};

/// One thing that must not be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FindingView {
    /// Its kind, stable.
    pub finding: String,
    /// What it is.
    pub what: String,
    /// Whether `--repair` can repair it.
    pub repairable: bool,
    /// Whether it was repaired.
    pub repaired: bool,
}

/// What an examination came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DoctorView {
    /// Whether nothing is wrong, or nothing any more.
    pub clean: bool,
    /// Records examined.
    pub records: u64,
    /// What was found.
    pub findings: Vec<FindingView>,
    /// How many findings are not listed.
    pub not_listed: u64,
    /// Whether others committed meanwhile, so that the counters could not be judged.
    pub in_motion: bool,
}

impl DoctorView {
    pub(crate) fn new(report: &DoctorReport) -> Self {
        let view = |diagnosis: &Diagnosis| FindingView {
            finding: finding_name(&diagnosis.finding).to_owned(),
            what: diagnosis.finding.to_string(),
            repairable: diagnosis.repair.is_some(),
            repaired: diagnosis.repaired,
        };
        Self {
            clean: report.is_clean(),
            records: report.records,
            findings: report.diagnoses.iter().map(view).collect(),
            not_listed: report.not_listed,
            in_motion: report.in_motion,
        }
    }
}

const fn finding_name(finding: &Finding) -> &'static str {
    match finding {
        Finding::ForeignKey { .. } => "foreign_key",
        Finding::Unreadable { .. } => "unreadable",
        Finding::Undiscoverable { .. } => "undiscoverable",
        Finding::OutsideItsLane { .. } => "outside_its_lane",
        Finding::LeaseTooLong { .. } => "lease_too_long",
        Finding::StrayDueRow { .. } => "stray_due_row",
        Finding::LaneStuck { .. } => "lane_stuck",
        Finding::PayloadIncomplete { .. } => "payload_incomplete",
        Finding::StrayMember { .. } => "stray_member",
        Finding::Miscounted { .. } => "miscounted",
        Finding::QueueStuck { .. } => "queue_stuck",
        Finding::OutsideItsQueue { .. } => "outside_its_queue",
        Finding::IntentIncomplete { .. } => "intent_incomplete",
        Finding::StrayRecipients { .. } => "stray_recipients",
        Finding::HoldsNotCanonical { .. } => "holds_not_canonical",
        Finding::BreakerOutOfBounds { .. } => "breaker_out_of_bounds",
    }
}
