//! One message of the old queue, from its receipt to its end.

use super::super::sending::Adoption;
use super::super::{
    About, Failure, FanoutChoice, Io, LocalTime, PostResult, Reply, SendError, SendRequest, Sending, SendingStep, Transact,
    TransactStep, classify,
};
use super::{LegacyIo, LegacyMode, LegacyReply, LegacySettings, OldDelivery, OldMessage, OtherEnd, QueueFailure};
use crate::atoms::{Fence, Sealed, SendId};
use crate::effect::Effect;
use crate::plan::{Command, Env, LegacyAnswer, LegacyGate, Outcome, Rejection, Subject, Verdict};
use crate::record::DropReason;

/// Longest pause between tries of an operation of the old queue.
const PAUSE_MS_MAX: u64 = 2_000;

/// The pause after `tries` failed tries.
pub(super) fn pause(env: &Env, tries: u32) -> Io {
    let doublings = tries.saturating_sub(1).min(16);
    let ms = env.config.conflict_pause_ms.saturating_mul(1 << doublings).min(PAUSE_MS_MAX);
    Io::Sleep { ms, jitter_ms: ms, wakeable: false }
}

/// What became of a message that was received.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LegacyEnd {
    /// Delivered on the old path, and gone.
    Delivered,
    /// Given up on the old path, and gone.
    GivenUp(DropReason),
    /// The backlog owns it; it is gone from the old queue. `duplicate`: an earlier adoption had been committed already.
    Adopted {
        /// As which send.
        send: SendId,
        /// Whether it was owned before.
        duplicate: bool,
    },
    /// Its deliveries are in the old queue; it is gone.
    Expanded,
    /// The caller's own handler is done with it.
    Other,
    /// It is in the old queue again, to be tried later; its attempts are counted.
    Retried,
    /// It is in the old queue again: its destination is held.
    Held,
    /// It is in the old queue again: its destination is held, and intake is closed.
    IntakeClosed,
    /// It is in the old queue again: its destination is held, and its keys cannot be sealed.
    Unsealed,
    /// It is in the old queue again: it is unknown whether it was adopted, and the next look finds out.
    AdoptionUnknown,
    /// It is in the old queue again, untouched: the backlog's store did not answer, or the time it is kept for was nearly over.
    Yielded,
    /// The old queue did not answer, or somebody else has it: it comes again, to whoever receives it.
    Left,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Gate(Box<Transact>),
    Sealing,
    Adopting(Box<Sending>),
    Attempting,
    Handling,
    Expanding,
    /// An operation that ends the message's stay: which, and what it then has come to.
    Leaving(LegacyIo, LegacyEnd),
    /// A pause before that operation, or before the expansion, is tried again.
    Pausing(LegacyIo, LegacyEnd),
    Over,
}

/// A message under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Work {
    pub(super) send: SendId,
    delivery: Option<Box<OldDelivery>>,
    /// An attempt begins before this instant or not at all: later, somebody else might have the message before it is over.
    begin_by: LocalTime,
    state: State,
    tries: u32,
    slot: u64,
}

/// What a message wants next.
pub(super) enum WorkStep {
    Do(About, LegacyIo),
    Ended(LegacyEnd),
}

impl Work {
    /// Begins with a message that was asked for at `asked_at`.
    pub(super) fn begin(
        env: &Env,
        settings: &LegacySettings,
        (message, send): (OldMessage, SendId),
        asked_at: LocalTime,
        slot: u64,
        local: LocalTime,
    ) -> (Self, WorkStep) {
        let needed_ms = env.config.request_timeout_ms.saturating_add(env.config.lease_margin_ms);
        let begin_by = asked_at.plus_ms(settings.visible_ms.saturating_sub(needed_ms));
        let mut work = Self { send, delivery: None, begin_by, state: State::Over, tries: 0, slot };
        let step = match message {
            OldMessage::Fanout => {
                work.state = State::Expanding;
                work.act("legacy-expand", LegacyIo::Expand)
            }
            OldMessage::Other => {
                work.state = State::Handling;
                work.act("legacy-other", LegacyIo::Other)
            }
            OldMessage::Delivery(delivery) => {
                let gate = LegacyGate {
                    send,
                    idempotency_key: delivery.idempotency_key(),
                    destination: delivery.to.destination.clone(),
                    failure_count: delivery.failure_count,
                };
                work.delivery = Some(delivery);
                let (transact, step) = Transact::begin(env, Command::LegacyGate(gate), Fence::default(), local);
                work.state = State::Gate(Box::new(transact));
                work.follow_gate(env, settings, step, local)
            }
        };
        (work, step)
    }

