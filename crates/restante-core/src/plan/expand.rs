//! Expanding an intent: chunk after chunk of its recipients become entries, each chunk and the cursor in one commit.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, Key, StoreTime};

use super::entries::{Lanes, Like, put_entry};
use super::{Outcome, Planner, Rejection, Stable, Stop, queue};
use crate::atoms::{EntryId, Fence, OwnerId, SendId};
use crate::config::Config;
use crate::effect::{Effect, Observation};
use crate::record::{Body, Counters, DeadIntent, DropReason, Intent, Lease, Recipient};

/// Takes a lease on a due intent under the next fencing token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct ClaimIntent {
    /// The intent's send.
    pub send: SendId,
    /// Who claims. Has no other claim on this intent under way.
    pub owner: OwnerId,
}

/// Ends the lease of `intent` later, as of the plan's snapshot.
fn lease_until(p: &Planner<'_>, owner: OwnerId, intent: &mut Intent) {
    let expires_at = p.now().plus_ms(p.env.config.lease_ms);
    intent.lease = Some(Lease { owner, expires_at });
    intent.vest_at = expires_at.plus_ms(p.env.config.max_clock_skew_ms);
}

impl ClaimIntent {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.intent(self.send);
        let Some(before) = p.guard::<Intent>(&key)? else { return Err(Rejection::Gone.into()) };
        // A lease of ours that still runs is this claim's own; one that ended is claimed anew, under another token.
        if p.attempted && before.vest_at > p.now() && before.lease.is_some_and(|lease| lease.owner == self.owner) {
            return Ok(Outcome::IntentClaimed(Box::new(before)));
        }
        if !before.active || before.vest_at > p.now() {
            return Err(Rejection::NotDue.into());
        }
        let mut after = Intent { fence: before.fence.next(), ..before.clone() };
        lease_until(p, self.owner, &mut after);
        queue::update(p, &key, self.send, &before, &after);
        Ok(Outcome::IntentClaimed(Box::new(after)))
    }
}

/// Reads an intent and insists that `owner` holds it under `fence`.
pub(super) fn held_intent(p: &mut Planner<'_>, key: &Key, owner: OwnerId, fence: Fence) -> Result<Intent, Stop> {
    match p.guard::<Intent>(key)? {
        Some(intent) if intent.fence == fence && intent.lease.is_some_and(|lease| lease.owner == owner) => Ok(intent),
        _ => Err(Rejection::LeaseLost.into()),
    }
}

fn retention_end(config: &Config, intent: &Intent) -> StoreTime {
    intent.origin.plus_ms(config.max_retention_ms)
}

/// Makes the next recipients of an intent entries and moves its cursor past them, in one commit; the last chunk's commit removes
/// the intent and moves its order key's FIFO on. Deterministic ids are not what keeps an entry from being made twice: the
/// cursor is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Expand {
    /// The intent's send.
    pub send: SendId,
    /// Who holds it.
    pub owner: OwnerId,
    /// The claim's token.
    pub fence: Fence,
    /// The cursor as the claim, or this claim's latest commit, left it.
    pub from: u32,
    /// The recipients from there on: what [`chunk_len`] says fits one commit, never across the end of a chunk.
    pub recipients: Vec<Recipient>,
    /// Whether these are the last ones of their chunk.
    pub ends_chunk: bool,
    /// The intent's order key, so that one round of reading is the normal case.
    pub order_key: Option<Arc<str>>,
    /// Whether the claim is given back with this commit.
    pub release: bool,
    /// Counter slot to use.
    pub slot: u64,
}

