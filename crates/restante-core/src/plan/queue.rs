//! Intents and the FIFO of their order key: only its head may expand, so that entries are made in accepted order.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, Key};

use super::entries::Like;
use super::{Outcome, Planner, Rejection, Stop};
use crate::atoms::{EntryId, Fence, Position, SendId};
use crate::effect::{Effect, Observation};
use crate::keys::EXPANSIONS;
use crate::record::{DueRow, Intent, IntentSlot, LaneRef, OrderKeyQueue, Pointer, Record, Unreadable};

/// Writes a new intent, at the tail of its order key's FIFO if it has one.
pub(super) fn admit(
    p: &mut Planner<'_>,
    marker_key: &Key,
    send: SendId,
    total: u32,
    like: Like,
    order_key: Option<&Arc<str>>,
) -> Result<(), Stop> {
    let (place, active) = match order_key {
        Some(order_key) => {
            let (place, is_head) = join(p, order_key, send)?;
            (Some(place), is_head)
        }
        None => (None, true),
    };
    let Like { body, signing, origin, failure_count } = like;
    let vest_at = p.now();
    let intent = Intent {
        cursor: 0,
        total,
        chunk: 0,
        body,
        signing,
        origin,
        vest_at,
        lease: None,
        fence: Fence::default(),
        place,
        active,
        failure_count,
    };
    let under = Guard::Under(marker_key.clone());
    p.put(p.env.keys.intent(send), &intent, under.clone());
    if active {
        put_due(p, send, &intent, under);
    }
    Ok(())
}

/// Takes the last place of an order key's FIFO. Returns the place and whether it is the head.
fn join(p: &mut Planner<'_>, order_key: &Arc<str>, send: SendId) -> Result<(LaneRef, bool), Stop> {
    let key = p.env.keys.order_key(order_key);
    let known = p.guard::<OrderKeyQueue>(&key)?;
    let position = known.as_ref().map_or(Position::FIRST, |queue| queue.next);
    let (queue, is_head) = match known {
        Some(queue) if queue.head != queue.next => (OrderKeyQueue { next: position.next(), ..queue }, false),
        _ => (OrderKeyQueue { head: position, head_intent: send, next: position.next() }, true),
    };
    if !is_head {
        let slot = p.env.keys.intent_slot(order_key, position);
        p.put(slot, &IntentSlot { intent: send }, Guard::Under(key.clone()));
    }
    p.put(key, &queue, Guard::Checked);
    Ok((LaneRef { order_key: order_key.clone(), position }, is_head))
}

/// Puts the due row and the pointer that make an intent discoverable at its `vest_at`.
pub(super) fn put_due(p: &mut Planner<'_>, send: SendId, intent: &Intent, guard: Guard) {
    let due = p.env.keys.intent_due(send, intent.vest_at);
    p.put(due, &DueRow { lane: intent.place.clone() }, guard);
    p.put(p.env.keys.pointer(EXPANSIONS, intent.vest_at), &Pointer {}, Guard::Idempotent);
}

/// Writes an intent back that was read (and checked) as `before`, moving its due row if its instant changed.
pub(super) fn update(p: &mut Planner<'_>, key: &Key, send: SendId, before: &Intent, after: &Intent) {
    p.put(key.clone(), after, Guard::Checked);
    if before.active && after.active && before.vest_at == after.vest_at {
        return;
    }
    if before.active {
        p.delete(p.env.keys.intent_due(send, before.vest_at), Guard::Under(key.clone()));
    }
    if after.active {
        put_due(p, send, after, Guard::Under(key.clone()));
    }
}

/// The intent is over: it goes, with its due row, and its order key's FIFO moves on in the same commit.
pub(super) fn remove(p: &mut Planner<'_>, key: &Key, send: SendId, intent: &Intent) -> Result<(), Stop> {
    p.delete(key.clone(), Guard::Checked);
    if intent.active {
        p.delete(p.env.keys.intent_due(send, intent.vest_at), Guard::Under(key.clone()));
    }
    match &intent.place {
        Some(place) => release(p, place, send),
        None => Ok(()),
    }
}

/// Moves the FIFO on if `send` is its head; does nothing if it is not.
///
/// A record or a place that cannot be read stays as it is, under a head that is gone, for the repair of a version that can read
/// it.
pub(super) fn release(p: &mut Planner<'_>, at: &LaneRef, send: SendId) -> Result<(), Stop> {
    let key = p.env.keys.order_key(&at.order_key);
    let next_position = at.position.next();
    let slot_key = p.env.keys.intent_slot(&at.order_key, next_position);
    p.need(&[key.clone(), slot_key.clone()])?;
    let Some(queue) = readable(p.guard::<OrderKeyQueue>(&key))? else { return Ok(()) };
    if queue.head_intent != send || queue.head != at.position {
        return Ok(());
    }
    if next_position == queue.next {
        p.delete(key, Guard::Checked);
        return Ok(());
    }
    // Every writer of a place checks and writes the FIFO: the place needs no check of its own.
    let Some(slot) = readable(p.under::<IntentSlot>(&slot_key, &key))? else { return Ok(()) };
    let under = Guard::Under(key.clone());
    p.delete(slot_key, under.clone());
    p.put(key, &OrderKeyQueue { head: next_position, head_intent: slot.intent, next: queue.next }, Guard::Checked);
    activate(p, slot.intent, &LaneRef { order_key: at.order_key.clone(), position: next_position }, under)
}

fn readable<R>(read: Result<Option<R>, Stop>) -> Result<Option<R>, Stop> {
    match read {
        Err(Stop::Inconsistent { .. }) => Ok(None),
        read => read,
    }
}

