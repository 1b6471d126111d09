//! Settling a claim: delivered, to be tried again, given back, or given up.

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, Key, StoreTime};

use super::claim::held_entry;
use super::{Outcome, Planner, Rejection, Stable, Stop, lane};
use crate::atoms::{EntryId, Fence, OwnerId};
use crate::effect::{Effect, Observation};
use crate::record::{Block, Body, Counters, DeadLetter, Destination, DropReason, Entry, Unreadable, WaitReason, look_again_at};

/// What an attempt came to, after classification.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum Verdict {
    /// The destination has it.
    Delivered,
    /// Given up.
    Drop(DropReason),
    /// Try again later.
    Retry {
        /// Why it waits.
        wait: WaitReason,
        /// A delay the destination asked for, in milliseconds; replaces the backoff, not the end of attempts.
        retry_after_ms: Option<u64>,
    },
    /// Give the entry back untried until then.
    Defer {
        /// When it is due again.
        until: StoreTime,
    },
    /// Park the entry untried, because of this: it stays due, and its destination is looked at again when that may be over.
    Park(Block),
}

/// Ends a claim. Needs its fencing token; a lease that expired but was taken by nobody still settles.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Settle {
    /// The entry.
    pub id: EntryId,
    /// Who holds it.
    pub owner: OwnerId,
    /// The claim's token.
    pub fence: Fence,
    /// `wake_gen` as the claim saw it.
    pub wake_seen: u64,
    /// What the attempt came to.
    pub verdict: Verdict,
    /// 64 random bits for the jitter of a retry.
    pub entropy: u64,
    /// Counter slot to use.
    pub slot: u64,
}

/// What a settle came to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, VisitAtoms)]
pub enum Settled {
    /// Gone, delivered.
    Delivered,
    /// Gone, given up.
    Dropped(DropReason),
    /// It will be tried again.
    Retried,
    /// Given back untried.
    Deferred,
    /// Parked untried: its destination is held, or its circuit is not closed.
    Parked(Block),
    /// Gone after a settle of unknown outcome: by that settle, or by a later claim's.
    Gone,
}

