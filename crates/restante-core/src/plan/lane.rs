//! Moving a lane on: the next entry becomes head when its predecessor is terminal, in the same commit.

use restante_kv::Guard;

use super::{Planner, Stop};
use crate::atoms::EntryId;
use crate::effect::Effect;
use crate::record::{DueRow, Entry, Lane, LaneRef, LaneSlot, Pointer, Record, WaitReason};

/// Moves the lane on if `id` is its head, and returns the new one; does nothing if it is not.
///
/// A lane or a place that cannot be read stays as it is, under a head that is gone, for the lane repair of a version that can
/// read it. Refusing to settle instead would deliver the head again with every lease.
pub(super) fn release(p: &mut Planner<'_>, at: &LaneRef, destination: &str, id: EntryId) -> Result<Option<EntryId>, Stop> {
    let lane_key = p.env.keys.lane(&at.order_key, destination);
    let next_position = at.position.next();
    let slot_key = p.env.keys.lane_slot(&at.order_key, destination, next_position);
    p.need(&[lane_key.clone(), slot_key.clone()])?;
    let Some(lane) = readable(p.guard::<Lane>(&lane_key))? else { return Ok(None) };
    if lane.head_entry != id || lane.head != at.position {
        return Ok(None);
    }
    if next_position == lane.next {
        p.delete(lane_key, Guard::Checked);
        return Ok(None);
    }
    // Every writer of a place checks and writes the lane: the place needs no check of its own.
    let Some(slot) = readable(p.under::<LaneSlot>(&slot_key, &lane_key))? else { return Ok(None) };
    let under_lane = Guard::Under(lane_key.clone());
    p.delete(slot_key, under_lane.clone());
    p.put(lane_key, &Lane { head: next_position, head_entry: slot.entry, next: lane.next }, Guard::Checked);
    activate(p, slot.entry, at, destination, under_lane)?;
    Ok(Some(slot.entry))
}

fn readable<R>(read: Result<Option<R>, Stop>) -> Result<Option<R>, Stop> {
    match read {
        Err(Stop::Inconsistent { .. }) => Ok(None),
        read => read,
    }
}

/// Makes the new head claimable.
///
/// A head that is gone (put aside earlier) stays for the sweep's lane repair to move past: a plan moves one place only.
/// A head of another version becomes discoverable as it is, so that its claim puts it aside.
pub(super) fn activate(p: &mut Planner<'_>, id: EntryId, at: &LaneRef, destination: &str, under_lane: Guard) -> Result<(), Stop> {
    let key = p.env.keys.entry(id);
    let Some(found) = p.guard_raw(&key)? else { return Ok(()) };
    let now = p.now();
    match Entry::decode(&found.value) {
        Ok(entry) => {
            // One that a revive had held back keeps its backoff.
            let vest_at = entry.vest_at.max(now);
            let after = Entry { active: true, vest_at, wait: WaitReason::New, ..entry.clone() };
            p.update_entry(&key, id, &entry, &after);
        }
        Err(_) => {
            let lane = Some(LaneRef { order_key: at.order_key.clone(), position: at.position.next() });
            p.put(p.env.keys.due(destination, now, id), &DueRow { lane }, under_lane);
            p.put(p.env.keys.pointer(destination, now), &Pointer {}, Guard::Idempotent);
        }
    }
    p.effect(Effect::Wake { destination: destination.into() });
    Ok(())
}
