//! The life of one delivery under one claim: claim, payload, gate, POST, settle.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::Key;

use super::transact::{Failure, Transact, TransactStep};
use super::{About, DueHint, ExecutionKey, Io, LocalTime, Post, Reply, classify, reach};
use crate::atoms::{Bytes, EntryId, Fence, OwnerId};
use crate::effect::Effect;
use crate::plan::{
    Claim, Command, CountAttempt, Env, Gate, GateAnswer, Outcome, Prune, Quarantine, Reach, Rejection, Renew, Settle, Settled,
    Subject, Verdict,
};
use crate::record::{Body, DropReason, Entry, PayloadChunk, Record, Unreadable};

/// How a delivery's claim ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum DeliveryEnd {
    /// Settled.
    Settled(Settled),
    /// Not claimed: not due any more, taken by another worker, or gone.
    NotClaimed,
    /// Another worker may own it now; nothing was written.
    LeaseLost,
    /// Unreadable; put aside.
    Quarantined,
    /// Given up for now; the lease's end or the next pass brings it back.
    Yielded(Failure),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
enum State {
    Claiming(Transact),
    Loading {
        chunk_count: u32,
        loaded: Vec<u8>,
        next: u32,
        tries: u32,
    },
    Gating(Transact),
    Renewing(Transact),
    Posting,
    Settling(Transact),
    Quarantining(Transact),
    /// Removing the due row that led here, if it stands for no entry.
    Tidying(Transact),
    /// Telling the destination's circuit how the attempt ended. The claim has ended like this already, whatever comes of it.
    Counting(Transact, DeliveryEnd),
    Ended,
}

/// One delivery under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub(super) struct Delivery {
    id: EntryId,
    owner: OwnerId,
    slot: u64,
    due: DueHint,
    entry: Option<Entry>,
    payload: Bytes,
    /// How often the gate was asked under this claim.
    gate_rounds: u32,
    /// Whether the circuit counts also what reaches the destination.
    is_counted: bool,
    /// What the circuit is to be told once the claim has ended.
    report: Option<Reach>,
    state: State,
}

/// What a delivery wants next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum DeliveryStep {
    Do(Io),
    Ended(DeliveryEnd),
}

/// Chunks read at once.
const CHUNKS_AT_ONCE: u32 = 8;

impl Delivery {
    pub(super) fn begin(env: &Env, due: DueHint, owner: OwnerId, slot: u64, local: LocalTime) -> (Self, DeliveryStep) {
        let id = due.key.entry;
        let (transact, step) = Transact::begin(env, Command::Claim(Claim { id, owner, slot }), Fence::default(), local);
        let state = State::Claiming(transact);
        let mut delivery = Self {
            id,
            owner,
            slot,
            due,
            entry: None,
            payload: Bytes::default(),
            gate_rounds: 0,
            is_counted: false,
            report: None,
            state,
        };
        let step = delivery.follow(env, step, &mut Vec::new(), local);
        (delivery, step)
    }

    /// Whether its claim was ever known to be committed.
    pub(super) fn was_claimed(&self) -> bool {
        self.entry.is_some()
    }

    pub(super) fn id(&self) -> EntryId {
        self.id
    }

    /// Where it goes.
    pub(super) fn destination(&self) -> &Arc<str> {
        &self.due.key.destination
    }

    fn fence(&self) -> Fence {
        self.entry.as_ref().map_or(Fence::default(), |entry| entry.fence)
    }

    pub(super) fn about(&self) -> About {
        match &self.state {
            State::Claiming(transact)
            | State::Gating(transact)
            | State::Renewing(transact)
            | State::Settling(transact)
            | State::Quarantining(transact)
            | State::Tidying(transact)
            | State::Counting(transact, _) => transact.about(),
            State::Loading { tries, .. } => self.about_this("load-payload", *tries),
            State::Posting | State::Ended => self.about_this("post", 0),
        }
    }

    fn about_this(&self, what: &'static str, tries: u32) -> About {
        About { what, subject: Subject::Entry(self.id), fence: self.fence(), tries }
    }

