//! The queue as a pure state machine.
//!
//! No clock, no entropy, no I/O, no threads, no async: time comes in as a value, what is to be done goes out as an
//! [`Action`] or a [`Start`]. The caller's loop:
//!
//! 1. call one method;
//! 2. execute what [`Core::next_action`] says until it says nothing;
//! 3. whenever an attempt can be begun, begin what [`Core::next_start`] says.
//!
//! Calls that come too late or make no sense (an attempt that ended after its task was abandoned, a backoff of a task that
//! is gone) change nothing.
//!
//! ```
//! use std::num::NonZeroU32;
//! use restante_keyed_queue::core::{Action, AttemptEnd, Core, End, KeyId, Start};
//!
//! let mut core = Core::new(NonZeroU32::MIN);
//! let task = core.submit(KeyId::new(0), NonZeroU32::MIN)?;
//! assert_eq!(core.next_start(), Some(Start { task, attempt: NonZeroU32::MIN }));
//! core.on_attempt_ended(task, AttemptEnd::Succeeded);
//! assert_eq!(core.next_action(), Some(Action::Settle { task, end: End::Completed }));
//! assert_eq!(core.next_action(), Some(Action::FreeKey(KeyId::new(0))));
//! assert_eq!(core.next_action(), Some(Action::Idle));
//! assert_eq!(core.next_action(), None);
//! # Ok::<(), restante_keyed_queue::QueueStopped>(())
//! ```

mod drain;
mod keys;
mod tasks;
#[cfg(test)]
mod tests;
mod types;

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU32;

use self::keys::{Keys, Phase};
use self::tasks::Tasks;
pub use self::types::{Action, AttemptEnd, Counts, DrainReport, End, KeyId, QueueStopped, QueueTime, Start, TaskId};

/// Whether the queue takes work.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Intake {
    Open,
    Draining(drain::Drain),
    Stopped(DrainReport),
}

/// The state of a keyed queue.
///
/// Wishes of its user: [`submit`](Self::submit), [`cancel`](Self::cancel), [`pause`](Self::pause),
/// [`resume`](Self::resume), [`pause_key`](Self::pause_key), [`resume_key`](Self::resume_key), [`stop`](Self::stop).
/// Occurrences: [`on_attempt_ended`](Self::on_attempt_ended), [`on_backoff_elapsed`](Self::on_backoff_elapsed),
/// [`on_deadline`](Self::on_deadline). What is to be done:
/// [`next_action`](Self::next_action), [`next_start`](Self::next_start). The rest only looks.
///
/// Everything is O(1), or O(log n) in the number of paused keys, except what abandons tasks: that is linear in the keys
/// there ever were and in the tasks abandoned.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core {
    width: NonZeroU32,
    /// Keys in an attempt; at most `width`.
    active: u32,
    is_paused: bool,
    paused_keys: BTreeSet<KeyId>,
    intake: Intake,
    counts: Counts,
    tasks: Tasks,
    keys: Keys,
    actions: VecDeque<Action>,
    /// Whether the last task was settled in the current call; false between calls.
    emptied: bool,
}

impl Core {
    /// An empty queue that runs at most `width` keys side by side.
    pub const fn new(width: NonZeroU32) -> Self {
        Self {
            width,
            active: 0,
            is_paused: false,
            paused_keys: BTreeSet::new(),
            intake: Intake::Open,
            counts: Counts {
                submitted: 0,
                completed: 0,
                failed: 0,
                cancelled: 0,
                abandoned: 0,
                running: 0,
                backing_off: 0,
                queued: 0,
                keys: 0,
            },
            tasks: Tasks::new(),
            keys: Keys::new(),
            actions: VecDeque::new(),
            emptied: false,
        }
    }

    /// Queues a task behind all others of its key.
    ///
    /// # Errors
    ///
    /// The queue was told to stop.
    pub fn submit(&mut self, key: KeyId, attempts_max: NonZeroU32) -> Result<TaskId, QueueStopped> {
        if !self.takes_work() {
            return Err(QueueStopped);
        }
        self.counts.submitted += 1;
        self.counts.queued += 1;
        let state = self.keys.touch(key);
        let task = self.tasks.append(&mut state.fifo, self.counts.submitted, key, attempts_max);
        if state.phase == Phase::Empty {
            self.counts.keys += 1;
            self.next_of_key(key);
        }
        Ok(task)
    }

