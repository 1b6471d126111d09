//! The expansion of one intent under one claim: claim, recipients, a look at what stands in the way, chunk after chunk.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Key, KeyRange, StoreError, Versioned};

use super::transact::{Failure, Transact, TransactStep};
use super::{About, DueHint, Io, LocalTime, Reply};
use crate::atoms::{EntryId, Fence, OwnerId, SendId};
use crate::effect::Effect;
use crate::keys::Kind;
use crate::plan::{
    ClaimIntent, Command, DropIntent, Env, Expand, Obstacle, Outcome, ParkIntent, Prune, Quarantine, Rejection, Subject,
    chunk_len,
};
use crate::record::{Intent, Recipient, RecipientChunk, Record, Unreadable};

/// How an intent's claim ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum ExpansionEnd {
    /// Every recipient is an entry now.
    Expanded,
    /// Given back with recipients left, so that one send does not keep a worker for good.
    GivenBack,
    /// Its retention ran out: what was left of it was given up.
    Dropped,
    /// Not claimed: not due any more, taken by another worker, or gone.
    NotClaimed,
    /// Another worker may own it now; nothing was written.
    LeaseLost,
    /// Unreadable, or it cannot be expanded; put aside.
    Quarantined,
    /// Given up for now; the lease's end or the next pass brings it back.
    Yielded(Failure),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
enum State {
    Claiming(Transact),
    /// Reading the chunk of recipients at the cursor.
    Loading,
    /// Looking whether entries stand where the next ones go.
    Probing {
        range: KeyRange,
    },
    Expanding(Transact),
    Pausing,
    Parking(Transact),
    Dropping(Transact),
    Quarantining(Transact),
    /// Removing the due row that led here, if it stands for no intent.
    Tidying(Transact),
    Ended,
}

/// One expansion under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub(super) struct Expansion {
    send: SendId,
    owner: OwnerId,
    slot: u64,
    due: DueHint,
    intent: Option<Intent>,
    /// Recipients from the cursor to the end of their chunk.
    ahead: Vec<Recipient>,
    /// Most entries of the next commit: halved by a conflict, grown back by successes.
    size: usize,
    commits: u32,
    /// Failures in a row.
    failures: u32,
    state: State,
}

/// What an expansion wants next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum ExpansionStep {
    Do(Io),
    Ended(ExpansionEnd),
}

/// Commits of one claim; then it is given back, and others get their turn.
const COMMITS_MAX: u32 = 16;

impl Expansion {
    pub(super) fn begin(env: &Env, due: DueHint, owner: OwnerId, slot: u64, local: LocalTime) -> (Self, ExpansionStep) {
        let send = due.key.entry.send;
        let command = Command::ClaimIntent(ClaimIntent { send, owner });
        let (transact, step) = Transact::begin(env, command, Fence::default(), local);
        let mut expansion = Self {
            send,
            owner,
            slot,
            due,
            intent: None,
            ahead: Vec::new(),
            size: env.config.expand_entries_max,
            commits: 0,
            failures: 0,
            state: State::Claiming(transact),
        };
        let step = expansion.follow(env, step, &mut Vec::new(), local);
        (expansion, step)
    }

    /// Whether its claim was ever known to be committed.
    pub(super) fn destination(&self) -> &Arc<str> {
        &self.due.key.destination
    }

    pub(super) fn was_claimed(&self) -> bool {
        self.intent.is_some()
    }

    /// The place in its send that stands for the intent.
    pub(super) fn id(&self) -> EntryId {
        EntryId::of_intent(self.send)
    }

    fn fence(&self) -> Fence {
        self.intent.as_ref().map_or(Fence::default(), |intent| intent.fence)
    }

    pub(super) fn about(&self) -> About {
        let what = match &self.state {
            State::Claiming(transact)
            | State::Expanding(transact)
            | State::Parking(transact)
            | State::Dropping(transact)
            | State::Quarantining(transact)
            | State::Tidying(transact) => return transact.about(),
            State::Loading => "load-recipients",
            State::Probing { .. } => "expand-probe",
            State::Pausing | State::Ended => "expand-pause",
        };
        About { what, subject: Subject::Send(self.send), fence: self.fence(), tries: self.failures }
    }

