//! One row per event, in fixed columns.

use std::{collections::VecDeque, fmt};

use crate::SimTime;

/// Characters in the actor column.
pub const ACTOR_WIDTH: usize = 12;
/// Characters in the event column.
pub const EVENT_WIDTH: usize = 22;
/// Characters in the subject column.
pub const SUBJECT_WIDTH: usize = 20;

/// One thing that happened: one line of a trace.
///
/// Displayed as `time | actor | event | subject | detail`. The widths are fixed in advance, so that traces can be compared
/// line by line; a cell that is too long is cut and ends in `…`, except the last. Control characters become spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRow {
    /// When.
    pub at: SimTime,
    /// Who, by alias: `worker-2`.
    pub actor: String,
    /// What, by a name that is the same in every run: `post.response`.
    pub event: &'static str,
    /// To what, by alias: `A3 -> host b`.
    pub subject: String,
    /// Anything more; may be empty, never cut.
    pub detail: String,
}

impl fmt::Display for TraceRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | ", self.at)?;
        cell(f, &self.actor, ACTOR_WIDTH)?;
        cell(f, self.event, EVENT_WIDTH)?;
        if self.detail.is_empty() && self.subject.chars().count() <= SUBJECT_WIDTH {
            // No spaces at the end of a line.
            return clean(f, self.subject.chars());
        }
        cell(f, &self.subject, SUBJECT_WIDTH)?;
        clean(f, self.detail.chars())
    }
}

fn cell(f: &mut fmt::Formatter<'_>, text: &str, width: usize) -> fmt::Result {
    let length = text.chars().count();
    if length > width {
        clean(f, text.chars().take(width - 1))?;
        f.write_str("… | ")
    } else {
        clean(f, text.chars())?;
        write!(f, "{:1$} | ", "", width - length)
    }
}

fn clean(f: &mut fmt::Formatter<'_>, chars: impl Iterator<Item = char>) -> fmt::Result {
    for char in chars {
        fmt::Write::write_char(f, if char.is_control() { ' ' } else { char })?;
    }
    Ok(())
}

/// The rows of a run: none, all, or the last few.
///
/// ```
/// use restante_engine::{SimTime, Trace, TraceRow};
///
/// let mut trace = Trace::all();
/// trace.row(|| TraceRow {
///     at: SimTime::from_ms(1_500),
///     actor: "worker-2".into(),
///     event: "post.request",
///     subject: "A3 -> host b".into(),
///     detail: "attempt 2".into(),
/// });
/// assert_eq!(trace.render(), "   1.500000 | worker-2     | post.request           | A3 -> host b         | attempt 2\n");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trace {
    rows: VecDeque<TraceRow>,
    /// How many rows are kept; 0 when off.
    rows_max: usize,
    dropped: u64,
}

impl Trace {
    /// Keeps nothing; [`row`](Self::row) does not call its argument.
    pub const fn off() -> Self {
        Self { rows: VecDeque::new(), rows_max: 0, dropped: 0 }
    }

    /// Keeps every row.
    pub const fn all() -> Self {
        Self { rows: VecDeque::new(), rows_max: usize::MAX, dropped: 0 }
    }

    /// Keeps the last `rows_max` rows.
    pub const fn last(rows_max: usize) -> Self {
        Self { rows: VecDeque::new(), rows_max, dropped: 0 }
    }

    /// Whether rows are kept.
    pub const fn is_on(&self) -> bool {
        self.rows_max > 0
    }

    /// Adds the row that `make` returns, if rows are kept.
    #[inline]
    pub fn row(&mut self, make: impl FnOnce() -> TraceRow) {
        if self.rows_max > 0 {
            self.keep(make());
        }
    }

    fn keep(&mut self, row: TraceRow) {
        if self.rows.len() == self.rows_max {
            self.rows.pop_front();
            self.dropped += 1;
        }
        self.rows.push_back(row);
    }

    /// The rows kept, oldest first.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &TraceRow> + DoubleEndedIterator {
        self.rows.iter()
    }

    /// How many rows were dropped to keep to the bound.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The rows kept, one a line, each line ended.
    pub fn render(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Trace, TraceRow};
    use crate::SimTime;

    fn row(ms: u64, actor: &str, subject: &str, detail: &str) -> TraceRow {
        TraceRow {
            at: SimTime::from_ms(ms),
            actor: actor.into(),
            event: "post.request",
            subject: subject.into(),
            detail: detail.into(),
        }
    }

    #[test]
    fn columns_are_fixed() {
        let mut trace = Trace::all();
        trace.row(|| row(3, "worker-2", "A3 -> b", "attempt 2"));
        trace.row(|| {
            row(12_345, "a worker of a long name", "ünïcode, and more than twenty", "never cut, however long it may be\n")
        });
        trace.row(|| row(7, "w", "A3", ""));
        assert_eq!(
            trace.render(),
            "   0.003000 | worker-2     | post.request           | A3 -> b              | attempt 2\n  \
              12.345000 | a worker of… | post.request           | ünïcode, and more t… | never cut, however long it may be \n   \
               0.007000 | w            | post.request           | A3\n"
        );
    }

    #[test]
    fn off_does_not_even_make_the_row() {
        let mut trace = Trace::off();
        trace.row(|| unreachable!("nobody wants it"));
        assert!(!trace.is_on() && trace.render().is_empty());
    }

    #[test]
    fn bounded_keeps_the_last() {
        let mut trace = Trace::last(2);
        (0..5).for_each(|ms| trace.row(|| row(ms, "w", "s", "")));
        assert_eq!(trace.rows().map(|row| row.at.as_ms()).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(trace.dropped(), 3);
    }
}
