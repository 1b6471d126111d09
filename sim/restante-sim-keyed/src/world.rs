//! The core in a world that executes what it asks for, with an auditor beside it.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use std::time::Duration;

use restante_engine::{Digest, SimTime, Trace, TraceRow};
use restante_keyed_queue::core::{Action, AttemptEnd, Core, KeyId, QueueTime, Start, TaskId};

use crate::Mutant;
use crate::ghost::{Findings, Ghost, Place};

/// One thing that happens to the queue. Tasks are numbered from 0 in submission order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Step {
    Submit {
        key: u32,
    },
    /// A worker takes the next start.
    Start,
    End {
        task: usize,
        has_succeeded: bool,
    },
    /// A sleep ends, perhaps before its time.
    SleepEnds {
        task: usize,
    },
    Cancel {
        task: usize,
    },
    Pause,
    Resume,
    PauseKey {
        key: u32,
    },
    ResumeKey {
        key: u32,
    },
    /// With a deadline so long from now.
    Stop {
        within: Option<Duration>,
    },
    /// Time reaches the stop's deadline.
    Deadline,
}

/// What a step has begun, that will end some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begun {
    Attempt { task: usize, attempt: u32 },
    Backoff { task: usize, attempt: u32, at: QueueTime },
    Deadline { at: QueueTime },
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) core: Core,
    pub(crate) ghost: Ghost,
    pub(crate) mutant: Option<Mutant>,
    attempts_max: NonZeroU32,
    backoff: Duration,
    now: QueueTime,
    /// Ids of tasks by number.
    ids: Vec<TaskId>,
    /// Sleeps of tasks under way: after which attempt, until when.
    pub(crate) sleeps: BTreeMap<usize, (NonZeroU32, QueueTime)>,
    /// Whether somebody watches the clock for the deadline.
    is_deadline_armed: bool,
    pub(crate) found: Findings,
    pub(crate) trace: Trace,
    pub(crate) digest: Digest,
}

fn alias(task: usize) -> String {
    format!("t{}", task + 1)
}

impl World {
    /// # Panics
    ///
    /// If `width` or `attempts_max` is 0.
    pub(crate) fn new(width: u32, attempts_max: u32, backoff: Duration, mutant: Option<Mutant>, trace: Trace) -> Self {
        let more = |by: Mutant| u32::from(mutant == Some(by));
        let told = |number: u32| NonZeroU32::new(number).expect("at least one");
        Self {
            core: Core::new(told(width + more(Mutant::WidthMisread))),
            ghost: Ghost::new(width, attempts_max, backoff),
            mutant,
            attempts_max: told(attempts_max),
            backoff,
            now: QueueTime::ZERO,
            ids: Vec::new(),
            sleeps: BTreeMap::new(),
            is_deadline_armed: false,
            found: Findings::default(),
            trace,
            digest: Digest::new(),
        }
    }

    /// Takes one step at `now`, with all that the core asks for, and looks whether everything is as it may be.
    pub(crate) fn step(&mut self, step: Step, now: QueueTime) -> Vec<Begun> {
        self.now = now;
        self.found.at = SimTime::from_us(u64::try_from(now.since_origin().as_micros()).unwrap_or(u64::MAX));
        let mut begun = Vec::new();
        self.tell_core(step, &mut begun);
        self.execute(&mut begun);
        let mut counts = self.core.counts();
        if let Some(mutant) = self.mutant {
            mutant.on_counts(&mut counts, self.ghost.late_count);
        }
        self.ghost.check(counts, self.core.can_start(), &mut self.found);
        if let Some(violation) = &self.found.violation {
            let (property, fingerprint) = (violation.property, violation.fingerprint());
            self.tell("auditor", "violated", property, format_args!("{fingerprint}"));
        }
        begun
    }