    pub(super) fn step(&mut self, env: &Env, reply: Reply, effects: &mut Vec<Effect>, local: LocalTime) -> DeliveryStep {
        if let State::Counting(transact, _) = &mut self.state {
            let step = transact.step(env, reply, local);
            return self.follow_count(step, effects);
        }
        match self.step_claim(env, reply, effects, local) {
            DeliveryStep::Ended(end) => self.count(env, end, effects, local),
            step => step,
        }
    }

    fn step_claim(&mut self, env: &Env, reply: Reply, effects: &mut Vec<Effect>, local: LocalTime) -> DeliveryStep {
        match (&mut self.state, reply) {
            (
                State::Claiming(transact)
                | State::Gating(transact)
                | State::Renewing(transact)
                | State::Settling(transact)
                | State::Quarantining(transact)
                | State::Tidying(transact),
                reply,
            ) => {
                let step = transact.step(env, reply, local);
                self.follow(env, step, effects, local)
            }
            (State::Loading { .. }, Reply::Snapshot { result, .. }) => match result {
                Ok(records) => self.on_chunks(env, records, local),
                Err(error) => self.on_load_error(env, Failure::Store(error)),
            },
            (State::Loading { .. }, Reply::Slept) => self.load(env),
            (State::Posting, Reply::Posted { result, entropy }) => {
                let (verdict, reach) = (classify(&env.config, result), reach(&env.config, result));
                // Where nothing is counted, an attempt that arrives costs nothing more.
                let is_counted = self.is_counted || reach == Reach::Failed && env.config.breaker_failures > 0;
                self.report = is_counted.then_some(reach);
                self.settle(env, verdict, entropy, local)
            }
            (State::Posting, Reply::PostTooLate) => self.gate(env, local),
            (state, reply) => {
                debug_assert!(false, "a delivery in {state:?} cannot use {reply:?}");
                self.end(DeliveryEnd::Yielded(Failure::Unknown))
            }
        }
    }

    /// Goes on after a step of the command under way.
    fn follow(&mut self, env: &Env, step: TransactStep, effects: &mut Vec<Effect>, local: LocalTime) -> DeliveryStep {
        let result = match step {
            TransactStep::Do(io) => return DeliveryStep::Do(io),
            TransactStep::Done(result) => result,
        };
        match result {
            Ok((outcome, new_effects)) => {
                effects.extend(new_effects);
                self.on_outcome(env, outcome, local)
            }
            Err(failure) => self.on_failure(env, failure, local),
        }
    }

    fn on_outcome(&mut self, env: &Env, outcome: Outcome, local: LocalTime) -> DeliveryStep {
        match outcome {
            Outcome::Done if matches!(self.state, State::Tidying(_)) => self.end(DeliveryEnd::NotClaimed),
            Outcome::Claimed(claimed) => {
                let body = claimed.entry.body.clone();
                self.entry = Some(claimed.entry);
                match body {
                    Body::Inline(bytes) => {
                        self.payload = bytes;
                        self.gate(env, local)
                    }
                    Body::Staged { chunk_count } => {
                        self.state = State::Loading { chunk_count, loaded: Vec::new(), next: 0, tries: 0 };
                        self.load(env)
                    }
                }
            }
            Outcome::Renewed { .. } => self.gate(env, local),
            Outcome::Gate(GateAnswer::Pass { post_by, is_counted }) => {
                self.is_counted = is_counted;
                self.post(env, post_by)
            }
            Outcome::Gate(GateAnswer::RenewFirst) => {
                let renew = Renew { id: self.id, owner: self.owner, fence: self.fence() };
                self.run(env, Command::Renew(renew), State::Renewing, local)
            }
            Outcome::Gate(GateAnswer::Over(reason)) => self.settle(env, Verdict::Drop(reason), 0, local),
            Outcome::Gate(GateAnswer::Defer { until }) => self.settle(env, Verdict::Defer { until }, 0, local),
            Outcome::Gate(GateAnswer::Park(block)) => self.settle(env, Verdict::Park(block), 0, local),
            Outcome::Settled(settled) => self.end(DeliveryEnd::Settled(settled)),
            Outcome::Quarantined => self.end(DeliveryEnd::Quarantined),
            Outcome::Accepted { .. }
            | Outcome::Resolved(_)
            | Outcome::Intake { .. }
            | Outcome::Depth(_)
            | Outcome::IntentClaimed(_)
            | Outcome::Expanded { .. }
            | Outcome::Expired { .. }
            | Outcome::Legacy(_)
            | Outcome::Sweep(_)
            | Outcome::Done => {
                debug_assert!(false, "no delivery runs a command with this outcome");
                self.end(DeliveryEnd::NotClaimed)
            }
        }
    }