    fn act(&self, what: &'static str, io: LegacyIo) -> WorkStep {
        WorkStep::Do(About { what, subject: Subject::Send(self.send), fence: Fence::default(), tries: self.tries }, io)
    }

    fn leave(&mut self, io: LegacyIo, end: LegacyEnd) -> WorkStep {
        let what = match io {
            LegacyIo::Complete => "legacy-complete",
            LegacyIo::Expand => "legacy-expand",
            _ => "legacy-put-back",
        };
        self.state = if what == "legacy-expand" { State::Expanding } else { State::Leaving(io.clone(), end) };
        self.act(what, io)
    }

    fn complete(&mut self, end: LegacyEnd) -> WorkStep {
        self.tries = 0;
        self.leave(LegacyIo::Complete, end)
    }

    fn put_back(&mut self, delay_ms: u64, failure_count: Option<u32>, end: LegacyEnd) -> WorkStep {
        self.tries = 0;
        self.leave(LegacyIo::PutBack { delay_ms, failure_count }, end)
    }

    pub(super) fn step(
        &mut self,
        env: &Env,
        settings: &LegacySettings,
        reply: LegacyReply,
        local: LocalTime,
        effects: &mut Vec<Effect>,
    ) -> WorkStep {
        match (std::mem::replace(&mut self.state, State::Over), reply) {
            (State::Gate(mut transact), LegacyReply::Store(reply)) => {
                let step = transact.step(env, reply, local);
                self.state = State::Gate(transact);
                self.follow_gate(env, settings, step, local)
            }
            (State::Adopting(mut sending), LegacyReply::Store(reply)) => {
                let step = sending.step(env, reply, local);
                self.state = State::Adopting(sending);
                self.follow_adoption(env, settings, step, effects)
            }
            (State::Sealing, LegacyReply::Sealed(Some(signing))) => self.adopt(env, settings, signing, local),
            (State::Sealing, LegacyReply::Sealed(None)) => {
                self.put_back(env.config.held_recheck_interval_ms, None, LegacyEnd::Unsealed)
            }
            (State::Attempting, LegacyReply::Attempted { result, entropy }) => self.after_attempt(env, settings, result, entropy),
            (State::Handling, LegacyReply::Other(OtherEnd::Done)) => self.complete(LegacyEnd::Other),
            (State::Handling, LegacyReply::Other(OtherEnd::Again { delay_ms })) => {
                self.put_back(delay_ms, None, LegacyEnd::Yielded)
            }
            (State::Expanding, LegacyReply::Queue(Ok(()))) => self.complete(LegacyEnd::Expanded),
            (State::Expanding, LegacyReply::Queue(Err(_))) => self.again(env, LegacyIo::Expand, LegacyEnd::Expanded),
            (State::Leaving(_, end), LegacyReply::Queue(Ok(()))) => WorkStep::Ended(end),
            // If an earlier try was of unknown outcome it may have been that one; if not, the message comes to somebody else.
            (State::Leaving(..), LegacyReply::Queue(Err(QueueFailure::Outdated))) => WorkStep::Ended(LegacyEnd::Left),
            (State::Leaving(io, end), LegacyReply::Queue(Err(QueueFailure::Unavailable | QueueFailure::Unknown))) => {
                self.again(env, io, end)
            }
            (State::Pausing(io, end), LegacyReply::Store(Reply::Slept)) => self.leave(io, end),
            (state, reply) => {
                // A reply to nothing that was asked: a driver's mistake that must not become a wrong completion.
                debug_assert!(false, "{state:?} cannot use {reply:?}");
                WorkStep::Ended(LegacyEnd::Left)
            }
        }
    }

    /// The old queue did not do it: once more after a pause, or the message is left to whoever receives it next.
    fn again(&mut self, env: &Env, io: LegacyIo, end: LegacyEnd) -> WorkStep {
        self.tries += 1;
        if self.tries >= env.config.tries_max {
            return WorkStep::Ended(LegacyEnd::Left);
        }
        self.state = State::Pausing(io, end);
        self.act("legacy-pause", LegacyIo::Store(pause(env, self.tries)))
    }

