//! A way out of local minima: the failure put together anew from very few faults.
//!
//! A violation that comes late hangs on everything before it. Whatever fault is left out, all that follows happens at another
//! time, and the violation is gone; so nothing can be left out one by one. But what it is made of is mostly little: the same
//! bug can be met early, at the same send, by one fault or two. So, where the passes find nothing more, they are looked for
//! directly: nothing goes wrong but one fault at one of the decisions about the send that the violation names, or two.

use restante_engine::TapeEntry;

use super::candidate::Candidate;
use super::counts::{SKIP, asked, faults, is_send};
use super::judge::Failing;
use super::passes::{Shrinker, calmed, leaving_out};
use crate::RunResult;
use crate::scenario::{Ms, Scenario};
use crate::world::fault_alternatives;

/// Most runs with one fault, of each set of sends.
const ONES_MAX: usize = 400;
/// Most runs with two faults, of each set of sends.
const TWOS_MAX: usize = 1_500;

impl Shrinker<'_> {
    /// Looks for one fault or two that make the failure by themselves; whether that was smaller.
    pub(super) fn rebuild(&mut self) -> bool {
        if !self.current.is_recorded() || self.current.faults_count() <= 1 {
            return false;
        }
        let fired: Vec<TapeEntry> = faults(&self.current.run).cloned().collect();
        let calm = calmed(&self.current.candidate, &fired, "ok");
        let others: Vec<String> = asked(&self.current.run).into_iter().filter(|key| !self.judge.names(key)).collect();
        // By itself; among the other sends; and with operators' acts and incidents too.
        let bases = [leaving_out(&calm, &others), leaving_out(&calm, &others_but_sends(&others)), calm];
        (0..bases.len()).any(|index| !bases[..index].contains(&bases[index]) && self.rebuild_on(&bases[index]))
    }

    /// The same on one set of sends, from a run in which nothing goes wrong.
    fn rebuild_on(&mut self, base: &Candidate) -> bool {
        let Some(run) = self.judge.recorded(base) else { return false };
        let ones: Vec<Candidate> = self.faults_at(base, &run, None).into_iter().take(ONES_MAX).collect();
        // Perhaps nothing has to go wrong at all.
        let first: Vec<Candidate> = [base.clone()].into_iter().chain(ones).collect();
        if self.smaller_of(&first) {
            return true;
        }
        if self.current.faults_count() <= 2 || self.is_over {
            return false;
        }
        let mut twos = Vec::new();
        for one in &first[1..] {
            let Some(run) = self.judge.recorded(one) else { continue };
            twos.extend(self.faults_at(one, &run, faults(&run).last()));
            if twos.len() >= TWOS_MAX {
                twos.truncate(TWOS_MAX);
                break;
            }
        }
        self.smaller_of(&twos)
    }

    fn smaller_of(&mut self, candidates: &[Candidate]) -> bool {
        let faults_count = self.current.faults_count();
        let make = |index: usize| Some(candidates[index].clone());
        self.first(candidates.len(), make, |failing: &Failing| failing.faults_count() < faults_count).is_some()
    }

    /// The candidate with one fault more, for each that is possible at a decision about what the violation names; only at
    /// decisions after `last`.
    fn faults_at(&self, candidate: &Candidate, run: &RunResult, last: Option<&TapeEntry>) -> Vec<Candidate> {
        let Ok(scenario) = self.judge.scenario_of(candidate) else { return Vec::new() };
        let mut found = Vec::new();
        let after = |entry: &TapeEntry| last.is_some_and(|last| last.site == entry.site && last.key == entry.key);
        let entries: Vec<TapeEntry> = run.log.entries().collect();
        let from = entries.iter().position(after).map_or(0, |place| place + 1);
        for entry in &entries[from..] {
            if entry.choice != "ok" || entry.site == SKIP || !self.is_about(&entry.key) {
                continue;
            }
            for choice in fault_alternatives(&scenario.faults, &entry.site) {
                let fault = TapeEntry { choice: choice.to_owned(), ..entry.clone() };
                found.extend(with_lengths(candidate, &scenario, &fault));
            }
        }
        found
    }

    /// Whether a decision is about the send that the violation names, or one of its entries.
    fn is_about(&self, key: &str) -> bool {
        key.split([' ', '.', '/']).any(|word| is_send(word) && self.judge.names(word))
    }
}

/// What is no send: acts of operators and incidents.
fn others_but_sends(others: &[String]) -> Vec<String> {
    others.iter().filter(|key| !is_send(key)).cloned().collect()
}

/// The candidate with the fault as the seed has it; a pause also as long as it can be, and just as long as a lease.
fn with_lengths(candidate: &Candidate, scenario: &Scenario, fault: &TapeEntry) -> Vec<Candidate> {
    let with_fault = candidate.clone().overriding(fault.clone());
    match scenario.faults.process.pause_length {
        Some(length) if fault.choice.starts_with("process.pause") => {
            let lengths = [length.max, scenario.config.lease].into_iter().filter(|ms| length.min <= *ms && *ms <= length.max);
            let pin = |ms: Ms| TapeEntry { site: "pause.length".into(), choice: ms.0.to_string(), ..fault.clone() };
            let pinned = lengths.map(|ms| with_fault.clone().overriding(pin(ms)));
            [with_fault.clone()].into_iter().chain(pinned).collect()
        }
        _ => vec![with_fault],
    }
}