    pub(super) fn step(&mut self, env: &Env, reply: Reply, effects: &mut Vec<Effect>, local: LocalTime) -> ExpansionStep {
        match (&mut self.state, reply) {
            (
                State::Claiming(transact)
                | State::Expanding(transact)
                | State::Parking(transact)
                | State::Dropping(transact)
                | State::Quarantining(transact)
                | State::Tidying(transact),
                reply,
            ) => {
                let step = transact.step(env, reply, local);
                self.follow(env, step, effects, local)
            }
            (State::Loading, Reply::Snapshot { result: Ok(records), .. }) => self.on_recipients(env, records, local),
            (State::Probing { range }, Reply::Page { result: Ok(page), .. }) => match (page.entries.first(), page.next) {
                (Some((key, _)), _) => self.on_found(env, &key.clone(), local),
                // Short and empty pages are legal: only the end proves that nothing is there.
                (None, Some(next)) => {
                    let range = KeyRange { start: next, ..range.clone() };
                    self.probe_range(range)
                }
                (None, None) => self.expand(env, local),
            },
            (
                State::Loading | State::Probing { .. },
                Reply::Snapshot { result: Err(error), .. } | Reply::Page { result: Err(error), .. },
            ) => self.pause(env, Failure::Store(error)),
            (State::Pausing, Reply::Slept) => self.go_on(env),
            (state, reply) => {
                debug_assert!(false, "an expansion in {state:?} cannot use {reply:?}");
                self.end(ExpansionEnd::Yielded(Failure::Unknown))
            }
        }
    }

    /// Goes on after a step of the command under way.
    fn follow(&mut self, env: &Env, step: TransactStep, effects: &mut Vec<Effect>, local: LocalTime) -> ExpansionStep {
        let result = match step {
            TransactStep::Do(io) => return ExpansionStep::Do(io),
            TransactStep::Done(result) => result,
        };
        match result {
            Ok((outcome, new_effects)) => {
                effects.extend(new_effects);
                self.on_outcome(env, outcome)
            }
            Err(failure) => self.on_failure(env, failure, local),
        }
    }

    fn on_outcome(&mut self, env: &Env, outcome: Outcome) -> ExpansionStep {
        match outcome {
            Outcome::IntentClaimed(intent) => {
                self.intent = Some(*intent);
                self.go_on(env)
            }
            Outcome::Expanded { done: true, .. } => self.end(ExpansionEnd::Expanded),
            Outcome::Expanded { cursor, done: false } => self.on_expanded(env, cursor),
            Outcome::Quarantined => self.end(ExpansionEnd::Quarantined),
            Outcome::Done if matches!(self.state, State::Dropping(_)) => self.end(ExpansionEnd::Dropped),
            _ => self.end(ExpansionEnd::NotClaimed),
        }
    }

    fn on_expanded(&mut self, env: &Env, cursor: u32) -> ExpansionStep {
        let Some(intent) = &mut self.intent else { return self.end(ExpansionEnd::NotClaimed) };
        let taken = cursor.saturating_sub(intent.cursor) as usize;
        intent.cursor = cursor;
        self.ahead.drain(..taken.min(self.ahead.len()));
        if self.ahead.is_empty() {
            intent.chunk = intent.chunk.saturating_add(1);
        }
        self.failures = 0;
        self.size = self.size.saturating_mul(2).min(env.config.expand_entries_max);
        if self.commits >= COMMITS_MAX {
            return self.end(ExpansionEnd::GivenBack);
        }
        self.go_on(env)
    }

    fn on_failure(&mut self, env: &Env, failure: Failure, local: LocalTime) -> ExpansionStep {
        match (&self.state, failure) {
            (State::Quarantining(_), Failure::Rejected(_)) | (State::Tidying(_), _) => self.end(ExpansionEnd::NotClaimed),
            (State::Claiming(_), Failure::Inconsistent { key, .. }) if key == env.keys.intent(self.send) => {
                let (id, due, lane) = (self.id(), Some(self.due.key.clone()), self.due.lane.clone());
                let command = Command::Quarantine(Quarantine { id, due, lane, slot: self.slot });
                self.run(env, command, State::Quarantining, local)
            }
            // Usually another worker was faster and the row is gone. A row that stands for no intent would be found for ever.
            (State::Claiming(_), Failure::Rejected(_)) => self.tidy(env, local),
            (State::Expanding(_), Failure::Rejected(Rejection::Expired)) => {
                let (send, owner, fence, slot) = (self.send, self.owner, self.fence(), self.slot);
                self.run(env, Command::DropIntent(DropIntent { send, owner, fence, slot }), State::Dropping, local)
            }
            // Fewer keys meet fewer others, and fit a smaller store.
            (State::Expanding(_), failure @ (Failure::Contention | Failure::Store(StoreError::LimitExceeded { .. }))) => {
                self.size = (self.size / 2).max(1);
                self.pause(env, failure)
            }
            // What seemed to be in the way is not there any more.
            (State::Parking(_), Failure::Rejected(Rejection::NotNeeded)) => self.pause(env, Failure::Contention),
            (_, Failure::Rejected(Rejection::LeaseLost | Rejection::Gone)) => self.end(ExpansionEnd::LeaseLost),
            (_, failure) => self.end(ExpansionEnd::Yielded(failure)),
        }
    }