impl Settle {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.entry(self.id);
        p.need(&[key.clone(), p.env.keys.counters(self.slot)])?;
        if p.attempted
            && let Some(settled) = self.own_witness(p, &key)?
        {
            return Ok(Outcome::Settled(settled));
        }
        let entry = held_entry(p, &key, self.owner, self.fence)?;
        let settled = match self.verdict {
            Verdict::Delivered => {
                p.effect(Effect::Observed(Observation::Delivered { entry: self.id, fence: self.fence }));
                remove(p, self.id, self.slot, &key, &entry)?;
                Settled::Delivered
            }
            Verdict::Drop(reason) => self.give_up(p, &key, &entry, reason)?,
            Verdict::Retry { wait, retry_after_ms } => self.try_again(p, &key, &entry, wait, retry_after_ms)?,
            Verdict::Defer { until } => {
                let due_at = if entry.wake_gen == self.wake_seen { until } else { p.now() };
                self.give_back(p, &key, &entry, Entry { wait: WaitReason::RateLimited, ..entry.clone() }, due_at);
                Settled::Deferred
            }
            Verdict::Park(block) => {
                self.park(p, &key, &entry, block)?;
                Settled::Parked(block)
            }
        };
        Ok(Outcome::Settled(settled))
    }

    /// After an ambiguous commit: did our settle happen?
    fn own_witness(&self, p: &mut Planner<'_>, key: &Key) -> Result<Option<Settled>, Stop> {
        match p.guard::<Entry>(key)? {
            Some(entry) if entry.fence == self.fence && entry.lease.is_none() => Ok(Some(match self.verdict {
                Verdict::Defer { .. } => Settled::Deferred,
                Verdict::Park(block) => Settled::Parked(block),
                Verdict::Delivered | Verdict::Drop(_) | Verdict::Retry { .. } => Settled::Retried,
            })),
            Some(_) => Ok(None),
            None => {
                let dead_letter_key = p.env.keys.dead_letter(self.id);
                match p.peek::<DeadLetter>(&dead_letter_key, Stable::DeadLetterWritten)? {
                    Some(letter) if letter.fence == self.fence => {
                        p.effect(Effect::Observed(Observation::Dropped { entry: self.id, reason: letter.reason }));
                        Ok(Some(Settled::Dropped(letter.reason)))
                    }
                    _ => Ok(Some(Settled::Gone)),
                }
            }
        }
    }

    fn give_up(&self, p: &mut Planner<'_>, key: &Key, entry: &Entry, reason: DropReason) -> Result<Settled, Stop> {
        remove(p, self.id, self.slot, key, entry)?;
        bury(p, self.id, key, entry, self.fence, reason);
        Ok(Settled::Dropped(reason))
    }

    fn try_again(
        &self,
        p: &mut Planner<'_>,
        key: &Key,
        entry: &Entry,
        wait: WaitReason,
        retry_after_ms: Option<u64>,
    ) -> Result<Settled, Stop> {
        let failure_count = entry.failure_count.saturating_add(1);
        let failed = Entry { failure_count, wait, ..entry.clone() };
        if failure_count >= p.env.config.attempts_max {
            return self.give_up(p, key, &failed, DropReason::AttemptsExhausted);
        }
        if let Some(pause_ms) = retry_after_ms {
            self.pace(p, &entry.destination, pause_ms)?;
        }
        let delay_ms = retry_after_ms.unwrap_or_else(|| p.env.config.backoff_ms(failure_count, self.entropy));
        // A wake that came during the lease asked for a look at once; without this it would be lost behind the backoff.
        let woken = entry.wake_gen != self.wake_seen;
        let due_at = if woken { p.now() } else { p.now().plus_ms(delay_ms) };
        let wait = if woken { WaitReason::Woken } else { wait };
        self.give_back(p, key, entry, Entry { wait, ..failed }, due_at);
        Ok(Settled::Retried)
    }

    /// No POST to this destination begins for a while, whichever entry it is for.
    fn pace(&self, p: &mut Planner<'_>, destination: &str, pause_ms: u64) -> Result<(), Stop> {
        let key = p.env.keys.destination(destination);
        // Bounded: whatever waits here would otherwise outlive its retention by as much as a destination likes to ask for.
        let until = p.now().plus_ms(pause_ms.min(p.env.config.max_retention_ms));
        match p.guard::<Destination>(&key) {
            Ok(Some(known)) if known.paced_until >= until => {}
            // Another version's record may say more than we can read: it stays.
            Err(Stop::Inconsistent { why: Unreadable::UnknownFormat(_), .. }) => {}
            // A damaged record only loses what was known; it is replaced.
            Ok(known) => p.put(key, &Destination { paced_until: until, ..known.unwrap_or_default() }, Guard::Checked),
            Err(Stop::Inconsistent { why: Unreadable::Corrupt, .. }) => {
                p.put(key, &Destination { paced_until: until, ..Destination::default() }, Guard::Checked)
            }
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    /// Ends the lease and leaves the entry due. Nobody looks before the destination's pointer leads there: a release moves that one
    /// row, not every entry's. A release that came since the gate looked has moved it already; hence the check.
    fn park(&self, p: &mut Planner<'_>, key: &Key, before: &Entry, block: Block) -> Result<(), Stop> {
        let wait = match block {
            Block::Held => WaitReason::Held,
            Block::Circuit => WaitReason::CircuitHeld,
            Block::Paced => WaitReason::RateLimited,
        };
        let now = p.now();
        let known = match p.guard::<Destination>(&p.env.keys.destination(&before.destination)) {
            // What cannot be read any more blocks nothing, or is the gate's to refuse.
            Err(Stop::Inconsistent { .. }) => None,
            read => read?,
        };
        let config = &p.env.config;
        let block_now = known.and_then(|known| known.block_at(now, config));
        // A wake that came during the lease asked for a look at once.
        let is_woken = before.wake_gen != self.wake_seen;
        let until = block_now.filter(|_| !is_woken).map(|(_, until)| look_again_at(&before.destination, until, config));
        let after = Entry { lease: None, vest_at: now, wait, ..before.clone() };
        let under = Guard::Under(key.clone());
        p.delete_due(self.id, before, under.clone());
        p.put(key.clone(), &after, Guard::Checked);
        p.put_due_row(self.id, &after, under);
        p.put_pointer(&before.destination, until.unwrap_or(now));
        p.recount(self.slot, before.class(), after.class());
        if until.is_none() {
            p.effect(Effect::Wake { destination: before.destination.clone() });
        }
        Ok(())
    }

    /// Ends the lease and makes the entry due at `due_at`, at the latest when its time is over, so that its end is seen.
    fn give_back(&self, p: &mut Planner<'_>, key: &Key, before: &Entry, after: Entry, due_at: StoreTime) {
        let vest_at = due_at.min(before.ends_at(p.env.config.max_retention_ms)).max(p.now());
        let after = Entry { lease: None, vest_at, ..after };
        p.update_entry(key, self.id, before, &after);
        p.recount(self.slot, before.class(), after.class());
        if vest_at <= p.now() {
            p.effect(Effect::Wake { destination: before.destination.clone() });
        }
    }
}

/// The entry is terminal: it goes, with its rows, and frees its lane in the same commit. Returns the lane's new head.
pub(super) fn remove(p: &mut Planner<'_>, id: EntryId, slot: u64, key: &Key, entry: &Entry) -> Result<Option<EntryId>, Stop> {
    let under = Guard::Under(key.clone());
    p.delete(key.clone(), Guard::Checked);
    p.delete_due(id, entry, under.clone());
    if matches!(entry.body, Body::Staged { .. }) {
        p.delete(p.env.keys.member(id), under);
    }
    p.count(slot, Counters::default().minus(entry.class().counted()));
    match &entry.lane {
        Some(lane) => lane::release(p, lane, &entry.destination, id),
        None => Ok(None),
    }
}

/// Leaves the trace of an entry that is given up.
pub(super) fn bury(p: &mut Planner<'_>, id: EntryId, key: &Key, entry: &Entry, fence: Fence, reason: DropReason) {
    let letter = DeadLetter {
        reason,
        fence,
        inbox: entry.inbox.clone(),
        origin: entry.origin,
        failure_count: entry.failure_count,
        expires_at: p.now().plus_ms(p.env.config.dead_letter_retention_ms),
    };
    p.put(p.env.keys.dead_letter(id), &letter, Guard::Under(key.clone()));
    p.effect(Effect::Observed(Observation::Dropped { entry: id, reason }));
}

impl From<Rejection> for Stop {
    fn from(rejection: Rejection) -> Self {
        Self::Reject(rejection)
    }
}