    /// Takes back a task that has not started. False, and nothing changes, if it has started, is over or is unknown.
    pub fn cancel(&mut self, task: TaskId) -> bool {
        let Some(found) = self.tasks.get(task) else { return false };
        if found.attempts_made > 0 {
            return false;
        }
        let key = found.key;
        let state = self.keys.at(key);
        let was_head = self.tasks.head(state.fifo) == Some(task);
        self.settle(key, task, End::Cancelled);
        // Whoever is behind a head that has not started waits for just what the head waited for.
        if was_head && self.keys.at(key).fifo.is_empty() {
            if self.keys.at(key).phase == Phase::Ready {
                self.keys.withdraw(key);
            }
            self.next_of_key(key);
        }
        self.check_idle();
        true
    }

    /// Starts nothing until [`resume`](Self::resume). What runs goes on. False if it was paused before.
    pub fn pause(&mut self) -> bool {
        if std::mem::replace(&mut self.is_paused, true) {
            return false;
        }
        self.abandon_held();
        true
    }

    /// Ends [`pause`](Self::pause); paused keys stay paused. False if it was not paused.
    pub fn resume(&mut self) -> bool {
        if !std::mem::replace(&mut self.is_paused, false) {
            return false;
        }
        true
    }

    /// Starts nothing of `key` until [`resume_key`](Self::resume_key). False if it was paused before.
    pub fn pause_key(&mut self, key: KeyId) -> bool {
        if !self.paused_keys.insert(key) {
            return false;
        }
        let state = self.keys.touch(key);
        state.is_paused = true;
        if state.phase == Phase::Ready {
            self.keys.withdraw(key);
            self.keys.at(key).phase = Phase::Held;
        }
        self.abandon_held_of(key);
        self.check_idle();
        true
    }

    /// Ends [`pause_key`](Self::pause_key); a pause of the whole queue goes on. False if the key was not paused.
    pub fn resume_key(&mut self, key: KeyId) -> bool {
        if !self.paused_keys.remove(&key) {
            return false;
        }
        let state = self.keys.at(key);
        state.is_paused = false;
        match state.phase {
            Phase::Held => self.keys.make_ready(key),
            Phase::Empty => self.actions.push_back(Action::FreeKey(key)),
            Phase::Ready | Phase::Running | Phase::BackingOff { .. } => {}
        }
        true
    }

    /// An attempt that [`next_start`](Self::next_start) handed out has ended.
    pub fn on_attempt_ended(&mut self, task: TaskId, attempt_end: AttemptEnd) {
        let Some(found) = self.tasks.get(task) else { return };
        let (key, attempts_made) = (found.key, found.attempts_made);
        let attempts_are_left = attempts_made < found.attempts_max.get();
        let state = self.keys.at(key);
        if state.phase != Phase::Running || self.tasks.head(state.fifo) != Some(task) {
            return;
        }
        self.active -= 1;
        match attempt_end {
            AttemptEnd::Failed { now, backoff } if attempts_are_left => {
                let until = now.plus(backoff);
                self.counts.backing_off += 1;
                state.phase = Phase::BackingOff { until };
                if backoff.is_zero() {
                    self.end_backoff(key);
                } else if !self.abandon_held_of(key) {
                    let attempt = NonZeroU32::new(attempts_made).expect("it was counted");
                    self.actions.push_back(Action::ArmBackoff { task, attempt, at: until });
                }
            }
            AttemptEnd::Failed { .. } | AttemptEnd::GivenUp => {
                self.settle(key, task, End::Failed);
                self.next_of_key(key);
            }
            AttemptEnd::Succeeded => {
                self.settle(key, task, End::Completed);
                self.next_of_key(key);
            }
        }
        self.check_idle();
    }

    /// The time that [`Action::ArmBackoff`] asked to wait for, after `attempt`, has come.
    pub fn on_backoff_elapsed(&mut self, task: TaskId, attempt: NonZeroU32, now: QueueTime) {
        let Some((key, until)) = self.backoff_of(task, attempt) else { return };
        if now < until {
            // Somebody's sleep was short.
            self.actions.push_back(Action::ArmBackoff { task, attempt, at: until });
            return;
        }
        self.end_backoff(key);
    }

    /// The next thing to do, until there is none.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether an attempt may begin now: [`next_start`](Self::next_start) says which.
    pub fn can_start(&self) -> bool {
        !self.is_paused && self.active < self.width.get() && self.keys.has_ready()
    }

