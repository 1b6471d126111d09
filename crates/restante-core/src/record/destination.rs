//! What is known of a destination: its pause, its holds, its circuit. One record answers the gate, whatever waits there.

use restante_core_derive::VisitAtoms;
use restante_kv::{StoreTime, Value};
use serde::{Deserialize, Serialize};

use super::backlog::store_time;
use super::{FORMAT, FORMAT_EXTENDED, Record, Unreadable, decode_extended, encode_extended};
use crate::atoms::{EntryId, Fence, OwnerId};
use crate::config::Config;
use crate::keys::stable_hash;

/// A time in which the destination asked not to be delivered to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct HoldInterval {
    /// Its first instant.
    #[serde(with = "store_time")]
    pub from: StoreTime,
    /// The first instant after it. Of a hold without a known end: its last confirmation and `hold_cap_ms`.
    #[serde(with = "store_time")]
    pub until: StoreTime,
    /// Whether its end is a guess: nobody said when it is over.
    pub is_open: bool,
}

/// The one attempt that a half-open circuit admits: a lease of its own, of the claim that took it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Probe {
    /// The delivery.
    pub entry: EntryId,
    /// Whose worker makes it.
    pub owner: OwnerId,
    /// The claim's token.
    pub fence: Fence,
    /// From when another probe may take its place.
    #[serde(with = "store_time")]
    pub expires_at: StoreTime,
}

/// An instant at which an attempt failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct FailedAt(#[serde(with = "store_time")] pub StoreTime);

/// The state of a circuit that is not simply closed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub enum Circuit {
    /// Closed: attempts failed lately, too few of them to open it. Oldest first, fewer than `breaker_failures`.
    Counting(Vec<FailedAt>),
    /// Open: nothing is posted before `recovers_at`.
    Open {
        /// When a probe is admitted.
        #[serde(with = "store_time")]
        recovers_at: StoreTime,
    },
    /// Half-open: one probe decides.
    HalfOpen(Probe),
}

/// The circuit breaker of a destination.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, VisitAtoms)]
pub struct Breaker {
    /// Its state.
    pub circuit: Circuit,
    /// Since when it has not been closed; what is held by it is held since then at the earliest. While it counts: when the first
    /// failure was.
    #[serde(with = "store_time")]
    pub since: StoreTime,
    /// When nobody has to know this any more. Later than the end of any probe.
    #[serde(with = "store_time")]
    pub expires_at: StoreTime,
}

impl Breaker {
    /// Whether it is more than a count of failures: open, or half-open.
    pub(crate) fn is_shut(&self) -> bool {
        !matches!(self.circuit, Circuit::Counting(_))
    }
}

/// What is known of a destination. Absent means nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, VisitAtoms)]
pub struct Destination {
    /// No POST begins before this instant (the destination's own Retry-After).
    #[serde(with = "store_time")]
    pub paced_until: StoreTime,
    /// Canonical: in order, apart from each other, none empty, at most [`Destination::HOLDS_MAX`].
    #[serde(skip)]
    pub holds: Vec<HoldInterval>,
    /// `None` while nothing failed lately.
    #[serde(skip)]
    pub breaker: Option<Breaker>,
    /// When its circuit closed last; deliveries are resumed gradually from there.
    #[serde(skip)]
    pub resumed_at: StoreTime,
}

/// What format 1 did not have.
#[derive(Default, Serialize, Deserialize)]
struct Extension {
    holds: Vec<HoldInterval>,
    breaker: Option<Breaker>,
    #[serde(with = "store_time")]
    resumed_at: StoreTime,
}

impl Record for Destination {
    fn encode(&self) -> Value {
        let is_extended = !self.holds.is_empty() || self.breaker.is_some() || self.resumed_at != StoreTime::default();
        let Self { holds, breaker, resumed_at, .. } = self.clone();
        let extension = is_extended.then_some(Extension { holds, breaker, resumed_at });
        let format = if is_extended { FORMAT_EXTENDED } else { FORMAT };
        encode_extended(&[format], self, extension.as_ref())
    }
    fn decode(value: &Value) -> Result<Self, Unreadable> {
        let (destination, extension) = decode_extended::<Self, Extension>(value, 0)?;
        let Extension { holds, breaker, resumed_at } = extension;
        Ok(Self { holds, breaker, resumed_at, ..destination })
    }
}

