//! Hold notices: a destination says that it will not take deliveries for a while.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, StoreTime};

use super::accept::is_destination;
use super::{NAME_BYTES_MAX, Outcome, Planner, Rejection, Stop};
use crate::effect::{Effect, Observation};
use crate::record::{Destination, HoldInterval, Unreadable, look_again_at};

/// Changes when a destination is held. Asked again, it changes nothing more.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct SetHold {
    /// The destination: scheme, host and non-default port. It need not be known.
    pub destination: Arc<str>,
    /// What the notice says.
    pub notice: HoldNotice,
}

/// Work that was kept back may be looked at earlier than before: one pointer leads to all of it, wherever it stood until now.
pub(super) fn put_earlier_pointer(p: &mut Planner<'_>, destination: &Arc<str>, known: &Destination, after: &Destination) {
    let (now, config) = (p.now(), &p.env.config);
    match (known.block_at(now, config), after.block_at(now, config)) {
        (Some(_), None) => {
            p.put_pointer(destination, now);
            p.effect(Effect::Wake { destination: destination.clone() });
        }
        (Some((_, was)), Some((_, is))) if is < was => p.put_pointer(destination, look_again_at(destination, is, config)),
        _ => {}
    }
}

/// What a notice says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum HoldNotice {
    /// It is held. Beside what was said before: a later end extends it, an earlier one changes nothing.
    Hold {
        /// From when on; `None` for now.
        from: Option<StoreTime>,
        /// Until when; `None` if nobody knows: until it is released, and at most for `hold_cap_ms` unless it is said again.
        until: Option<StoreTime>,
    },
    /// It is not held any more, whatever was said before.
    Release {
        /// From when on; `None` for now.
        from: Option<StoreTime>,
    },
}

impl SetHold {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        if !is_destination(&self.destination) {
            let bytes = self.destination.len();
            let what = format!("a destination of {bytes} bytes: 1 to {NAME_BYTES_MAX} are allowed, no control characters");
            return Err(Rejection::Invalid(what).into());
        }
        let key = p.env.keys.destination(&self.destination);
        let known = match p.guard::<Destination>(&key) {
            // Damage only loses what was known; another version's record may say more than we can read.
            Err(Stop::Inconsistent { why: Unreadable::Corrupt, .. }) => Destination::default(),
            read => read?.unwrap_or_default(),
        };
        let now = p.now();
        let holds = self.changed(&known, now, p.env.config.hold_cap_ms)?;
        let mut after = Destination { holds, ..known.clone() };
        if !after.forget_old_holds(now) {
            return Err(Rejection::Invalid(format!("more than {} holds for now and later", Destination::HOLDS_MAX)).into());
        }
        if after != known {
            if after == Destination::default() {
                p.delete(key, Guard::Checked);
            } else {
                p.put(key, &after, Guard::Checked);
            }
        }
        put_earlier_pointer(p, &self.destination, &known, &after);
        // Somebody whose clock is ahead may have moved the pointer for a hold that has not begun here yet.
        if matches!(self.notice, HoldNotice::Release { .. }) && after.holds != known.holds {
            let config = &p.env.config;
            let until = after.block_at(now, config).map(|(_, until)| look_again_at(&self.destination, until, config));
            p.put_pointer(&self.destination, until.unwrap_or(now));
        }
        let destination = self.destination.clone();
        match (known.held_until(now), after.held_until(now)) {
            (Some(_), None) => p.effect(Effect::Observed(Observation::HoldReleased { destination })),
            (was, Some(until)) if was != Some(until) => {
                p.effect(Effect::Observed(Observation::HoldSet { destination, until }));
            }
            _ => {}
        }
        Ok(Outcome::Done)
    }

    /// The intervals after the notice, canonical.
    fn changed(&self, known: &Destination, now: StoreTime, cap_ms: u64) -> Result<Vec<HoldInterval>, Stop> {
        let mut changed = Destination { holds: known.holds.clone(), ..Destination::default() };
        match self.notice {
            HoldNotice::Hold { from, until } => {
                let from = from.unwrap_or(now);
                let (until, is_open) = until.map_or((now.max(from).plus_ms(cap_ms), true), |until| (until, false));
                if until <= from {
                    return Err(Rejection::Invalid("a hold ends after it begins".into()).into());
                }
                changed.holds.push(HoldInterval { from, until, is_open });
            }
            HoldNotice::Release { from } => {
                let cut = from.unwrap_or(now);
                for hold in changed.holds.iter_mut().filter(|hold| hold.until > cut) {
                    (hold.until, hold.is_open) = (cut, false);
                }
            }
        }
        Ok(changed.canonical_holds())
    }
}
