//! One command, from reading to a commit whose outcome is known.

use restante_core_derive::VisitAtoms;
use restante_kv::{Key, StoreError, StoreTime};

use super::{About, Io, LocalTime, Reply};
use crate::atoms::Fence;
use crate::effect::Effect;
use crate::plan::{Command, Env, Outcome, Plan, Rejection, Stop, View};
use crate::record::Unreadable;

/// Most rounds of reading before a commit.
const ROUNDS_MAX: u32 = 4;
/// Longest pause between tries.
const PAUSE_MS_MAX: u64 = 2_000;

/// Why a command did not come to an outcome.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error, VisitAtoms)]
pub enum Failure {
    /// Nothing was committed, for this reason.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// A record cannot be used; nothing was committed.
    #[error("the record under {key:?} cannot be used: {why}")]
    Inconsistent {
        /// Where it is.
        key: Key,
        /// Why.
        why: Unreadable,
    },
    /// Every try met a conflict; nothing was committed.
    #[error("every try conflicted with somebody else's commit: nothing was committed, try again later")]
    Contention,
    /// The store refused every try; nothing was committed.
    #[error(transparent)]
    Store(StoreError),
    /// It is not known whether the command was committed.
    #[error("the outcome of the commit is unknown: repeat the same command to find out")]
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
enum Phase {
    Reading,
    Committing(Box<Plan>),
    Pausing,
}

/// A running command.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Transact {
    command: Command,
    fence: Fence,
    phase: Phase,
    read_set: Vec<Key>,
    view: View,
    /// Whether an earlier commit of this operation had an unknown outcome.
    attempted: bool,
    /// Whether a record was found unusable before; it is reloaded once.
    doubted: bool,
    tries: u32,
    tries_max: u32,
    /// Whether a conflict ends it at once, so that its caller can ask for less.
    hasty: bool,
    rounds: u32,
    asked_at: LocalTime,
}

/// What a [`Transact`] wants next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TransactStep {
    /// Execute this.
    Do(Io),
    /// The outcome, with what to tell the world; or why there is none.
    Done(Result<(Outcome, Vec<Effect>), Failure>),
}

impl Transact {
    /// Begins a command. `fence` names the claim it acts under, for traces.
    pub fn begin(env: &Env, command: Command, fence: Fence, local: LocalTime) -> (Self, TransactStep) {
        let mut transact = Self {
            command,
            fence,
            phase: Phase::Reading,
            read_set: Vec::new(),
            view: View::default(),
            attempted: false,
            doubted: false,
            tries: 0,
            tries_max: env.config.tries_max,
            hasty: false,
            rounds: 0,
            asked_at: local,
        };
        let step = transact.plan(env, local);
        (transact, step)
    }

    /// Tries more often than the configured number before it gives up.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.tries_max = self.tries_max.saturating_mul(4);
        self
    }

    /// Gives up at its first conflict, unless an earlier commit of it may have happened.
    #[must_use]
    pub(super) fn hasty(mut self) -> Self {
        self.hasty = true;
        self
    }

    /// The command.
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// Whether a commit of it may have happened without an answer.
    pub(super) fn may_have_committed(&self) -> bool {
        self.attempted
    }

    /// What the current action is about.
    pub fn about(&self) -> About {
        About { what: self.command.name(), subject: self.command.subject(), fence: self.fence, tries: self.tries }
    }

    /// Store time of the latest snapshot, and when it was asked for: store time cannot be later than the first plus what
    /// passed since the second.
    pub fn snapshot_at(&self) -> (StoreTime, LocalTime) {
        (self.view.at, self.asked_at)
    }

    /// The next step.
    pub fn step(&mut self, env: &Env, reply: Reply, local: LocalTime) -> TransactStep {
        match (std::mem::replace(&mut self.phase, Phase::Pausing), reply) {
            (Phase::Reading, Reply::Snapshot { result: Ok(records), at }) => {
                self.view = View { at, records: self.read_set.iter().cloned().zip(records).collect() };
                self.plan(env, local)
            }
            (Phase::Reading, Reply::Snapshot { result: Err(error), .. }) => self.again(env, error),
            (Phase::Committing(plan), Reply::Committed(Ok(_))) => TransactStep::Done(Ok((plan.outcome, plan.effects))),
            (Phase::Committing(_), Reply::Committed(Err(error))) => self.again(env, error),
            (Phase::Pausing, Reply::Slept) => {
                self.rounds = 0;
                if self.read_set.is_empty() { self.plan(env, local) } else { self.read(local) }
            }
            (phase, reply) => {
                // A reply to nothing that was asked: a driver's mistake that must not become a wrong commit.
                debug_assert!(false, "{} in {phase:?} cannot use {reply:?}", self.command.name());
                TransactStep::Done(Err(if self.attempted { Failure::Unknown } else { Failure::Contention }))
            }
        }
    }

    fn read(&mut self, local: LocalTime) -> TransactStep {
        self.phase = Phase::Reading;
        self.asked_at = local;
        TransactStep::Do(Io::Read(self.read_set.clone()))
    }

    fn plan(&mut self, env: &Env, local: LocalTime) -> TransactStep {
        match self.command.plan(env, &self.view, self.attempted) {
            Ok(plan) if plan.txn.checks.is_empty() && plan.txn.writes.is_empty() => {
                TransactStep::Done(Ok((plan.outcome, plan.effects)))
            }
            Ok(plan) => {
                let txn = plan.txn.clone();
                self.phase = Phase::Committing(Box::new(plan));
                TransactStep::Do(Io::Commit(txn))
            }
            Err(Stop::Need(keys)) if self.rounds < ROUNDS_MAX => {
                self.rounds += 1;
                self.read_set.extend(keys);
                self.read(local)
            }
            Err(Stop::Need(_)) => self.give_up(Failure::Contention),
            Err(Stop::Reject(rejection)) => TransactStep::Done(Err(Failure::Rejected(rejection))),
            Err(Stop::Inconsistent { .. }) if !self.doubted => {
                self.doubted = true;
                self.rounds = 0;
                self.read(local)
            }
            Err(Stop::Inconsistent { key, why }) => self.give_up(Failure::Inconsistent { key, why }),
        }
    }

    /// After an error of the store: pause and begin again, or give up.
    fn again(&mut self, env: &Env, error: StoreError) -> TransactStep {
        let failure = match error {
            StoreError::Conflict { .. } => Failure::Contention,
            StoreError::Unavailable(_) => Failure::Store(error),
            StoreError::Ambiguous(_) => {
                self.attempted = true;
                Failure::Unknown
            }
            StoreError::LimitExceeded { .. } | StoreError::InvalidRequest(_) => return self.give_up(Failure::Store(error)),
        };
        self.tries += 1;
        let is_enough = self.hasty && !self.attempted && failure == Failure::Contention;
        if self.tries >= self.tries_max || is_enough {
            return self.give_up(failure);
        }
        self.phase = Phase::Pausing;
        let doublings = (self.tries - 1).min(16);
        let pause_ms = env.config.conflict_pause_ms.saturating_mul(1 << doublings).min(PAUSE_MS_MAX);
        TransactStep::Do(Io::Sleep { ms: pause_ms, jitter_ms: pause_ms, wakeable: false })
    }

    fn give_up(&self, failure: Failure) -> TransactStep {
        TransactStep::Done(Err(if self.attempted { Failure::Unknown } else { failure }))
    }
}
