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
enum Receiving {
    /// As many messages are under way as may be, or none is to be taken any more.
    Idle,
    Asked {
        at: LocalTime,
    },
    Waiting,
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
    /// Whether it was asked to stop, and nothing is under way any more.
    pub finished: bool,
}

/// A listener of an old queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Listener {
    env: Arc<Env>,
    settings: LegacySettings,
    slot: u64,
    works: BTreeMap<WorkId, Work>,
    receiving: Receiving,
    next: u64,
    /// How often in a row the queue had nothing, or did not answer.
    idle_count: u32,
    is_stopping: bool,
}

impl Listener {
    /// Begins to listen. `slot` spreads listeners over the counter slots.
    pub fn begin(env: Arc<Env>, settings: LegacySettings, slot: u64, local: LocalTime) -> (Self, LegacyStep) {
        let mut listener = Self {
            env,
            settings,
            slot,
            works: BTreeMap::new(),
            receiving: Receiving::Idle,
            next: 1,
            idle_count: 0,
            is_stopping: false,
        };
        let mut step = LegacyStep::default();
        listener.receive(&mut step, local);
        (listener, step)
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
            WorkStep::Ended(end) => step.ended.push((id, end)),
        }
    }

    fn on_own(&mut self, reply: LegacyReply, step: &mut LegacyStep, local: LocalTime) {
        match (std::mem::replace(&mut self.receiving, Receiving::Idle), reply) {
            (Receiving::Asked { at }, LegacyReply::Received(Ok(Some(received)))) => {
                let id = WorkId(self.next);
                self.next += 1;
                self.idle_count = 0;
                step.received = Some(id);
                let (work, next) = Work::begin(&self.env, &self.settings, received, at, self.slot, local);
                self.follow(id, work, next, step);
            }
            // Nothing there, or nobody knows: a message that was received without our knowing comes again by itself.
            (
                Receiving::Asked { .. },
                LegacyReply::Received(Ok(None) | Err(QueueFailure::Unavailable | QueueFailure::Unknown | QueueFailure::Outdated)),
            ) if !self.is_stopping => {
                self.receiving = Receiving::Waiting;
                self.idle_count = self.idle_count.saturating_add(1);
                let (ms, jitter_ms) = (self.settings.poll_ms, self.settings.poll_ms / 4);
                let io = Io::Sleep { ms, jitter_ms, wakeable: true };
                step.actions.push((WorkId::LISTENER, self.about("legacy-idle"), LegacyIo::Store(io)));
            }
            (Receiving::Asked { .. }, LegacyReply::Received(_)) | (Receiving::Waiting, LegacyReply::Store(Reply::Slept)) => {}
            (state, reply) => debug_assert!(false, "{state:?} cannot use {reply:?}"),
        }
    }

    fn receive(&mut self, step: &mut LegacyStep, local: LocalTime) {
        if self.is_stopping || self.works.len() >= self.settings.concurrency.max(1) {
            return;
        }
        self.receiving = Receiving::Asked { at: local };
        let io = LegacyIo::Receive { visible_ms: self.settings.visible_ms };
        step.actions.push((WorkId::LISTENER, self.about("legacy-receive"), io));
    }

    fn about(&self, what: &'static str) -> About {
        About { what, subject: Subject::Backlog, fence: Fence::default(), tries: 0 }
    }

    fn finish(&mut self, step: &mut LegacyStep) {
        let is_asking = matches!(self.receiving, Receiving::Asked { .. });
        step.finished = self.is_stopping && self.works.is_empty() && !is_asking;
    }
}
