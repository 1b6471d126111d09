//! Accepting a send: the moment ownership begins.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, Key, StoreTime};

use super::{Outcome, Planner, Rejection, Stop};
use crate::atoms::{Bytes, EntryId, Fence, Position, Sealed, SendId};
use crate::effect::{Effect, Observation};
use crate::keys::stable_hash;
use crate::record::{
    Body, Counters, Entry, Intake, Lane, LaneRef, LaneSlot, Marker, MarkerState, Member, OrderKeyQueue, Stage, WaitReason,
};

/// Longest idempotency key, order key and destination, in bytes.
pub const NAME_BYTES_MAX: usize = 512;
/// Longest inbox URL, in bytes.
pub const INBOX_BYTES_MAX: usize = 2048;
/// Longest sealed signing reference, in bytes.
pub const SIGNING_BYTES_MAX: usize = 8 * 1024;

/// Whether a name takes more bytes in a key than it has: two such names of the greatest length do not fit one key, and a lane
/// whose next place has no key could never be moved on.
fn grows_in_a_key(name: &str) -> bool {
    name.bytes().any(|byte| byte <= 1)
}

/// Whether a name can be a destination's.
pub(super) fn is_destination(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !grows_in_a_key(name)
}

/// One recipient of a send.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Recipient {
    /// URL to POST to.
    pub inbox: Arc<str>,
    /// Scheme, host and non-default port of `inbox`.
    pub destination: Arc<str>,
    /// When the delivery is of no use any more, if that may be before its retention ends.
    pub deadline: Option<StoreTime>,
}

/// Takes ownership of a send: marker, entries, lanes and index rows in one transaction.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Accept {
    /// The id the send gets; never used before.
    pub send: SendId,
    /// Requests under one key are one send. 1 to [`NAME_BYTES_MAX`] bytes.
    pub idempotency_key: Arc<str>,
    /// 1 to `recipients_max` recipients, each inbox once.
    pub recipients: Vec<Recipient>,
    /// Deliveries of one order key to one destination happen in accepted order.
    pub order_key: Option<Arc<str>>,
    /// The prepared bytes, or the chunks staged before.
    pub body: Body,
    /// Digest of the payload, over the whole of it also when staged.
    pub payload_digest: u64,
    /// What the sender needs to sign.
    pub signing: Sealed,
    /// Counter slot to use.
    pub slot: u64,
}

impl Accept {
    /// The digest of a payload.
    pub fn digest_payload(payload: &Bytes) -> u64 {
        stable_hash(&[payload.as_slice()])
    }

    fn digest(&self) -> u64 {
        let payload = self.payload_digest.to_le_bytes();
        // An order key must not pass for a first recipient.
        let keyed: &[u8] = if self.order_key.is_some() { b"k" } else { b"u" };
        let mut parts: Vec<&[u8]> = vec![&payload, keyed, self.order_key.as_deref().unwrap_or_default().as_bytes()];
        parts.extend(self.recipients.iter().map(|recipient| recipient.inbox.as_bytes()));
        stable_hash(&parts)
    }

