//! Works an old queue off: receives messages, some at a time, and brings each to an end.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::{About, Io, LocalTime, Reply};
use super::work::{LegacyEnd, Work, WorkStep};
use super::{LegacyIo, LegacyReply, LegacySettings, QueueFailure};
use crate::atoms::Fence;
use crate::effect::Effect;
use crate::plan::{Env, Subject};

/// A message under way, by number; 0 is the listener's own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkId(u64);

impl WorkId {
    /// What the listener itself asks for: the next message, a wait.
    pub const LISTENER: Self = Self(0);

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Mode {
    Once { limit: u64 },
    Serve,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Receiving {
    /// As many messages are under way as may be, or none is to be taken any more.
    Idle,
    Asked {
        at: LocalTime,
        /// A message ended meanwhile, which may have had others behind it: an answer of before may be too old to prove anything.
        is_late: bool,
    },
    Waiting,
    /// A bounded run was told that there is nothing, and nothing has ended since it asked. It asks again when a message ends.
    Empty,
    /// A bounded run was told nothing, time and again.
    GivenUp,
}

/// What [`Listener::once`] came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LegacyRunReport {
    /// Messages that were received and brought to the end of their stay, put back among them.
    pub processed: u64,
    /// `false` exactly when the queue had nothing to hand out while this listener had nothing in hand, and it is known what became
    /// of all that was handed out to it. What the queue keeps for later, or others have in hand, does not count.
    pub more: bool,
}

/// What a listener wants next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LegacyStep {
    /// To execute, side by side. What an action is about stands beside it.
    pub actions: Vec<(WorkId, About, LegacyIo)>,
    /// A message was received and is under way by this number: what comes for it is about that message.
    pub received: Option<WorkId>,
    /// To tell the world.
    pub effects: Vec<Effect>,
    /// Messages that ended.
    pub ended: Vec<(WorkId, LegacyEnd)>,
    /// The report of [`Listener::once`], or the end of a listener that was stopped: nothing is under way any more.
    pub finished: Option<LegacyRunReport>,
}

/// A listener of an old queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Listener {
    env: Arc<Env>,
    settings: LegacySettings,
    slot: u64,
    mode: Mode,
    works: BTreeMap<WorkId, Work>,
    receiving: Receiving,
    received_count: u64,
    /// How often in a row the queue did not answer.
    tries: u32,
    /// A message may have been handed out to this listener that it knows nothing of, or is there still although it left it.
    is_unsure: bool,
    is_stopping: bool,
}

impl Listener {
    fn begin(env: Arc<Env>, settings: LegacySettings, slot: u64, mode: Mode, local: LocalTime) -> (Self, LegacyStep) {
        let mut listener = Self {
            env,
            settings,
            slot,
            mode,
            works: BTreeMap::new(),
            receiving: Receiving::Idle,
            received_count: 0,
            tries: 0,
            is_unsure: false,
            is_stopping: false,
        };
        let mut step = LegacyStep::default();
        listener.receive(&mut step, local);
        listener.finish(&mut step);
        (listener, step)
    }

    /// Brings at most `limit` messages to an end of their stay, as long as the queue hands some out, and reports. `slot` spreads
    /// listeners over the counter slots.
    pub fn once(env: Arc<Env>, settings: LegacySettings, slot: u64, limit: u64, local: LocalTime) -> (Self, LegacyStep) {
        Self::begin(env, settings, slot, Mode::Once { limit }, local)
    }

    /// Listens until it is stopped. `slot` spreads listeners over the counter slots.
    pub fn serve(env: Arc<Env>, settings: LegacySettings, slot: u64, local: LocalTime) -> (Self, LegacyStep) {
        Self::begin(env, settings, slot, Mode::Serve, local)
    }

    /// Takes no further message. A wait of the listener's own ([`Io::Sleep`] that is `wakeable`) is to be ended.
    pub fn stop(&mut self) -> LegacyStep {
        self.is_stopping = true;
        let mut step = LegacyStep::default();
        self.finish(&mut step);
        step
    }

    /// How many messages are under way.
    pub fn under_way(&self) -> usize {
        self.works.len()
    }

    /// The next step, after a reply to what `work` asked for.
    pub fn step(&mut self, work: WorkId, reply: LegacyReply, local: LocalTime) -> LegacyStep {
        let mut step = LegacyStep::default();
        if work == WorkId::LISTENER {
            self.on_own(reply, &mut step, local);
        } else if let Some(mut under_way) = self.works.remove(&work) {
            let next = under_way.step(&self.env, &self.settings, reply, local, &mut step.effects);
            self.follow(work, under_way, next, &mut step);
        }
        if self.receiving == Receiving::Idle {
            self.receive(&mut step, local);
        }
        self.finish(&mut step);
        step
    }

