//! What a stop came to.

/// What became of the work that was under way when a stop was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DrainReport {
    /// Delivered.
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
