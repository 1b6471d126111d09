//! The passes: each makes one kind of thing smaller.

use std::collections::BTreeSet;

use restante_engine::TapeEntry;

use super::ShrinkError;
use super::candidate::Candidate;
use super::counts::{SKIP, asked, faults};
use super::judge::{Failing, Judge};
use super::settings::{
    ACTORS, HEAL_AT, INCIDENTS, LENGTHS_MAX, LOAD, SETTLE_WITHIN, SHARES, SPANS, Setting, always_text, is_chance, is_count,
    is_family, is_helper, ms_text, shorter, smaller,
};
use crate::RunResult;
use crate::scenario::{Ms, Schedule, Share};

/// The least chance above none: a seed practically never takes it, a tape can.
pub(super) const ARMED: &str = "0.0001%";

/// Of at most so many sends and operations, every two are tried to be left out together.
const TOGETHER_MAX: usize = 24;

/// A failing candidate on its way down.
pub(super) struct Shrinker<'c> {
    pub(super) judge: Judge<'c>,
    pub(super) current: Failing,
    pub(super) candidates: u64,
    pub(super) accepted: u64,
    pub(super) is_over: bool,
}

impl<'c> Shrinker<'c> {
    pub(super) fn new(judge: Judge<'c>, candidate: Candidate, run: RunResult) -> Result<Self, ShrinkError> {
        let scenario = judge.scenario_of(&candidate)?;
        Ok(Self { judge, current: Failing { candidate, scenario, run }, candidates: 0, accepted: 0, is_over: false })
    }

    /// All passes, until none finds anything or the time is over.
    pub(super) fn shrink(&mut self) {
        self.write_out();
        self.pin_faults();
        loop {
            let before = self.current.candidate.clone();
            self.try_each("world", "schedule", &[Schedule::Timed.name().into()]);
            self.switch_off_families();
            self.calm_faults();
            self.lower(&INCIDENTS);
            self.lower(&LOAD);
            self.leave_out();
            self.lower(&ACTORS);
            self.shorten();
            self.even_out_shares();
            self.forget_settings();
            self.calm_load();
            self.unpin();
            self.tidy_tape();
            if self.current.candidate == before && !self.is_over && !self.rebuild() {
                // The last resort: it is slow, and what it finds early may be in the way of more.
                self.leave_out_together();
            }
            if self.is_over || self.current.candidate == before {
                break;
            }
        }
        self.forget_idle_settings();
        self.forget_defaults();
    }

    /// Of a swarm, writes down what the seed took: from then on it is a scenario like any other.
    fn write_out(&mut self) {
        if self.current.scenario.swarm.is_some() {
            let taken = self.judge.taken(&self.current.scenario, &self.current.candidate);
            let written = self.current.candidate.clone().with_taken(&taken.edits);
            self.first(1, |_| Some(written.clone()), |_| true);
        }
    }

    // Faults.

    /// Says on the tape which faults happened, and lowers every chance of one.
    fn pin_faults(&mut self) {
        if !self.current.is_recorded() {
            return;
        }
        let mut pinned = self.current.candidate.clone();
        for (section, key, _) in pinned.settings() {
            if is_chance(&section, &key) {
                pinned = pinned.with(&section, &key, ARMED);
            }
        }
        for fault in faults(&self.current.run) {
            pinned = pinned.overriding(fault.clone());
        }
        self.first(1, |_| Some(pinned.clone()), |_| true);
        self.tidy_tape();
    }

    fn switch_off_families(&mut self) {
        let settings = self.current.candidate.settings().into_iter();
        let families = settings.filter(|(section, key, _)| is_family(section, key)).map(|(section, key, _)| (section, key));
        self.do_without(families.collect());
    }

    fn calm_faults(&mut self) {
        let faults = faults(&self.current.run).cloned().collect();
        let fired = |failing: &Failing| failing.faults_count();
        self.reduce(faults, |candidate, faults| calmed(candidate, faults, "ok"), fired);
    }

