//! The report of `replay --journal`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use restante_sim::campaign::Verdict;
use restante_sim::journal::{Cost, JournalReport, Wrong};
use serde::Serialize;

use super::table;

/// `restante-sim/journal/1`.
#[derive(Debug, Serialize)]
pub(crate) struct JournalReplayReport {
    schema: &'static str,
    verdict: Verdict,
    exit_code: u8,
    journal: String,
    events: u64,
    operations: u64,
    steps: u64,
    commits: u64,
    posts: u64,
    torn: bool,
    full: bool,
    costs: BTreeMap<String, CostReport>,
    difference: Option<Step>,
    violation: Option<Violation>,
}

#[derive(Debug, Serialize)]
struct CostReport {
    commits: u64,
    refused: u64,
    checks: u64,
    rows: u64,
    bytes: u64,
    snapshots: u64,
}

#[derive(Debug, Serialize)]
struct Step {
    line: u64,
    operation: u64,
    about: String,
    what: String,
}

#[derive(Debug, Serialize)]
struct Violation {
    property: &'static str,
    #[serde(flatten)]
    step: Step,
}

impl Step {
    fn new(wrong: &Wrong) -> Self {
        Self { line: wrong.line, operation: wrong.op, about: wrong.about.clone(), what: wrong.what.clone() }
    }

    fn text(&self) -> String {
        format!("at line {}, operation {}, {}\n             {}", self.line, self.operation, self.about, self.what)
    }
}

impl JournalReplayReport {
    pub(crate) fn new(path: &Path, replayed: &JournalReport) -> Self {
        // A violation stands whoever decided; a mere difference says that these machines would not have decided so.
        let verdict = match (&replayed.violation, &replayed.difference) {
            (Some(_), _) => Verdict::Violated,
            (None, Some(_)) => Verdict::Nondeterminism,
            (None, None) if replayed.steps == 0 => Verdict::Vacuous,
            (None, None) => Verdict::Pass,
        };
        Self {
            schema: "restante-sim/journal/1",
            verdict,
            exit_code: verdict.code(),
            journal: path.display().to_string(),
            events: replayed.events,
            operations: replayed.operations,
            steps: replayed.steps,
            commits: replayed.commits,
            posts: replayed.posts,
            torn: replayed.torn,
            full: replayed.full,
            costs: replayed
                .costs
                .iter()
                .map(|(command, cost)| {
                    let Cost { commits, refused, checks, rows, bytes, snapshots } = *cost;
                    (command.clone(), CostReport { commits, refused, checks, rows, bytes, snapshots })
                })
                .collect(),
            difference: replayed.difference.as_ref().map(Step::new),
            violation: replayed
                .violation
                .as_ref()
                .map(|violation| Violation { property: violation.property, step: Step::new(&violation.wrong) }),
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, what: String| {
            let _ = writeln!(text, "{name:<12} {what}");
        };
        row("journal", self.journal.clone());
        row("events", format!("{} in {} operations", self.events, self.operations));
        row("replayed", format!("{} steps, {} commits, {} attempts", self.steps, self.commits, self.posts));
        if self.torn {
            row("end", "its last line is torn, as a killed process leaves it".to_owned());
        }
        if self.full {
            row("end", "it reached its size: what came later is not in it".to_owned());
        }
        if let Some(violation) = &self.violation {
            row("violated", violation.property.to_owned());
            row("", violation.step.text());
        }
        if let Some(difference) = &self.difference {
            row("different", difference.text());
        }
        if self.violation.is_none() && self.difference.is_none() {
            let clean = "every step is what these machines decide, and no property is violated";
            row("verdict", if self.steps == 0 { "nothing was replayed".to_owned() } else { clean.to_owned() });
        }
        text.push_str(&self.costs_text());
        text
    }

    /// What a commit of each command came to on average.
    fn costs_text(&self) -> String {
        if self.costs.is_empty() {
            return String::new();
        }
        let mut rows = vec![["", "commits", "refused", "checks", "rows", "bytes", "snapshots"].map(str::to_owned).to_vec()];
        for (command, cost) in &self.costs {
            let each = |count: u64| format!("{:.1}", count as f64 / cost.commits as f64);
            rows.push(vec![
                command.clone(),
                cost.commits.to_string(),
                cost.refused.to_string(),
                each(cost.checks),
                each(cost.rows),
                format!("{:.0}", cost.bytes as f64 / cost.commits as f64),
                each(cost.snapshots),
            ]);
        }
        format!("\nper commit, by command\n{}", table(&rows, &[1, 2, 3, 4, 5, 6]))
    }
}
