//! The sweep's own record, and pruning what is over.

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, Key, StoreTime, Version};

use super::{Outcome, Planner, Rejection, Stable, Stop};
use crate::atoms::{AtomVisitor, EntryId, OwnerId, SendId, VisitAtoms};
use crate::config::Config;
use crate::keys::{DueKey, EXPANSIONS};
use crate::record::{Entry, Intent, Quarantined, Stage, SweepPlace, SweepState, Unreadable};

/// Starts a sweep if one is due and nobody else is at it. One that was left half-way is taken over where it had come to, however
/// long ago: it began when it began, and what it proves is as old.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct BeginSweep {
    /// Who sweeps.
    pub owner: OwnerId,
}

impl BeginSweep {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.sweep();
        let (now, interval_ms) = (p.now(), p.env.config.sweep_interval_ms);
        let state = match p.guard::<SweepState>(&key) {
            // Nothing hangs on it but when the next one is due.
            Err(Stop::Inconsistent { why: Unreadable::Corrupt, .. }) => None,
            state => state?,
        };
        if let Some(state) = &state {
            if p.attempted && state.owner == self.owner && state.taken_until > now {
                return Ok(Outcome::Sweep(state.place.clone()));
            }
            if state.taken_until > now {
                return Err(Rejection::Taken.into());
            }
            if state.completed && now.since_ms(state.completed_from) < interval_ms {
                return Err(Rejection::NotDue.into());
            }
        }
        let place = state.as_ref().and_then(|state| state.place.clone());
        let next = SweepState {
            owner: self.owner,
            taken_until: now.plus_ms(hold_ms(&p.env.config)),
            started_at: state.as_ref().filter(|state| state.place.is_some()).map_or(now, |state| state.started_at),
            completed: state.as_ref().is_some_and(|state| state.completed),
            completed_from: state.map_or(StoreTime::default(), |state| state.completed_from),
            place: place.clone(),
        };
        p.put(key, &next, Guard::Checked);
        Ok(Outcome::Sweep(place))
    }
}

/// How long a sweep goes on without recording its place, in milliseconds, operations of the store aside.
pub(crate) fn sweep_record_ms(config: &Config) -> u64 {
    (config.sweep_interval_ms / PLACES_PER_HOLD).clamp(1, 1_000)
}

/// How long a sweep is its own after its place was recorded, in milliseconds.
fn hold_ms(config: &Config) -> u64 {
    let ms = sweep_record_ms(config).saturating_mul(PLACES_PER_HOLD).saturating_add(config.max_clock_skew_ms);
    ms.min(config.sweep_interval_ms)
}

/// So many times in a row a place may be recorded late before somebody else takes the sweep over.
const PLACES_PER_HOLD: u64 = 16;

/// Records how far a sweep has come, and keeps it for a while.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct AdvanceSweep {
    /// Who sweeps.
    pub owner: OwnerId,
    /// How far.
    pub place: SweepPlace,
}

impl AdvanceSweep {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.sweep();
        let taken_until = p.now().plus_ms(hold_ms(&p.env.config));
        match p.guard::<SweepState>(&key)? {
            Some(state) if state.owner == self.owner && state.taken_until > StoreTime::default() => {
                p.put(key, &SweepState { taken_until, place: Some(self.place.clone()), ..state }, Guard::Checked);
                Ok(Outcome::Done)
            }
            _ => Err(Rejection::Taken.into()),
        }
    }
}

/// Records that a sweep has reached the end of every range.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct FinishSweep {
    /// Who swept.
    pub owner: OwnerId,
    /// Whether it could repair everything that it met. If not, it is over and was not complete.
    pub complete: bool,
}

