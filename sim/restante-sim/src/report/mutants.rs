//! The report of `mutants`.

use restante_sim::campaign::{Hunt, InGeneral, Planted, Simulated, Verdict};
use serde::Serialize;

use super::table;

/// `restante-sim/mutants/1`.
#[derive(Debug, Serialize)]
pub(crate) struct MutantsReport {
    schema: &'static str,
    pub(crate) verdict: Verdict,
    exit_code: u8,
    caught: usize,
    general: GeneralReport,
    mutants: Vec<MutantReport>,
}

/// What the scenarios noticed that were written for no planted bug.
#[derive(Debug, Serialize)]
struct GeneralReport {
    scenarios: Vec<&'static str>,
    seeds_max: u64,
    /// How many planted bugs of the backlog were looked for: the keyed queue has no workload but its own.
    of: usize,
    /// In how many planted bugs anything was violated, in a seed that passes without the bug.
    caught: usize,
    /// How many that must be; none when only some of the planted bugs were looked for.
    needed: Option<usize>,
}

/// One planted bug.
#[derive(Debug, Serialize)]
pub(crate) struct MutantReport {
    name: &'static str,
    world: Simulated,
    scenario: &'static str,
    property: &'static str,
    sentence: &'static str,
    verdict: Verdict,
    /// What was found; none when it could not be looked for.
    hunt: Option<Hunt>,
    /// Why it could not be looked for.
    error: Option<String>,
    /// What the general workloads noticed; none if nothing.
    in_general: Option<InGeneral>,
    /// What exploration found; none where no bound has what the bug needs.
    explored: Option<Explored>,
    /// Why no bound has it.
    beyond: Option<&'static str>,
}

/// What exploring a bound with a planted bug came to.
#[derive(Debug, Serialize)]
pub(crate) struct Explored {
    pub(crate) bound: String,
    /// Canonical states visited until it was found.
    pub(crate) states: u64,
    /// Moves of the schedule that leads to it.
    pub(crate) moves: Option<usize>,
    /// The property that found it.
    pub(crate) property: Option<&'static str>,
}

impl MutantReport {
    pub(crate) fn new(planted: Planted, hunt: Hunt, in_general: Option<InGeneral>, explored: Option<Explored>) -> Self {
        let is_missed = explored.as_ref().is_some_and(|explored| explored.property.is_none());
        let verdict = if is_missed { Verdict::Violated } else { hunt.verdict() };
        Self { verdict, hunt: Some(hunt), error: None, in_general, explored, ..Self::failed(planted, String::new()) }
    }

    /// Of a planted bug that could not be looked for.
    pub(crate) fn failed(planted: Planted, error: String) -> Self {
        Self {
            name: planted.name(),
            world: planted.simulated(),
            scenario: planted.workload(),
            property: planted.property(),
            sentence: planted.sentence(),
            verdict: Verdict::Harness,
            hunt: None,
            error: Some(error),
            in_general: None,
            explored: None,
            beyond: planted.of_backlog().and_then(|mutant| mutant.bound().err()),
        }
    }

    /// Whether a general workload noticed it.
    fn is_caught_in_general(&self) -> bool {
        self.in_general.as_ref().is_some_and(|found| found.passes_without)
    }

    /// One line, for a log.
    pub(crate) fn line(&self) -> String {
        let found = match (&self.error, &self.hunt) {
            (Some(error), _) => error.clone(),
            (None, Some(Hunt { caught_at_seed: Some(seed), .. })) => format!("caught by {} in seed {seed}", self.property),
            _ => format!("not caught by {}", self.property),
        };
        format!("{}: {found}", self.name)
    }