    fn check_request(&self, p: &Planner<'_>) -> Result<(), Stop> {
        let invalid = |what: String| Err(Stop::Reject(Rejection::Invalid(what)));
        let recipients_max = p.env.config.recipients_max;
        if self.recipients.is_empty() || self.recipients.len() > recipients_max {
            return invalid(format!("{} recipients, a direct send takes 1 to {recipients_max}", self.recipients.len()));
        }
        for (what, text, max) in [
            ("the idempotency key", Some(&self.idempotency_key), NAME_BYTES_MAX),
            ("the order key", self.order_key.as_ref(), NAME_BYTES_MAX),
        ] {
            if let Some(text) = text
                && (text.is_empty() || text.len() > max)
            {
                return invalid(format!("{what} has {} bytes, 1 to {max} are allowed", text.len()));
            }
        }
        if self.order_key.as_deref().is_some_and(grows_in_a_key) {
            return invalid("the order key holds a control character".into());
        }
        if self.signing.expose().len() > SIGNING_BYTES_MAX {
            return invalid(format!("the signing reference is longer than {SIGNING_BYTES_MAX} bytes"));
        }
        if let Body::Inline(bytes) = &self.body
            && bytes.len() > p.env.config.inline_bytes_max
        {
            return invalid(format!("a payload of {} bytes must be staged", bytes.len()));
        }
        if self.body == (Body::Staged { chunk_count: 0 }) {
            return invalid("a staged payload of no chunks".into());
        }
        for (index, recipient) in self.recipients.iter().enumerate() {
            if recipient.inbox.is_empty() || recipient.inbox.len() > INBOX_BYTES_MAX {
                return invalid(format!("inbox {index} has {} bytes, 1 to {INBOX_BYTES_MAX} are allowed", recipient.inbox.len()));
            }
            if recipient.destination.is_empty() || recipient.destination.len() > NAME_BYTES_MAX {
                return invalid(format!("destination {index} has {} bytes", recipient.destination.len()));
            }
            if grows_in_a_key(&recipient.destination) {
                return invalid(format!("destination {index} holds a control character"));
            }
            if self.recipients[..index].iter().any(|earlier| earlier.inbox == recipient.inbox) {
                return invalid(format!("inbox {} is named twice", recipient.inbox));
            }
        }
        Ok(())
    }

    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        self.check_request(p)?;
        let keys = &p.env.keys;
        let (intake_key, marker_key) = (keys.intake(), keys.marker(&self.idempotency_key));
        let stage_key = matches!(self.body, Body::Staged { .. }).then(|| keys.stage(self.send));
        let order_key = self.order_key.as_ref().map(|key| keys.order_key(key));
        let mut needed = vec![intake_key.clone(), marker_key.clone(), keys.counters(self.slot)];
        needed.extend(stage_key.iter().cloned());
        needed.extend(order_key.iter().cloned());
        let lane_keys: Vec<Option<Key>> = self
            .recipients
            .iter()
            .map(|recipient| self.order_key.as_ref().map(|key| keys.lane(key, &recipient.destination)))
            .collect();
        for key in lane_keys.iter().flatten() {
            if !needed.contains(key) {
                needed.push(key.clone());
            }
        }
        p.need(&needed)?;