/// How a circuit stands at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum CircuitState {
    /// Everybody may pass.
    Closed,
    /// Nobody may pass before this instant.
    Open(StoreTime),
    /// A probe is under way; nobody else may pass before this instant.
    Probing(StoreTime),
    /// One may pass, as its probe.
    Probeable,
}

/// What keeps a destination's work back at an instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, VisitAtoms)]
pub enum Block {
    /// Its own Retry-After.
    Paced,
    /// A hold notice.
    Held,
    /// Its circuit.
    Circuit,
}

impl Destination {
    /// Most intervals that are kept. Beyond that the oldest that is over goes: that only loses credit.
    pub const HOLDS_MAX: usize = 16;

    // Holds.

    /// When the hold that lasts at `now` ends; `None` without one.
    pub fn held_until(&self, now: StoreTime) -> Option<StoreTime> {
        self.holds.iter().find(|hold| hold.from <= now && now < hold.until).map(|hold| hold.until)
    }

    /// How much of the time between `from` and `to` was under a hold, each instant counted once.
    pub fn hold_credit_ms(&self, from: StoreTime, to: StoreTime) -> u64 {
        let within = |hold: &HoldInterval| hold.until.min(to).since_ms(hold.from.max(from));
        self.holds.iter().map(within).fold(0, u64::saturating_add)
    }

    /// The intervals, canonical.
    pub fn canonical_holds(&self) -> Vec<HoldInterval> {
        let mut sorted: Vec<HoldInterval> = self.holds.iter().filter(|hold| hold.from < hold.until).copied().collect();
        sorted.sort_unstable();
        let mut apart: Vec<HoldInterval> = Vec::with_capacity(sorted.len());
        for hold in sorted {
            match apart.last_mut() {
                Some(last) if hold.from <= last.until => {
                    // Whoever ends later says how well the end is known.
                    if hold.until >= last.until {
                        (last.until, last.is_open) = (hold.until, hold.is_open);
                    }
                }
                _ => apart.push(hold),
            }
        }
        apart
    }

    /// Drops the oldest intervals that are over, as many as are too many. Returns whether the rest fits.
    pub fn forget_old_holds(&mut self, now: StoreTime) -> bool {
        let too_many = self.holds.len().saturating_sub(Self::HOLDS_MAX);
        let over = self.holds.iter().filter(|hold| hold.until <= now).count();
        self.holds.drain(..too_many.min(over));
        over >= too_many
    }

    // The circuit.

    /// What the breaker says at `now`; nothing once its own time is over.
    pub fn breaker_at(&self, now: StoreTime) -> Option<&Breaker> {
        self.breaker.as_ref().filter(|breaker| now < breaker.expires_at)
    }

    /// How the circuit stands at `now`.
    pub fn circuit_at(&self, now: StoreTime) -> CircuitState {
        match self.breaker_at(now).map(|breaker| &breaker.circuit) {
            None | Some(Circuit::Counting(_)) => CircuitState::Closed,
            Some(Circuit::Open { recovers_at }) if now < *recovers_at => CircuitState::Open(*recovers_at),
            Some(Circuit::HalfOpen(probe)) if now < probe.expires_at => CircuitState::Probing(probe.expires_at),
            Some(Circuit::Open { .. } | Circuit::HalfOpen(_)) => CircuitState::Probeable,
        }
    }

    // Both.

    /// What keeps work back at `now` (the first in the order of the gate), and when to look again: when everything that does may be
    /// over, of a hold by the next `held_recheck_interval_ms` at the latest. The instant is the same for everybody who looks before.
    pub fn block_at(&self, now: StoreTime, config: &Config) -> Option<(Block, StoreTime)> {
        let interval_ms = config.held_recheck_interval_ms.max(1);
        let recheck_at = StoreTime::from_ms((now.as_ms() / interval_ms).saturating_add(1).saturating_mul(interval_ms));
        let held = self.held_until(now).map(|end| (Block::Held, end.min(recheck_at)));
        let paced = (self.paced_until > now).then_some((Block::Paced, self.paced_until));
        let circuit = match self.circuit_at(now) {
            CircuitState::Open(until) | CircuitState::Probing(until) => Some((Block::Circuit, until)),
            CircuitState::Closed | CircuitState::Probeable => None,
        };
        let blocks = [held, paced, circuit].into_iter().flatten();
        blocks.reduce(|(first, latest), (_, until)| (first, latest.max(until)))
    }

