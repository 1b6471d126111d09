//! Putting unreadable entries aside, and dropping them when their time is over.

use restante_core_derive::VisitAtoms;
use restante_kv::Guard;

use super::{Outcome, Planner, Rejection, Stop, lane, park};
use crate::atoms::{Bytes, EntryId};
use crate::effect::{Effect, Observation};
use crate::keys::DueKey;
use crate::record::{Class, Counters, Entry, LaneRef, Quarantined, Record};

/// Puts an unreadable entry aside whole, for a finite time, and frees its lane. Under the id of an intent: that intent, and its
/// order key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Quarantine {
    /// The entry.
    pub id: EntryId,
    /// Its due row's instant, when it was found through one.
    pub due: Option<DueKey>,
    /// Its lane, as its due row repeats it.
    pub lane: Option<LaneRef>,
    /// Counter slot to use.
    pub slot: u64,
}

impl Quarantine {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        if self.id.is_intent() {
            return park::quarantine(self, p);
        }
        let key = p.env.keys.entry(self.id);
        let aside = p.env.keys.quarantined(self.id);
        p.need(&[key.clone(), aside.clone(), p.env.keys.counters(self.slot)])?;
        let Some(found) = p.guard_raw(&key)? else {
            return match p.guard::<Quarantined>(&aside)? {
                Some(record) if p.attempted => Ok(self.announce(p, &record)),
                _ => Err(Rejection::Gone.into()),
            };
        };
        let Err(why) = Entry::decode(&found.value) else { return Err(Rejection::NotNeeded.into()) };
        let record = Quarantined {
            reason: why.into(),
            record: Bytes::from(found.value.as_bytes()),
            expires_at: p.now().plus_ms(p.env.config.quarantine_retention_ms),
        };
        let under = Guard::Under(key.clone());
        p.put(aside, &record, under.clone());
        p.delete(key, Guard::Checked);
        if let Some(due) = &self.due {
            p.delete(p.env.keys.due(&due.destination, due.vest_at, self.id), under);
            if let Some(at) = &self.lane {
                lane::release(p, at, &due.destination, self.id)?;
            }
        }
        let aside = Counters { quarantined: 1, ..Counters::default() };
        p.count(self.slot, aside.minus(Class::counted_of(&found.value)));
        Ok(self.announce(p, &record))
    }

    fn announce(&self, p: &mut Planner<'_>, record: &Quarantined) -> Outcome {
        p.effect(Effect::Observed(Observation::Quarantined { entry: self.id, reason: record.reason }));
        Outcome::Quarantined
    }
}

/// Drops a quarantined record at the end of its retention, or earlier if an operator says so; observed either way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct DropQuarantined {
    /// The entry it was.
    pub id: EntryId,
    /// Whether to drop it before the end of its retention.
    pub early: bool,
    /// Counter slot to use.
    pub slot: u64,
}

impl DropQuarantined {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.quarantined(self.id);
        p.need(&[key.clone(), p.env.keys.counters(self.slot)])?;
        match p.guard::<Quarantined>(&key)? {
            None if p.attempted => {}
            None => return Err(Rejection::Gone.into()),
            Some(record) if !self.early && record.expires_at > p.now() => return Err(Rejection::NotDue.into()),
            Some(record) => {
                p.delete(key.clone(), Guard::Checked);
                p.delete(p.env.keys.member(self.id), Guard::Under(key));
                let pending_recipients = -park::remaining_aside(self, &record);
                p.count(self.slot, Counters { quarantined: -1, pending_recipients, ..Counters::default() });
            }
        }
        p.effect(Effect::Observed(Observation::QuarantineDropped { entry: self.id }));
        Ok(Outcome::Done)
    }
}
