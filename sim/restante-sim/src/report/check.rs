//! The report of an exploration.

use restante_sim::campaign::Verdict;
use restante_sim::capsule::sentence_of;
use restante_sim::explore::{Exploration, ScheduledMove};
use serde::Serialize;

use super::Written;

/// What `check` says of a bound. JSON schema `restante-sim/check/1`.
#[derive(Serialize)]
pub(crate) struct CheckReport {
    schema: &'static str,
    scenario: String,
    mutant: Option<&'static str>,
    #[serde(serialize_with = "as_bool")]
    symmetry: Symmetry,
    states: u64,
    transitions: u64,
    drained_states: u64,
    is_complete: bool,
    violation: Option<Found>,
    pub(crate) verdict: Verdict,
    exit_code: u8,
}

/// Which states count as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Symmetry {
    /// Those that differ in which worker does what.
    Workers,
    /// Only equal ones, because somebody asked for that.
    Off,
    /// Only equal ones: the bound has nobody who is like another.
    None,
}

fn as_bool<S: serde::Serializer>(symmetry: &Symmetry, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(*symmetry == Symmetry::Workers)
}

#[derive(Serialize)]
struct Found {
    property: &'static str,
    sentence: &'static str,
    fingerprint: String,
    schedule: Vec<ScheduledMove>,
    capsule: Option<String>,
    capsule_trouble: Option<String>,
    /// How many rows the trace of the schedule has.
    #[serde(skip)]
    rows: Option<usize>,
}

impl CheckReport {
    pub(crate) fn new(
        bound: &str,
        found: &Exploration,
        mutant: Option<&'static str>,
        symmetry: Symmetry,
        capsule: Option<&Written>,
        rows: Option<usize>,
        verdict: Verdict,
    ) -> Self {
        let violation = found.violation.as_ref().map(|(violation, schedule)| {
            let (path, trouble) = match capsule {
                Some(Written::To(path)) => (Some(path.display().to_string()), None),
                Some(Written::Not { why }) => (None, Some(why.clone())),
                None => (None, None),
            };
            Found {
                property: violation.property,
                sentence: sentence_of(violation.property),
                fingerprint: violation.fingerprint(),
                schedule: schedule.clone(),
                capsule: path,
                capsule_trouble: trouble,
                rows,
            }
        });
        Self {
            schema: "restante-sim/check/1",
            scenario: bound.to_owned(),
            mutant,
            symmetry,
            states: found.states,
            transitions: found.transitions,
            drained_states: found.drained,
            is_complete: found.is_complete,
            violation,
            verdict,
            exit_code: verdict.code(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("bound        {}", self.scenario);
        if let Some(mutant) = self.mutant {
            text += &format!(", planted bug {mutant}");
        }
        let (symmetry, states) = match self.symmetry {
            Symmetry::Workers => ("workers are interchangeable", " canonical"),
            Symmetry::Off => ("off", " canonical"),
            Symmetry::None => ("none", ""),
        };
        text += &format!("\nsymmetry     {symmetry}\n");
        text += &format!("states       {}{states}, {} of them with everything drained\n", self.states, self.drained_states);
        text += &format!("moves        {}\n", self.transitions);
        match &self.violation {
            Some(found) => text += &found.text(),
            None if self.is_complete => text += "every order of events within the bound was tried\n",
            None => text += "not finished: --states-max was reached; give a larger one, or a smaller bound\n",
        }
        text + "\n"
    }
}

/// The reports for a person, with one verdict.
pub(crate) fn check_text(reports: &[CheckReport]) -> String {
    let verdict: Verdict = reports.iter().map(|report| report.verdict).collect();
    let texts: String = reports.iter().map(CheckReport::text).collect();
    texts + &format!("verdict: {} (exit code {})\n", verdict.meaning(), verdict.code())
}

/// What `check` says of several bounds. JSON schema `restante-sim/checks/1`.
#[derive(Serialize)]
pub(crate) struct ChecksReport<'r> {
    schema: &'static str,
    bounds: &'r [CheckReport],
    verdict: Verdict,
    exit_code: u8,
}

impl<'r> ChecksReport<'r> {
    pub(crate) fn new(bounds: &'r [CheckReport]) -> Self {
        let verdict: Verdict = bounds.iter().map(|report| report.verdict).collect();
        Self { schema: "restante-sim/checks/1", bounds, verdict, exit_code: verdict.code() }
    }
}

impl Found {
    fn text(&self) -> String {
        let mut text = format!("\nviolated     {}\n             {}\n", self.property, self.sentence);
        text += &format!("fingerprint  {}\n", self.fingerprint);
        match (&self.capsule, &self.capsule_trouble) {
            (Some(path), _) => {
                text += &format!("capsule      {path}\nreplay       cargo run --release -- replay {path} --trace\n");
            }
            (None, Some(trouble)) => text += &format!("capsule      {trouble}\n"),
            (None, None) => {}
        }
        text += &format!("the {} moves that lead to it:\n", self.schedule.len());
        for (index, scheduled) in self.schedule.iter().enumerate() {
            let chosen = if scheduled.chosen.is_empty() { String::new() } else { format!("  [{}]", scheduled.chosen.join(", ")) };
            text += &format!("{:4} {}{chosen}\n", index + 1, scheduled.name);
        }
        if let Some(rows) = self.rows {
            text += &format!("({rows} events as a trace: replay it with --trace)\n");
        }
        text
    }
}