    // Load.

    /// Leaves out sends, acts of operators and incidents.
    fn leave_out(&mut self) {
        let keys = if self.current.is_recorded() { asked(&self.current.run) } else { self.keys_after_panic() };
        // Without a record there is nothing to count; every entry more on the tape is progress.
        let left = |failing: &Failing| match failing.is_recorded() {
            true => asked(&failing.run).len(),
            false => usize::MAX - failing.candidate.tape().len(),
        };
        self.reduce(keys, leaving_out, left);
    }

    /// What cannot go one by one may go together: all but those that the violation names and one more, or any two. (A lane, for
    /// one, may fail at every second send.)
    fn leave_out_together(&mut self) {
        if !self.current.is_recorded() {
            return;
        }
        let left = |failing: &Failing| asked(&failing.run).len();
        loop {
            let (current, keys) = (self.current.candidate.clone(), asked(&self.current.run));
            if keys.len() <= 2 || keys.len() > TOGETHER_MAX {
                return;
            }
            let others: Vec<&String> = keys.iter().filter(|key| !self.judge.names(key)).collect();
            let all_but = |one: &String| others.iter().copied().filter(|key| *key != one).cloned().collect::<Vec<_>>();
            let two =
                |(place, one): (usize, &String)| keys[place + 1..].iter().map(|other| vec![one.clone(), other.clone()]).collect();
            let pairs = keys.iter().enumerate().flat_map(|pair| -> Vec<Vec<String>> { two(pair) });
            let sets: Vec<Vec<String>> = others.iter().map(|one| all_but(one)).chain(pairs).collect();
            let make = |index: usize| Some(leaving_out(&current, &sets[index]));
            if self.first(sets.len(), make, |failing| left(failing) < keys.len()).is_none() {
                return;
            }
        }
    }

    /// What may have been asked for: all that the scenario has and the tape does not leave out yet.
    fn keys_after_panic(&self) -> Vec<String> {
        let load = &self.current.scenario.workload;
        let producers = (0..load.producers as u8).map(|producer| char::from(b'A' + producer));
        let sends = producers.flat_map(|producer| (1..=load.sends_count).map(move |number| format!("{producer}{number}")));
        let depths = (0..load.depths_count).map(|number| format!("depth {number}"));
        let wakes = (0..load.wakes_count).map(|number| format!("wake-some {number}"));
        let holds = (0..load.holds_count * 4).map(|number| format!("set-hold {number}"));
        let tape = self.current.candidate.tape();
        let is_left_out = |key: &String| tape.entries.iter().any(|entry| entry.site == SKIP && entry.key == *key);
        sends.chain(depths).chain(wakes).chain(holds).filter(|key| !is_left_out(key)).collect()
    }

    fn calm_load(&mut self) {
        let is_load = |entry: &&TapeEntry| entry.site.starts_with("load.") && entry.site != SKIP;
        let fired = move |failing: &Failing| failing.run.log.fired().iter().filter(is_load).count();
        let entries = self.current.run.log.fired().iter().filter(is_load).cloned().collect();
        self.reduce(entries, |candidate, entries| calmed(candidate, entries, "no"), fired);
    }

    /// Takes quantities off the tape that it says.
    fn unpin(&mut self) {
        let is_quantity = |entry: &&TapeEntry| entry.choice.parse::<u64>().is_ok();
        let pins: Vec<TapeEntry> = self.current.candidate.tape().entries.iter().filter(is_quantity).cloned().collect();
        let without = |candidate: &Candidate, pins: &[TapeEntry]| {
            let pins: Vec<&TapeEntry> = pins.iter().collect();
            candidate.clone().without_entries(&pins)
        };
        self.reduce(pins, without, |failing| failing.candidate.tape().len());
    }

    // Numbers.

