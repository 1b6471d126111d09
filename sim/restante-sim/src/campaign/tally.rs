//! The results of one scenario's seeds, added up in the order of the seeds whatever the order they arrive in.

use std::collections::BTreeMap;

use restante_engine::{Digest, FaultCounts, Marks};

use super::Counted;
use super::guard::{Divergence, HarnessError};
use crate::RunResult;

/// What running one seed came to.
#[derive(Debug)]
pub(super) enum SeedResult {
    Ran(Ran),
    Diverged(Box<Divergence>),
    Harness(Box<HarnessError>),
}

/// What is kept of a run.
#[derive(Debug)]
pub(super) struct Ran {
    digest: u128,
    events: u64,
    entries: u64,
    delivered: u64,
    sim_us: u64,
    marks: Marks,
    judged: Marks,
    operations: Marks,
    faults: FaultCounts,
    fingerprint: Option<String>,
}

impl From<RunResult> for Ran {
    fn from(run: RunResult) -> Self {
        Self {
            digest: run.digest,
            events: run.events,
            entries: run.entries,
            delivered: run.delivered,
            sim_us: run.sim_time.as_us(),
            marks: run.marks,
            judged: run.judged,
            operations: run.operations,
            faults: run.faults,
            fingerprint: run.violation.map(|violation| violation.fingerprint()),
        }
    }
}

/// A seed that violated a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedSeed {
    /// The seed.
    pub seed: u64,
    /// Fingerprint of its violation.
    pub fingerprint: String,
    /// Digest of its run.
    pub digest: u128,
}

/// The sums over a scenario's runs, merged in the order of the seeds.
#[derive(Debug)]
pub struct Tally {
    first_seed: u64,
    failures_max: u32,
    /// The property that a scenario with a planted bug is there to see violated; none when a bug was planted by hand.
    pub expected: Option<String>,
    /// Seeds that violated the expected property.
    pub expected_count: u64,
    pending: BTreeMap<u64, SeedResult>,
    chain: Digest,
    per_run: [Vec<u64>; 3],
    /// How many runs were merged, and so the index of the next.
    pub runs: u64,
    /// Nothing more is to be run.
    pub is_stopped: bool,
    /// Events of all runs.
    pub events: u64,
    /// Entries of all runs.
    pub entries: u64,
    /// Deliveries of all runs.
    pub delivered: u64,
    /// Simulated microseconds of all runs.
    pub sim_us: u64,
    /// Marks of all runs.
    pub marks: Marks,
    /// How often each property was judged in all runs.
    pub judged: Marks,
    /// Operations of all runs.
    pub operations: Marks,
    /// Faults of all runs.
    pub faults: FaultCounts,
    /// The seeds that violated a property.
    pub failed: Vec<FailedSeed>,
    /// A seed that did two different things.
    pub divergence: Option<Box<Divergence>>,
    /// A mistake of the simulator.
    pub harness_error: Option<Box<HarnessError>>,
}

impl Tally {
    pub(super) fn new(first_seed: u64, failures_max: u32, expected: Option<String>) -> Self {
        Self {
            first_seed,
            failures_max,
            expected,
            expected_count: 0,
            pending: BTreeMap::new(),
            chain: Digest::new(),
            per_run: Default::default(),
            runs: 0,
            is_stopped: false,
            events: 0,
            entries: 0,
            delivered: 0,
            sim_us: 0,
            marks: Marks::new(),
            judged: Marks::new(),
            operations: Marks::new(),
            faults: FaultCounts::new(),
            failed: Vec::new(),
            divergence: None,
            harness_error: None,
        }
    }

    /// Takes the result of the seed at `index`; what comes after the scenario was stopped does not count.
    pub(super) fn add(&mut self, index: u64, result: SeedResult) {
        self.pending.insert(index, result);
        while !self.is_stopped
            && let Some(result) = self.pending.remove(&self.runs)
        {
            let seed = self.first_seed.wrapping_add(self.runs);
            self.runs += 1;
            self.merge(seed, result);
        }
        if self.is_stopped {
            self.pending.clear();
        }
    }

