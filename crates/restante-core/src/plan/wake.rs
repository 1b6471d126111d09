//! A durable wake: look at this entry again now.

use restante_core_derive::VisitAtoms;

use super::{Outcome, Planner, Rejection, Stop};
use crate::atoms::EntryId;
use crate::effect::Effect;
use crate::record::{Class, Entry, WaitReason};

/// Makes a waiting entry due at once; leaves word for the settle when it is leased. Extends nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Wake {
    /// The entry.
    pub id: EntryId,
}

impl Wake {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.entry(self.id);
        let Some(before) = p.guard::<Entry>(&key)? else { return Err(Rejection::Gone.into()) };
        if !before.active {
            return Err(Rejection::NotNeeded.into());
        }
        let mut after = Entry { wake_gen: before.wake_gen.wrapping_add(1), ..before.clone() };
        if before.lease.is_none() {
            after.vest_at = before.vest_at.min(p.now());
            // What a gate parked stays parked, and counted as such, until a claim takes it.
            if before.class() == Class::Waiting {
                after.wait = WaitReason::Woken;
            }
        }
        p.update_entry(&key, self.id, &before, &after);
        p.effect(Effect::Wake { destination: before.destination });
        Ok(Outcome::Done)
    }
}
