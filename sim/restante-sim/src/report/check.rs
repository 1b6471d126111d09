//! The report of an exploration.

use restante_sim::campaign::{Target, Verdict};
use restante_sim::explore::{Exploration, ScheduledMove};
use restante_sim::{PROPERTIES, RunResult};
use serde::Serialize;

use super::Written;

/// What `check` says. JSON schema `restante-sim/check/1`.
#[derive(Serialize)]
pub(crate) struct CheckReport {
    schema: &'static str,
    scenario: String,
    mutant: Option<&'static str>,
    symmetry: bool,
    states: u64,
    transitions: u64,
    drained_states: u64,
    is_complete: bool,
    violation: Option<Found>,
    verdict: Verdict,
    exit_code: u8,
}

#[derive(Serialize)]
struct Found {
    property: &'static str,
    sentence: &'static str,
    fingerprint: String,
    schedule: Vec<ScheduledMove>,
    capsule: Option<String>,
    capsule_trouble: Option<String>,
}

impl CheckReport {
    pub(crate) fn new(
        target: &Target,
        found: &Exploration,
        mutant: Option<&'static str>,
        symmetry: bool,
        capsule: Option<&(Written, RunResult)>,
        verdict: Verdict,
    ) -> Self {
        let violation = found.violation.as_ref().map(|(violation, schedule)| {
            let (path, trouble) = match capsule {
                Some((Written::To(path), _)) => (Some(path.display().to_string()), None),
                Some((Written::Not { why }, _)) => (None, Some(why.clone())),
                None => (None, None),
            };
            let property = PROPERTIES.iter().find(|property| property.name == violation.property);
            Found {
                property: violation.property,
                sentence: property.map_or("", |property| property.sentence),
                fingerprint: violation.fingerprint(),
                schedule: schedule.clone(),
                capsule: path,
                capsule_trouble: trouble,
            }
        });
        Self {
            schema: "restante-sim/check/1",
            scenario: target.scenario.name.clone(),
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

    pub(crate) fn text(&self, run: Option<&RunResult>) -> String {
        let mut text = format!("bound        {}", self.scenario);
        if let Some(mutant) = self.mutant {
            text += &format!(", planted bug {mutant}");
        }
        text += &format!("\nsymmetry     {}\n", if self.symmetry { "workers are interchangeable" } else { "off" });
        text += &format!("states       {} canonical, {} of them with everything drained\n", self.states, self.drained_states);
        text += &format!("moves        {}\n", self.transitions);
        match &self.violation {
            Some(found) => text += &found.text(run),
            None if self.is_complete => text += "every order of events within the bound was tried\n",
            None => text += "not finished: --states-max was reached; give a larger one, or a smaller bound\n",
        }
        text + &format!("\nverdict: {} (exit code {})\n", self.verdict.meaning(), self.exit_code)
    }
}

impl Found {
    fn text(&self, run: Option<&RunResult>) -> String {
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
        if let Some(run) = run {
            text += &format!("({} events as a trace: replay it with --trace)\n", run.trace.rows().len());
        }
        text
    }
}