impl FinishSweep {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.sweep();
        match p.guard::<SweepState>(&key)? {
            Some(state) if state.owner == self.owner && state.taken_until > StoreTime::default() => {
                let over = match self.complete {
                    true => SweepState {
                        taken_until: StoreTime::default(),
                        completed: true,
                        completed_from: state.started_at,
                        place: None,
                        ..state
                    },
                    // The next one begins at the beginning, an interval later.
                    false => {
                        let taken_until = p.now().plus_ms(p.env.config.sweep_interval_ms);
                        SweepState { taken_until, place: None, ..state }
                    }
                };
                p.put(key, &over, Guard::Checked);
                Ok(Outcome::Done)
            }
            Some(state) if p.attempted && state.owner == self.owner => Ok(Outcome::Done),
            _ => Err(Rejection::Taken.into()),
        }
    }
}

/// Deletes a record whose time is over (a marker, a dead letter, a pause, an unpublished stage), a chunk that nobody needs, or a due row
/// that stands for no entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prune {
    /// The record.
    pub key: Key,
    /// Its version when that was seen.
    pub version: Version,
    /// For a chunk of payload or recipients: its send, which must have neither stage nor intent, nor a quarantined one. For one
    /// of the payload, these were found gone and its memberships were *then* read to the end and found empty: in the other
    /// order an accept or an expansion between the two would lose its payload.
    pub chunk_of: Option<SendId>,
}

impl Prune {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        if let Some(send) = self.chunk_of
            && is_needed(p, send)?
        {
            return Err(Rejection::NotNeeded.into());
        }
        if let Ok(due) = p.env.keys.read_due(&self.key)
            && stands_for_its_entry(p, &due)?
        {
            return Err(Rejection::NotNeeded.into());
        }
        let _known = p.guard_raw(&self.key)?;
        if p.version(&self.key) != Some(self.version) {
            return Err(Rejection::Gone.into());
        }
        p.delete(self.key.clone(), Guard::Checked);
        Ok(Outcome::Done)
    }
}

/// Whether a send is still being staged, expanded, or kept aside; read together, so that none of these can become another
/// between the reads.
fn is_needed(p: &mut Planner<'_>, send: SendId) -> Result<bool, Stop> {
    let keys = &p.env.keys;
    let (stage, intent) = (keys.stage(send), keys.intent(send));
    let aside = keys.quarantined(EntryId::of_intent(send));
    p.need(&[stage.clone(), intent.clone(), aside.clone()])?;
    // One that cannot be read is there all the same.
    let is_there = |read: Result<bool, Stop>| match read {
        Err(Stop::Inconsistent { .. }) => Ok(true),
        read => read,
    };
    Ok(is_there(p.peek::<Stage>(&stage, Stable::StageGone).map(|it| it.is_some()))?
        || is_there(p.peek::<Intent>(&intent, Stable::IntentGone).map(|it| it.is_some()))?
        || is_there(p.peek::<Quarantined>(&aside, Stable::IntentGone).map(|it| it.is_some()))?)
}

/// Whether an entry, or an intent, is to be found through this due row. One that cannot be read is: its claim puts it aside.
fn stands_for_its_entry(p: &mut Planner<'_>, due: &DueKey) -> Result<bool, Stop> {
    if &*due.destination == EXPANSIONS && due.entry.is_intent() {
        return match p.guard::<Intent>(&p.env.keys.intent(due.entry.send)) {
            Ok(intent) => Ok(intent.is_some_and(|it| it.active && it.vest_at == due.vest_at)),
            Err(Stop::Inconsistent { .. }) => Ok(true),
            Err(stop) => Err(stop),
        };
    }
    let key = p.env.keys.entry(due.entry);
    match p.guard::<Entry>(&key) {
        Ok(entry) => Ok(entry.is_some_and(|it| it.active && it.vest_at == due.vest_at && it.destination == due.destination)),
        Err(Stop::Inconsistent { .. }) => Ok(true),
        Err(stop) => Err(stop),
    }
}

impl VisitAtoms for Prune {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        visitor.version_of(&self.key, &mut self.version);
        self.key.visit_atoms(visitor);
        self.chunk_of.visit_atoms(visitor);
    }
}
