//! The core behind a lock, with what it only has numbers for: keys, handlers, results, and those who wait.
//!
//! Every call takes the lock once, tells the core, and returns [`Chores`]: what has to be done outside the lock. So no code
//! of a caller (handlers, wakers, `drop`) runs under it. The lock is the only synchronisation there is, besides one in each
//! [`Answer`]; `models` has both checked exhaustively by loom.

mod answer;
mod chores;
mod key_table;
#[cfg(test)]
mod models;
mod sync;
mod waiters;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::{Context, Poll};

pub(crate) use self::answer::{Answer, Settle};
pub(crate) use self::chores::{Chores, MoreChores, Start};
use self::key_table::KeyTable;
pub(crate) use self::sync::{Lock, Platform, Threads};
use self::waiters::Waiters;
use crate::core::{self, Action, AttemptEnd, Core, Counts, DrainReport, QueueStopped, QueueTime, TaskId};

/// A queue of work `W` (one attempt of a handler) that somebody else executes.
pub(crate) struct Shell<K: Send, W: Send, P: Platform> {
    state: P::Mutex<State<K, W, P>>,
}

struct State<K, W, P: Platform> {
    core: Core,
    keys: KeyTable<K>,
    /// By slot.
    cells: Vec<Option<Cell<W, P>>>,
    /// Whether a worker was sent for and has not come yet.
    is_worker_coming: bool,
    /// How often the queue became idle.
    idle_count: u64,
    waiters: Waiters,
    deadlines: Vec<P::Timer>,
}

/// What belongs to an outstanding task.
struct Cell<W, P: Platform> {
    task: TaskId,
    answer: Arc<dyn Settle>,
    /// The attempt to come; with whoever executes it while it runs.
    work: Option<W>,
    /// The sleep that ends its backoff.
    timer: Option<P::Timer>,
}

/// What [`Shell::look`] sees at one instant.
#[derive(Debug)]
pub(crate) struct Look<K> {
    pub(crate) counts: Counts,
    pub(crate) is_paused: bool,
    pub(crate) paused_keys: Vec<K>,
    pub(crate) takes_work: bool,
}

impl<K: Eq + Clone + Send, W: Send, P: Platform> Shell<K, W, P> {
    pub(crate) fn new(width: NonZeroU32) -> Self {
        let state = State {
            core: Core::new(width),
            keys: KeyTable::new(),
            cells: Vec::new(),
            is_worker_coming: false,
            idle_count: 0,
            waiters: Waiters::default(),
            deadlines: Vec::new(),
        };
        Self { state: P::Mutex::new(state) }
    }

    /// Queues `work`, or gives it back if the queue was told to stop. The caller has to hold `answer` as well: then nothing
    /// is dropped under the lock.
    pub(crate) fn submit(
        &self,
        (hash, key): (u64, &K),
        attempts_max: NonZeroU32,
        answer: Arc<dyn Settle>,
        work: W,
    ) -> Result<(TaskId, Chores<K, W, P>), W> {
        self.state.with(|state| {
            if !state.core.takes_work() {
                return Err(work);
            }
            let key = state.keys.intern(hash, key);
            match state.core.submit(key, attempts_max) {
                Ok(task) => {
                    state.put(Cell { task, answer, work: Some(work), timer: None });
                    Ok((task, state.chores()))
                }
                Err(QueueStopped) => Err(work),
            }
        })
    }

    pub(crate) fn cancel(&self, task: TaskId) -> (bool, Chores<K, W, P>) {
        self.tell(|core| core.cancel(task))
    }

    pub(crate) fn pause(&self) -> (bool, Chores<K, W, P>) {
        self.tell(Core::pause)
    }

    pub(crate) fn resume(&self) -> (bool, Chores<K, W, P>) {
        self.tell(Core::resume)
    }

    pub(crate) fn pause_key(&self, hash: u64, key: &K) -> (bool, Chores<K, W, P>) {
        self.state.with(|state| {
            let key = state.keys.intern(hash, key);
            (state.core.pause_key(key), state.chores())
        })
    }

