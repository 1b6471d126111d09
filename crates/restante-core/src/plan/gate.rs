//! The gate before every POST: one function, one order.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::StoreTime;

use super::{Outcome, Planner, Rejection, Stop};
use crate::atoms::{EntryId, Fence, OwnerId};
use crate::record::{Destination, Entry, Unreadable};

/// Asks whether a claimed entry may be posted now. Commits nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Gate {
    /// The entry.
    pub id: EntryId,
    /// Who holds it.
    pub owner: OwnerId,
    /// The claim's token.
    pub fence: Fence,
    /// The entry's destination, so that one round of reading answers.
    pub destination: Arc<str>,
}

/// What the gate says of a claim that still holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum GateAnswer {
    /// A POST may begin before `post_by`.
    Pass {
        /// The least of what the lease leaves, the end of retention and the freshness of this answer.
        post_by: StoreTime,
    },
    /// Retention ran out: settle as expired (which needs the fencing token, as every settle does).
    Expired,
    /// The lease is too short for a POST: renew it and ask again.
    RenewFirst,
    /// The destination is paced: give the entry back until then.
    Defer {
        /// When the destination may be asked again.
        until: StoreTime,
    },
}

impl Gate {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let (key, destination_key) = (p.env.keys.entry(self.id), p.env.keys.destination(&self.destination));
        p.need(&[key.clone(), destination_key.clone()])?;
        let Some(entry) = p.snapshot::<Entry>(&key)? else { return Err(Stop::Reject(Rejection::LeaseLost)) };
        let (now, config) = (p.now(), &p.env.config);

        let retention_end = entry.origin.plus_ms(config.max_retention_ms);
        if now >= retention_end {
            return Ok(Outcome::Gate(GateAnswer::Expired));
        }
        let Some(lease) = entry.lease.filter(|lease| lease.owner == self.owner && entry.fence == self.fence) else {
            return Err(Stop::Reject(Rejection::LeaseLost));
        };
        let lease_leaves =
            lease.expires_at.minus_ms(config.request_timeout_ms + config.lease_margin_ms).minus_ms(config.max_clock_skew_ms);
        if now >= lease_leaves {
            return Ok(Outcome::Gate(GateAnswer::RenewFirst));
        }
        let destination = match p.snapshot::<Destination>(&destination_key) {
            // Damage only loses a pause. Another version's record may say more than we can read: then nobody posts here.
            Err(Stop::Inconsistent { why: Unreadable::Corrupt, .. }) => None,
            read => read?,
        };
        if let Some(Destination { paced_until }) = destination
            && paced_until > now
        {
            return Ok(Outcome::Gate(GateAnswer::Defer { until: paced_until }));
        }
        let post_by = retention_end.min(lease_leaves).min(now.plus_ms(config.gate_freshness_ms));
        Ok(Outcome::Gate(GateAnswer::Pass { post_by }))
    }
}