        if let Some(outcome) = self.seen_before(p, &marker_key)? {
            return Ok(outcome);
        }
        if p.guard::<Intake>(&intake_key)?.is_some_and(|intake| !intake.open) {
            return Err(Stop::Reject(Rejection::IntakeClosed));
        }
        if let Some(stage_key) = stage_key {
            if p.guard::<Stage>(&stage_key)?.is_none() {
                return Err(Stop::Reject(Rejection::StageGone));
            }
            p.delete(stage_key, Guard::Checked);
        }
        if let Some(order_key) = order_key
            && p.guard::<OrderKeyQueue>(&order_key)?.is_some_and(|queue| queue.head != queue.next)
        {
            return Err(Stop::Reject(Rejection::BehindIntents));
        }
        let mut lanes: Vec<(Key, Lane)> = Vec::new();
        for (index, (recipient, lane_key)) in self.recipients.iter().zip(lane_keys).enumerate() {
            let id = EntryId { send: self.send, index: index as u32 };
            let lane = match lane_key {
                Some(key) => Some(self.join_lane(p, &mut lanes, key, id, &recipient.destination)?),
                None => None,
            };
            self.put_entry(p, &marker_key, id, recipient, lane);
        }
        for (key, lane) in lanes {
            p.put(key, &lane, Guard::Checked);
        }
        let state =
            MarkerState::Accepted { send: self.send, digest: self.digest(), recipient_count: self.recipients.len() as u32 };
        let expires_at = p.now().plus_ms(p.env.config.marker_retention_ms);
        p.put(marker_key, &Marker { state, expires_at }, Guard::Checked);
        p.count(self.slot, Counters { entries: self.recipients.len() as i64, ..Counters::default() });
        self.announce(p);
        Ok(Outcome::Accepted { send: self.send, duplicate: false })
    }

    /// What the marker says of an earlier request under the same key: ours whose outcome was unknown, a repetition, or another.
    fn seen_before(&self, p: &mut Planner<'_>, marker_key: &Key) -> Result<Option<Outcome>, Stop> {
        let (send, digest) = match p.guard::<Marker>(marker_key)?.map(|marker| marker.state) {
            Some(MarkerState::Accepted { send, digest, .. }) => (send, digest),
            // Somebody resolved this very accept and was told that it will never happen.
            Some(MarkerState::Aborted) if p.attempted => return Err(Rejection::Aborted.into()),
            Some(MarkerState::Aborted) | None => return Ok(None),
        };
        if p.attempted && send == self.send {
            self.announce(p);
            return Ok(Some(Outcome::Accepted { send, duplicate: false }));
        }
        if digest == self.digest() {
            return Ok(Some(Outcome::Accepted { send, duplicate: true }));
        }
        Err(Stop::Reject(Rejection::IdempotencyConflict(send)))
    }

    /// Takes the last place of a lane. Returns the place and whether it is the head.
    fn join_lane(
        &self,
        p: &mut Planner<'_>,
        lanes: &mut Vec<(Key, Lane)>,
        key: Key,
        id: EntryId,
        destination: &str,
    ) -> Result<(LaneRef, bool), Stop> {
        let order_key = self.order_key.clone().unwrap_or_default();
        let at = match lanes.iter().position(|(joined, _)| *joined == key) {
            Some(at) => at,
            None => {
                let lane = p.guard::<Lane>(&key)?;
                let empty = Lane { head: Position::FIRST, head_entry: id, next: Position::FIRST };
                lanes.push((key, lane.unwrap_or(empty)));
                lanes.len() - 1
            }
        };
        let (key, lane) = &mut lanes[at];
        let position = lane.next;
        lane.next = position.next();
        let is_head = position == lane.head;
        if !is_head {
            let slot = p.env.keys.lane_slot(&order_key, destination, position);
            p.put(slot, &LaneSlot { entry: id }, Guard::Under(key.clone()));
        }
        Ok((LaneRef { order_key, position }, is_head))
    }

    fn put_entry(
        &self,
        p: &mut Planner<'_>,
        marker_key: &Key,
        id: EntryId,
        recipient: &Recipient,
        lane: Option<(LaneRef, bool)>,
    ) {
        let guard = Guard::Under(marker_key.clone());
        let (lane, active) = match lane {
            Some((lane, is_head)) => (Some(lane), is_head),
            None => (None, true),
        };
        let entry = Entry {
            inbox: recipient.inbox.clone(),
            destination: recipient.destination.clone(),
            body: self.body.clone(),
            signing: self.signing.clone(),
            origin: p.now(),
            failure_count: 0,
            vest_at: p.now(),
            lease: None,
            fence: Fence::default(),
            lane,
            active,
            wait: if active { WaitReason::New } else { WaitReason::Lane },
            wake_gen: 0,
            deadline: recipient.deadline,
        };
        p.put(p.env.keys.entry(id), &entry, guard.clone());
        if matches!(self.body, Body::Staged { .. }) {
            p.put(p.env.keys.member(id), &Member {}, guard.clone());
        }
        if active {
            p.put_due(id, &entry, guard);
        }
    }

    fn announce(&self, p: &mut Planner<'_>) {
        p.effect(Effect::Observed(Observation::Accepted { send: self.send }));
        for (index, recipient) in self.recipients.iter().enumerate() {
            if !self.recipients[..index].iter().any(|earlier| earlier.destination == recipient.destination) {
                p.effect(Effect::Wake { destination: recipient.destination.clone() });
            }
        }
    }
}

/// Decides an accept whose outcome is unknown: finds it accepted, or makes sure that it never will be.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct ResolveAccept {
    /// The send in doubt.
    pub send: SendId,
    /// Its idempotency key.
    pub idempotency_key: Arc<str>,
}

impl ResolveAccept {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.marker(&self.idempotency_key);
        match p.guard::<Marker>(&key)? {
            Some(Marker { state: MarkerState::Accepted { send, .. }, .. }) => Ok(Outcome::Resolved(Some(send))),
            Some(Marker { state: MarkerState::Aborted, .. }) => Ok(Outcome::Resolved(None)),
            None => {
                let expires_at = p.now().plus_ms(p.env.config.marker_retention_ms);
                p.put(key, &Marker { state: MarkerState::Aborted, expires_at }, Guard::Checked);
                Ok(Outcome::Resolved(None))
            }
        }
    }
}