    fn merge(&mut self, seed: u64, result: SeedResult) {
        let ran = match result {
            SeedResult::Ran(ran) => ran,
            SeedResult::Diverged(divergence) => {
                self.divergence = Some(divergence);
                self.is_stopped = true;
                return;
            }
            SeedResult::Harness(error) => {
                self.harness_error = Some(error);
                self.is_stopped = true;
                return;
            }
        };
        self.chain.u64(seed);
        self.chain.u64((ran.digest >> 64) as u64);
        self.chain.u64(ran.digest as u64);
        let faults = ran.faults.iter().map(|(_, count)| count.delivered).sum();
        for (values, value) in self.per_run.iter_mut().zip([ran.events, ran.entries, faults]) {
            values.push(value);
        }
        self.events += ran.events;
        self.entries += ran.entries;
        self.delivered += ran.delivered;
        self.sim_us = self.sim_us.saturating_add(ran.sim_us);
        self.marks.merge(&ran.marks);
        self.judged.merge(&ran.judged);
        self.operations.merge(&ran.operations);
        self.faults.merge(&ran.faults);
        let property = |fingerprint: &str| fingerprint.split(' ').next().map(str::to_owned);
        if self.expected.is_some() && ran.fingerprint.as_deref().and_then(property) == self.expected {
            self.expected_count += 1;
        } else if let Some(fingerprint) = ran.fingerprint {
            self.failed.push(FailedSeed { seed, fingerprint, digest: ran.digest });
            self.is_stopped = self.failed.len() as u64 >= u64::from(self.failures_max);
        }
    }

    /// Chain over the digests of the runs, in the order of the seeds.
    pub fn digest(&self) -> u128 {
        self.chain.value()
    }

    /// What was counted, for the vacuity report.
    pub fn counted(&self) -> Counted<'_> {
        Counted { faults: &self.faults, operations: &self.operations, judged: &self.judged, marks: &self.marks }
    }

    /// Medians per run: events, entries, delivered faults.
    pub fn medians(&self) -> [u64; 3] {
        self.per_run.clone().map(|mut values| {
            values.sort_unstable();
            values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use restante_engine::{FaultCounts, Marks};

    use super::{Ran, SeedResult, Tally};

    fn ran(index: u64, fails: bool) -> SeedResult {
        SeedResult::Ran(Ran {
            digest: u128::from(index) << 70,
            events: index,
            entries: 2 * index,
            delivered: 1,
            sim_us: 1,
            marks: Marks::new(),
            judged: Marks::new(),
            operations: Marks::new(),
            faults: FaultCounts::new(),
            fingerprint: fails.then(|| format!("broken at={index}")),
        })
    }

    #[test]
    fn the_order_of_arrival_does_not_count() {
        let tally = |order: &[u64], failing: &[u64]| {
            let mut tally = Tally::new(100, 2, None);
            order.iter().for_each(|index| tally.add(*index, ran(*index, failing.contains(index))));
            (tally.digest(), tally.runs, tally.medians(), tally.failed, tally.is_stopped)
        };
        let straight = tally(&[0, 1, 2, 3, 4, 5], &[]);
        assert_eq!(tally(&[3, 1, 0, 5, 4, 2], &[]), straight);
        assert_eq!((straight.1, straight.2), (6, [2, 4, 0]));
        let failing = tally(&[0, 1, 2, 3, 4, 5], &[1, 3, 4]);
        assert_eq!(tally(&[4, 5, 3, 2, 1, 0], &[1, 3, 4]), failing);
        assert_eq!((failing.1, failing.4), (4, true));
        assert_eq!(failing.3.iter().map(|failed| failed.seed).collect::<Vec<_>>(), [101, 103]);
    }
}
