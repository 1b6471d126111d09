//! What a stop and a bounded run came to.

use restante_core::machine::{Failure, RunReport};

/// What became of the work that was under way when a stop was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DrainReport {
    /// Delivered. An entry that is gone when a settle of unknown outcome is looked after counts as delivered: a drop would have left
    /// a dead letter.
    pub completed: u64,
    /// Brought to another end: to be tried again, given up, given back.
    pub failed: u64,
    /// Cut off at the deadline. Each comes back when its lease ends, and may arrive twice.
    pub abandoned: u64,
    /// Whether the deadline ended it.
    pub timed_out: bool,
}

impl DrainReport {
    pub(crate) fn add(&mut self, other: Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.abandoned += other.abandoned;
        self.timed_out |= other.timed_out;
    }
}

/// What a bounded run came to, and what the store had against it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunOutcome {
    /// What it came to.
    pub report: RunReport,
    /// Why the store did not take, or did not confirm, what the claim that was given up last asked of it; `None` if none was given up
    /// for that. A run over a disk that is full has one, and has processed nothing.
    pub refused: Option<Failure>,
}