    fn tell_core(&mut self, step: Step, begun: &mut Vec<Begun>) {
        let is = |this: &Self, mutant| this.mutant == Some(mutant);
        match step {
            Step::Submit { key } => self.submit(key),
            Step::Start => {
                let handed_out = self.core.next_start();
                self.begin(handed_out, begun);
            }
            Step::End { task, has_succeeded } => self.end(task, has_succeeded),
            Step::SleepEnds { task } => {
                let Some((attempt, until)) = self.sleeps.remove(&task) else { return };
                self.tell("clock", "sleep-ends", &alias(task), format_args!("attempt {attempt}"));
                if self.now >= until {
                    self.ghost.on_backoff_over(task);
                } else {
                    self.found.marks.mark("sleep-was-short");
                }
                self.core.on_backoff_elapsed(self.ids[task], attempt, self.now);
            }
            Step::Cancel { task } => {
                let is_cancelled = self.core.cancel(self.ids[task]) || is(self, Mutant::CancelAlwaysAgrees);
                self.tell("caller", "cancel", &alias(task), format_args!("{is_cancelled}"));
                self.ghost.on_cancel(task, is_cancelled, &mut self.found);
            }
            Step::Pause => {
                self.tell("operator", "pause", "", format_args!(""));
                let overtaken = if is(self, Mutant::PauseOvertaken) { self.core.next_start() } else { None };
                self.ghost.is_paused = true;
                if !(is(self, Mutant::DrainPauseUntold) && self.ghost.stop.is_some()) {
                    self.core.pause();
                }
                self.begin(overtaken, begun);
            }
            Step::Resume => {
                self.tell("operator", "resume", "", format_args!(""));
                self.ghost.is_paused = false;
                if !is(self, Mutant::ResumeUntold) {
                    self.core.resume();
                }
            }
            Step::PauseKey { key } => {
                self.tell("operator", "pause-key", &format!("k{key}"), format_args!(""));
                // A start of another key may come after the pause.
                let overtaken = if is(self, Mutant::KeyPauseOvertaken) { self.core.next_start() } else { None };
                self.ghost.on_pause_key(key);
                self.core.pause_key(KeyId::new(key));
                self.begin(overtaken, begun);
            }
            Step::ResumeKey { key } => {
                self.tell("operator", "resume-key", &format!("k{key}"), format_args!(""));
                self.ghost.paused_keys.remove(&key);
                self.core.resume_key(KeyId::new(key));
            }
            Step::Stop { within } => {
                let deadline = within.map(|within| self.now.plus(within));
                self.tell("operator", "stop", "", format_args!("{within:?}"));
                self.ghost.on_stop(self.now, deadline);
                self.core.stop(self.now, deadline);
            }
            Step::Deadline => {
                self.tell("clock", "deadline", "", format_args!(""));
                self.ghost.on_deadline();
                if self.is_deadline_armed {
                    self.core.on_deadline(self.now);
                }
            }
        }
    }

    fn submit(&mut self, key: u32) {
        let submitted = self.core.submit(KeyId::new(key), self.attempts_max);
        let is_accepted = submitted.is_ok() || self.mutant == Some(Mutant::RefusalIgnored);
        let subject = if is_accepted { alias(self.ids.len()) } else { "-".to_owned() };
        self.tell("caller", "submit", &subject, format_args!("k{key}, {}", if is_accepted { "accepted" } else { "refused" }));
        self.ids.extend(submitted);
        self.ghost.on_submit(key, is_accepted, &mut self.found);
    }

    fn begin(&mut self, handed_out: Option<Start>, begun: &mut Vec<Begun>) {
        let Some(Start { task, attempt }) = handed_out else { return };
        let (mut number, mut attempt) = (self.number(task), attempt.get());
        if self.mutant == Some(Mutant::AttemptMisnumbered) && attempt > 1 {
            attempt += 1;
        }
        if self.mutant == Some(Mutant::SuccessorFirst) {
            let key = self.ghost.tasks[number].key;
            let queued = |task: &crate::ghost::Task| task.key == key && task.place == Place::Queued;
            number = self.ghost.tasks.iter().rposition(queued).unwrap_or(number);
        }
        let times = if self.mutant == Some(Mutant::StartTakenTwice) { 2 } else { 1 };
        for _ in 0..times {
            self.tell("worker", "begin", &alias(number), format_args!("attempt {attempt}"));
            self.ghost.on_start(number, attempt, &mut self.found);
        }
        begun.push(Begun::Attempt { task: number, attempt });
    }

