//! An operator brings a quarantined delivery back: to its place, or to the front of a lane that has passed its place.

use restante_core_derive::VisitAtoms;
use restante_kv::Guard;

use super::{Outcome, Planner, Rejection, Stop, park};
use crate::atoms::{EntryId, Position};
use crate::effect::Effect;
use crate::record::{Counters, Entry, Lane, LaneRef, LaneSlot, Quarantined, Record as _, WaitReason};

/// Puts a quarantined delivery, or a quarantined intent, back. If its lane has not come to its place yet, that is still its own, and
/// it waits there for its turn. Otherwise it is due at once, in front of everything of its lane. Its origin stays: a delivery whose
/// retention ran out while it lay aside is dropped as expired when a worker meets it.
///
/// Rejected as [`Rejection::StillUnreadable`] by a version that cannot read it either, and as [`Rejection::Taken`] while the
/// head of its lane, in front of which it would step, is being delivered: nothing may overtake that.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Revive {
    /// The delivery.
    pub id: EntryId,
    /// Counter slot to use.
    pub slot: u64,
}

impl Revive {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        if self.id.is_intent() {
            return park::revive(self, p);
        }
        let (aside, key) = (p.env.keys.quarantined(self.id), p.env.keys.entry(self.id));
        p.need(&[aside.clone(), key.clone(), p.env.keys.counters(self.slot)])?;
        let Some(quarantined) = p.guard::<Quarantined>(&aside)? else {
            // It left its quarantine: by this command, whose outcome was unknown, or by somebody else's meanwhile.
            return if p.attempted { Ok(Outcome::Done) } else { Err(Rejection::Gone.into()) };
        };
        let entry = match Entry::decode(&quarantined.record.as_slice().into()) {
            Ok(entry) => entry,
            Err(why) => return Err(Rejection::StillUnreadable(why).into()),
        };
        // An id is put aside once; an entry beside it is another version's doing.
        if p.guard_raw(&key)?.is_some() {
            return Err(Rejection::Taken.into());
        }
        let (lane, active) = match &entry.lane {
            Some(at) if self.has_its_place(p, at, &entry.destination)? => (Some(at.clone()), false),
            Some(at) => (Some(self.step_in_front(p, at, &entry.destination)?), true),
            None => (None, true),
        };
        let revived = Entry {
            lane,
            active,
            lease: None,
            vest_at: p.now(),
            wait: if active { WaitReason::Woken } else { WaitReason::Lane },
            wake_gen: entry.wake_gen.wrapping_add(1),
            ..entry
        };
        p.put(key, &revived, Guard::Checked);
        p.delete(aside.clone(), Guard::Checked);
        p.count(self.slot, revived.class().counted().minus(Counters { quarantined: 1, ..Counters::default() }));
        if active {
            p.put_due(self.id, &revived, Guard::Under(aside));
            p.effect(Effect::Wake { destination: revived.destination });
        }
        Ok(Outcome::Done)
    }

    /// Whether it stands behind its lane's head, at the place it had when it was put aside. A second place in front would leave the
    /// lane a place that stands for nothing, and whoever got there would have to wait for the sweep.
    fn has_its_place(&self, p: &mut Planner<'_>, at: &LaneRef, destination: &str) -> Result<bool, Stop> {
        let lane_key = p.env.keys.lane(&at.order_key, destination);
        let slot_key = p.env.keys.lane_slot(&at.order_key, destination, at.position);
        p.need(&[lane_key.clone(), slot_key.clone()])?;
        let Some(lane) = p.guard::<Lane>(&lane_key)? else { return Ok(false) };
        if at.position <= lane.head || lane.next <= at.position {
            return Ok(false);
        }
        // Every writer of a place checks and writes the lane: the place needs no check of its own.
        Ok(p.under::<LaneSlot>(&slot_key, &lane_key)?.is_some_and(|slot| slot.entry == self.id))
    }

    /// Makes this delivery the head of its lane, and the head until now the second.
    fn step_in_front(&self, p: &mut Planner<'_>, at: &LaneRef, destination: &str) -> Result<LaneRef, Stop> {
        let lane_key = p.env.keys.lane(&at.order_key, destination);
        let Some(lane) = p.guard::<Lane>(&lane_key)? else {
            let position = Position::FIRST;
            p.put(lane_key, &Lane { head: position, head_entry: self.id, next: position.next() }, Guard::Checked);
            return Ok(LaneRef { order_key: at.order_key.clone(), position });
        };
        if lane.head_entry == self.id {
            // Nobody moved the lane past it yet.
            return Ok(LaneRef { order_key: at.order_key.clone(), position: lane.head });
        }
        let Some(position) = lane.head.previous() else {
            return Err(Rejection::Invalid("its lane has no place left in front".into()).into());
        };
        hold_back(p, lane.head_entry, self.slot)?;
        let slot = p.env.keys.lane_slot(&at.order_key, destination, lane.head);
        p.put(slot, &LaneSlot { entry: lane.head_entry }, Guard::Under(lane_key.clone()));
        p.put(lane_key, &Lane { head: position, head_entry: self.id, next: lane.next }, Guard::Checked);
        Ok(LaneRef { order_key: at.order_key.clone(), position })
    }
}

/// Takes a lane's head its due row and makes it wait. Whoever found it through that row meets a conflict, or an inactive entry.
fn hold_back(p: &mut Planner<'_>, id: EntryId, slot: u64) -> Result<(), Stop> {
    let key = p.env.keys.entry(id);
    // A head that vanished is for the lane repair, and one of another version for its claim to put aside.
    let Some(head) = p.guard::<Entry>(&key)? else { return Ok(()) };
    if head.lease.is_some() {
        return Err(Rejection::Taken.into());
    }
    p.delete(p.env.keys.due(&head.destination, head.vest_at, id), Guard::Under(key.clone()));
    let waiting = Entry { active: false, wait: WaitReason::Lane, ..head.clone() };
    p.recount(slot, head.class(), waiting.class());
    p.put(key, &waiting, Guard::Checked);
    Ok(())
}
