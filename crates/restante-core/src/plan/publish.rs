//! Publishing a fanout: one small commit owns what was staged before it.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::Guard;

use super::accept::{check_intake, check_names, publish_stage, put_marker, seen_before};
use super::entries::Like;
use super::{Outcome, Planner, Rejection, Stop, queue};
use crate::atoms::{Sealed, SendId};
use crate::effect::{Effect, Observation};
use crate::keys::EXPANSIONS;
use crate::record::{Body, Counters, RecipientChunk};

/// Most recipients of a fanout.
pub const FANOUT_RECIPIENTS_MAX: usize = 1_000_000;

/// Takes ownership of a send as an intent, whose payload and recipients were staged: unpublished means not accepted.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Publish {
    /// The id the send gets; never used before.
    pub send: SendId,
    /// Requests under one key are one send. 1 to [`super::NAME_BYTES_MAX`] bytes.
    pub idempotency_key: Arc<str>,
    /// Deliveries of one order key to one destination happen in accepted order.
    pub order_key: Option<Arc<str>>,
    /// Number of recipients in the staged chunks, at least 1.
    pub recipient_count: u32,
    /// Number of chunks of the payload, at least 1.
    pub payload_chunk_count: u32,
    /// Digest of the request: what a direct accept of it would have.
    pub digest: u64,
    /// What the sender needs to sign.
    pub signing: Sealed,
    /// Counter slot to use.
    pub slot: u64,
}

impl Publish {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        check_names(&self.idempotency_key, self.order_key.as_ref(), &self.signing)?;
        if self.recipient_count == 0 || self.recipient_count as usize > FANOUT_RECIPIENTS_MAX || self.payload_chunk_count == 0 {
            let what = format!("{} recipients, a fanout takes 1 to {FANOUT_RECIPIENTS_MAX}", self.recipient_count);
            return Err(Rejection::Invalid(what).into());
        }
        let keys = &p.env.keys;
        let (intake_key, marker_key, stage_key) = (keys.intake(), keys.marker(&self.idempotency_key), keys.stage(self.send));
        let mut needed = vec![intake_key.clone(), marker_key.clone(), keys.counters(self.slot), stage_key.clone()];
        needed.extend(self.order_key.as_ref().map(|key| keys.order_key(key)));
        p.need(&needed)?;

        if let Some((send, duplicate)) = seen_before(p, &marker_key, self.send, self.digest)? {
            if !duplicate {
                self.announce(p);
            }
            return Ok(Outcome::Accepted { send, duplicate });
        }
        check_intake(p, &intake_key)?;
        publish_stage(p, stage_key)?;
        let body = Body::Staged { chunk_count: self.payload_chunk_count };
        let like = Like { body, signing: self.signing.clone(), origin: p.now(), failure_count: 0 };
        queue::admit(p, &marker_key, self.send, self.recipient_count, like, self.order_key.as_ref())?;
        put_marker(p, marker_key, self.send, self.digest, self.recipient_count);
        p.count(self.slot, Counters { intents: 1, pending_recipients: self.recipient_count.into(), ..Counters::default() });
        self.announce(p);
        Ok(Outcome::Accepted { send: self.send, duplicate: false })
    }

    fn announce(&self, p: &mut Planner<'_>) {
        p.effect(Effect::Observed(Observation::Accepted { send: self.send }));
        p.effect(Effect::Wake { destination: EXPANSIONS.into() });
    }
}

/// Puts some chunks of a send's recipients. They count for nothing until a publish.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct StageRecipients {
    /// The send to come.
    pub send: SendId,
    /// Number of the first of these chunks.
    pub number: u32,
    /// The chunks.
    pub chunks: Vec<RecipientChunk>,
}

impl StageRecipients {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        for (number, chunk) in (self.number..).zip(&self.chunks) {
            p.put(p.env.keys.recipients(self.send, number), chunk, Guard::Idempotent);
        }
        Ok(Outcome::Done)
    }
}