    fn on_failure(&mut self, env: &Env, failure: Failure, local: LocalTime) -> DeliveryStep {
        let own_key = |key: &Key| *key == env.keys.entry(self.id);
        match (&self.state, failure) {
            (State::Quarantining(_), Failure::Rejected(_)) => self.end(DeliveryEnd::NotClaimed),
            (_, Failure::Inconsistent { key, .. }) if own_key(&key) && !matches!(self.state, State::Quarantining(_)) => {
                let command =
                    Quarantine { id: self.id, due: Some(self.due.key.clone()), lane: self.due.lane.clone(), slot: self.slot };
                self.run(env, Command::Quarantine(command), State::Quarantining, local)
            }
            (State::Tidying(_), _) => self.end(DeliveryEnd::NotClaimed),
            // Usually another worker was faster and the row is gone. A row that stands for no entry would be found for ever.
            (State::Claiming(_), Failure::Rejected(_)) => self.tidy(env, local),
            (_, Failure::Rejected(Rejection::LeaseLost)) => self.end(DeliveryEnd::LeaseLost),
            (_, failure) => self.end(DeliveryEnd::Yielded(failure)),
        }
    }

    fn run(&mut self, env: &Env, command: Command, state: fn(Transact) -> State, local: LocalTime) -> DeliveryStep {
        let (transact, step) = Transact::begin(env, command, self.fence(), local);
        self.state = state(transact);
        self.follow(env, step, &mut Vec::new(), local)
    }

    fn tidy(&mut self, env: &Env, local: LocalTime) -> DeliveryStep {
        let due = &self.due.key;
        let key = env.keys.due(&due.destination, due.vest_at, due.entry);
        let prune = Prune { key, version: self.due.version, chunk_of: None };
        self.run(env, Command::Prune(prune), State::Tidying, local)
    }

    fn gate(&mut self, env: &Env, local: LocalTime) -> DeliveryStep {
        // Where an answer of the gate is always too old, or a renewed lease always too short, when it arrives (a store slower
        // than the settings suppose), asking again for ever helps nobody: the claim ends with its lease.
        self.gate_rounds += 1;
        if self.gate_rounds > env.config.tries_max.saturating_mul(2) {
            return self.end(DeliveryEnd::Yielded(Failure::Contention));
        }
        let destination = self.due.key.destination.clone();
        let gate = Gate { id: self.id, owner: self.owner, fence: self.fence(), destination };
        self.run(env, Command::Gate(gate), State::Gating, local)
    }

    fn post(&mut self, env: &Env, post_by: restante_kv::StoreTime) -> DeliveryStep {
        let (State::Gating(transact), Some(entry)) = (&self.state, &self.entry) else {
            return self.end(DeliveryEnd::NotClaimed);
        };
        // Store time is at most the snapshot's plus what passed since it was asked for: projecting from the asking is safe.
        let (snapshot_at, asked_at) = transact.snapshot_at();
        let post = Post {
            entry: self.id,
            fence: entry.fence,
            inbox: entry.inbox.clone(),
            destination: entry.destination.clone(),
            payload: self.payload.clone(),
            signing: entry.signing.clone(),
            post_by: asked_at.plus_ms(post_by.since_ms(snapshot_at)),
            timeout_ms: env.config.request_timeout_ms,
            execution_key: match &entry.lane {
                Some(lane) => ExecutionKey::Lane { order_key: lane.order_key.clone(), destination: entry.destination.clone() },
                None => ExecutionKey::Entry(self.id),
            },
        };
        self.state = State::Posting;
        DeliveryStep::Do(Io::Post(post))
    }

