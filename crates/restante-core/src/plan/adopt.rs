//! Messages of an old queue: whether they may be tried there, and how the backlog takes them over.
//!
//! One marker decides between the two, under a key that follows from the message. It only ever goes forward: tried with so many
//! attempts behind it, tried with more, owned. Whoever is about to try a message on the old path commits how many attempts it has
//! behind it first; it leaves the old queue, or says one more, only after that. An adoption commits only if the message was not
//! tried yet with as many attempts as it says. So one that is late, because its process stood still or its commit was, and
//! whose message somebody else has tried, put back or completed meanwhile, commits nothing.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, StoreTime};

use super::accept::{Accept, seen_before};
use super::{Outcome, Planner, Rejection, Stop};
use crate::atoms::SendId;
use crate::record::{Destination, Intake, Marker, MarkerState, Unreadable};

/// Asks what is to be done with a message that was received from the old queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct LegacyGate {
    /// The id that the message's send gets if it is adopted.
    pub send: SendId,
    /// Follows from the message: the same whenever it is received.
    pub idempotency_key: Arc<str>,
    /// Its destination.
    pub destination: Arc<str>,
    /// Attempts on the old path that did not deliver it.
    pub failure_count: u32,
}

/// What is to be done with a message of the old queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum LegacyAnswer {
    /// Nothing more: the backlog owns it as this send, or did and has delivered or dropped it.
    Owned(SendId),
    /// It may be tried on the old path: it is committed that the backlog does not own it as it is.
    Attempt,
    /// Its destination is held.
    Held {
        /// When to look again.
        until: StoreTime,
        /// Whether the backlog takes anything now.
        intake_open: bool,
        /// Whether an attempt with as many behind it was begun: then it stays in the old queue until that has ended, or the hold.
        is_tried: bool,
    },
}

impl LegacyGate {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let keys = &p.env.keys;
        let (marker_key, intake_key) = (keys.marker(&self.idempotency_key), keys.intake());
        let destination_key = keys.destination(&self.destination);
        p.need(&[marker_key.clone(), destination_key.clone(), intake_key.clone()])?;
        let state = p.guard::<Marker>(&marker_key)?.map(|marker| marker.state);
        if let Some(MarkerState::Accepted { send, .. }) = state {
            return Ok(Outcome::Legacy(LegacyAnswer::Owned(send)));
        }
        // As the gate of a claimed entry reads it: damage loses holds, and nobody posts past a record of another version.
        let known = match p.guard::<Destination>(&destination_key) {
            Err(Stop::Inconsistent { why: Unreadable::Corrupt, .. }) => Destination::default(),
            read => read?.unwrap_or_default(),
        };
        let (now, config) = (p.now(), &p.env.config);
        let is_tried = is_tried(state.as_ref(), self.failure_count);
        if let Some(end) = known.held_until(now) {
            let until = end.min(now.plus_ms(config.held_recheck_interval_ms.max(1)));
            let intake_open = p.guard::<Intake>(&intake_key)?.is_none_or(|intake| intake.open);
            return Ok(Outcome::Legacy(LegacyAnswer::Held { until, intake_open, is_tried }));
        }
        if !is_tried {
            let expires_at = now.plus_ms(config.marker_retention_ms);
            let state = MarkerState::Tried { failure_count: self.failure_count };
            p.put(marker_key, &Marker { state, expires_at }, Guard::Checked);
        }
        Ok(Outcome::Legacy(LegacyAnswer::Attempt))
    }
}

/// Whether somebody was about to try it with as many attempts behind it, or more.
fn is_tried(state: Option<&MarkerState>, failure_count: u32) -> bool {
    matches!(state, Some(MarkerState::Tried { failure_count: tried }) if *tried >= failure_count)
}

/// Takes a message of the old queue over: an accept of what has attempts behind it already. Retention runs from here.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Adopt {
    /// The send that it becomes.
    pub accept: Accept,
    /// Attempts on the old path that did not deliver it.
    pub failure_count: u32,
}

impl Adopt {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        self.accept.plan_after(p, self.failure_count, |p, marker_key| {
            let state = p.guard::<Marker>(marker_key)?.map(|marker| marker.state);
            if is_tried(state.as_ref(), self.failure_count) {
                // Somebody else has received the message since.
                return Err(Rejection::Aborted.into());
            }
            seen_before(p, marker_key, self.accept.send, self.accept.digest())
        })
    }
}