    fn follow(&mut self, id: WorkId, work: Work, next: WorkStep, step: &mut LegacyStep) {
        match next {
            WorkStep::Do(about, io) => {
                step.actions.push((id, about, io));
                self.works.insert(id, work);
            }
            WorkStep::Ended(end) => {
                self.is_unsure |= end == LegacyEnd::Left;
                step.ended.push((id, end));
                match &mut self.receiving {
                    Receiving::Empty => self.receiving = Receiving::Idle,
                    Receiving::Asked { is_late, .. } => *is_late = true,
                    Receiving::Idle | Receiving::Waiting | Receiving::GivenUp => {}
                }
            }
        }
    }

    fn on_own(&mut self, reply: LegacyReply, step: &mut LegacyStep, local: LocalTime) {
        match (std::mem::replace(&mut self.receiving, Receiving::Idle), reply) {
            (Receiving::Asked { at, .. }, LegacyReply::Received(Ok(Some(received)))) => {
                self.received_count += 1;
                self.tries = 0;
                let id = WorkId(self.received_count);
                step.received = Some(id);
                let (work, next) = Work::begin(&self.env, &self.settings, received, at, self.slot, local);
                self.follow(id, work, next, step);
            }
            (Receiving::Asked { .. }, LegacyReply::Received(_)) if self.is_stopping => {}
            (Receiving::Asked { is_late, .. }, LegacyReply::Received(Ok(None))) => {
                self.tries = 0;
                match self.mode {
                    Mode::Once { .. } if is_late => {}
                    Mode::Once { .. } => self.receiving = Receiving::Empty,
                    Mode::Serve => self.wait(self.idle(), step),
                }
            }
            // Nobody knows: a message that was received without our knowing comes again by itself.
            (Receiving::Asked { .. }, LegacyReply::Received(Err(failure))) => {
                self.is_unsure |= failure != QueueFailure::Unavailable;
                self.tries = self.tries.saturating_add(1);
                match self.mode {
                    Mode::Once { .. } if self.tries >= self.env.config.tries_max => self.receiving = Receiving::GivenUp,
                    Mode::Once { .. } => self.wait(super::work::pause(&self.env, self.tries), step),
                    Mode::Serve => self.wait(self.idle(), step),
                }
            }
            (Receiving::Waiting, LegacyReply::Store(Reply::Slept)) => {}
            (state, reply) => debug_assert!(false, "{state:?} cannot use {reply:?}"),
        }
    }

    fn idle(&self) -> Io {
        Io::Sleep { ms: self.settings.poll_ms, jitter_ms: self.settings.poll_ms / 4, wakeable: true }
    }

    fn wait(&mut self, io: Io, step: &mut LegacyStep) {
        self.receiving = Receiving::Waiting;
        step.actions.push((WorkId::LISTENER, self.about("legacy-idle"), LegacyIo::Store(io)));
    }

    fn receive(&mut self, step: &mut LegacyStep, local: LocalTime) {
        let is_full = self.works.len() >= self.settings.concurrency.max(1);
        if self.is_stopping || is_full || self.limit_reached() {
            return;
        }
        self.receiving = Receiving::Asked { at: local, is_late: false };
        let io = LegacyIo::Receive { visible_ms: self.settings.visible_ms };
        step.actions.push((WorkId::LISTENER, self.about("legacy-receive"), io));
    }

    fn limit_reached(&self) -> bool {
        matches!(self.mode, Mode::Once { limit } if self.received_count >= limit)
    }

    fn about(&self, what: &'static str) -> About {
        About { what, subject: Subject::Backlog, fence: Fence::default(), tries: 0 }
    }

    fn finish(&self, step: &mut LegacyStep) {
        let is_over = match self.receiving {
            Receiving::Asked { .. } => false,
            Receiving::Waiting => self.is_stopping,
            Receiving::Idle => self.is_stopping || self.limit_reached(),
            Receiving::Empty | Receiving::GivenUp => true,
        };
        let report =
            LegacyRunReport { processed: self.received_count, more: self.receiving != Receiving::Empty || self.is_unsure };
        step.finished = (is_over && self.works.is_empty()).then_some(report);
    }
}
