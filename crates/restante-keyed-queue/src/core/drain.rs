//! Stopping: no more work is taken, what there is runs to its end, and the rest is abandoned.

use super::keys::Phase;
use super::{Action, Core, DrainReport, End, Intake, KeyId, QueueTime};

/// A stop that is not over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Drain {
    deadline: Option<QueueTime>,
    /// The counts when it began.
    completed: u64,
    failed: u64,
    abandoned: u64,
}

impl Core {
    /// Takes no more work, and ends when all there is has ended, or at `deadline`: then the rest is abandoned.
    ///
    /// Work that a pause holds back is abandoned at once, now and while the queue drains: nobody would wait for it to end.
    /// Stopping again changes nothing, except that an earlier deadline counts.
    pub fn stop(&mut self, now: QueueTime, deadline: Option<QueueTime>) {
        let (known, begins) = match &self.intake {
            Intake::Stopped(_) => return,
            Intake::Draining(drain) => (drain.deadline, false),
            Intake::Open => (None, true),
        };
        let earliest = [known, deadline].into_iter().flatten().min();
        let counts = self.counts;
        match &mut self.intake {
            Intake::Draining(drain) => drain.deadline = earliest,
            intake => {
                let (completed, failed, abandoned) = (counts.completed, counts.failed, counts.abandoned);
                *intake = Intake::Draining(Drain { deadline: earliest, completed, failed, abandoned });
            }
        }
        if begins && self.is_idle() {
            self.finish_drain();
            return;
        }
        if begins {
            self.abandon_held();
        }
        match earliest {
            Some(at) if earliest != known && !matches!(self.intake, Intake::Stopped(_)) => {
                self.actions.push_back(Action::ArmDeadline { at });
                if at <= now {
                    self.on_deadline(now);
                }
            }
            _ => {}
        }
    }

    /// The time that [`Action::ArmDeadline`] asked to wait for has come.
    pub fn on_deadline(&mut self, now: QueueTime) {
        let Intake::Draining(Drain { deadline: Some(at), .. }) = self.intake else { return };
        if now < at {
            // Somebody's sleep was short.
            self.actions.push_back(Action::ArmDeadline { at });
            return;
        }
        for key in self.keys.all() {
            if self.keys.at(key).phase == Phase::Running {
                self.active -= 1;
                self.keys.at(key).phase = Phase::Held;
            }
            self.abandon_all_of(key);
        }
        // The last one makes the report, which has to say why.
        self.emptied = false;
        self.actions.push_back(Action::Idle);
        self.end_drain(true);
    }

    /// While the queue drains: abandons all that a pause keeps from starting.
    pub(super) fn abandon_held(&mut self) {
        if matches!(self.intake, Intake::Draining(_)) {
            for key in self.keys.all() {
                self.abandon_held_of(key);
            }
            self.check_idle();
        }
    }

    /// While the queue drains: abandons what a pause keeps from starting. Whether the key has nothing left.
    pub(super) fn abandon_held_of(&mut self, key: KeyId) -> bool {
        let state = self.keys.at(key);
        let (phase, fifo) = (state.phase, state.fifo);
        let is_held = self.is_paused || state.is_paused;
        if !is_held || !matches!(self.intake, Intake::Draining(_)) {
            return false;
        }
        if phase != Phase::Running {
            return self.abandon_all_of(key);
        }
        let head = self.tasks.head(fifo).expect("it runs");
        while let Some(behind) = self.tasks.after(head) {
            self.settle(key, behind, End::Abandoned);
        }
        false
    }

    /// Abandons every task of a key that does not run. Whether there was one.
    fn abandon_all_of(&mut self, key: KeyId) -> bool {
        match self.keys.at(key).phase {
            Phase::Empty => return false,
            Phase::Ready => self.keys.withdraw(key),
            Phase::BackingOff { .. } => self.counts.backing_off -= 1,
            Phase::Held | Phase::Running => {}
        }
        while let Some(head) = self.tasks.head(self.keys.at(key).fifo) {
            self.settle(key, head, End::Abandoned);
        }
        self.next_of_key(key);
        true
    }

    /// Ends draining when nothing is left to drain.
    pub(super) fn finish_drain(&mut self) {
        self.end_drain(false);
    }

    fn end_drain(&mut self, timed_out: bool) {
        let Intake::Draining(drain) = self.intake else { return };
        let report = DrainReport {
            completed: self.counts.completed - drain.completed,
            failed: self.counts.failed - drain.failed,
            abandoned: self.counts.abandoned - drain.abandoned,
            timed_out,
        };
        self.intake = Intake::Stopped(report);
        self.actions.push_back(Action::Stopped(report));
    }
}
