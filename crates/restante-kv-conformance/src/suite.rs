//! All checks against one store.

use std::any::Any;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bed::Bed;
use crate::breach::breach;
use crate::report::{Failure, Outcome, Ran, Report};
use crate::subject::{OpenError, Subject};
use crate::{Check, Tier};

/// How checks are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Seed of everything random in the checks; 1 unless set. The prefix is not among it: that is always a fresh one.
    pub seed: u64,
    /// Size of the stress checks; 1 unless set, 0 for none of them.
    pub stress: u32,
    /// Whether a check leaves what it wrote; false unless set.
    pub keep: bool,
    /// How long any one answer, and any one race, may take; 60 seconds unless set.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, stress: 1, keep: false, patience: Duration::from_secs(60) }
    }
}

type Open = dyn Fn() -> Result<Subject, OpenError> + Send + Sync;

/// All checks against one kind of store.
///
/// Building: [`new`](Self::new), then [`seed`](Self::seed), [`stress`](Self::stress), [`keep`](Self::keep),
/// [`patience`](Self::patience), [`filter`](Self::filter). Running: [`run`](Self::run), [`run_each`](Self::run_each),
/// [`run_check`](Self::run_check), or `trials` in a test binary of its own.
#[derive(Clone)]
#[must_use = "call run()"]
pub struct Suite {
    name: String,
    open: Arc<Open>,
    options: Options,
    filter: Option<String>,
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, options, filter, .. } = self;
        f.debug_struct("Suite").field("name", name).field("options", options).field("filter", filter).finish_non_exhaustive()
    }
}

impl Suite {
    /// A suite for the store that `open` opens. It is called once a check; whether that gives a new store or the same one is
    /// its choice, because every check keeps to a random prefix of its own: it writes and deletes nothing outside.
    pub fn new<E: Display>(name: impl Into<String>, open: impl Fn() -> Result<Subject, E> + Send + Sync + 'static) -> Self {
        let open = move || open().map_err(OpenError::new);
        Self { name: name.into(), open: Arc::new(open), options: Options::default(), filter: None }
    }

    /// See [`Options::seed`].
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// See [`Options::stress`].
    pub fn stress(mut self, times: u32) -> Self {
        self.options.stress = times;
        self
    }

    /// See [`Options::keep`].
    pub fn keep(mut self, keep: bool) -> Self {
        self.options.keep = keep;
        self
    }

    /// See [`Options::patience`].
    pub fn patience(mut self, patience: Duration) -> Self {
        self.options.patience = patience;
        self
    }

    /// Only checks whose names contain this text.
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// Takes seed, stress and keep from the environment where it says something: `RESTANTE_CONFORMANCE_SEED`,
    /// `RESTANTE_CONFORMANCE_STRESS` (numbers) and `RESTANTE_CONFORMANCE_KEEP` (anything).
    ///
    /// # Panics
    /// When a number is none: a run with other options than those asked for would mislead.
    pub fn from_environment(mut self) -> Self {
        fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
            let text = std::env::var(name).ok()?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is not a number in its range")))
        }
        self.options.seed = number("RESTANTE_CONFORMANCE_SEED").unwrap_or(self.options.seed);
        self.options.stress = number("RESTANTE_CONFORMANCE_STRESS").unwrap_or(self.options.stress);
        self.options.keep |= std::env::var_os("RESTANTE_CONFORMANCE_KEEP").is_some();
        self
    }

    /// What the store is called in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The checks that will be run.
    pub fn chosen(&self) -> impl Iterator<Item = &'static Check> + '_ {
        let is_named = |check: &Check| self.filter.as_ref().is_none_or(|filter| check.name.contains(filter.as_str()));
        Check::all().filter(move |check| is_named(check) && (check.tier != Tier::Stress || self.options.stress > 0))
    }

    /// Runs all chosen checks, one after the other; a failure does not stop the others.
    pub fn run(&self) -> Report {
        self.run_each(|_| {})
    }

    /// Like [`run`](Self::run), and tells of each check when it ends.
    pub fn run_each(&self, mut tell: impl FnMut(&Ran)) -> Report {
        let mut report = Report { store: self.name.clone(), seed: self.options.seed, ran: Vec::new() };
        for check in self.chosen() {
            let ran = self.run_check(check);
            tell(&ran);
            report.ran.push(ran);
        }
        report
    }

    /// Runs one check.
    pub fn run_check(&self, check: &'static Check) -> Ran {
        let began = Instant::now();
        let mut prefix = String::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let bed = match (self.open)().and_then(|subject| Bed::new(subject, self.options)) {
                Ok(bed) => bed,
                Err(error) => return Outcome::NotOpened { error },
            };
            prefix = String::from_utf8_lossy(bed.prefix()).into_owned();
            if let Some(why) = check.skipped_for(&bed.limits()) {
                return Outcome::Skipped { why };
            }
            match (check.run)(&bed) {
                Ok(()) => Outcome::Passed,
                Err(breach) => Outcome::Failed(Failure { breach, protects: check.protects }),
            }
        }));
        let outcome = outcome.unwrap_or_else(|panic| {
            let breach = breach("no panic", format!("a panic: {}", message(&*panic)));
            Outcome::Failed(Failure { breach, protects: check.protects })
        });
        Ran { check, outcome, prefix, took: began.elapsed() }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
