//! What really happened, and whether it may.

use std::collections::BTreeSet;
use std::time::Duration;

use restante_engine::{Judged, Marks, SimTime, Violation, must_hold};
use restante_keyed_queue::core::{Counts, DrainReport, End, QueueTime};

use crate::PROPERTIES;

/// Notes that a property is judged now, and that it could be found violated.
macro_rules! judged {
    ($found:expr, $($name:literal),+) => {{
        $($found.judged.count(const { restante_engine::place_of(PROPERTIES, $name) });)+
    }};
}

/// Where a task is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    Queued,
    InAttempt,
    /// Between two attempts; `is_over` once the backoff has passed.
    BackingOff {
        is_over: bool,
    },
    /// Its last attempt is over, with this end; nobody has been told yet.
    Over(End),
    Told(End),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Task {
    pub(crate) key: u32,
    pub(crate) place: Place,
    pub(crate) attempts_begun: u32,
    /// Attempts that are under way. Of an abandoned task too: nobody interrupts those.
    pub(crate) under_way: u32,
}

impl Task {
    pub(crate) fn is_outstanding(&self) -> bool {
        !matches!(self.place, Place::Told(_))
    }

    fn has_started(&self) -> bool {
        self.attempts_begun > 0
    }
}

/// A stop, with the counts of when it began.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Stop {
    pub(crate) deadline: Option<QueueTime>,
    before: Ends,
    pub(crate) report: Option<DrainReport>,
    timed_out: bool,
}

/// Tasks by how they ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Ends {
    completed: u64,
    failed: u64,
    cancelled: u64,
    abandoned: u64,
}

/// The auditor's own books.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ghost {
    width: u32,
    attempts_max: u32,
    /// Whether there is time between attempts.
    has_backoff: bool,
    pub(crate) tasks: Vec<Task>,
    ends: Ends,
    pub(crate) is_paused: bool,
    pub(crate) paused_keys: BTreeSet<u32>,
    /// Keys that were touched and not freed.
    keys: BTreeSet<u32>,
    pub(crate) stop: Option<Stop>,
    idle_is_due: bool,
    /// Attempts that ended after their task was abandoned.
    pub(crate) late_count: u64,
}

/// What checks found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) violation: Option<Violation>,
    pub(crate) marks: Marks,
    /// How often each property was judged where it could have been found violated.
    pub(crate) judged: Judged<{ must_hold(PROPERTIES) }>,
    pub(crate) at: SimTime,
}

impl Findings {
    pub(crate) fn violate(&mut self, property: &'static str, evidence: impl IntoIterator<Item = (&'static str, String)>) {
        let at = self.at;
        self.violation.get_or_insert_with(|| Violation { property, at, evidence: evidence.into_iter().collect() });
    }
}

impl Ghost {
    pub(crate) fn new(width: u32, attempts_max: u32, backoff: Duration) -> Self {
        Self {
            width,
            attempts_max,
            has_backoff: !backoff.is_zero(),
            tasks: Vec::new(),
            ends: Ends::default(),
            is_paused: false,
            paused_keys: BTreeSet::new(),
            keys: BTreeSet::new(),
            stop: None,
            idle_is_due: false,
            late_count: 0,
        }
    }