    pub(crate) fn resume_key(&self, hash: u64, key: &K) -> (bool, Chores<K, W, P>) {
        self.state.with(|state| {
            let known = state.keys.find(hash, key);
            (known.is_some_and(|key| state.core.resume_key(key)), state.chores())
        })
    }

    pub(crate) fn stop(&self, now: QueueTime, deadline: Option<QueueTime>) -> Chores<K, W, P> {
        self.tell(|core| core.stop(now, deadline)).1
    }

    /// A worker that was sent for is there: what it is to begin.
    pub(crate) fn worker_comes(&self) -> (Option<Start<W>>, Chores<K, W, P>) {
        self.state.with(|state| {
            state.is_worker_coming = false;
            (state.start(), state.chores())
        })
    }

    /// An attempt has ended; `next` is the one to come, should there be another. With what its worker is to begin, if it goes
    /// on.
    pub(crate) fn attempt_ended(
        &self,
        task: TaskId,
        end: AttemptEnd,
        next: Option<W>,
        goes_on: bool,
    ) -> (Option<Start<W>>, Chores<K, W, P>) {
        self.state.with(|state| {
            let late = match state.cell(task) {
                Some(cell) => std::mem::replace(&mut cell.work, next),
                None => next,
            };
            state.core.on_attempt_ended(task, end);
            let start = if goes_on { state.start() } else { None };
            let mut chores = state.chores();
            if let Some(work) = late {
                chores.more().works.push(work);
            }
            (start, chores)
        })
    }

    /// An attempt, not over yet, has panicked.
    pub(crate) fn store_panic(&self, task: TaskId, message: String) {
        let answer = self.state.with(|state| state.cell(task).map(|cell| cell.answer.clone()));
        if let Some(answer) = answer {
            answer.store_panic(message);
        }
    }

    pub(crate) fn backoff_elapsed(&self, task: TaskId, attempt: NonZeroU32, now: QueueTime) -> Chores<K, W, P> {
        self.state.with(|state| {
            let waits = state.core.is_backing_off(task, attempt);
            // Whoever calls is that sleep, and must not be called off, unless it was short and is repeated.
            let timer = state.cell(task).filter(|_| waits).and_then(|cell| cell.timer.take());
            state.core.on_backoff_elapsed(task, attempt, now);
            if state.core.is_backing_off(task, attempt)
                && let Some(cell) = state.cell(task)
            {
                cell.timer = timer;
            }
            state.chores()
        })
    }

    pub(crate) fn deadline_reached(&self, now: QueueTime) -> Chores<K, W, P> {
        self.tell(|core| core.on_deadline(now)).1
    }

    /// Notes the sleep that ends the backoff after `attempt`, or gives it back if that is over.
    pub(crate) fn keep_backoff_timer(&self, task: TaskId, attempt: NonZeroU32, timer: P::Timer) -> Option<P::Timer> {
        self.state.with(|state| {
            let waits = state.core.is_backing_off(task, attempt);
            match state.cell(task) {
                Some(cell) if waits && cell.timer.is_none() => {
                    cell.timer = Some(timer);
                    None
                }
                _ => Some(timer),
            }
        })
    }

    /// Notes the sleep that ends a drain, or gives it back if the drain is over.
    pub(crate) fn keep_deadline_timer(&self, timer: P::Timer) -> Option<P::Timer> {
        self.state.with(|state| {
            if state.core.report().is_some() {
                return Some(timer);
            }
            state.deadlines.push(timer);
            None
        })
    }

    pub(crate) fn is_backing_off(&self, task: TaskId, attempt: NonZeroU32) -> bool {
        self.state.with(|state| state.core.is_backing_off(task, attempt))
    }

    pub(crate) fn look(&self) -> Look<K> {
        self.state.with(|state| Look {
            counts: state.core.counts(),
            is_paused: state.core.is_paused(),
            paused_keys: state.core.paused_keys().filter_map(|key| state.keys.key(key).cloned()).collect(),
            takes_work: state.core.takes_work(),
        })
    }

