//! What came of it.

use std::fmt;
use std::time::Duration;

use crate::{Breach, Check, OpenError};

/// Why a check failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected: {}\nfound:    {}\nbreaks:   {protects}", breach.expected, breach.found)]
pub struct Failure {
    /// What was expected, and what came.
    pub breach: Breach,
    /// The rule that relies on it: [`Check::protects`].
    pub protects: &'static str,
}

/// The end of one check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The store does what the check asks.
    Passed,
    /// The store does not claim what the check is about.
    Skipped {
        /// What its limits say.
        why: &'static str,
    },
    /// The store breaks the contract.
    Failed(Failure),
    /// There was no store to check.
    NotOpened {
        /// Why.
        error: OpenError,
    },
}

/// One check that was run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The check.
    pub check: &'static Check,
    /// Its end.
    pub outcome: Outcome,
    /// Where its records were; they are there still when they were to be kept.
    pub prefix: String,
    /// How long it took.
    pub took: Duration,
}

/// `name ... ok`, and the reasons when it is something else.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.check.name;
        match &self.outcome {
            Outcome::Passed => write!(f, "{name} ... ok"),
            Outcome::Skipped { why } => write!(f, "{name} ... skipped: {why}"),
            Outcome::NotOpened { error } => write!(f, "{name} ... not run: {error}"),
            Outcome::Failed(failure) => {
                let reasons = failure.to_string().replace('\n', "\n  ");
                write!(f, "{name} ... FAILED\n  rule:     {}\n  {reasons}", self.check.sentence)
            }
        }
    }
}

/// All checks that were run on one store.
#[derive(Clone, Debug)]
#[must_use = "ask is_passed() or call assert_passed()"]
pub struct Report {
    /// Name of the store.
    pub store: String,
    /// Seed of the run.
    pub seed: u64,
    /// In the order in which they were run.
    pub ran: Vec<Ran>,
}

impl Report {
    fn count(&self, is_counted: impl Fn(&Outcome) -> bool) -> usize {
        self.ran.iter().filter(|ran| is_counted(&ran.outcome)).count()
    }

    /// Checks that passed.
    pub fn passed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Passed))
    }

    /// Checks that failed, or found no store.
    pub fn failed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_) | Outcome::NotOpened { .. }))
    }

    /// Checks that the store need not pass.
    pub fn skipped(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Skipped { .. }))
    }

    /// Whether some check passed and none failed. A run of nothing shows nothing.
    pub fn is_passed(&self) -> bool {
        self.passed() > 0 && self.failed() == 0
    }

    /// # Panics
    /// Unless [`is_passed`](Self::is_passed): with what each failed check found.
    pub fn assert_passed(&self) {
        assert!(self.is_passed(), "{self}");
    }
}

/// What did not pass, then the counts.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ran in self.ran.iter().filter(|ran| ran.outcome != Outcome::Passed) {
            writeln!(f, "{ran}")?;
        }
        let (passed, failed, skipped) = (self.passed(), self.failed(), self.skipped());
        write!(f, "{} (seed {}): {passed} passed; {failed} failed; {skipped} skipped", self.store, self.seed)?;
        if passed + failed == 0 { write!(f, "; nothing was run, which shows nothing") } else { Ok(()) }
    }
}