    fn settle(&mut self, env: &Env, verdict: Verdict, entropy: u64, local: LocalTime) -> DeliveryStep {
        let wake_seen = self.entry.as_ref().map_or(0, |entry| entry.wake_gen);
        let settle = Settle { id: self.id, owner: self.owner, fence: self.fence(), wake_seen, verdict, entropy, slot: self.slot };
        self.run(env, Command::Settle(settle), |transact| State::Settling(transact.patient()), local)
    }

    fn load(&mut self, env: &Env) -> DeliveryStep {
        let State::Loading { chunk_count, next, .. } = &self.state else { return self.end(DeliveryEnd::NotClaimed) };
        let until = chunk_count.saturating_sub(*next).min(CHUNKS_AT_ONCE) + next;
        DeliveryStep::Do(Io::Read((*next..until).map(|number| env.keys.chunk(self.id.send, number)).collect()))
    }

    fn on_chunks(&mut self, env: &Env, records: Vec<Option<restante_kv::Versioned>>, local: LocalTime) -> DeliveryStep {
        let State::Loading { chunk_count, loaded, next, .. } = &mut self.state else {
            return self.end(DeliveryEnd::NotClaimed);
        };
        for record in records {
            match record.map(|found| PayloadChunk::decode(&found.value)) {
                Some(Ok(chunk)) => loaded.extend_from_slice(chunk.bytes.as_slice()),
                // Another version's chunk: that version can deliver it.
                Some(Err(why @ Unreadable::UnknownFormat(_))) => {
                    let key = env.keys.chunk(self.id.send, *next);
                    return self.end(DeliveryEnd::Yielded(Failure::Inconsistent { key, why }));
                }
                // A member keeps its chunks alive; without them nobody can ever deliver this.
                Some(Err(Unreadable::Corrupt)) | None => {
                    return self.settle(env, Verdict::Drop(DropReason::PayloadUnreadable), 0, local);
                }
            }
            *next += 1;
        }
        if next < chunk_count {
            return self.load(env);
        }
        self.payload = Bytes::from(std::mem::take(loaded));
        self.gate(env, local)
    }

    fn on_load_error(&mut self, env: &Env, failure: Failure) -> DeliveryStep {
        let State::Loading { tries, .. } = &mut self.state else { return self.end(DeliveryEnd::NotClaimed) };
        *tries += 1;
        if *tries >= env.config.tries_max {
            return self.end(DeliveryEnd::Yielded(failure));
        }
        let pause_ms = env.config.conflict_pause_ms.saturating_mul(1 << (*tries).min(6));
        DeliveryStep::Do(Io::Sleep { ms: pause_ms, jitter_ms: pause_ms, wakeable: false })
    }

    /// The claim has ended. What the attempt says of its destination is told in a transaction of its own, on which nothing hangs.
    fn count(&mut self, env: &Env, end: DeliveryEnd, effects: &mut Vec<Effect>, local: LocalTime) -> DeliveryStep {
        let Some(reach) = self.report.take() else { return DeliveryStep::Ended(end) };
        let destination = self.destination().clone();
        let command = CountAttempt { destination, id: self.id, owner: self.owner, fence: self.fence(), reach };
        let (transact, step) = Transact::begin(env, Command::CountAttempt(command), self.fence(), local);
        self.state = State::Counting(transact, end);
        self.follow_count(step, effects)
    }

    fn follow_count(&mut self, step: TransactStep, effects: &mut Vec<Effect>) -> DeliveryStep {
        match step {
            TransactStep::Do(io) => return DeliveryStep::Do(io),
            TransactStep::Done(Ok((_, new_effects))) => effects.extend(new_effects),
            TransactStep::Done(Err(_)) => {}
        }
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Counting(_, end) => DeliveryStep::Ended(end),
            _ => DeliveryStep::Ended(DeliveryEnd::Yielded(Failure::Unknown)),
        }
    }

    fn end(&mut self, end: DeliveryEnd) -> DeliveryStep {
        self.state = State::Ended;
        DeliveryStep::Ended(end)
    }
}
