//! Accepting a send: the moment ownership begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Guard, Key};

use super::entries::{Lanes, Like, put_entry};
use super::{Outcome, Planner, Rejection, Stop, queue};
use crate::atoms::{Bytes, EntryId, Sealed, SendId};
use crate::effect::{Effect, Observation};
use crate::keys::stable_hash;
use crate::record::{Body, Counters, Intake, Marker, MarkerState, OrderKeyQueue, Recipient, RecipientChunk, Stage};

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

/// Digest of a request, to tell a repetition from another request under the same key.
pub(crate) fn request_digest(payload_digest: u64, order_key: Option<&str>, recipients: &[Recipient]) -> u64 {
    let payload = payload_digest.to_le_bytes();
    // An order key must not pass for a first recipient.
    let keyed: &[u8] = if order_key.is_some() { b"k" } else { b"u" };
    let mut parts: Vec<&[u8]> = vec![&payload, keyed, order_key.unwrap_or_default().as_bytes()];
    parts.extend(recipients.iter().map(|recipient| recipient.inbox.as_bytes()));
    stable_hash(&parts)
}

fn invalid<T>(what: String) -> Result<T, Rejection> {
    Err(Rejection::Invalid(what))
}

pub(super) fn check_names(idempotency_key: &Arc<str>, order_key: Option<&Arc<str>>, signing: &Sealed) -> Result<(), Rejection> {
    for (what, text, max) in
        [("the idempotency key", Some(idempotency_key), NAME_BYTES_MAX), ("the order key", order_key, NAME_BYTES_MAX)]
    {
        if let Some(text) = text
            && (text.is_empty() || text.len() > max)
        {
            return invalid(format!("{what} has {} bytes, 1 to {max} are allowed", text.len()));
        }
    }
    if order_key.is_some_and(|key| grows_in_a_key(key)) {
        return invalid("the order key holds a control character".into());
    }
    if signing.expose().len() > SIGNING_BYTES_MAX {
        return invalid(format!("the signing reference is longer than {SIGNING_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// Whether these recipients may be those of one send.
///
/// # Errors
/// [`Rejection::Invalid`]: a bound is broken, or an inbox is named twice.
pub(crate) fn check_recipients(recipients: &[Recipient]) -> Result<(), Rejection> {
    let mut seen = BTreeSet::new();
    for (index, recipient) in recipients.iter().enumerate() {
        if recipient.inbox.is_empty() || recipient.inbox.len() > INBOX_BYTES_MAX {
            return invalid(format!("inbox {index} has {} bytes, 1 to {INBOX_BYTES_MAX} are allowed", recipient.inbox.len()));
        }
        if recipient.destination.is_empty() || recipient.destination.len() > NAME_BYTES_MAX {
            return invalid(format!("destination {index} has {} bytes", recipient.destination.len()));
        }
        if grows_in_a_key(&recipient.destination) {
            return invalid(format!("destination {index} holds a control character"));
        }
        if !seen.insert(&recipient.inbox) {
            return invalid(format!("inbox {} is named twice", recipient.inbox));
        }
    }
    Ok(())
}

/// Whether a name can be a destination's.
pub(super) fn is_destination(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !grows_in_a_key(name)
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

    pub(super) fn digest(&self) -> u64 {
        request_digest(self.payload_digest, self.order_key.as_deref(), &self.recipients)
    }

    fn check_request(&self, p: &Planner<'_>) -> Result<(), Stop> {
        let invalid = |what: String| Err(Stop::Reject(Rejection::Invalid(what)));
        let recipients_max = p.env.config.recipients_max;
        if self.recipients.is_empty() || self.recipients.len() > recipients_max {
            return invalid(format!("{} recipients, a direct send takes 1 to {recipients_max}", self.recipients.len()));
        }
        check_names(&self.idempotency_key, self.order_key.as_ref(), &self.signing)?;
        if let Body::Inline(bytes) = &self.body
            && bytes.len() > p.env.config.inline_bytes_max
        {
            return invalid(format!("a payload of {} bytes must be staged", bytes.len()));
        }
        if self.body == (Body::Staged { chunk_count: 0 }) {
            return invalid("a staged payload of no chunks".into());
        }
        check_recipients(&self.recipients)?;
        Ok(())
    }

    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        self.plan_after(p, 0, |p, marker_key| seen_before(p, marker_key, self.send, self.digest()))
    }

    /// Takes ownership of what has `failure_count` attempts behind it, unless `seen_before` finds that it is owned already.
    pub(super) fn plan_after(
        &self,
        p: &mut Planner<'_>,
        failure_count: u32,
        seen_before: impl FnOnce(&mut Planner<'_>, &Key) -> Result<Option<(SendId, bool)>, Stop>,
    ) -> Result<Outcome, Stop> {
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

        if let Some((send, duplicate)) = seen_before(p, &marker_key)? {
            if !duplicate {
                self.announce(p);
            }
            return Ok(Outcome::Accepted { send, duplicate });
        }
        check_intake(p, &intake_key)?;
        if let Some(stage_key) = stage_key {
            publish_stage(p, stage_key)?;
        }
        let recipient_count = self.recipients.len() as u32;
        if let (Some(name), Some(key)) = (&self.order_key, order_key)
            && p.guard::<OrderKeyQueue>(&key)?.is_some_and(|queue| queue.head != queue.next)
        {
            self.queue_up(p, &marker_key, name, failure_count)?;
        } else {
            self.put_entries(p, &marker_key, lane_keys, failure_count)?;
        }
        put_marker(p, marker_key, self.send, self.digest(), recipient_count);
        self.announce(p);
        Ok(Outcome::Accepted { send: self.send, duplicate: false })
    }

    /// Everything at once: the entries, their lanes and index rows.
    fn put_entries(
        &self,
        p: &mut Planner<'_>,
        marker_key: &Key,
        lane_keys: Vec<Option<Key>>,
        failure_count: u32,
    ) -> Result<(), Stop> {
        let like = self.like(p, failure_count);
        let mut lanes = Lanes::of(self.order_key.clone().unwrap_or_default());
        for (index, (recipient, lane_key)) in self.recipients.iter().zip(lane_keys).enumerate() {
            let id = EntryId { send: self.send, index: index as u32 };
            let lane = match lane_key {
                Some(key) => Some(lanes.join(p, key, id, &recipient.destination)?),
                None => None,
            };
            put_entry(p, marker_key, id, recipient, lane, &like);
        }
        lanes.put(p);
        p.count(self.slot, Counters { entries: self.recipients.len() as i64, ..Counters::default() });
        Ok(())
    }

    /// Earlier sends of the order key are not expanded yet: this one waits for its turn behind them, as an intent.
    fn queue_up(&self, p: &mut Planner<'_>, marker_key: &Key, order_key: &Arc<str>, failure_count: u32) -> Result<(), Stop> {
        let chunk = RecipientChunk { first: 0, recipients: self.recipients.clone() };
        p.put(p.env.keys.recipients(self.send, 0), &chunk, Guard::Under(marker_key.clone()));
        let total = self.recipients.len() as u32;
        let like = self.like(p, failure_count);
        queue::admit(p, marker_key, self.send, total, like, Some(order_key))?;
        p.count(self.slot, Counters { intents: 1, pending_recipients: total.into(), ..Counters::default() });
        Ok(())
    }

    fn like(&self, p: &Planner<'_>, failure_count: u32) -> Like {
        Like { body: self.body.clone(), signing: self.signing.clone(), origin: p.now(), failure_count }
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

/// What the marker says of an earlier request under the same key: none, ours whose outcome was unknown (`false`), or a
/// repetition of an earlier one (`true`); another request is rejected.
pub(super) fn seen_before(
    p: &mut Planner<'_>,
    marker_key: &Key,
    own: SendId,
    own_digest: u64,
) -> Result<Option<(SendId, bool)>, Stop> {
    let (send, digest) = match p.guard::<Marker>(marker_key)?.map(|marker| marker.state) {
        Some(MarkerState::Accepted { send, digest, .. }) => (send, digest),
        // Somebody resolved this very accept and was told that it will never happen.
        Some(MarkerState::Aborted) if p.attempted => return Err(Rejection::Aborted.into()),
        Some(MarkerState::Aborted | MarkerState::Tried { .. }) | None => return Ok(None),
    };
    if p.attempted && send == own {
        return Ok(Some((send, false)));
    }
    if digest == own_digest {
        return Ok(Some((send, true)));
    }
    Err(Stop::Reject(Rejection::IdempotencyConflict(send)))
}

pub(super) fn check_intake(p: &mut Planner<'_>, intake_key: &Key) -> Result<(), Stop> {
    match p.guard::<Intake>(intake_key)? {
        Some(intake) if !intake.open => Err(Stop::Reject(Rejection::IntakeClosed)),
        _ => Ok(()),
    }
}

/// What was staged is published by the commit that takes its stage away.
pub(super) fn publish_stage(p: &mut Planner<'_>, stage_key: Key) -> Result<(), Stop> {
    if p.guard::<Stage>(&stage_key)?.is_none() {
        return Err(Stop::Reject(Rejection::StageGone));
    }
    p.delete(stage_key, Guard::Checked);
    Ok(())
}

pub(super) fn put_marker(p: &mut Planner<'_>, marker_key: Key, send: SendId, digest: u64, recipient_count: u32) {
    let state = MarkerState::Accepted { send, digest, recipient_count };
    let expires_at = p.now().plus_ms(p.env.config.marker_retention_ms);
    p.put(marker_key, &Marker { state, expires_at }, Guard::Checked);
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
            Some(Marker { state: MarkerState::Tried { .. }, .. }) | None => {
                let expires_at = p.now().plus_ms(p.env.config.marker_retention_ms);
                p.put(key, &Marker { state: MarkerState::Aborted, expires_at }, Guard::Checked);
                Ok(Outcome::Resolved(None))
            }
        }
    }
}