    fn row(&self) -> Vec<String> {
        let Some(hunt) = &self.hunt else { return [self.name, self.property, "error"].map(str::to_owned).to_vec() };
        let hits = hunt.hits.get(self.property).copied().unwrap_or(0);
        let all_hits: u64 = hunt.hits.values().sum();
        let without = match hunt.passes_without {
            Some(true) => "passes",
            Some(false) => "FAILS TOO",
            None => "-",
        };
        let mut row = vec![
            self.name.to_owned(),
            self.property.to_owned(),
            hunt.caught_at_seed.map_or("NOT CAUGHT".to_owned(), |seed| seed.to_string()),
            percent(hits, hunt.rated_runs),
            percent(all_hits, hunt.rated_runs),
            without.to_owned(),
            self.scenario.to_owned(),
        ];
        // The keyed queue has one workload, which was written for no planted bug.
        if self.world == Simulated::Backlog {
            row.push(match &self.in_general {
                Some(InGeneral { passes_without: false, seed, .. }) => format!("seed {seed} FAILS WITHOUT IT TOO"),
                Some(InGeneral { scenario, seed, is_own: true, .. }) => format!("{} {seed}", short(scenario)),
                Some(InGeneral { scenario, seed, property, .. }) => format!("{} {seed}: {property}", short(scenario)),
                None => "not found".to_owned(),
            });
        }
        row.push(match &self.explored {
            Some(Explored { bound, moves: Some(moves), states, .. }) => format!("{bound}: {moves} moves, {states} states"),
            Some(Explored { bound, .. }) => format!("{bound}: NOT FOUND"),
            None => "-".to_owned(),
        });
        row
    }

    /// What is wrong with it, if anything.
    fn trouble(&self) -> Option<String> {
        if let Some(error) = &self.error {
            return Some(format!("{}: {error}", self.name));
        }
        if let Some(Explored { bound, property: None, .. }) = &self.explored {
            return Some(format!("{}: exploring {bound} did not find it", self.name));
        }
        let hunt = self.hunt.as_ref()?;
        let seeds = hunt.seeds_max;
        match (hunt.caught_at_seed, hunt.first_violated, hunt.first_violation_at_seed) {
            (Some(seed), ..) if hunt.passes_without == Some(false) => {
                Some(format!("{}: seed {seed} of {} fails without it too, so it proves nothing", self.name, self.scenario))
            }
            (Some(_), ..) => None,
            (None, Some(other), Some(seed)) => Some(format!(
                "{}: in {seeds} seeds never caught by {}; {other} caught it first, in seed {seed}",
                self.name, self.property
            )),
            (None, ..) => Some(format!("{}: never caught in {seeds} seeds", self.name)),
        }
    }
}

impl MutantsReport {
    /// `is_whole` if all planted bugs were looked for: general workloads must then catch two thirds of them.
    pub(crate) fn new(mutants: Vec<MutantReport>, scenarios: Vec<&'static str>, seeds_max: u64, is_whole: bool) -> Self {
        let caught = mutants.iter().filter(|mutant| mutant.verdict == Verdict::Pass).count();
        let of_backlog = mutants.iter().filter(|mutant| mutant.world == Simulated::Backlog);
        let (of, in_general) = (of_backlog.clone().count(), of_backlog.filter(|mutant| mutant.is_caught_in_general()).count());
        let needed = is_whole.then(|| (of * 2).div_ceil(3));
        let general = GeneralReport { scenarios, seeds_max, of, caught: in_general, needed };
        let of_general = if general.is_enough() { Verdict::Pass } else { Verdict::Violated };
        let verdict: Verdict = mutants.iter().map(|mutant| mutant.verdict).chain([of_general]).collect();
        Self { schema: "restante-sim/mutants/1", verdict, exit_code: verdict.code(), caught, general, mutants }
    }

    /// The report for a person.
    pub(crate) fn text(&self) -> String {
        let mut text: String = Simulated::ALL.into_iter().filter_map(|world| self.table_of(world)).collect();
        let rated = self.mutants.iter().filter_map(|mutant| mutant.hunt.as_ref()).map(|hunt| hunt.rated_runs).max().unwrap_or(0);
        text += &format!("(hits: share of the first {rated} seeds that violate its property; any: that violate any");
        if self.general.of > 0 {
            text += ";\n in general: first seed of a workload that was not written for it, and the property if it is another";
        }
        text += ")\n\n";
        for (name, why) in self.mutants.iter().filter_map(|mutant| Some((mutant.name, mutant.beyond?))) {
            text += &format!("not explored: {name}: {why}\n");
        }
        text.push('\n');
        for trouble in self.mutants.iter().filter_map(MutantReport::trouble) {
            text += &format!("{trouble}\n");
        }
        text += &format!("{} of {} planted bugs were caught by their own property\n", self.caught, self.mutants.len());
        text += &self.general.text();
        let meaning = match self.verdict {
            Verdict::Violated if self.general.is_enough() => "a planted bug was not caught",
            Verdict::Violated => "too few planted bugs were caught",
            verdict => verdict.meaning(),
        };
        text += &format!("verdict: {meaning} (exit code {})\n", self.verdict.code());
        text
    }
}