    fn evidence(&self, task: usize) -> [(&'static str, String); 2] {
        [("task", format!("t{}", task + 1)), ("key", format!("k{}", self.tasks[task].key))]
    }

    pub(crate) fn is_held(&self, key: u32) -> bool {
        self.is_paused || self.paused_keys.contains(&key)
    }

    /// The first outstanding task of each key, by key.
    fn heads(&self) -> impl Iterator<Item = (usize, &Task)> {
        let mut keys = BTreeSet::new();
        let outstanding = self.tasks.iter().enumerate().filter(|(_, task)| task.is_outstanding());
        outstanding.filter(move |(_, task)| keys.insert(task.key))
    }

    fn keys_in_attempt(&self) -> u32 {
        self.tasks.iter().filter(|task| task.place == Place::InAttempt).count() as u32
    }

    // What happens.

    pub(crate) fn on_submit(&mut self, key: u32, is_accepted: bool, found: &mut Findings) {
        if self.stop.is_some() {
            judged!(found, "stopped-takes-nothing");
        }
        if is_accepted == self.stop.is_some() {
            found.violate("stopped-takes-nothing", [("key", format!("k{key}"))]);
        }
        if is_accepted {
            self.keys.insert(key);
            self.tasks.push(Task { key, place: Place::Queued, attempts_begun: 0, under_way: 0 });
        }
    }

    pub(crate) fn on_start(&mut self, number: usize, attempt: u32, found: &mut Findings) {
        let task = &self.tasks[number];
        let key = task.key;
        let others = self.tasks.iter().filter(|other| other.key == key && other.under_way > 0 && other.is_outstanding());
        judged!(found, "one-at-a-time", "width-is-kept", "attempts-are-counted");
        if others.count() > 0 {
            found.violate("one-at-a-time", self.evidence(number));
        }
        if self.tasks.iter().filter(|other| other.key == key && other.is_outstanding()).nth(1).is_some() {
            judged!(found, "submission-order");
        }
        if self.heads().all(|(head, _)| head != number) {
            found.violate("submission-order", self.evidence(number));
        }
        if self.keys_in_attempt() >= self.width {
            found.violate("width-is-kept", self.evidence(number));
        }
        if self.is_paused || !self.paused_keys.is_empty() {
            judged!(found, "paused-starts-nothing");
        }
        if self.is_held(key) {
            found.violate("paused-starts-nothing", self.evidence(number));
        }
        if attempt != task.attempts_begun + 1 || attempt > self.attempts_max {
            found.violate("attempts-are-counted", self.evidence(number));
        }
        if let Place::BackingOff { .. } = task.place {
            judged!(found, "backoff-is-kept");
        }
        match task.place {
            Place::Queued | Place::BackingOff { is_over: true } => {}
            Place::BackingOff { is_over: false } => found.violate("backoff-is-kept", self.evidence(number)),
            Place::InAttempt | Place::Over(_) | Place::Told(_) => found.violate("one-at-a-time", self.evidence(number)),
        }
        if self.width == 1 && self.tasks.iter().any(|other| matches!(other.place, Place::BackingOff { .. }) && other.key != key) {
            found.marks.mark("backoff-freed-width");
        }
        let task = &mut self.tasks[number];
        task.place = Place::InAttempt;
        task.attempts_begun = attempt;
        task.under_way += 1;
    }

    /// Whether the attempt was its task's, and not one of a task that is over.
    pub(crate) fn on_end(&mut self, number: usize, has_succeeded: bool, found: &mut Findings) -> bool {
        let attempts_max = self.attempts_max;
        let task = &mut self.tasks[number];
        task.under_way -= 1;
        if task.place != Place::InAttempt {
            self.late_count += 1;
            found.marks.mark("late-result-was-dropped");
            return false;
        }
        task.place = if has_succeeded {
            Place::Over(End::Completed)
        } else if task.attempts_begun >= attempts_max {
            found.marks.mark("last-attempt-failed");
            Place::Over(End::Failed)
        } else {
            Place::BackingOff { is_over: !self.has_backoff }
        };
        true
    }

    pub(crate) fn on_backoff_over(&mut self, number: usize) {
        if let Place::BackingOff { is_over } = &mut self.tasks[number].place {
            *is_over = true;
        }
    }

    pub(crate) fn on_cancel(&mut self, number: usize, is_cancelled: bool, found: &mut Findings) {
        let task = &mut self.tasks[number];
        judged!(found, "cancel-takes-what-has-not-started");
        if is_cancelled != (task.place == Place::Queued) {
            let evidence = self.evidence(number);
            return found.violate("cancel-takes-what-has-not-started", evidence);
        }
        match task.place {
            Place::Queued => {
                task.place = Place::Over(End::Cancelled);
                found.marks.mark("cancelled");
            }
            Place::BackingOff { .. } => found.marks.mark("cancel-came-too-late"),
            Place::InAttempt | Place::Over(_) | Place::Told(_) => {}
        }
    }

    pub(crate) fn on_pause_key(&mut self, key: u32) {
        self.paused_keys.insert(key);
        self.keys.insert(key);
    }

    pub(crate) fn on_stop(&mut self, now: QueueTime, deadline: Option<QueueTime>) {
        // What a pause holds back is abandoned whether the deadline has come or not.
        let waits_for_more = |task: &Task| task.place == Place::InAttempt || (task.is_outstanding() && !self.is_held(task.key));
        let is_late = self.tasks.iter().any(waits_for_more);
        let before = self.ends;
        let stop = self.stop.get_or_insert(Stop { deadline: None, before, report: None, timed_out: false });
        if stop.report.is_none() {
            stop.deadline = [stop.deadline, deadline].into_iter().flatten().min();
            stop.timed_out = is_late && stop.deadline.is_some_and(|deadline| deadline <= now);
        }
    }

    pub(crate) fn on_deadline(&mut self) {
        if let Some(stop) = &mut self.stop {
            stop.timed_out = stop.report.is_none();
        }
    }

    // What the queue says.

    pub(crate) fn on_settled(&mut self, number: usize, end: End, found: &mut Findings) {
        let task = &self.tasks[number];
        judged!(found, "settles-once", "result-is-true");
        let is_true = match (end, task.place) {
            (_, Place::Told(_)) => return found.violate("settles-once", self.evidence(number)),
            (End::Abandoned, Place::Over(_)) => false,
            (_, Place::Over(over)) => end == over,
            (End::Abandoned, Place::InAttempt) => self.stop.as_ref().is_some_and(|stop| stop.timed_out),
            (End::Abandoned, Place::Queued | Place::BackingOff { .. }) => {
                let timed_out = self.stop.as_ref().is_some_and(|stop| stop.timed_out);
                if !timed_out {
                    found.marks.mark("held-work-was-abandoned");
                }
                timed_out || (self.stop.is_some() && self.is_held(task.key))
            }
            (End::Completed | End::Failed | End::Cancelled, Place::Queued | Place::InAttempt | Place::BackingOff { .. }) => false,
        };
        if !is_true {
            found.violate("result-is-true", self.evidence(number));
        }
        self.tasks[number].place = Place::Told(end);
        *match end {
            End::Completed => &mut self.ends.completed,
            End::Failed => &mut self.ends.failed,
            End::Cancelled => &mut self.ends.cancelled,
            End::Abandoned => &mut self.ends.abandoned,
        } += 1;
        self.idle_is_due = self.tasks.iter().all(|task| !task.is_outstanding());
    }

    pub(crate) fn on_key_freed(&mut self, key: u32, found: &mut Findings) {
        let is_in_use = self.paused_keys.contains(&key) || self.tasks.iter().any(|task| task.key == key && task.is_outstanding());
        judged!(found, "empty-key-is-freed");
        if is_in_use || !self.keys.remove(&key) {
            found.violate("empty-key-is-freed", [("key", format!("k{key}"))]);
        }
    }

    pub(crate) fn on_idle(&mut self, found: &mut Findings) {
        judged!(found, "idle-is-told");
        if !std::mem::take(&mut self.idle_is_due) {
            found.violate("idle-is-told", []);
        }
    }

    pub(crate) fn on_report(&mut self, told: DrainReport, found: &mut Findings) {
        judged!(found, "report-is-the-drain", "stop-ends-when-drained");
        let ends = self.ends;
        let is_drained = self.tasks.iter().all(|task| !task.is_outstanding());
        let Some(stop) = self.stop.as_mut().filter(|stop| stop.report.is_none() && is_drained) else {
            return found.violate("stop-ends-when-drained", []);
        };
        let report = DrainReport {
            completed: ends.completed - stop.before.completed,
            failed: ends.failed - stop.before.failed,
            abandoned: ends.abandoned - stop.before.abandoned,
            timed_out: stop.timed_out,
        };
        if told != report {
            found.violate("report-is-the-drain", []);
        }
        match (stop.timed_out, stop.deadline) {
            (true, _) => found.marks.mark("deadline-came-first"),
            (false, Some(_)) => found.marks.mark("drained-in-time"),
            (false, None) => {}
        }
        stop.report = Some(told);
    }

    // What holds between steps.

    /// Looks at the state after a step, all of whose actions were executed.
    pub(crate) fn check(&mut self, counts: Counts, can_start: bool, found: &mut Findings) {
        if let Some(number) = self.tasks.iter().position(|task| matches!(task.place, Place::Over(_))) {
            found.violate("settles-once", self.evidence(number));
        }
        if std::mem::take(&mut self.idle_is_due) {
            found.violate("idle-is-told", []);
        }
        let recount = self.recount();
        if recount.submitted > 0 {
            judged!(found, "counts-add-up");
        }
        if counts.backing_off < recount.backing_off {
            found.violate("backoff-is-kept", []);
        }
        if counts != recount {
            found.violate("counts-add-up", []);
        }
        let is_in_use =
            |key: &u32| self.paused_keys.contains(key) || self.tasks.iter().any(|task| task.key == *key && task.is_outstanding());
        if let Some(key) = self.keys.iter().find(|key| !is_in_use(key)) {
            found.violate("empty-key-is-freed", [("key", format!("k{key}"))]);
        }
        self.check_progress(can_start, found);
        self.check_drain(found);
    }

    fn check_progress(&self, can_start: bool, found: &mut Findings) {
        let has_width = self.keys_in_attempt() < self.width;
        for (number, head) in self.heads() {
            let waits_for_turn = matches!(head.place, Place::Queued | Place::BackingOff { is_over: true });
            if waits_for_turn && !self.is_held(head.key) {
                if has_width {
                    judged!(found, "startable-starts");
                }
                match (has_width, can_start) {
                    (true, false) => found.violate("startable-starts", self.evidence(number)),
                    (false, _) => found.marks.mark("width-was-full"),
                    (true, true) => {}
                }
            }
            if matches!(head.place, Place::BackingOff { is_over: true }) && self.is_held(head.key) {
                found.marks.mark("pause-held-an-attempt");
            }
            let has_followers = self.tasks.iter().skip(number + 1).any(|task| task.key == head.key && task.is_outstanding());
            if matches!(head.place, Place::BackingOff { is_over: false }) && has_followers {
                found.marks.mark("backoff-held-its-key");
            }
        }
    }

    fn check_drain(&self, found: &mut Findings) {
        let Some(stop) = &self.stop else { return };
        if self.is_paused || !self.paused_keys.is_empty() {
            judged!(found, "held-is-abandoned");
        }
        let waits = |task: &Task| matches!(task.place, Place::Queued | Place::BackingOff { .. });
        if let Some(number) = self.tasks.iter().position(|task| waits(task) && self.is_held(task.key)) {
            found.violate("held-is-abandoned", self.evidence(number));
        }
        if stop.report.is_none() {
            if self.tasks.iter().all(|task| !task.is_outstanding()) {
                found.violate("stop-ends-when-drained", []);
            }
            if stop.deadline.is_some() {
                judged!(found, "stop-returns-by-its-deadline");
            }
            if stop.timed_out {
                found.violate("stop-returns-by-its-deadline", []);
            }
        }
    }

    fn recount(&self) -> Counts {
        let count = |of: &dyn Fn(&Task) -> bool| self.tasks.iter().filter(|task| of(task)).count() as u64;
        Counts {
            submitted: self.tasks.len() as u64,
            completed: self.ends.completed,
            failed: self.ends.failed,
            cancelled: self.ends.cancelled,
            abandoned: self.ends.abandoned,
            running: count(&|task| task.is_outstanding() && task.has_started()),
            // One whose backoff is over waits for its turn.
            backing_off: count(&|task| task.place == Place::BackingOff { is_over: false }),
            queued: count(&|task| task.is_outstanding() && !task.has_started()),
            keys: self.heads().count() as u64,
        }
    }
}
