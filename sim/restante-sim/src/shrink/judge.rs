//! Whether a candidate still fails in the same way.

use std::time::Instant;

use restante_engine::{Decider, Quantifier, Violation};

use super::ShrinkError;
use super::candidate::Candidate;
use super::counts::faults;
use crate::campaign::{map, run_guarded};
use crate::capsule::{Capsule, ReplayError};
use crate::scenario::swarm::{self, Taken};
use crate::scenario::{self, Scenario, ScenarioError};
use crate::{Mutant, PROPERTIES, RunOptions, RunResult};

/// A candidate that fails in the same way, with its recorded run.
#[derive(Debug)]
pub(super) struct Failing {
    pub(super) candidate: Candidate,
    pub(super) scenario: Scenario,
    pub(super) run: RunResult,
}

/// The failure that is wanted.
pub(super) struct Judge<'c> {
    capsule: &'c Capsule,
    mutant: Option<Mutant>,
    /// Whether the run violates nothing without its planted bug; never without one.
    pub(super) passes_without: bool,
    /// Whether the property is judged by bounds that the scenario gives.
    pub(super) is_eventual: bool,
    pub(super) jobs: usize,
    deadline: Option<Instant>,
    on_run: &'c (dyn Fn() + Sync),
}

impl<'c> Judge<'c> {
    pub(super) fn new(
        capsule: &'c Capsule,
        jobs: usize,
        deadline: Option<Instant>,
        on_run: &'c (dyn Fn() + Sync),
    ) -> Result<Self, ShrinkError> {
        let by_name = |name: &String| Mutant::by_name(name).ok_or_else(|| ReplayError::Mutant(name.clone()));
        let mutant = capsule.mutant.as_ref().map(by_name).transpose()?;
        let property = PROPERTIES.iter().find(|property| property.name == capsule.failure.property);
        let is_eventual = property.is_some_and(|property| property.quantifier == Quantifier::Eventually);
        let mut judge = Self { capsule, mutant, passes_without: false, is_eventual, jobs, deadline, on_run };
        let original = Candidate::of(capsule)?;
        let scenario = judge.scenario_of(&original)?;
        if mutant.is_some() || scenario.planted.is_some() {
            judge.passes_without = judge.violates_without(&original, scenario) == Some(false);
        }
        Ok(judge)
    }

    pub(super) fn scenario_of(&self, candidate: &Candidate) -> Result<Scenario, ScenarioError> {
        scenario::parse(&self.capsule.scenario, &candidate.text())
    }

    /// What the capsule's seed takes of a scenario that is a swarm.
    pub(super) fn taken(&self, scenario: &Scenario, candidate: &Candidate) -> Taken {
        swarm::take(scenario, &mut Decider::with_tape(self.capsule.seed, &candidate.tape()))
    }

    pub(super) fn options(&self, candidate: &Candidate, record: bool, trace: bool) -> RunOptions {
        RunOptions { tape: candidate.tape(), mutant: self.mutant, record, trace, ..RunOptions::default() }
    }

    pub(super) fn is_wanted(&self, run: &RunResult) -> bool {
        run.violation.as_ref().map(Violation::fingerprint).as_deref() == Some(&self.capsule.failure.fingerprint)
    }

    /// Whether the fingerprint names the send `A3`, or its entry `A3.0`.
    pub(super) fn names(&self, key: &str) -> bool {
        self.capsule.failure.fingerprint.split([' ', '=', '.', '/']).any(|word| word == key)
    }

    pub(super) fn is_time_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Of the candidates, the first that fails in the same way, and whose run `is_smaller`; with its place, and how many were
    /// tried up to it. The number of threads changes nothing but the time.
    pub(super) fn first(
        &self,
        count: usize,
        make: impl Fn(usize) -> Option<Candidate> + Sync,
        is_smaller: impl Fn(&Failing) -> bool + Sync,
    ) -> Search {
        let mut tried = 0;
        while tried < count {
            if self.is_time_over() {
                return Search { tried, found: None, is_over: true };
            }
            let batch = self.jobs.min(count - tried);
            let results = map(self.jobs.min(batch), batch as u64, |index| {
                let failing = make(tried + index as usize).and_then(|candidate| self.failing(candidate));
                (self.on_run)();
                failing.filter(&is_smaller)
            });
            if let Some((index, Some(failing))) = results.into_iter().enumerate().find(|(_, failing)| failing.is_some()) {
                let place = tried + index;
                return Search { tried: place + 1, found: Some((place, failing)), is_over: false };
            }
            tried += batch;
        }
        Search { tried, found: None, is_over: false }
    }

    /// What the candidate does, recorded, whether it fails or not.
    pub(super) fn recorded(&self, candidate: &Candidate) -> Option<RunResult> {
        let scenario = self.scenario_of(candidate).ok()?;
        run_guarded(&scenario, self.capsule.seed, &self.options(candidate, true, false)).ok()
    }

    /// The candidate, if it fails in the same way. A candidate that is no scenario, or one for which the simulator has no answer,
    /// does not.
    fn failing(&self, candidate: Candidate) -> Option<Failing> {
        let scenario = self.scenario_of(&candidate).ok()?;
        let run = run_guarded(&scenario, self.capsule.seed, &self.options(&candidate, false, false)).ok()?;
        if !self.is_wanted(&run) {
            return None;
        }
        if self.passes_without && self.violates_without(&candidate, scenario.clone()) != Some(false) {
            return None;
        }
        let run = run_guarded(&scenario, self.capsule.seed, &self.options(&candidate, true, false)).ok()?;
        self.is_wanted(&run).then_some(Failing { candidate, scenario, run })
    }

    /// Whether the candidate violates anything without the planted bug; nothing when that cannot be told.
    fn violates_without(&self, candidate: &Candidate, mut scenario: Scenario) -> Option<bool> {
        scenario.planted = None;
        let options = RunOptions { mutant: None, ..self.options(candidate, false, false) };
        let run = run_guarded(&scenario, self.capsule.seed, &options).ok()?;
        Some(run.violation.is_some())
    }
}

/// What a search among candidates came to.
pub(super) struct Search {
    pub(super) tried: usize,
    pub(super) found: Option<(usize, Failing)>,
    pub(super) is_over: bool,
}

impl Failing {
    pub(super) fn faults_count(&self) -> usize {
        faults(&self.run).count()
    }

    /// Whether the run could be recorded. A panic takes its record with it.
    pub(super) fn is_recorded(&self) -> bool {
        !self.run.log.is_empty()
    }
}