    fn end(&mut self, task: usize, has_succeeded: bool) {
        self.tell("worker", "end", &alias(task), format_args!("{}", if has_succeeded { "succeeded" } else { "failed" }));
        self.ghost.on_end(task, has_succeeded, &mut self.found);
        let is_told_success = has_succeeded || self.mutant == Some(Mutant::FailureTakenForSuccess);
        let end = match is_told_success {
            true => AttemptEnd::Succeeded,
            false => AttemptEnd::Failed { now: self.now, backoff: self.backoff },
        };
        // Also of one that was abandoned: the core has to know better.
        self.core.on_attempt_ended(self.ids[task], end);
    }

    fn execute(&mut self, begun: &mut Vec<Begun>) {
        while let Some(action) = self.core.next_action() {
            match action {
                Action::ArmBackoff { task, attempt, at } => {
                    let number = self.number(task);
                    self.tell("queue", "back-off", &alias(number), format_args!("after attempt {attempt}"));
                    self.sleeps.insert(number, (attempt, at));
                    begun.push(Begun::Backoff { task: number, attempt: attempt.get(), at });
                    if self.mutant == Some(Mutant::BackoffSkipped) {
                        self.core.on_backoff_elapsed(task, attempt, at);
                    }
                }
                Action::ArmDeadline { at } => {
                    self.is_deadline_armed = self.mutant != Some(Mutant::DeadlineUnarmed);
                    begun.push(Begun::Deadline { at });
                }
                Action::Settle { task, end } => {
                    let number = self.number(task);
                    let times = if self.mutant == Some(Mutant::SettledTwice) { 2 } else { 1 };
                    for _ in 0..times {
                        self.tell("queue", "settle", &alias(number), format_args!("{end:?}"));
                        self.ghost.on_settled(number, end, &mut self.found);
                    }
                    self.sleeps.remove(&number);
                }
                Action::FreeKey(key) => {
                    self.tell("queue", "free-key", &format!("k{}", key.number()), format_args!(""));
                    if self.mutant != Some(Mutant::KeyKept) {
                        self.ghost.on_key_freed(key.number(), &mut self.found);
                    }
                }
                Action::Idle => {
                    self.tell("queue", "idle", "", format_args!(""));
                    if self.mutant != Some(Mutant::IdleSwallowed) {
                        self.ghost.on_idle(&mut self.found);
                    }
                }
                Action::Stopped(mut report) => {
                    if self.mutant == Some(Mutant::ReportOfEverything) {
                        report.completed = self.core.counts().completed;
                    }
                    self.tell("queue", "stopped", "", format_args!("{report:?}"));
                    if self.mutant != Some(Mutant::ReportSwallowed) {
                        self.ghost.on_report(report, &mut self.found);
                    }
                }
            }
        }
    }

    /// Whether a stop ends at `now` at the latest, and has not ended.
    pub(crate) fn is_deadline_due(&self, now: QueueTime) -> bool {
        let stop = self.ghost.stop.as_ref().filter(|stop| stop.report.is_none());
        stop.and_then(|stop| stop.deadline).is_some_and(|deadline| deadline <= now)
    }

    fn number(&self, task: TaskId) -> usize {
        // The core numbers tasks from 1 in the order of submission, as the world does.
        usize::try_from(task.number() - 1).expect("as many as there are")
    }

    /// Folds what happened into the digest, and shows it in the trace.
    fn tell(&mut self, actor: &'static str, event: &'static str, subject: &str, detail: Arguments<'_>) {
        let at = self.found.at;
        self.digest.u64(at.as_us());
        self.digest.str(event);
        self.digest.str(subject);
        if self.trace.is_on() {
            let (subject, detail) = (subject.to_owned(), detail.to_string());
            self.trace.row(|| TraceRow { at, actor: actor.to_owned(), event, subject, detail });
        }
    }

    /// Two worlds with one fingerprint do the same from here on.
    pub(crate) fn fingerprint(&self, besides: impl Hash) -> u128 {
        struct Feed(Digest);
        impl Hasher for Feed {
            fn finish(&self) -> u64 {
                self.0.value() as u64
            }
            fn write(&mut self, bytes: &[u8]) {
                self.0.bytes(bytes);
            }
            fn write_u64(&mut self, number: u64) {
                self.0.u64(number);
            }
        }
        let mut feed = Feed(Digest::new());
        (&self.core, &self.ghost, &self.ids, &self.sleeps, self.is_deadline_armed, besides).hash(&mut feed);
        feed.0.value()
    }
}