    fn follow_gate(&mut self, env: &Env, settings: &LegacySettings, step: TransactStep, local: LocalTime) -> WorkStep {
        let (about, now) = match &self.state {
            State::Gate(transact) => (transact.about(), transact.snapshot_at().0),
            _ => return WorkStep::Ended(LegacyEnd::Left),
        };
        match step {
            TransactStep::Do(io) => WorkStep::Do(about, LegacyIo::Store(io)),
            TransactStep::Done(Ok((Outcome::Legacy(LegacyAnswer::Owned(send)), _))) => {
                self.complete(LegacyEnd::Adopted { send, duplicate: true })
            }
            TransactStep::Done(Ok((Outcome::Legacy(LegacyAnswer::Attempt), _))) => {
                if local >= self.begin_by {
                    return self.put_back(0, None, LegacyEnd::Yielded);
                }
                self.state = State::Attempting;
                self.act("legacy-attempt", LegacyIo::Attempt { timeout_ms: env.config.request_timeout_ms })
            }
            TransactStep::Done(Ok((Outcome::Legacy(LegacyAnswer::Held { until, intake_open, is_tried }), _))) => {
                let delay_ms = until.since_ms(now).max(1);
                match settings.mode {
                    LegacyMode::Drain => self.put_back(delay_ms, None, LegacyEnd::Held),
                    // Whether that attempt arrived is not known: its message is not to come back by another way.
                    LegacyMode::AdoptOnHold if is_tried => self.put_back(delay_ms, None, LegacyEnd::Held),
                    // The backlog would never drain if it went on adopting.
                    LegacyMode::AdoptOnHold if !intake_open => self.put_back(delay_ms, None, LegacyEnd::IntakeClosed),
                    LegacyMode::AdoptOnHold => {
                        self.state = State::Sealing;
                        self.act("legacy-seal", LegacyIo::Seal)
                    }
                }
            }
            // A record of another version, or a store that does not answer: nobody knows whether it may be tried.
            TransactStep::Done(Ok(_) | Err(_)) => self.put_back(env.config.poll_interval_ms, None, LegacyEnd::Yielded),
        }
    }

    fn adopt(&mut self, env: &Env, settings: &LegacySettings, signing: Sealed, local: LocalTime) -> WorkStep {
        let Some(delivery) = &self.delivery else { return WorkStep::Ended(LegacyEnd::Left) };
        let request = SendRequest {
            send: self.send,
            idempotency_key: delivery.idempotency_key(),
            recipients: vec![delivery.to.clone()],
            order_key: delivery.order_key.clone(),
            payload: delivery.payload.clone(),
            signing,
            fanout: FanoutChoice::Skip,
        };
        let adoption = Adoption { failure_count: delivery.failure_count };
        let (sending, step) = Sending::adopt(env, request, adoption, self.slot, local);
        self.state = State::Adopting(Box::new(sending));
        self.follow_adoption(env, settings, step, &mut Vec::new())
    }

    fn follow_adoption(
        &mut self,
        env: &Env,
        settings: &LegacySettings,
        step: SendingStep,
        effects: &mut Vec<Effect>,
    ) -> WorkStep {
        match step {
            SendingStep::Do(io) => {
                let about = match &self.state {
                    State::Adopting(sending) => sending.about(),
                    _ => return WorkStep::Ended(LegacyEnd::Left),
                };
                WorkStep::Do(about, LegacyIo::Store(io))
            }
            SendingStep::Done(Ok((send, duplicate, told))) => {
                effects.extend(told);
                self.complete(LegacyEnd::Adopted { send, duplicate })
            }
            SendingStep::Done(Err(SendError::Unknown)) => {
                self.put_back(env.config.poll_interval_ms, None, LegacyEnd::AdoptionUnknown)
            }
            SendingStep::Done(Err(SendError::NotAccepted(Failure::Rejected(Rejection::IntakeClosed)))) => {
                self.put_back(env.config.held_recheck_interval_ms, None, LegacyEnd::IntakeClosed)
            }
            SendingStep::Done(Err(SendError::NotAccepted(_))) => self.put_back(settings.poll_ms, None, LegacyEnd::Yielded),
        }
    }

    fn after_attempt(&mut self, env: &Env, settings: &LegacySettings, result: PostResult, entropy: u64) -> WorkStep {
        let failure_count = self.delivery.as_ref().map_or(0, |delivery| delivery.failure_count);
        match classify(&env.config, result) {
            Verdict::Delivered => self.complete(LegacyEnd::Delivered),
            Verdict::Drop(reason) => self.complete(LegacyEnd::GivenUp(reason)),
            Verdict::Retry { retry_after_ms, .. } => match settings.policy.delay_ms(failure_count, retry_after_ms, entropy) {
                Some(delay_ms) => self.put_back(delay_ms, Some(failure_count.saturating_add(1)), LegacyEnd::Retried),
                None => self.complete(LegacyEnd::GivenUp(DropReason::AttemptsExhausted)),
            },
            // No result of an attempt is classified as one of these.
            Verdict::Defer { .. } | Verdict::Park(_) => self.put_back(settings.poll_ms, None, LegacyEnd::Yielded),
        }
    }
}
