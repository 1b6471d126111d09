//! The circuit breaker's own transaction: what an attempt says of its destination, beside and after its settle.
//!
//! Nothing hangs on it. If it is not committed, a failure is not counted, or a circuit opens or closes one attempt later.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, StoreTime};

use super::hold::put_earlier_pointer;
use super::{Outcome, Planner, Rejection, Stop};
use crate::atoms::{EntryId, Fence, OwnerId};
use crate::config::Config;
use crate::effect::{CircuitChange, Effect, Observation};
use crate::record::{Breaker, Circuit, Destination, FailedAt, Probe, Unreadable};

/// What an attempt says of its destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, VisitAtoms)]
pub enum Reach {
    /// It answered, if only to refuse.
    Reached,
    /// It did not answer, or answered that it is out of order.
    Failed,
    /// Nothing: the attempt ended on this side.
    Untried,
}

/// Tells a destination's circuit how an attempt ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct CountAttempt {
    /// The destination.
    pub destination: Arc<str>,
    /// The delivery.
    pub id: EntryId,
    /// Whose attempt it was.
    pub owner: OwnerId,
    /// Its claim's token.
    pub fence: Fence,
    /// What it says.
    pub reach: Reach,
}

impl CountAttempt {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.destination(&self.destination);
        let known = match p.guard::<Destination>(&key) {
            // Damage only loses what was known; another version's record is left alone.
            Err(Stop::Inconsistent { why: Unreadable::Corrupt, .. }) => Destination::default(),
            read => read?.unwrap_or_default(),
        };
        let (now, config) = (p.now(), &p.env.config);
        let breaker = known.breaker_at(now).cloned();
        let is_off = config.breaker_failures == 0;
        let (next, change) = match (self.reach, breaker) {
            // Switched off since: what is left of it goes with the next attempt.
            (_, Some(breaker)) if is_off => (None, breaker.is_shut().then_some(CircuitChange::Closed)),
            (Reach::Reached, Some(breaker)) => (None, breaker.is_shut().then_some(CircuitChange::Closed)),
            (Reach::Failed, Some(Breaker { circuit: Circuit::HalfOpen(probe), since, .. })) if self.made(&probe) => {
                (Some(open(since, now.plus_ms(config.breaker_recovery_ms), now, config)), Some(CircuitChange::Opened))
            }
            // The probe said nothing: the next one is due at once.
            (Reach::Untried, Some(Breaker { circuit: Circuit::HalfOpen(probe), since, .. })) if self.made(&probe) => {
                (Some(open(since, now, now, config)), None)
            }
            // Whoever counts a failure again cannot tell whether it counted it before.
            (Reach::Failed, Some(breaker)) if !breaker.is_shut() && !p.attempted => self.failed(breaker, now, config),
            (Reach::Failed, None) if !is_off && !p.attempted => {
                let none = Breaker { circuit: Circuit::Counting(Vec::new()), since: now, expires_at: now };
                self.failed(none, now, config)
            }
            _ => return Err(Rejection::NotNeeded.into()),
        };
        let resumed_at = if change == Some(CircuitChange::Closed) { now } else { known.resumed_at(now) };
        let after = Destination { breaker: next, resumed_at, ..known.clone() };
        if after == Destination::default() {
            p.delete(key, Guard::Checked);
        } else {
            p.put(key, &after, Guard::Checked);
        }
        put_earlier_pointer(p, &self.destination, &known, &after);
        if let Some(change) = change {
            announce(p, &self.destination, change);
        }
        Ok(Outcome::Done)
    }

    fn made(&self, probe: &Probe) -> bool {
        (probe.entry, probe.owner, probe.fence) == (self.id, self.owner, self.fence)
    }

    /// One more failure; the last one that is allowed opens the circuit.
    fn failed(&self, breaker: Breaker, now: StoreTime, config: &Config) -> (Option<Breaker>, Option<CircuitChange>) {
        let Circuit::Counting(mut failures) = breaker.circuit else { return (Some(breaker), None) };
        failures.retain(|failed| now.since_ms(failed.0) < config.breaker_window_ms);
        failures.push(FailedAt(now));
        if failures.len() >= config.breaker_failures {
            return (Some(open(now, now.plus_ms(config.breaker_recovery_ms), now, config)), Some(CircuitChange::Opened));
        }
        let since = failures.first().map_or(now, |first| first.0);
        let expires_at = now.plus_ms(config.breaker_life_ms(true));
        (Some(Breaker { circuit: Circuit::Counting(failures), since, expires_at }), None)
    }
}

fn open(since: StoreTime, recovers_at: StoreTime, now: StoreTime, config: &Config) -> Breaker {
    Breaker { circuit: Circuit::Open { recovers_at }, since, expires_at: now.plus_ms(config.breaker_life_ms(false)) }
}

/// The destination with its circuit half-open, and this probe under way.
pub(super) fn take_probe(known: &Destination, probe: Probe, now: StoreTime, config: &Config) -> Destination {
    let since = known.breaker_at(now).map_or(now, |breaker| breaker.since);
    let expires_at = now.plus_ms(config.breaker_life_ms(false)).max(probe.expires_at);
    Destination { breaker: Some(Breaker { circuit: Circuit::HalfOpen(probe), since, expires_at }), ..known.clone() }
}

pub(super) fn announce(p: &mut Planner<'_>, destination: &Arc<str>, change: CircuitChange) {
    p.effect(Effect::Observed(Observation::CircuitChanged { destination: destination.clone(), change }));
}