impl Expand {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.intent(self.send);
        let mut needed = vec![key.clone(), p.env.keys.counters(self.slot)];
        for lane in self.lane_keys(p).into_iter().flatten() {
            if !needed.contains(&lane) {
                needed.push(lane);
            }
        }
        p.need(&needed)?;
        if p.attempted
            && let Some(outcome) = self.own_witness(p, &key)?
        {
            return Ok(outcome);
        }
        let before = held_intent(p, &key, self.owner, self.fence)?;
        let cursor = self.from.saturating_add(self.recipients.len() as u32);
        if before.cursor != self.from || cursor > before.total || self.recipients.is_empty() {
            return Err(Rejection::NotNeeded.into());
        }
        if p.now() >= retention_end(&p.env.config, &before) {
            return Err(Rejection::Expired.into());
        }
        self.put_entries(p, &key, &before)?;
        let done = cursor == before.total;
        if done {
            queue::remove(p, &key, self.send, &before)?;
        } else {
            self.advance(p, &key, &before, cursor);
        }
        let count = self.recipients.len() as i64;
        let intents = if done { -1 } else { 0 };
        p.count(self.slot, Counters { entries: count, intents, pending_recipients: -count, ..Counters::default() });
        self.announce(p);
        Ok(Outcome::Expanded { cursor, done })
    }

    fn lane_keys(&self, p: &Planner<'_>) -> Vec<Option<Key>> {
        let lane = |to: &Recipient| self.order_key.as_ref().map(|key| p.env.keys.lane(key, &to.destination));
        self.recipients.iter().map(lane).collect()
    }

    /// After an ambiguous commit: did ours happen? Only who holds the token moves the cursor.
    fn own_witness(&self, p: &mut Planner<'_>, key: &Key) -> Result<Option<Outcome>, Stop> {
        Ok(match p.guard::<Intent>(key)? {
            // Its last chunk was committed: by us, or by whoever took over. Either way nothing is left to expand.
            None => Some(Outcome::Expanded { cursor: self.from.saturating_add(self.recipients.len() as u32), done: true }),
            Some(intent) if intent.fence == self.fence && intent.cursor > self.from => {
                self.announce(p);
                Some(Outcome::Expanded { cursor: intent.cursor, done: false })
            }
            Some(_) => None,
        })
    }

    fn put_entries(&self, p: &mut Planner<'_>, key: &Key, intent: &Intent) -> Result<(), Stop> {
        let (body, signing) = (intent.body.clone(), intent.signing.clone());
        let like = Like { body, signing, origin: intent.origin, failure_count: intent.failure_count };
        let order_key = intent.place.as_ref().map(|place| place.order_key.clone());
        let mut lanes = Lanes::of(order_key.clone().unwrap_or_default());
        for (index, recipient) in (self.from..).zip(&self.recipients) {
            let id = EntryId { send: self.send, index };
            let lane = match &order_key {
                Some(order_key) => {
                    let lane_key = p.env.keys.lane(order_key, &recipient.destination);
                    Some(lanes.join(p, lane_key, id, &recipient.destination)?)
                }
                None => None,
            };
            put_entry(p, key, id, recipient, lane, &like);
        }
        lanes.put(p);
        Ok(())
    }

    /// The cursor moves; the lease is given back, or renewed when half of it is over.
    fn advance(&self, p: &mut Planner<'_>, key: &Key, before: &Intent, cursor: u32) {
        let chunk = if self.ends_chunk { before.chunk.saturating_add(1) } else { before.chunk };
        let mut after = Intent { cursor, chunk, ..before.clone() };
        let left_ms = before.lease.map_or(0, |lease| lease.expires_at.since_ms(p.now()));
        if self.release {
            (after.lease, after.vest_at) = (None, p.now());
        } else if left_ms < p.env.config.lease_ms / 2 {
            lease_until(p, self.owner, &mut after);
        }
        queue::update(p, key, self.send, before, &after);
    }

    fn announce(&self, p: &mut Planner<'_>) {
        p.effect(Effect::Observed(Observation::Expanded { send: self.send, recipient_count: self.recipients.len() as u32 }));
        // Whoever is woken looks at everything: one hint a commit is as good as one a destination.
        if let Some(recipient) = self.recipients.first() {
            p.effect(Effect::Wake { destination: recipient.destination.clone() });
        }
    }
}

/// Bytes of an expansion's commit that entries may take: the smallest store takes 800 KiB in all.
const ENTRIES_BYTES_MAX: usize = 600 * 1024;

/// How many of `recipients` one commit of an expansion takes, at most `size`: within the number of entries and of lanes that the
/// settings allow, and the bytes that the smallest store does. At least one, if there is one.
pub fn chunk_len(config: &Config, intent: &Intent, recipients: &[Recipient], size: usize) -> usize {
    let order_key_bytes = intent.place.as_ref().map_or(0, |place| place.order_key.len());
    let body_bytes = if let Body::Inline(bytes) = &intent.body { bytes.len() } else { 0 };
    let common = body_bytes + intent.signing.expose().len() + 6 * (config.prefix.len() + 64) + 4 * order_key_bytes;
    let (mut bytes, mut lanes) = (0_usize, Vec::<&str>::new());
    let most = size.min(config.expand_entries_max).max(1);
    for (taken, recipient) in recipients.iter().take(most).enumerate() {
        // Inbox once; destination in the entry, and in the keys of due row, pointer, lane and place, where it is no longer.
        bytes = bytes.saturating_add(common + recipient.inbox.len() + 6 * recipient.destination.len());
        if intent.place.is_some() && !lanes.contains(&&*recipient.destination) {
            lanes.push(&recipient.destination);
        }
        if taken > 0 && (bytes > ENTRIES_BYTES_MAX || lanes.len() > config.expand_lanes_max) {
            return taken;
        }
    }
    recipients.len().min(most)
}

/// Gives up what is left of an intent whose retention ran out, with a durable trace that says how many recipients that are.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct DropIntent {
    /// The intent's send.
    pub send: SendId,
    /// Who holds it.
    pub owner: OwnerId,
    /// The claim's token.
    pub fence: Fence,
    /// Counter slot to use.
    pub slot: u64,
}

impl DropIntent {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.intent(self.send);
        let trace_key = p.env.keys.dead_intent(self.send);
        p.need(&[key.clone(), p.env.keys.counters(self.slot)])?;
        if p.attempted && p.guard_raw(&key)?.is_none() {
            if let Some(trace) = p.peek::<DeadIntent>(&trace_key, Stable::DeadLetterWritten)?
                && trace.fence == self.fence
            {
                self.announce(p, &trace);
            }
            return Ok(Outcome::Done);
        }
        let intent = held_intent(p, &key, self.owner, self.fence)?;
        if p.now() < retention_end(&p.env.config, &intent) {
            return Err(Rejection::NotDue.into());
        }
        let trace = DeadIntent {
            reason: DropReason::Expired,
            fence: self.fence,
            cursor: intent.cursor,
            total: intent.total,
            origin: intent.origin,
            expires_at: p.now().plus_ms(p.env.config.dead_letter_retention_ms),
        };
        queue::remove(p, &key, self.send, &intent)?;
        p.put(trace_key, &trace, Guard::Under(key));
        let pending_recipients = -i64::from(intent.remaining());
        p.count(self.slot, Counters { intents: -1, pending_recipients, ..Counters::default() });
        self.announce(p, &trace);
        Ok(Outcome::Done)
    }

    fn announce(&self, p: &mut Planner<'_>, trace: &DeadIntent) {
        let (recipient_count, reason) = (trace.total.saturating_sub(trace.cursor), trace.reason);
        p.effect(Effect::Observed(Observation::IntentDropped { send: self.send, recipient_count, reason }));
    }
}