    fn run(&mut self, env: &Env, command: Command, state: fn(Transact) -> State, local: LocalTime) -> ExpansionStep {
        let (transact, step) = Transact::begin(env, command, self.fence(), local);
        self.state = state(transact);
        self.follow(env, step, &mut Vec::new(), local)
    }

    fn tidy(&mut self, env: &Env, local: LocalTime) -> ExpansionStep {
        let due = &self.due.key;
        let key = env.keys.due(&due.destination, due.vest_at, due.entry);
        let prune = Prune { key, version: self.due.version, chunk_of: None };
        self.run(env, Command::Prune(prune), State::Tidying, local)
    }

    /// Recipients first, then the look at where they go.
    fn go_on(&mut self, env: &Env) -> ExpansionStep {
        let Some(intent) = &self.intent else { return self.end(ExpansionEnd::NotClaimed) };
        if self.ahead.is_empty() {
            let key = env.keys.recipients(self.send, intent.chunk);
            self.state = State::Loading;
            return ExpansionStep::Do(Io::Read(vec![key]));
        }
        let to = intent.cursor.saturating_add(chunk_len(&env.config, intent, &self.ahead, self.size) as u32);
        self.probe_range(env.keys.entries(self.send, intent.cursor, to))
    }

    fn probe_range(&mut self, range: KeyRange) -> ExpansionStep {
        self.state = State::Probing { range: range.clone() };
        ExpansionStep::Do(Io::Scan { range, limit: 1 })
    }

    fn on_recipients(&mut self, env: &Env, mut records: Vec<Option<Versioned>>, local: LocalTime) -> ExpansionStep {
        let Some(intent) = &self.intent else { return self.end(ExpansionEnd::NotClaimed) };
        let (cursor, chunk) = (intent.cursor, intent.chunk);
        match records.pop().flatten().map(|found| RecipientChunk::decode(&found.value)) {
            // Another version's: that version can expand it.
            Some(Err(why @ Unreadable::UnknownFormat(_))) => {
                let key = env.keys.recipients(self.send, chunk);
                self.end(ExpansionEnd::Yielded(Failure::Inconsistent { key, why }))
            }
            Some(Ok(found)) if found.recipient_at(cursor).is_some() => {
                self.ahead = found.recipient_at(cursor).unwrap_or_default().to_vec();
                self.go_on(env)
            }
            Some(Ok(_) | Err(Unreadable::Corrupt)) | None => self.park(env, Obstacle::Recipients { chunk }, local),
        }
    }

    fn on_found(&mut self, env: &Env, key: &Key, local: LocalTime) -> ExpansionStep {
        match env.keys.read_entry(Kind::Entry, key) {
            Ok(id) => self.park(env, Obstacle::Entry { index: id.index }, local),
            Err(_) => self.expand(env, local),
        }
    }

    fn park(&mut self, env: &Env, obstacle: Obstacle, local: LocalTime) -> ExpansionStep {
        let (send, owner, fence, slot) = (self.send, self.owner, self.fence(), self.slot);
        self.run(env, Command::ParkIntent(ParkIntent { send, owner, fence, obstacle, slot }), State::Parking, local)
    }

    fn expand(&mut self, env: &Env, local: LocalTime) -> ExpansionStep {
        let Some(intent) = &self.intent else { return self.end(ExpansionEnd::NotClaimed) };
        let len = chunk_len(&env.config, intent, &self.ahead, self.size);
        self.commits += 1;
        let command = Expand {
            send: self.send,
            owner: self.owner,
            fence: intent.fence,
            from: intent.cursor,
            recipients: self.ahead[..len].to_vec(),
            ends_chunk: len == self.ahead.len(),
            order_key: intent.place.as_ref().map(|place| place.order_key.clone()),
            release: self.commits >= COMMITS_MAX,
            slot: self.slot,
        };
        let (transact, step) = Transact::begin(env, Command::Expand(command), self.fence(), local);
        self.state = State::Expanding(transact.hasty());
        self.follow(env, step, &mut Vec::new(), local)
    }

    /// Waits before the next try of what failed, or gives up for now.
    fn pause(&mut self, env: &Env, failure: Failure) -> ExpansionStep {
        self.failures += 1;
        if self.failures >= env.config.tries_max.saturating_mul(2) {
            return self.end(ExpansionEnd::Yielded(failure));
        }
        self.state = State::Pausing;
        let pause_ms = env.config.conflict_pause_ms.saturating_mul(1 << self.failures.min(6));
        ExpansionStep::Do(Io::Sleep { ms: pause_ms, jitter_ms: pause_ms, wakeable: false })
    }

    fn end(&mut self, end: ExpansionEnd) -> ExpansionStep {
        self.state = State::Ended;
        ExpansionStep::Ended(end)
    }
}
