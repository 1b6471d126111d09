//! What seeds are run of: a scenario of the backlog, or the keyed queue's own workload.

use restante_engine::Tape;

use super::guard::{HarnessError, guarded};
use super::keyed::{self as keyed_world, KEYED};
use super::{Planted, Simulated, Target};
use crate::{RunOptions, RunResult, World, keyed};

/// What seeds are run of.
#[derive(Clone, PartialEq, Debug)]
pub enum Workload {
    /// A scenario of the backlog.
    Backlog(Box<Target>),
    /// The workload of the keyed queue.
    Keyed,
}

/// How to run a seed of a workload.
#[derive(Clone, Debug, Default)]
pub struct SeedOptions {
    /// Overrides of single decisions.
    pub tape: Tape,
    /// A planted bug; it has to be one of the workload's world.
    pub planted: Option<Planted>,
    /// Keep the trace.
    pub trace: bool,
    /// Keep the log of decisions.
    pub record: bool,
}

impl From<Target> for Workload {
    fn from(target: Target) -> Self {
        Self::Backlog(Box::new(target))
    }
}

impl From<&Target> for Workload {
    fn from(target: &Target) -> Self {
        target.clone().into()
    }
}

impl From<&Workload> for Workload {
    fn from(workload: &Workload) -> Self {
        workload.clone()
    }
}

impl Workload {
    /// What the user calls it: a name or a path.
    pub fn source(&self) -> &str {
        match self {
            Self::Backlog(target) => &target.source,
            Self::Keyed => KEYED,
        }
    }

    /// Its name in capsules.
    pub fn name(&self) -> &str {
        match self {
            Self::Backlog(target) => &target.scenario.name,
            Self::Keyed => KEYED,
        }
    }

    /// Its text in capsules. The keyed queue's workload follows from the seed alone.
    pub fn text(&self) -> &str {
        match self {
            Self::Backlog(target) => &target.text,
            Self::Keyed => "",
        }
    }

    /// The world that it runs in.
    pub const fn simulated(&self) -> Simulated {
        match self {
            Self::Backlog(_) => Simulated::Backlog,
            Self::Keyed => Simulated::Keyed,
        }
    }

    /// The planted bug that it has of its own.
    pub fn planted(&self) -> Option<&str> {
        match self {
            Self::Backlog(target) => target.scenario.planted.as_deref(),
            Self::Keyed => None,
        }
    }

    /// The property that its own planted bug is to violate.
    pub fn expected(&self) -> Option<&str> {
        match self {
            Self::Backlog(target) => target.scenario.expect.violation.as_deref(),
            Self::Keyed => None,
        }
    }

    /// Runs `seed`. A panic is a violation of `does-not-panic`; what the run had counted and traced until then is lost.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] when the simulator notices a mistake of its own.
    ///
    /// # Panics
    ///
    /// If the planted bug is one of the other world.
    pub fn run(&self, seed: u64, options: &SeedOptions) -> Result<RunResult, HarnessError> {
        let SeedOptions { tape, planted, trace, record } = options.clone();
        if let Some(planted) = planted {
            assert_eq!(planted.simulated(), self.simulated(), "{} is planted in a world that it is not for", planted.name());
        }
        let mutant = planted.and_then(Planted::of_backlog);
        let options = RunOptions { tape, mutant, trace, record, ..RunOptions::default() };
        guarded(self.name(), seed, &options, || match self {
            Self::Backlog(target) => World::run(&target.scenario, seed, &options),
            Self::Keyed => {
                let mutant = planted.and_then(Planted::of_keyed);
                keyed_world::run(seed, &keyed::RunOptions { tape: options.tape.clone(), mutant, trace, record })
            }
        })
    }
}
