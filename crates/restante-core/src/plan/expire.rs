//! Giving up what is over without a claim: a paced or held destination's entries are claimed by nobody.

use restante_core_derive::VisitAtoms;

use super::settle::{bury, remove};
use super::{Outcome, Planner, Rejection, Stop, gate};
use crate::atoms::EntryId;
use crate::record::{Destination, DropReason, Entry};

/// Drops an entry whose time is over, if nobody is at it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Expire {
    /// The entry.
    pub id: EntryId,
    /// Counter slot to use.
    pub slot: u64,
}

impl Expire {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.entry(self.id);
        p.need(&[key.clone(), p.env.keys.counters(self.slot)])?;
        let Some(entry) = p.guard::<Entry>(&key)? else { return Err(Rejection::Gone.into()) };
        // What waits in a lane is no head yet: it comes after that one, also here.
        if !entry.active {
            return Err(Rejection::NotNeeded.into());
        }
        // A lease that lasts is its holder's, who asks the gate; one that has ended protects nothing.
        if entry.lease.is_some() && entry.vest_at > p.now() {
            return Err(Rejection::NotDue.into());
        }
        let reason = self.reason(p, &entry)?;
        let next = remove(p, self.id, self.slot, &key, &entry)?;
        // Under a token of its own: whoever held the entry before finds another's dead letter.
        let fence = entry.fence.next();
        bury(p, self.id, &key, &entry, fence, reason);
        Ok(Outcome::Expired { next })
    }

    fn reason(&self, p: &mut Planner<'_>, entry: &Entry) -> Result<DropReason, Stop> {
        if p.now() >= entry.ends_at(p.env.config.max_retention_ms) {
            return Ok(DropReason::Expired);
        }
        let destination = p.env.keys.destination(&entry.destination);
        // What a circuit has kept back for too long is dropped as long as that circuit has not closed.
        let known = p.guard::<Destination>(&destination)?.unwrap_or_default();
        match gate::over_age(entry, &known, p.now(), &p.env.config) {
            Some(reason @ DropReason::CircuitHeld) => Ok(reason),
            _ => Err(Rejection::NotDue.into()),
        }
    }
}
