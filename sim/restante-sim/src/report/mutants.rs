//! The report of `mutants`.

use restante_sim::Mutant;
use restante_sim::campaign::{Hunt, Verdict};
use serde::Serialize;

use super::table;

/// `restante-sim/mutants/1`.
#[derive(Debug, Serialize)]
pub(crate) struct MutantsReport {
    schema: &'static str,
    pub(crate) verdict: Verdict,
    exit_code: u8,
    caught: usize,
    mutants: Vec<MutantReport>,
}

/// One planted bug.
#[derive(Debug, Serialize)]
pub(crate) struct MutantReport {
    name: &'static str,
    scenario: &'static str,
    property: &'static str,
    sentence: &'static str,
    verdict: Verdict,
    /// What was found; none when it could not be looked for.
    hunt: Option<Hunt>,
    /// Why it could not be looked for.
    error: Option<String>,
    /// What exploration found; none where no bound has what the bug needs.
    explored: Option<Explored>,
    /// Why no bound has it.
    beyond: Option<&'static str>,
}

/// What exploring a bound with a planted bug came to.
#[derive(Debug, Serialize)]
pub(crate) struct Explored {
    pub(crate) bound: &'static str,
    /// Canonical states visited until it was found.
    pub(crate) states: u64,
    /// Moves of the schedule that leads to it.
    pub(crate) moves: Option<usize>,
    /// The property that found it.
    pub(crate) property: Option<&'static str>,
}

impl MutantReport {
    pub(crate) fn new(mutant: Mutant, found: Result<Hunt, String>, explored: Option<Explored>) -> Self {
        let is_missed = explored.as_ref().is_some_and(|explored| explored.property.is_none());
        let (verdict, hunt, error) = match found {
            Ok(hunt) if is_missed => (Verdict::Violated, Some(hunt), None),
            Ok(hunt) => (hunt.verdict(), Some(hunt), None),
            Err(error) => (Verdict::Harness, None, Some(error)),
        };
        let (scenario, property, sentence) = (mutant.scenario(), mutant.property(), mutant.sentence());
        Self { name: mutant.name(), scenario, property, sentence, verdict, hunt, error, explored, beyond: mutant.bound().err() }
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
        vec![
            self.name.to_owned(),
            self.property.to_owned(),
            hunt.caught_at_seed.map_or("NOT CAUGHT".to_owned(), |seed| seed.to_string()),
            percent(hits, hunt.rated_runs),
            percent(all_hits, hunt.rated_runs),
            without.to_owned(),
            self.scenario.to_owned(),
            match &self.explored {
                Some(Explored { bound, moves: Some(moves), states, .. }) => format!("{bound}: {moves} moves, {states} states"),
                Some(Explored { bound, .. }) => format!("{bound}: NOT FOUND"),
                None => "-".to_owned(),
            },
        ]
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
    pub(crate) fn new(mutants: Vec<MutantReport>) -> Self {
        let verdict: Verdict = mutants.iter().map(|mutant| mutant.verdict).collect();
        let caught = mutants.iter().filter(|mutant| mutant.verdict == Verdict::Pass).count();
        Self { schema: "restante-sim/mutants/1", verdict, exit_code: verdict.code(), caught, mutants }
    }

    /// The report for a person.
    pub(crate) fn text(&self) -> String {
        let header = ["planted bug", "property", "seeds until caught", "hits", "any", "without it", "scenario", "explored"];
        let rows = [header.map(str::to_owned).to_vec()].into_iter().chain(self.mutants.iter().map(MutantReport::row));
        let mut text = table(&rows.collect::<Vec<_>>(), &[2, 3, 4]);
        let rated = self.mutants.iter().filter_map(|mutant| mutant.hunt.as_ref()).map(|hunt| hunt.rated_runs).max().unwrap_or(0);
        text += &format!("(hits: share of the first {rated} seeds that violate its property; any: that violate any)\n\n");
        for (name, why) in self.mutants.iter().filter_map(|mutant| Some((mutant.name, mutant.beyond?))) {
            text += &format!("not explored: {name}: {why}\n");
        }
        text.push('\n');
        for trouble in self.mutants.iter().filter_map(MutantReport::trouble) {
            text += &format!("{trouble}\n");
        }
        text += &format!("{} of {} planted bugs were caught by their own property\n", self.caught, self.mutants.len());
        let meaning = match self.verdict {
            Verdict::Violated => "a planted bug was not caught",
            verdict => verdict.meaning(),
        };
        text += &format!("verdict: {meaning} (exit code {})\n", self.verdict.code());
        text
    }
}

/// A share with one decimal.
fn percent(part: u64, whole: u64) -> String {
    let permille = (part * 1_000 + whole / 2).checked_div(whole).unwrap_or(0);
    format!("{}.{}%", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn shares() {
        assert_eq!([percent(0, 200), percent(1, 200), percent(200, 200)], ["0.0%", "0.5%", "100.0%"]);
        assert_eq!(percent(0, 0), "0.0%");
    }
}
