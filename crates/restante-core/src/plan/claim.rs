//! Claiming an entry and renewing the claim.

use restante_core_derive::VisitAtoms;
use restante_kv::{Key, StoreTime};

use super::{Outcome, Planner, Rejection, Stop};
use crate::atoms::{EntryId, Fence, OwnerId};
use crate::record::{Entry, Lease};

/// Takes a lease on a due entry under the next fencing token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Claim {
    /// The entry.
    pub id: EntryId,
    /// Who claims. Has no other claim on this entry under way.
    pub owner: OwnerId,
    /// Counter slot to use.
    pub slot: u64,
}

/// A successful claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Claimed {
    /// The entry as the claim wrote it; its `fence` and `lease` are the claim's.
    pub entry: Entry,
}

/// Takes a lease on `entry` as of the plan's snapshot, and moves its due row to the lease's end.
fn lease_until(p: &mut Planner<'_>, key: &Key, id: EntryId, before: &Entry, after: &mut Entry, owner: OwnerId) -> StoreTime {
    let expires_at = p.now().plus_ms(p.env.config.lease_ms);
    after.lease = Some(Lease { owner, expires_at });
    after.vest_at = expires_at.plus_ms(p.env.config.max_clock_skew_ms);
    p.update_entry(key, id, before, after);
    expires_at
}

impl Claim {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.entry(self.id);
        p.need(&[key.clone(), p.env.keys.counters(self.slot)])?;
        let Some(before) = p.guard::<Entry>(&key)? else { return Err(Stop::Reject(Rejection::Gone)) };
        // A lease of ours that still runs is this claim's own: an earlier claim's had ended when this one was first planned. One
        // that ended is claimed anew, so that no two claims ever share a token.
        if p.attempted && before.vest_at > p.now() && before.lease.is_some_and(|lease| lease.owner == self.owner) {
            return Ok(Outcome::Claimed(Box::new(Claimed { entry: before })));
        }
        if !before.active || before.vest_at > p.now() {
            return Err(Stop::Reject(Rejection::NotDue));
        }
        let mut after = Entry { fence: before.fence.next(), ..before.clone() };
        lease_until(p, &key, self.id, &before, &mut after, self.owner);
        p.recount(self.slot, before.class(), after.class());
        Ok(Outcome::Claimed(Box::new(Claimed { entry: after })))
    }
}

/// Reads an entry and insists that `owner` holds it under `fence`.
pub(super) fn held_entry(p: &mut Planner<'_>, key: &Key, owner: OwnerId, fence: Fence) -> Result<Entry, Stop> {
    match p.guard::<Entry>(key)? {
        Some(entry) if entry.fence == fence && entry.lease.is_some_and(|lease| lease.owner == owner) => Ok(entry),
        _ => Err(Stop::Reject(Rejection::LeaseLost)),
    }
}

/// Makes a lease end later.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Renew {
    /// The entry.
    pub id: EntryId,
    /// Who holds it.
    pub owner: OwnerId,
    /// The claim's token.
    pub fence: Fence,
}

impl Renew {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.entry(self.id);
        let before = held_entry(p, &key, self.owner, self.fence)?;
        let mut after = before.clone();
        let lease_expires_at = lease_until(p, &key, self.id, &before, &mut after, self.owner);
        Ok(Outcome::Renewed { lease_expires_at })
    }
}