    fn lower(&mut self, settings: &[(Setting<u64>, u64)]) {
        for (setting, least) in settings {
            self.try_values(setting, |value| smaller(value, *least), |value| toml::Value::Integer(value as i64));
        }
    }

    fn shorten(&mut self) {
        self.try_values(&HEAL_AT, shorter, |ms| ms_text(ms).into());
        let is_given = self.current.candidate.has(SETTLE_WITHIN.section, SETTLE_WITHIN.key);
        // When a planted bug is seen by the bound, the run without it shows whether a shorter one is fair.
        let may_be_shorter = if self.judge.is_eventual { self.judge.passes_without } else { is_given };
        if may_be_shorter {
            self.try_values(&SETTLE_WITHIN, shorter, |ms| ms_text(ms).into());
        }
        for (setting, site) in &SPANS {
            let Some(span) = (setting.of)(&self.current.scenario).filter(|span| span.min < span.max) else { continue };
            // Always the least, the greatest, or one that it had.
            let had = self.current.run.log.entries().filter(|entry| entry.site == *site);
            let had: BTreeSet<u64> = had.filter_map(|entry| entry.choice.parse().ok()).collect();
            let lengths = [span.min, span.max].into_iter().chain(had.into_iter().take(LENGTHS_MAX).map(Ms));
            self.try_each(setting.section, setting.key, &lengths.map(|ms| always_text(ms).into()).collect::<Vec<_>>());
        }
        let gap = self.current.scenario.workload.gap;
        if gap.max > Ms(1) {
            self.try_each("workload", "gap", &[always_text(Ms(1)).into()]);
        }
    }

    fn even_out_shares(&mut self) {
        for setting in &SHARES {
            let values: &[_] = match (setting.of)(&self.current.scenario) {
                Share(0) => &[],
                Share(1_000_000) => &["0%"],
                Share(_) => &["0%", "100%"],
            };
            self.try_each(setting.section, setting.key, &values.iter().map(|value| (*value).into()).collect::<Vec<_>>());
        }
    }

    /// Tries smaller values of a setting, again and again.
    fn try_values<T: Copy + Sync>(
        &mut self,
        setting: &Setting<T>,
        smaller: impl Fn(T) -> Vec<T>,
        value: impl Fn(T) -> toml::Value,
    ) {
        loop {
            let values: Vec<_> = smaller((setting.of)(&self.current.scenario)).into_iter().map(&value).collect();
            if !self.try_each(setting.section, setting.key, &values) {
                return;
            }
        }
    }

    /// Tries these values of a setting; whether one was good.
    fn try_each(&mut self, section: &str, key: &str, values: &[toml::Value]) -> bool {
        let current = self.current.candidate.clone();
        let make = |index: usize| Some(current.clone().with(section, key, values[index].clone()));
        self.first(values.len(), make, |_| true).is_some()
    }

    // Text.

    /// Whether the settings are bounds that the property is judged by, and nothing shows what bounds would be fair.
    fn is_bound(&self) -> bool {
        self.judge.is_eventual && !self.judge.passes_without
    }

    /// Takes settings back to their defaults, and those away that nothing needs any more.
    fn forget_settings(&mut self) {
        let is_bound = self.is_bound();
        let settings = self.current.candidate.settings().into_iter().map(|(section, key, _)| (section, key));
        let is_free = |(section, key): &(String, String)| is_helper(section, key) || (section == "config" && !is_bound);
        self.do_without(settings.filter(is_free).collect());
    }

    fn do_without(&mut self, settings: Vec<(String, String)>) {
        self.reduce(settings, without_settings, |failing| failing.candidate.settings().len());
    }

    /// Takes the entries off the tape that do nothing.
    fn tidy_tape(&mut self) {
        if !self.current.is_recorded() {
            return;
        }
        let log = &self.current.run.log;
        let useless = [log.unused_overrides(), log.unknown_overrides()].concat();
        if !useless.is_empty() {
            let tidied = self.current.candidate.clone().without_entries(&useless);
            self.first(1, |_| Some(tidied.clone()), |_| true);
        }
    }

