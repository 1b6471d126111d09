//! Putting intents aside, bringing them back, and dropping them: their unexpanded recipients stay counted until then.

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, Key};

use super::expand::held_intent;
use super::{DropQuarantined, Outcome, Planner, Quarantine, Rejection, Revive, Stop, queue};
use crate::atoms::{Bytes, EntryId, Fence, OwnerId, SendId};
use crate::effect::{Effect, Observation};
use crate::keys::EXPANSIONS;
use crate::record::{Counters, Intent, QuarantineReason, Quarantined, RecipientChunk, Record};

/// Why an intent that can be read cannot be expanded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, VisitAtoms)]
pub enum Obstacle {
    /// An entry stands where this recipient's would be made.
    Entry {
        /// The recipient's index.
        index: u32,
    },
    /// This chunk of the recipients is missing, damaged, or not the one that follows.
    Recipients {
        /// The chunk's number.
        chunk: u32,
    },
}

/// Puts an intent aside that cannot be expanded: whole, for a finite time; its order key is released and nobody is skipped.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct ParkIntent {
    /// The intent's send.
    pub send: SendId,
    /// Who holds it.
    pub owner: OwnerId,
    /// The claim's token.
    pub fence: Fence,
    /// What is in the way.
    pub obstacle: Obstacle,
    /// Counter slot to use.
    pub slot: u64,
}

impl ParkIntent {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let (key, id) = (p.env.keys.intent(self.send), EntryId::of_intent(self.send));
        let aside = p.env.keys.quarantined(id);
        let in_the_way = match self.obstacle {
            Obstacle::Entry { index } => p.env.keys.entry(EntryId { send: self.send, index }),
            Obstacle::Recipients { chunk } => p.env.keys.recipients(self.send, chunk),
        };
        p.need(&[key.clone(), aside.clone(), in_the_way.clone(), p.env.keys.counters(self.slot)])?;
        if p.attempted && p.guard_raw(&key)?.is_none() {
            return match p.guard::<Quarantined>(&aside)? {
                Some(record) => Ok(announce(p, id, record.reason)),
                None => Err(Rejection::Gone.into()),
            };
        }
        let intent = held_intent(p, &key, self.owner, self.fence)?;
        let found = p.guard_raw(&in_the_way)?;
        let reason = match self.obstacle {
            Obstacle::Entry { index } if found.is_some() && index >= intent.cursor => QuarantineReason::ExpansionConflict,
            Obstacle::Recipients { chunk } if chunk == intent.chunk => {
                let holds = |chunk: &RecipientChunk| chunk.recipient_at(intent.cursor).is_some();
                if found.is_some_and(|found| RecipientChunk::decode(&found.value).is_ok_and(|chunk| holds(&chunk))) {
                    return Err(Rejection::NotNeeded.into());
                }
                QuarantineReason::RecipientsUnreadable
            }
            Obstacle::Entry { .. } | Obstacle::Recipients { .. } => return Err(Rejection::NotNeeded.into()),
        };
        let record = intent.encode();
        put_aside(p, &key, id, reason, record.as_bytes());
        queue::remove(p, &key, self.send, &intent)?;
        p.count(self.slot, Counters { intents: -1, quarantined: 1, ..Counters::default() });
        Ok(announce(p, id, reason))
    }
}

impl RecipientChunk {
    /// The recipients from `index` on, if `index` is in this chunk.
    pub(crate) fn recipient_at(&self, index: u32) -> Option<&[crate::record::Recipient]> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?;
        self.recipients.get(at..).filter(|rest| !rest.is_empty())
    }
}

fn put_aside(p: &mut Planner<'_>, key: &Key, id: EntryId, reason: QuarantineReason, record: &[u8]) {
    let expires_at = p.now().plus_ms(p.env.config.quarantine_retention_ms);
    let aside = Quarantined { reason, record: Bytes::from(record), expires_at };
    p.put(p.env.keys.quarantined(id), &aside, Guard::Under(key.clone()));
}

fn announce(p: &mut Planner<'_>, id: EntryId, reason: QuarantineReason) -> Outcome {
    p.effect(Effect::Observed(Observation::Quarantined { entry: id, reason }));
    Outcome::Quarantined
}

/// Puts an intent aside that cannot be read; its recipients stay counted as its header says.
pub(super) fn quarantine(command: &Quarantine, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
    let (send, id) = (command.id.send, command.id);
    let (key, aside) = (p.env.keys.intent(send), p.env.keys.quarantined(id));
    p.need(&[key.clone(), aside.clone(), p.env.keys.counters(command.slot)])?;
    let Some(found) = p.guard_raw(&key)? else {
        return match p.guard::<Quarantined>(&aside)? {
            Some(record) if p.attempted => Ok(announce(p, id, record.reason)),
            _ => Err(Rejection::Gone.into()),
        };
    };
    let Err(why) = Intent::decode(&found.value) else { return Err(Rejection::NotNeeded.into()) };
    put_aside(p, &key, id, why.into(), found.value.as_bytes());
    p.delete(key.clone(), Guard::Checked);
    if let Some(due) = &command.due {
        p.delete(p.env.keys.due(&due.destination, due.vest_at, id), Guard::Under(key));
    }
    if let Some(at) = &command.lane {
        queue::release(p, at, send)?;
    }
    p.count(command.slot, Counters { intents: -1, quarantined: 1, ..Counters::default() });
    Ok(announce(p, id, why.into()))
}

/// Puts a quarantined intent back with the cursor it had: to its place in its order key's FIFO, or, if the FIFO has passed that, in
/// front of it, due at once.
pub(super) fn revive(command: &Revive, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
    let (send, id) = (command.id.send, command.id);
    let (aside, key) = (p.env.keys.quarantined(id), p.env.keys.intent(send));
    p.need(&[aside.clone(), key.clone(), p.env.keys.counters(command.slot)])?;
    let Some(quarantined) = p.guard::<Quarantined>(&aside)? else {
        return if p.attempted { Ok(Outcome::Done) } else { Err(Rejection::Gone.into()) };
    };
    let intent = match Intent::decode(&quarantined.record.as_slice().into()) {
        Ok(intent) => intent,
        Err(why) => return Err(Rejection::StillUnreadable(why).into()),
    };
    if p.guard_raw(&key)?.is_some() {
        return Err(Rejection::Taken.into());
    }
    let (place, active) = match &intent.place {
        Some(at) if queue::has_its_place(p, at, send)? => (Some(at.clone()), false),
        Some(at) => (Some(queue::step_in_front(p, at, send)?), true),
        None => (None, true),
    };
    let revived = Intent { place, active, lease: None, vest_at: p.now(), ..intent };
    p.put(key, &revived, Guard::Checked);
    p.delete(aside.clone(), Guard::Checked);
    p.count(command.slot, Counters { intents: 1, quarantined: -1, ..Counters::default() });
    if active {
        queue::put_due(p, send, &revived, Guard::Under(aside));
        p.effect(Effect::Wake { destination: EXPANSIONS.into() });
    }
    Ok(Outcome::Done)
}

/// How many recipients a quarantined record still has: none if it is an entry's.
pub(super) fn remaining_aside(command: &DropQuarantined, record: &Quarantined) -> i64 {
    if command.id.is_intent() { Intent::remaining_of(record.record.as_slice()).map_or(0, i64::from) } else { 0 }
}
