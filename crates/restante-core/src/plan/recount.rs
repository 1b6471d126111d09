//! Making the counters say what was counted.

use restante_core_derive::VisitAtoms;
use restante_kv::Version;

use super::{Outcome, Planner, Rejection, Stop};
use crate::record::Counters;

/// Corrects the counters to what was counted, provided that none of them changed since before the counting began: every
/// change of what is counted changes a counter in the same commit, so the count is then exact. [`Rejection::Taken`] if one did.
///
/// It checks every counter slot, and so needs a store whose transactions take that many checks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Recount {
    /// What was counted.
    pub counted: Counters,
    /// Versions of all counter slots before the counting, in their order.
    pub seen: Vec<Option<Version>>,
}

impl Recount {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let slots = p.env.keys.all_counters();
        p.need(&slots)?;
        let mut recorded = Counters::default();
        for (index, slot) in slots.iter().enumerate() {
            let found = p.guard::<Counters>(slot)?.unwrap_or_default();
            if p.version(slot) != self.seen.get(index).copied().flatten() {
                return Err(Rejection::Taken.into());
            }
            recorded = recorded.plus(found);
        }
        let missing = self.counted.minus(recorded);
        if missing == Counters::default() {
            return Err(Rejection::NotNeeded.into());
        }
        p.count(0, missing);
        Ok(Outcome::Done)
    }
}
