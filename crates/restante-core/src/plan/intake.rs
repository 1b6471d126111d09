//! Opening and closing intake; depth and drained.

use restante_core_derive::VisitAtoms;
use restante_kv::Guard;

use super::{Outcome, Planner, Stop};
use crate::record::{Counters, Intake};

const OPEN_AT_FIRST: Intake = Intake { open: true, epoch: 0 };

/// Opens or closes intake. Every accept checks the record this writes, so no accept commits after a close.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct SetIntake {
    /// Whether sends shall be accepted.
    pub open: bool,
}

impl SetIntake {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.intake();
        let mut intake = p.guard::<Intake>(&key)?.unwrap_or(OPEN_AT_FIRST);
        if intake.open != self.open {
            intake = Intake { open: self.open, epoch: intake.epoch.saturating_add(1) };
            p.put(key, &intake, Guard::Checked);
        }
        Ok(Outcome::Intake { open: intake.open, epoch: intake.epoch })
    }
}

/// Counts what the backlog owns, at one snapshot. Its cost does not grow with the number of entries.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Depth {}

/// What the backlog owns at one snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct DepthReport {
    /// Deliveries not yet terminal, leased ones included, quarantined ones not.
    pub entries: i64,
    /// Deliveries taken by a claim and not settled yet.
    pub leased: i64,
    /// Records put aside.
    pub quarantined: i64,
    /// Whether sends are accepted.
    pub intake_open: bool,
    /// Sends that are not expanded yet, or not to the end, quarantined ones not.
    pub intents: i64,
    /// Their recipients that are not deliveries yet, those of quarantined ones included.
    pub pending_recipients: i64,
    /// Deliveries that a gate found held, and no claim took since. Others may wait for the same destination: inspection shows its
    /// hold beside them.
    pub held: i64,
    /// Deliveries that a gate found before a circuit that was not closed, and no claim took since.
    pub circuit_held: i64,
}

impl DepthReport {
    /// From the sum of the counters.
    pub const fn new(sum: Counters, intake_open: bool) -> Self {
        let Counters { entries, leased, quarantined, intents, pending_recipients, held, circuit_held } = sum;
        Self { entries, leased, quarantined, intake_open, intents, pending_recipients, held, circuit_held }
    }

    /// Whether intake is closed and nothing is left to expand or deliver. Quarantined records are reported beside it, not counted.
    pub const fn is_drained(&self) -> bool {
        !self.intake_open && self.intents == 0 && self.entries == 0
    }
}

impl Depth {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let (intake_key, slots) = (p.env.keys.intake(), p.env.keys.all_counters());
        let mut needed = vec![intake_key.clone()];
        needed.extend(slots.iter().cloned());
        p.need(&needed)?;
        let intake_open = p.snapshot::<Intake>(&intake_key)?.unwrap_or(OPEN_AT_FIRST).open;
        let mut sum = Counters::default();
        for slot in slots {
            sum = sum.plus(p.snapshot(&slot)?.unwrap_or_default());
        }
        Ok(Outcome::Depth(DepthReport::new(sum, intake_open)))
    }
}
