//! The gate before every POST: one function, one order.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, StoreTime};

use super::{Outcome, Planner, Rejection, Stop, circuit};
use crate::atoms::{EntryId, Fence, OwnerId};
use crate::config::Config;
use crate::effect::CircuitChange;
use crate::record::{Block, Circuit, CircuitState, Destination, DropReason, Entry, Probe, Unreadable};

/// Asks whether a claimed entry may be posted now. Commits nothing, except that the one who may probe takes the probe.
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
        /// The least of what the lease leaves, the end of retention, the freshness of this answer and what a probe's lease leaves.
        post_by: StoreTime,
        /// Whether the destination's circuit counts: then it is told also of an attempt that reached the destination.
        is_counted: bool,
    },
    /// The entry's time is over: settle as dropped (which needs the fencing token, as every settle does).
    Over(DropReason),
    /// The lease is too short for a POST: renew it and ask again.
    RenewFirst,
    /// The destination is paced: give the entry back until then.
    Defer {
        /// When the destination may be asked again.
        until: StoreTime,
    },
    /// The destination is held, or its circuit is not closed: park the entry.
    Park(Block),
}

impl Gate {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let (key, destination_key) = (p.env.keys.entry(self.id), p.env.keys.destination(&self.destination));
        p.need(&[key.clone(), destination_key.clone()])?;
        // Checked by whoever takes the probe; every other answer commits nothing, and is the snapshot's.
        let Some(entry) = p.guard::<Entry>(&key)? else { return Err(Stop::Reject(Rejection::LeaseLost)) };
        let (now, config) = (p.now(), &p.env.config);
        let over = |reason| Ok(Outcome::Gate(GateAnswer::Over(reason)));

        let ends_at = entry.ends_at(config.max_retention_ms);
        if now >= ends_at {
            return over(DropReason::Expired);
        }
        let Some(lease) = entry.lease.filter(|lease| lease.owner == self.owner && entry.fence == self.fence) else {
            return Err(Stop::Reject(Rejection::LeaseLost));
        };
        let lease_leaves = leaves(lease.expires_at, config);
        if now >= lease_leaves {
            return Ok(Outcome::Gate(GateAnswer::RenewFirst));
        }
        let destination = match p.guard::<Destination>(&destination_key) {
            // Damage only loses a pause, holds and a circuit. Another version's record may say more than we can read: then nobody
            // posts here.
            Err(Stop::Inconsistent { why: Unreadable::Corrupt, .. }) => None,
            read => read?,
        };
        let known = destination.unwrap_or_default();
        if let Some(reason) = over_age(&entry, &known, now, config) {
            return over(reason);
        }
        let own_probe = known.breaker_at(now).and_then(|breaker| match &breaker.circuit {
            Circuit::HalfOpen(probe) if self.owns(probe) => Some(probe.expires_at),
            _ => None,
        });
        match known.block_at(now, config) {
            Some((Block::Paced, until)) => return Ok(Outcome::Gate(GateAnswer::Defer { until })),
            Some((Block::Circuit, _)) if own_probe.is_some_and(|expires_at| now < leaves(expires_at, config)) => {}
            Some((block, _)) => return Ok(Outcome::Gate(GateAnswer::Park(block))),
            None => {}
        }
        let mut post_by = ends_at.min(lease_leaves).min(now.plus_ms(config.gate_freshness_ms));
        let is_counted = known.breaker_at(now).is_some();
        if known.circuit_at(now) == CircuitState::Probeable {
            let expires_at = now.plus_ms(config.lease_ms);
            let probed = circuit::take_probe(&known, self.probe_until(expires_at), now, config);
            p.put(destination_key, &probed, Guard::Checked);
            circuit::announce(p, &self.destination, CircuitChange::HalfOpened);
            post_by = post_by.min(leaves(expires_at, config));
        } else if let Some(expires_at) = own_probe {
            post_by = post_by.min(leaves(expires_at, config));
        }
        Ok(Outcome::Gate(GateAnswer::Pass { post_by, is_counted }))
    }

    fn probe_until(&self, expires_at: StoreTime) -> Probe {
        Probe { entry: self.id, owner: self.owner, fence: self.fence, expires_at }
    }

    fn owns(&self, probe: &Probe) -> bool {
        *probe == self.probe_until(probe.expires_at)
    }
}

/// Until when a POST may begin that must be over, and settled, before a lease ends.
fn leaves(expires_at: StoreTime, config: &Config) -> StoreTime {
    let needed_ms = config.request_timeout_ms.saturating_add(config.lease_margin_ms).saturating_add(config.max_clock_skew_ms);
    expires_at.minus_ms(needed_ms)
}

/// Whether an entry has been kept back or tried for too long, although its retention lasts.
pub(super) fn over_age(entry: &Entry, known: &Destination, now: StoreTime, config: &Config) -> Option<DropReason> {
    if let Some(breaker) = known.breaker_at(now)
        && !matches!(breaker.circuit, Circuit::Counting(_))
        && now.since_ms(breaker.since.max(entry.origin)) >= config.circuit_held_max_ms
    {
        return Some(DropReason::CircuitHeld);
    }
    let age_ms = now.since_ms(entry.origin).saturating_sub(known.hold_credit_ms(entry.origin, now));
    let is_tried = entry.failure_count > 0;
    (is_tried && config.retry_age_max_ms > 0 && age_ms >= config.retry_age_max_ms).then_some(DropReason::RetryAge)
}