/// Makes the new head claimable.
///
/// A head that is gone stays for the sweep's repair to move past: a plan moves one place only. A head of another version becomes
/// discoverable as it is, so that its claim puts it aside.
fn activate(p: &mut Planner<'_>, send: SendId, at: &LaneRef, under: Guard) -> Result<(), Stop> {
    let key = p.env.keys.intent(send);
    let Some(found) = p.guard_raw(&key)? else { return Ok(()) };
    let now = p.now();
    match Intent::decode(&found.value) {
        Ok(intent) => {
            let after = Intent { active: true, vest_at: now, ..intent.clone() };
            update(p, &key, send, &intent, &after);
        }
        Err(_) => {
            p.put(p.env.keys.intent_due(send, now), &DueRow { lane: Some(at.clone()) }, under);
            p.put(p.env.keys.pointer(EXPANSIONS, now), &Pointer {}, Guard::Idempotent);
        }
    }
    p.effect(Effect::Wake { destination: EXPANSIONS.into() });
    Ok(())
}

/// Whether an intent that was put aside stands behind its FIFO's head, at the place it had.
pub(super) fn has_its_place(p: &mut Planner<'_>, at: &LaneRef, send: SendId) -> Result<bool, Stop> {
    let key = p.env.keys.order_key(&at.order_key);
    let slot_key = p.env.keys.intent_slot(&at.order_key, at.position);
    p.need(&[key.clone(), slot_key.clone()])?;
    let Some(queue) = p.guard::<OrderKeyQueue>(&key)? else { return Ok(false) };
    if at.position <= queue.head || queue.next <= at.position {
        return Ok(false);
    }
    Ok(p.under::<IntentSlot>(&slot_key, &key)?.is_some_and(|slot| slot.intent == send))
}

/// Makes an intent the head of its FIFO again, and the head until now the second.
pub(super) fn step_in_front(p: &mut Planner<'_>, at: &LaneRef, send: SendId) -> Result<LaneRef, Stop> {
    let key = p.env.keys.order_key(&at.order_key);
    let place = |position| LaneRef { order_key: at.order_key.clone(), position };
    let Some(queue) = p.guard::<OrderKeyQueue>(&key)? else {
        let head = Position::FIRST;
        p.put(key, &OrderKeyQueue { head, head_intent: send, next: head.next() }, Guard::Checked);
        return Ok(place(head));
    };
    if queue.head_intent == send {
        // Nobody moved the FIFO past it yet.
        return Ok(place(queue.head));
    }
    let Some(position) = queue.head.previous() else {
        return Err(Rejection::Invalid("its order key has no place left in front".into()).into());
    };
    let head_key = p.env.keys.intent(queue.head_intent);
    // A head that vanished is for the repair, and one of another version for its claim to put aside.
    if let Some(head) = p.guard::<Intent>(&head_key)? {
        if head.lease.is_some() {
            return Err(Rejection::Taken.into());
        }
        update(p, &head_key, queue.head_intent, &head, &Intent { active: false, ..head.clone() });
    }
    let slot = p.env.keys.intent_slot(&at.order_key, queue.head);
    p.put(slot, &IntentSlot { intent: queue.head_intent }, Guard::Under(key.clone()));
    p.put(key, &OrderKeyQueue { head: position, head_intent: send, next: queue.next }, Guard::Checked);
    Ok(place(position))
}

/// Moves the FIFO of an order key on whose head has vanished, and activates a head that nobody activated.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct RepairQueue {
    /// The order key.
    pub order_key: Arc<str>,
}

impl RepairQueue {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.order_key(&self.order_key);
        let Some(queue) = p.guard::<OrderKeyQueue>(&key)? else { return Err(Rejection::NotNeeded.into()) };
        let at = LaneRef { order_key: self.order_key.clone(), position: queue.head };
        let head_key = p.env.keys.intent(queue.head_intent);
        match p.guard::<Intent>(&head_key)? {
            Some(intent) if intent.active => return Err(Rejection::NotNeeded.into()),
            Some(_) => activate(p, queue.head_intent, &at, Guard::Checked)?,
            None => {
                release(p, &at, queue.head_intent)?;
                if !p.has_writes() {
                    // The next place is missing or damaged: the FIFO cannot be moved on from what is known.
                    let key = p.env.keys.intent_slot(&self.order_key, queue.head.next());
                    return Err(Stop::Inconsistent { key, why: Unreadable::Corrupt });
                }
            }
        }
        p.effect(Effect::Observed(Observation::QueueRepaired { order_key: self.order_key.clone() }));
        Ok(Outcome::Done)
    }
}

/// Puts back what makes an intent discoverable: its due row, if it is missing, and its pointer.
pub(super) fn repair_index(p: &mut Planner<'_>, id: EntryId) -> Result<Outcome, Stop> {
    let Some(intent) = p.guard::<Intent>(&p.env.keys.intent(id.send))? else { return Err(Rejection::Gone.into()) };
    if !intent.active {
        return Err(Rejection::NotNeeded.into());
    }
    let (due, pointer) = (p.env.keys.intent_due(id.send, intent.vest_at), p.env.keys.pointer(EXPANSIONS, intent.vest_at));
    p.need(&[due.clone(), pointer.clone()])?;
    if p.version(&due).is_some() && p.version(&pointer).is_some() {
        return Err(Rejection::NotNeeded.into());
    }
    if p.version(&due).is_none() {
        let _absent = p.guard::<DueRow>(&due)?;
        p.put(due, &DueRow { lane: intent.place.clone() }, Guard::Checked);
    }
    p.put(pointer, &Pointer {}, Guard::Idempotent);
    p.effect(Effect::Observed(Observation::IndexRepaired { entry: id }));
    p.effect(Effect::Wake { destination: EXPANSIONS.into() });
    Ok(Outcome::Done)
}