    /// Removes the settings without which the run is the same in everything; but none that says how much there is.
    fn forget_idle_settings(&mut self) {
        if !self.current.is_recorded() {
            return;
        }
        let settings = self.current.candidate.settings().into_iter().map(|(section, key, _)| (section, key));
        let is_bound = self.is_bound();
        let is_kept = |(section, key): &(String, String)| {
            is_count(section, key) || section == "expect" || (section == "config" && is_bound)
        };
        let digest = self.current.run.digest;
        let size = |failing: &Failing| match failing.run.digest == digest {
            true => failing.candidate.settings().len(),
            false => usize::MAX,
        };
        self.reduce(settings.filter(|setting| !is_kept(setting)).collect(), without_settings, size);
    }

    /// Removes the settings that say what holds anyway, and brings the tape in order.
    fn forget_defaults(&mut self) {
        let mut plain = self.current.candidate.clone().sorted();
        for (section, key, _) in plain.settings() {
            let without = plain.clone().without(&section, &key);
            if self.judge.scenario_of(&without).is_ok_and(|scenario| scenario == self.current.scenario) {
                plain = without;
            }
        }
        self.first(1, |_| Some(plain.clone()), |_| true);
    }

    // What the passes are made of.

    /// Does without as many `items` as it can: all, then halves, then quarters, down to single ones. `size` of the run has to
    /// fall with each step.
    fn reduce<T: Sync>(
        &mut self,
        mut items: Vec<T>,
        without: impl Fn(&Candidate, &[T]) -> Candidate + Sync,
        size: impl Fn(&Failing) -> usize + Sync,
    ) {
        let mut length = items.len();
        while length > 0 {
            let mut from = 0;
            while from < items.len() && !self.is_over {
                let (candidate, size_now) = (self.current.candidate.clone(), size(&self.current));
                let chunks: Vec<&[T]> = items[from..].chunks(length).collect();
                let make = |index: usize| Some(without(&candidate, chunks[index]));
                let Some(index) = self.first(chunks.len(), make, |failing| size(failing) < size_now) else { break };
                from += index * length;
                items.drain(from..(from + length).min(items.len()));
            }
            length = if length == 1 { 0 } else { length.div_ceil(2) };
        }
    }

    /// Goes on with the first candidate that fails in the same way and is smaller, if there is one; returns its place. One that
    /// has more faults is not smaller.
    pub(super) fn first(
        &mut self,
        count: usize,
        make: impl Fn(usize) -> Option<Candidate> + Sync,
        is_smaller: impl Fn(&Failing) -> bool + Sync,
    ) -> Option<usize> {
        let (current, faults_count) = (&self.current.candidate, self.current.faults_count());
        let search = self.judge.first(
            count,
            |index| make(index).filter(|candidate| candidate != current),
            |failing| failing.faults_count() <= faults_count && is_smaller(failing),
        );
        self.candidates += search.tried as u64;
        self.is_over |= search.is_over;
        let (place, failing) = search.found?;
        self.accepted += 1;
        self.current = failing;
        Some(place)
    }
}

pub(super) fn leaving_out(candidate: &Candidate, keys: &[String]) -> Candidate {
    let skip = |key: &String| TapeEntry { site: SKIP.into(), key: key.clone(), choice: "skip".into() };
    keys.iter().fold(candidate.clone(), |candidate, key| candidate.overriding(skip(key)))
}

fn without_settings(candidate: &Candidate, settings: &[(String, String)]) -> Candidate {
    settings.iter().fold(candidate.clone(), |candidate, (section, key)| candidate.without(section, key))
}

pub(super) fn calmed(candidate: &Candidate, entries: &[TapeEntry], benign: &str) -> Candidate {
    entries.iter().fold(candidate.clone(), |candidate, entry| candidate.calming(entry, benign))
}
