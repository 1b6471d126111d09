//! Keeping the index true: due rows, lanes and pointers.

use std::collections::BTreeSet;
use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, Key, StoreTime, Version};

use super::{Outcome, Planner, Rejection, Stop, lane, queue};
use crate::atoms::{AtomVisitor, EntryId, VisitAtoms};
use crate::effect::{Effect, Observation};
use crate::record::{Destination, DueRow, Entry, Lane, LaneRef, Pointer, Unreadable, look_again_at};

/// Puts back what makes an entry (or, under its id, an intent) discoverable: its due row, if it is missing, and its pointer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct RepairIndex {
    /// The entry.
    pub id: EntryId,
}

impl RepairIndex {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        if self.id.is_intent() {
            return queue::repair_index(p, self.id);
        }
        let Some(entry) = p.guard::<Entry>(&p.env.keys.entry(self.id))? else { return Err(Rejection::Gone.into()) };
        if !entry.active {
            return Err(Rejection::NotNeeded.into());
        }
        let due = p.env.keys.due(&entry.destination, entry.vest_at, self.id);
        let destination = p.env.keys.destination(&entry.destination);
        p.need(&[due.clone(), destination.clone()])?;
        // The pointer of a destination whose work is or was kept back stands where that is looked at, past its entries; until
        // somebody has looked, where it stood before.
        let known = p.hint::<Destination>(&destination)?.unwrap_or_default();
        let (now, config) = (p.now(), &p.env.config);
        let pointer_at = |at: StoreTime| p.env.keys.pointer(&entry.destination, entry.vest_at.max(at));
        let owed = known.block_at(now, config).map(|(_, until)| look_again_at(&entry.destination, until, config));
        let pointer = pointer_at(owed.unwrap_or_default());
        let earlier = known.looks_owed_since(&entry.destination, now, config).into_iter().chain([StoreTime::default()]);
        let pointers: BTreeSet<Key> = earlier.map(pointer_at).chain([pointer.clone()]).collect();
        let pointers: Vec<Key> = pointers.into_iter().collect();
        p.need(&pointers)?;
        // The scan that suggested this is older than this snapshot: the entry may have moved on, rows and all.
        if p.version(&due).is_some() && pointers.iter().any(|pointer| p.version(pointer).is_some()) {
            return Err(Rejection::NotNeeded.into());
        }
        if p.version(&due).is_none() {
            let _absent = p.guard::<DueRow>(&due)?;
            p.put(due, &DueRow { lane: entry.lane.clone() }, Guard::Checked);
        }
        p.put(pointer, &Pointer {}, Guard::Idempotent);
        p.effect(Effect::Observed(Observation::IndexRepaired { entry: self.id }));
        p.effect(Effect::Wake { destination: entry.destination });
        Ok(Outcome::Done)
    }
}

/// Moves a lane on whose head has vanished, and activates a head that nobody activated.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct RepairLane {
    /// The lane's order key.
    pub order_key: Arc<str>,
    /// The lane's destination.
    pub destination: Arc<str>,
}

impl RepairLane {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let lane_key = p.env.keys.lane(&self.order_key, &self.destination);
        let Some(lane) = p.guard::<Lane>(&lane_key)? else { return Err(Rejection::NotNeeded.into()) };
        let at = LaneRef { order_key: self.order_key.clone(), position: lane.head };
        match p.guard_raw(&p.env.keys.entry(lane.head_entry))? {
            Some(_) => {
                let entry: Entry = p.guard(&p.env.keys.entry(lane.head_entry))?.ok_or(Rejection::Gone)?;
                if entry.active {
                    return Err(Rejection::NotNeeded.into());
                }
                lane::activate(p, lane.head_entry, &at, &self.destination, Guard::Checked)?;
            }
            None => {
                lane::release(p, &at, &self.destination, lane.head_entry)?;
                if !p.has_writes() {
                    // The next place is missing or damaged: the lane cannot be moved on from what is known.
                    let key = p.env.keys.lane_slot(&self.order_key, &self.destination, lane.head.next());
                    return Err(Stop::Inconsistent { key, why: Unreadable::Corrupt });
                }
            }
        }
        p.effect(Effect::Observed(Observation::LaneRepaired { destination: self.destination.clone() }));
        Ok(Outcome::Done)
    }
}

/// Removes a pointer whose destination had nothing due, or moves it to where the destination's next work is.
///
/// The version must be the one read *before* the destination was scanned: a producer that added work since has put the
/// pointer again, and the removal conflicts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TidyPointer {
    /// The pointer.
    pub key: Key,
    /// Its version before the scan.
    pub version: Version,
    /// The destination it points to.
    pub destination: Arc<str>,
    /// When the destination's next work vests; `None` when it has none.
    pub next_vest_at: Option<StoreTime>,
}

impl TidyPointer {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let _known = p.guard_raw(&self.key)?;
        if p.version(&self.key) != Some(self.version) {
            return Err(Rejection::NotNeeded.into());
        }
        let moved = self.next_vest_at.map(|at| p.env.keys.pointer(&self.destination, at));
        if moved.as_ref() == Some(&self.key) {
            return Err(Rejection::NotNeeded.into());
        }
        p.delete(self.key.clone(), Guard::Checked);
        if let Some(moved) = moved {
            p.put(moved, &Pointer {}, Guard::Idempotent);
        }
        Ok(Outcome::Done)
    }
}

impl VisitAtoms for TidyPointer {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        visitor.version_of(&self.key, &mut self.version);
        self.key.visit_atoms(visitor);
        self.next_vest_at.visit_atoms(visitor);
    }
}