impl MutantsReport {
    /// The planted bugs of one world; none if none was looked for.
    fn table_of(&self, world: Simulated) -> Option<String> {
        let mut header = vec!["planted bug", "property", "seeds until caught", "hits", "any", "without it", "scenario"];
        if world == Simulated::Backlog {
            header.push("in general");
        }
        header.push("explored");
        let mutants = || self.mutants.iter().filter(|mutant| mutant.world == world);
        mutants().next()?;
        let header = header.into_iter().map(str::to_owned).collect();
        let rows: Vec<_> = [header].into_iter().chain(mutants().map(MutantReport::row)).collect();
        Some(table(&rows, &[2, 3, 4]) + "\n")
    }
}

impl GeneralReport {
    fn is_enough(&self) -> bool {
        self.needed.is_none_or(|needed| self.caught >= needed)
    }

    fn text(&self) -> String {
        let Self { scenarios, seeds_max, of, caught, needed } = self;
        if *of == 0 {
            return String::new();
        }
        let needed = needed.map_or(String::new(), |needed| format!("; two thirds are {needed}"));
        let but = if self.is_enough() { "" } else { "only " };
        let scenarios = scenarios.join(" and ");
        format!("{but}{caught} of {of} were caught in general, in {seeds_max} seeds of {scenarios}{needed}\n")
    }
}

/// The name of a general workload without its folder.
fn short(scenario: &str) -> &str {
    scenario.rsplit('/').next().unwrap_or(scenario)
}

/// A share with one decimal.
fn percent(part: u64, whole: u64) -> String {
    let permille = (part * 1_000 + whole / 2).checked_div(whole).unwrap_or(0);
    format!("{}.{}%", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use restante_sim::Mutant;
    use restante_sim::campaign::{InGeneral, Planted, Simulated, Verdict};

    use super::{MutantReport, MutantsReport, percent};

    #[test]
    fn two_thirds_must_be_caught_in_general() {
        let report = |caught: usize, is_whole: bool| {
            let of_backlog = || Planted::all().filter(|planted| planted.simulated() == Simulated::Backlog);
            let one = |(index, planted): (usize, Planted)| {
                let found = InGeneral {
                    scenario: "swarm/some".into(),
                    seed: 7,
                    property: "lane-order",
                    is_own: false,
                    fingerprint: String::new(),
                    // One that fails without the bug too shows nothing.
                    passes_without: index < caught,
                };
                let failed = MutantReport::failed(planted, String::new());
                MutantReport { verdict: Verdict::Pass, error: None, in_general: Some(found), ..failed }
            };
            let mutants = of_backlog().enumerate().map(one).collect();
            MutantsReport::new(mutants, vec!["swarm/some"], 100, is_whole)
        };
        let needed = (Mutant::ALL.len() * 2).div_ceil(3);
        assert_eq!(report(needed, true).verdict, Verdict::Pass);
        let too_few = report(needed - 1, true);
        assert_eq!(too_few.verdict, Verdict::Violated);
        let line = format!("only {} of {} were caught in general, in 100 seeds of swarm/some", needed - 1, Mutant::ALL.len());
        assert!(too_few.text().contains(&line), "{}", too_few.text());
        // Of a few that somebody named, no share is asked for.
        assert_eq!(report(0, false).verdict, Verdict::Pass);
    }

    #[test]
    fn shares() {
        assert_eq!([percent(0, 200), percent(1, 200), percent(200, 200)], ["0.0%", "0.5%", "100.0%"]);
        assert_eq!(percent(0, 0), "0.0%");
    }
}