    /// Where a pointer may stand that leads to what waits here, if nobody has looked since something here ended: at its end, or a
    /// little later.
    pub(crate) fn looks_owed_since(&self, destination: &str, now: StoreTime, config: &Config) -> Vec<StoreTime> {
        let again = |until| look_again_at(destination, until, config);
        let interval_ms = config.held_recheck_interval_ms.max(1);
        let rechecked = StoreTime::from_ms(now.as_ms() / interval_ms * interval_ms);
        let released = self.released_at(now);
        let ended = match self.breaker_at(now).map(|breaker| &breaker.circuit) {
            Some(Circuit::Open { recovers_at }) => Some(*recovers_at),
            Some(Circuit::HalfOpen(probe)) => Some(probe.expires_at),
            None | Some(Circuit::Counting(_)) => None,
        };
        // A release puts a pointer where it happens; whoever looks puts one a little later.
        let ends = [Some(rechecked), Some(released), ended.filter(|at| *at <= now)];
        ends.into_iter().flatten().map(again).chain([released]).collect()
    }

    /// Since when work has been let through again, if that is worth knowing: the end of the latest pause or hold, or the closing of
    /// the circuit.
    fn released_at(&self, now: StoreTime) -> StoreTime {
        let holds = self.holds.iter().map(|hold| hold.until);
        let ends = holds.chain([self.paced_until, self.resumed_at(now)]).filter(|end| *end <= now);
        ends.max().unwrap_or_default()
    }

    /// When the circuit closed last: by an attempt that arrived, or because nobody tried for so long that it was forgotten.
    pub(crate) fn resumed_at(&self, now: StoreTime) -> StoreTime {
        let forgotten = self.breaker.as_ref().filter(|breaker| breaker.expires_at <= now && breaker.is_shut());
        forgotten.map_or(self.resumed_at, |breaker| self.resumed_at.max(breaker.expires_at))
    }

    /// How many deliveries of one worker may be under way to here at `now`: one as a probe, few after a release, `share` at most.
    pub fn share_at(&self, now: StoreTime, config: &Config) -> usize {
        let share = config.share_per_destination();
        if self.circuit_at(now) != CircuitState::Closed {
            return share.min(1);
        }
        let Some(steps) = now.since_ms(self.released_at(now)).checked_div(config.ramp_step_ms) else { return share };
        share.min(usize::try_from(steps).unwrap_or(usize::MAX).saturating_add(1))
    }

    /// Whether nothing in here matters to anybody any more.
    pub fn is_over(&self, now: StoreTime, config: &Config) -> bool {
        let share = config.share_per_destination() as u64;
        let ramp_ms = config.ramp_step_ms.saturating_mul(share);
        // An entry that lived under a hold has credit for it as long as it lives.
        let has_credit = |hold: &HoldInterval| now < hold.until.plus_ms(config.max_retention_ms);
        let released_at = self.paced_until.max(self.resumed_at(now));
        // Nothing was ever released: no ramp is over either.
        let is_ramped = released_at == StoreTime::default() || now >= released_at.plus_ms(ramp_ms);
        is_ramped && self.breaker_at(now).is_none() && !self.holds.iter().any(has_credit)
    }
}

/// Where the pointer of a destination that is kept back until `until` goes: a little later, each destination by its own measure, so
/// that destinations which are released together are not all looked at together.
pub fn look_again_at(destination: &str, until: StoreTime, config: &Config) -> StoreTime {
    let spread = stable_hash(&[destination.as_bytes(), &until.as_ms().to_le_bytes()]);
    until.plus_ms(spread.checked_rem(config.resume_jitter_ms).unwrap_or(0))
}
