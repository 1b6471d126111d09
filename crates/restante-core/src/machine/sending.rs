//! One send from the caller's side: staged when it is large, then accepted.

use std::sync::Arc;

use super::transact::{Failure, Transact, TransactStep};
use super::{About, Io, LocalTime, Reply};
use crate::atoms::{AtomVisitor, Bytes, Fence, Sealed, SendId, VisitAtoms};
use crate::effect::Effect;
use crate::plan::{Accept, Command, Env, Outcome, Recipient, Rejection, StageBegin, StageChunk};
use crate::record::Body;

/// What a caller wants delivered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SendRequest {
    /// The id the send gets; never used before.
    pub send: SendId,
    /// Requests under one key are one send. 1 to 512 bytes.
    pub idempotency_key: Arc<str>,
    /// Who gets it; each inbox once.
    pub recipients: Vec<Recipient>,
    /// Deliveries of one order key to one destination happen in accepted order.
    pub order_key: Option<Arc<str>>,
    /// The prepared bytes.
    pub payload: Bytes,
    /// What the sender needs to sign.
    pub signing: Sealed,
}

/// Why a send was not accepted.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum SendError {
    /// Nothing of it was accepted.
    #[error("the send was not accepted: {0}")]
    NotAccepted(Failure),
    /// It may have been accepted. Repeat the same request under the same idempotency key to find out.
    #[error("it is unknown whether the send was accepted: repeat it under the same idempotency key")]
    Unknown,
}

/// A send under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sending {
    request: SendRequest,
    payload_digest: u64,
    slot: u64,
    transact: Transact,
    chunk_count: u32,
    next_chunk: u32,
}

/// What a send wants next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SendingStep {
    /// Execute this.
    Do(Io),
    /// The backlog owns the send (`duplicate`: since an earlier request), with what to tell the world; or it does not.
    Done(Result<(SendId, bool, Vec<Effect>), SendError>),
}

impl Sending {
    /// Begins a send. `slot` spreads concurrent senders over the counter slots.
    pub fn begin(env: &Env, request: SendRequest, slot: u64, local: LocalTime) -> (Self, SendingStep) {
        let payload_digest = Accept::digest_payload(&request.payload);
        Self::begin_again(env, request, payload_digest, slot, local)
    }

    /// Begins a send as a journal recorded it: the digest of the payload is known, the payload itself is not.
    pub fn begin_again(env: &Env, request: SendRequest, payload_digest: u64, slot: u64, local: LocalTime) -> (Self, SendingStep) {
        let staged = request.payload.len() > env.config.inline_bytes_max;
        let chunk_count = if staged { request.payload.len().div_ceil(env.config.chunk_bytes) as u32 } else { 0 };
        let command = if staged {
            Command::StageBegin(StageBegin { send: request.send })
        } else {
            accept(&request, payload_digest, Body::Inline(request.payload.clone()), slot)
        };
        let (transact, step) = Transact::begin(env, command, Fence::default(), local);
        let mut sending = Self { request, payload_digest, slot, transact, chunk_count, next_chunk: 0 };
        let step = sending.follow(env, step, local);
        (sending, step)
    }

    /// What the current action is about.
    pub fn about(&self) -> About {
        self.transact.about()
    }

    /// The next step.
    pub fn step(&mut self, env: &Env, reply: Reply, local: LocalTime) -> SendingStep {
        let step = self.transact.step(env, reply, local);
        self.follow(env, step, local)
    }

    fn follow(&mut self, env: &Env, step: TransactStep, local: LocalTime) -> SendingStep {
        match step {
            TransactStep::Do(io) => SendingStep::Do(io),
            TransactStep::Done(Ok((Outcome::Accepted { send, duplicate }, effects))) => {
                SendingStep::Done(Ok((send, duplicate, effects)))
            }
            TransactStep::Done(Ok(_staged)) => {
                let command = self.next_command(env);
                let (transact, step) = Transact::begin(env, command, Fence::default(), local);
                self.transact = transact;
                self.follow(env, step, local)
            }
            // Only an accept can have been accepted: a stage of unknown outcome is collected if nobody publishes it.
            TransactStep::Done(Err(Failure::Unknown)) if matches!(self.transact.command(), Command::Accept(_)) => {
                SendingStep::Done(Err(SendError::Unknown))
            }
            // The stage is deleted by the accept that publishes it, so "gone" after an unknown outcome is for the marker to
            // explain, which the accept read in the same snapshot: here it was never published.
            TransactStep::Done(Err(failure)) => SendingStep::Done(Err(SendError::NotAccepted(failure))),
        }
    }

    fn next_command(&mut self, env: &Env) -> Command {
        let (number, size) = (self.next_chunk, env.config.chunk_bytes);
        if number == self.chunk_count {
            return accept(&self.request, self.payload_digest, Body::Staged { chunk_count: self.chunk_count }, self.slot);
        }
        self.next_chunk += 1;
        let payload = self.request.payload.as_slice();
        let from = number as usize * size;
        let bytes = Bytes::from(&payload[from..payload.len().min(from + size)]);
        Command::StageChunk(StageChunk { send: self.request.send, number, bytes })
    }
}

fn accept(request: &SendRequest, payload_digest: u64, body: Body, slot: u64) -> Command {
    Command::Accept(Accept {
        send: request.send,
        idempotency_key: request.idempotency_key.clone(),
        recipients: request.recipients.clone(),
        order_key: request.order_key.clone(),
        body,
        payload_digest,
        signing: request.signing.clone(),
        slot,
    })
}

impl From<Rejection> for SendError {
    fn from(rejection: Rejection) -> Self {
        Self::NotAccepted(Failure::Rejected(rejection))
    }
}

impl VisitAtoms for Sending {
    fn visit_atoms(&mut self, visitor: &mut dyn AtomVisitor) {
        self.request.send.visit_atoms(visitor);
        self.transact.visit_atoms(visitor);
    }
}