    /// What [`poll_idle`](Self::poll_idle) has to wait for to be past; `None` if the queue is idle now.
    pub(crate) fn idle_count(&self) -> Option<u64> {
        self.state.with(|state| (!state.core.is_idle()).then_some(state.idle_count))
    }

    /// Whether the queue became idle since [`idle_count`](Self::idle_count) answered `seen`.
    pub(crate) fn poll_idle(&self, seen: u64, waiter: &mut Option<u64>, context: &Context<'_>) -> Poll<()> {
        self.state.with(|state| {
            if state.idle_count != seen {
                return Poll::Ready(());
            }
            state.waiters.wait(waiter, context);
            Poll::Pending
        })
    }

    pub(crate) fn poll_stopped(&self, waiter: &mut Option<u64>, context: &Context<'_>) -> Poll<DrainReport> {
        self.state.with(|state| match state.core.report() {
            Some(report) => Poll::Ready(report),
            None => {
                state.waiters.wait(waiter, context);
                Poll::Pending
            }
        })
    }

    /// Whoever waited does so no more.
    pub(crate) fn forget(&self, waiter: Option<u64>) {
        drop(self.state.with(|state| state.waiters.forget(waiter)));
    }

    fn tell<R>(&self, call: impl FnOnce(&mut Core) -> R) -> (R, Chores<K, W, P>) {
        self.state.with(|state| (call(&mut state.core), state.chores()))
    }
}

impl<K: Eq + Clone, W, P: Platform> State<K, W, P> {
    fn cell(&mut self, task: TaskId) -> Option<&mut Cell<W, P>> {
        self.cells.get_mut(task.slot()).and_then(Option::as_mut).filter(|cell| cell.task == task)
    }

    fn put(&mut self, cell: Cell<W, P>) {
        let slot = cell.task.slot();
        if slot >= self.cells.len() {
            self.cells.resize_with(slot + 1, || None);
        }
        self.cells[slot] = Some(cell);
    }

    /// Starts what is next.
    fn start(&mut self) -> Option<Start<W>> {
        let core::Start { task, attempt } = self.core.next_start()?;
        let work = self.cell(task).and_then(|cell| cell.work.take());
        let work = work.expect("a task that does not run has its work here");
        Some(Start { task, attempt, work })
    }

    /// Follows the core's actions, and says what is left to do outside the lock.
    ///
    /// Every call ends here, so whenever something can start, a worker is on its way. One at a time comes, and sends for the
    /// next before it begins: bursts of short attempts are worked off by few workers, an attempt that waits keeps its own.
    fn chores(&mut self) -> Chores<K, W, P> {
        let mut chores = Chores::none();
        if self.core.can_start() && !self.is_worker_coming {
            self.is_worker_coming = true;
            chores.needs_worker = true;
        }
        while let Some(action) = self.core.next_action() {
            match action {
                Action::ArmBackoff { task, attempt, at } => chores.more().backoffs.push((task, attempt, at)),
                Action::ArmDeadline { at } => chores.more().deadline = Some(at),
                Action::Settle { task, end } => {
                    let cell = self.cells[task.slot()].take().expect("an outstanding task has a cell");
                    chores.settle(cell.answer, end);
                    if let Some(timer) = cell.timer {
                        chores.more().timers.push(timer);
                    }
                    if let Some(work) = cell.work {
                        chores.more().works.push(work);
                    }
                }
                Action::FreeKey(key) => {
                    if let Some(key) = self.keys.free(key) {
                        chores.drop_key(key);
                    }
                }
                Action::Idle => {
                    self.idle_count += 1;
                    self.wake_waiters(&mut chores);
                }
                Action::Stopped(_) => {
                    self.wake_waiters(&mut chores);
                    chores.more().timers.append(&mut self.deadlines);
                }
            }
        }
        chores
    }

    fn wake_waiters(&mut self, chores: &mut Chores<K, W, P>) {
        if let Some(mut wakers) = self.waiters.take() {
            chores.more().wakers.append(&mut wakers);
        }
    }
}
