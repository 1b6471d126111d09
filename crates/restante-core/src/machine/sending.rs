//! One send from the caller's side: staged when its payload is large or its recipients are many, then accepted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::transact::{Failure, Transact, TransactStep};
use super::{About, Io, LocalTime, Reply};
use crate::atoms::{AtomVisitor, Bytes, Fence, Sealed, SendId, VisitAtoms};
use crate::effect::Effect;
use crate::plan::{
    Accept, Adopt, Command, Env, FANOUT_RECIPIENTS_MAX, Outcome, Publish, Recipient, Rejection, StageBegin, StageChunk,
    StageRecipients, check_recipients, request_digest,
};
use crate::record::{Body, RecipientChunk};

/// Whether a send becomes an intent, which workers expand, or its entries at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FanoutChoice {
    /// An intent if it has more than `recipients_max` recipients.
    #[default]
    Auto,
    /// An intent however few recipients it has.
    Force,
    /// Entries at once; refused if it has more than `recipients_max` recipients. Behind unexpanded intents of its order key it
    /// becomes one of them all the same: order does not depend on this choice.
    Skip,
}

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
    /// Whether it becomes an intent.
    pub fanout: FanoutChoice,
}

impl SendRequest {
    fn is_fanout(&self, env: &Env) -> bool {
        match self.fanout {
            FanoutChoice::Auto => self.recipients.len() > env.config.recipients_max,
            FanoutChoice::Force => true,
            FanoutChoice::Skip => false,
        }
    }
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
    /// How far the recipients are staged, if the send becomes an intent.
    fanout: Option<Staged>,
    adoption: Option<Adoption>,
}

/// What an adoption says beside its request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Adoption {
    /// Attempts that failed on the old path.
    pub(super) failure_count: u32,
}

/// Recipients that are staged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Staged {
    recipients: u32,
    chunks: u32,
}

/// Most bytes of recipients in one commit of staging: the smallest store takes 800 KiB in all.
const STAGED_BYTES_MAX: usize = 600 * 1024;

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
        Self::begin_as(env, request, payload_digest, slot, None, local)
    }

    /// Begins to take a message of an old queue over. It has one recipient, and no fanout.
    pub(super) fn adopt(env: &Env, request: SendRequest, adoption: Adoption, slot: u64, local: LocalTime) -> (Self, SendingStep) {
        let payload_digest = Accept::digest_payload(&request.payload);
        Self::begin_as(env, request, payload_digest, slot, Some(adoption), local)
    }

    fn begin_as(
        env: &Env,
        request: SendRequest,
        payload_digest: u64,
        slot: u64,
        adoption: Option<Adoption>,
        local: LocalTime,
    ) -> (Self, SendingStep) {
        let is_fanout = request.is_fanout(env);
        // An intent's payload lies in chunks even when it is small: once a send, and not once a recipient.
        let staged = is_fanout || request.payload.len() > env.config.inline_bytes_max;
        let chunk_count = if staged { request.payload.len().div_ceil(env.config.chunk_bytes).max(1) as u32 } else { 0 };
        let command = if staged {
            Command::StageBegin(StageBegin { send: request.send })
        } else {
            accept(&request, payload_digest, Body::Inline(request.payload.clone()), slot, adoption)
        };
        let (transact, step) = Transact::begin(env, command, Fence::default(), local);
        let refused = is_fanout.then(|| check_fanout(&request)).and_then(Result::err);
        let fanout = is_fanout.then(Staged::default);
        let mut sending = Self { request, payload_digest, slot, transact, chunk_count, next_chunk: 0, fanout, adoption };
        if let Some(rejection) = refused {
            return (sending, SendingStep::Done(Err(rejection.into())));
        }
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
            TransactStep::Done(Err(Failure::Unknown))
                if matches!(self.transact.command(), Command::Accept(_) | Command::Publish(_) | Command::Adopt(_)) =>
            {
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
            if let Some(staged) = &mut self.fanout {
                return match next_recipients(&self.request, staged, size) {
                    Some(command) => Command::StageRecipients(command),
                    None => Command::Publish(publish(&self.request, self.payload_digest, self.chunk_count, self.slot)),
                };
            }
            let body = Body::Staged { chunk_count: self.chunk_count };
            return accept(&self.request, self.payload_digest, body, self.slot, self.adoption);
        }
        self.next_chunk += 1;
        let payload = self.request.payload.as_slice();
        let from = number as usize * size;
        let bytes = Bytes::from(&payload[from..payload.len().min(from + size)]);
        Command::StageChunk(StageChunk { send: self.request.send, number, bytes })
    }
}

fn check_fanout(request: &SendRequest) -> Result<(), Rejection> {
    let count = request.recipients.len();
    if count == 0 || count > FANOUT_RECIPIENTS_MAX {
        return Err(Rejection::Invalid(format!("{count} recipients, a fanout takes 1 to {FANOUT_RECIPIENTS_MAX}")));
    }
    check_recipients(&request.recipients)
}

/// The next chunks of recipients, as many as one commit takes; `None` when all are staged.
fn next_recipients(request: &SendRequest, staged: &mut Staged, chunk_bytes: usize) -> Option<StageRecipients> {
    let (number, mut bytes, mut chunks) = (staged.chunks, 0, Vec::new());
    while bytes < STAGED_BYTES_MAX - chunk_bytes.min(STAGED_BYTES_MAX / 2) {
        let rest = request.recipients.get(staged.recipients as usize..).unwrap_or_default();
        let (len, taken) = recipients_that_fit(rest, chunk_bytes);
        if len == 0 {
            break;
        }
        chunks.push(RecipientChunk { first: staged.recipients, recipients: rest[..len].to_vec() });
        staged.recipients += len as u32;
        staged.chunks += 1;
        bytes += taken;
    }
    (!chunks.is_empty()).then_some(StageRecipients { send: request.send, number, chunks })
}

/// How many recipients a chunk takes, at least one if there is one, and their bytes.
fn recipients_that_fit(recipients: &[Recipient], chunk_bytes: usize) -> (usize, usize) {
    let mut bytes = 0;
    for (index, recipient) in recipients.iter().enumerate() {
        // Two lengths stand before the two texts.
        let more = bytes + recipient.inbox.len() + recipient.destination.len() + 4;
        if index > 0 && more > chunk_bytes {
            return (index, bytes);
        }
        bytes = more;
    }
    (recipients.len(), bytes)
}

fn publish(request: &SendRequest, payload_digest: u64, payload_chunk_count: u32, slot: u64) -> Publish {
    Publish {
        send: request.send,
        idempotency_key: request.idempotency_key.clone(),
        order_key: request.order_key.clone(),
        recipient_count: request.recipients.len() as u32,
        payload_chunk_count,
        digest: request_digest(payload_digest, request.order_key.as_deref(), &request.recipients),
        signing: request.signing.clone(),
        slot,
    }
}

fn accept(request: &SendRequest, payload_digest: u64, body: Body, slot: u64, adoption: Option<Adoption>) -> Command {
    let accept = Accept {
        send: request.send,
        idempotency_key: request.idempotency_key.clone(),
        recipients: request.recipients.clone(),
        order_key: request.order_key.clone(),
        body,
        payload_digest,
        signing: request.signing.clone(),
        slot,
    };
    match adoption {
        None => Command::Accept(accept),
        Some(Adoption { failure_count }) => Command::Adopt(Box::new(Adopt { accept, failure_count })),
    }
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
