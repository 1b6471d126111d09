//! Planted bugs: named rewritings of what crosses the boundary between the core and its world.

use restante_keyed_queue::core::Counts;

macro_rules! mutants {
    ($($variant:ident $name:literal trips $property:literal: $sentence:literal;)+) => {
        /// A planted bug.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Mutant {
            $(
                #[doc = $sentence]
                $variant,
            )+
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The property it is there to trip.
            pub const fn property(self) -> &'static str {
                match self { $(Self::$variant => $property),+ }
            }

            /// What it does, in one sentence.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),+ }
            }
        }
    };
}

mutants! {
    StartTakenTwice "start-taken-twice" trips "one-at-a-time":
        "Two workers begin the same attempt.";
    SuccessorFirst "successor-first" trips "submission-order":
        "The last task of a key is begun instead of its first.";
    WidthMisread "width-misread" trips "width-is-kept":
        "The queue is given one place more than it has.";
    AttemptMisnumbered "attempt-misnumbered" trips "attempts-are-counted":
        "An attempt after a failed one is taken for the one after it.";
    BackoffSkipped "backoff-skipped" trips "backoff-is-kept":
        "A backoff is reported as over when it begins.";
    SettledTwice "settled-twice" trips "settles-once":
        "Every result is told twice.";
    FailureTakenForSuccess "failure-taken-for-success" trips "result-is-true":
        "A failed attempt is reported as one that succeeded.";
    CancelAlwaysAgrees "cancel-always-agrees" trips "cancel-takes-what-has-not-started":
        "A cancel says yes to everything.";
    LateResultCounted "late-result-counted" trips "counts-add-up":
        "The end of an attempt of an abandoned task is counted as a completion.";
    PauseOvertaken "pause-overtaken" trips "paused-starts-nothing":
        "An attempt that was handed out before a pause begins after it.";
    KeyPauseOvertaken "key-pause-overtaken" trips "paused-starts-nothing":
        "An attempt that was handed out before the pause of its key begins after it.";
    ResumeUntold "resume-untold" trips "startable-starts":
        "The end of a pause does not reach the queue.";
    IdleSwallowed "idle-swallowed" trips "idle-is-told":
        "Nobody is told that the queue is idle.";
    KeyKept "key-kept" trips "empty-key-is-freed":
        "A key of which nothing is left is kept.";
    RefusalIgnored "refusal-ignored" trips "stopped-takes-nothing":
        "A caller whose task was refused is told that it was accepted.";
    DrainPauseUntold "drain-pause-untold" trips "held-is-abandoned":
        "A pause that begins while the queue drains does not reach the queue.";
    DeadlineUnarmed "deadline-unarmed" trips "stop-returns-by-its-deadline":
        "Nobody watches the clock for a stop's deadline.";
    ReportSwallowed "report-swallowed" trips "stop-ends-when-drained":
        "Nobody is told the report of a stop.";
    ReportOfEverything "report-of-everything" trips "report-is-the-drain":
        "The report of a stop counts from the beginning of the queue.";
}

impl Mutant {
    /// The mutant of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mutant| mutant.name() == name)
    }

    /// Counts, as they are read.
    pub(crate) fn on_counts(self, counts: &mut Counts, late_count: u64) {
        if self == Self::LateResultCounted {
            counts.completed += late_count;
        }
    }
}