    /// The next attempt that may begin, if any. It has started, and its end is to be reported with
    /// [`on_attempt_ended`](Self::on_attempt_ended).
    pub fn next_start(&mut self) -> Option<Start> {
        if !self.can_start() {
            return None;
        }
        let key = self.keys.next_ready()?;
        let state = self.keys.at(key);
        state.phase = Phase::Running;
        let task = self.tasks.head(state.fifo).expect("a ready key has a task");
        let head = self.tasks.get_mut(task).expect("it is outstanding");
        head.attempts_made += 1;
        self.active += 1;
        if head.attempts_made == 1 {
            self.counts.queued -= 1;
            self.counts.running += 1;
        }
        let attempt = NonZeroU32::new(head.attempts_made).expect("it was counted");
        Some(Start { task, attempt })
    }

    /// How many tasks there were and are.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Most keys that run side by side.
    pub fn width(&self) -> NonZeroU32 {
        self.width
    }

    /// Whether the whole queue is paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// The keys that are paused on their own, by number.
    pub fn paused_keys(&self) -> impl ExactSizeIterator<Item = KeyId> {
        self.paused_keys.iter().copied()
    }

    /// Whether nothing is running and nothing is queued.
    pub fn is_idle(&self) -> bool {
        self.counts.running == 0 && self.counts.queued == 0
    }

    /// Whether tasks are accepted: until the queue is told to stop.
    pub fn takes_work(&self) -> bool {
        matches!(self.intake, Intake::Open)
    }

    /// Whether `task` waits for its backoff after `attempt`, so that only [`Action::ArmBackoff`] gets it out of there.
    pub fn is_backing_off(&self, task: TaskId, attempt: NonZeroU32) -> bool {
        self.backoff_of(task, attempt).is_some()
    }

    /// What the end of draining came to, once it has ended.
    pub fn report(&self) -> Option<DrainReport> {
        match self.intake {
            Intake::Stopped(report) => Some(report),
            Intake::Open | Intake::Draining(_) => None,
        }
    }

    /// The key of `task`, and until when that waits for the backoff after `attempt`.
    fn backoff_of(&self, task: TaskId, attempt: NonZeroU32) -> Option<(KeyId, QueueTime)> {
        let found = self.tasks.get(task)?;
        let key = self.keys.get(found.key)?;
        match key.phase {
            Phase::BackingOff { until } if self.tasks.head(key.fifo) == Some(task) && found.attempts_made == attempt.get() => {
                Some((found.key, until))
            }
            Phase::Empty | Phase::Ready | Phase::Held | Phase::Running | Phase::BackingOff { .. } => None,
        }
    }

    /// Lets the head wait for its turn again.
    fn end_backoff(&mut self, key: KeyId) {
        self.counts.backing_off -= 1;
        self.next_of_key(key);
    }

    /// Decides what the head of `key` waits for, when it is neither running, backing off nor among the ready.
    fn next_of_key(&mut self, key: KeyId) {
        let state = self.keys.at(key);
        if state.fifo.is_empty() {
            state.phase = Phase::Empty;
            self.counts.keys -= 1;
            if !state.is_paused {
                self.actions.push_back(Action::FreeKey(key));
            }
        } else if state.is_paused {
            state.phase = Phase::Held;
            self.abandon_held_of(key);
        } else {
            self.keys.make_ready(key);
            self.abandon_held_of(key);
        }
    }

    /// Ends a task that is not backing off; what its key does next is the caller's.
    fn settle(&mut self, key: KeyId, task: TaskId, end: End) {
        let has_started = self.tasks.get(task).is_some_and(|task| task.attempts_made > 0);
        self.tasks.remove(&mut self.keys.at(key).fifo, task);
        let counts = &mut self.counts;
        *(if has_started { &mut counts.running } else { &mut counts.queued }) -= 1;
        *match end {
            End::Completed => &mut counts.completed,
            End::Failed => &mut counts.failed,
            End::Cancelled => &mut counts.cancelled,
            End::Abandoned => &mut counts.abandoned,
        } += 1;
        self.actions.push_back(Action::Settle { task, end });
        self.emptied = self.is_idle();
    }

    /// Tells that nothing is left, if this call has settled the last task.
    fn check_idle(&mut self) {
        if std::mem::take(&mut self.emptied) {
            debug_assert!(!self.keys.has_ready() && self.active == 0 && self.counts.keys == 0);
            self.actions.push_back(Action::Idle);
            self.finish_drain();
        }
    }
}
