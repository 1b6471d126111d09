//! The report of `shrink`.

use restante_engine::TapeEntry;
use restante_sim::campaign::Verdict;
use restante_sim::capsule::Capsule;
use restante_sim::shrink::{Counts, Shrunk};
use serde::Serialize;

use super::{Written, found_text, quoted, table};

/// A trace of at most so many rows is shown whole.
const ROWS_MAX: usize = 60;
/// How many rows of a longer one are shown.
const LAST_ROWS: usize = 30;

/// `restante-sim/shrink/1`.
#[derive(Debug, Serialize)]
pub(crate) struct ShrinkReport {
    schema: &'static str,
    verdict: Verdict,
    exit_code: u8,
    scenario: String,
    seed: u64,
    mutant: Option<String>,
    property: String,
    fingerprint: String,
    before: Counts,
    after: Counts,
    changes: Vec<String>,
    /// The faults that are left.
    faults: Vec<TapeEntry>,
    candidates: u64,
    accepted: u64,
    is_finished: bool,
    capsule_path: Option<String>,
    /// Why it was not written.
    capsule_unwritten: Option<String>,
    /// The capsule, when it is nowhere else.
    capsule: Option<Capsule>,
    replay: Option<String>,
    /// How many rows the trace has.
    rows: usize,
    /// All of them, or the last.
    last_rows: Vec<String>,
}

impl ShrinkReport {
    /// What shrinking came to, and where it went.
    pub(crate) fn new(shrunk: &Shrunk, written: &Written, verdict: Verdict) -> Self {
        let rows = shrunk.run.trace.rows();
        let count = rows.len();
        let shown = if count <= ROWS_MAX { count } else { LAST_ROWS };
        let (capsule_path, capsule_unwritten) = match written {
            Written::To(path) => (Some(path.display().to_string()), None),
            Written::Not { why } => (None, Some(why.clone())),
        };
        let capsule = &shrunk.capsule;
        Self {
            schema: "restante-sim/shrink/1",
            verdict,
            exit_code: verdict.code(),
            scenario: capsule.scenario.clone(),
            seed: capsule.seed,
            mutant: capsule.mutant.clone(),
            property: capsule.failure.property.clone(),
            fingerprint: capsule.failure.fingerprint.clone(),
            before: shrunk.before,
            after: shrunk.after,
            changes: shrunk.changes.clone(),
            faults: shrunk.faults.clone(),
            candidates: shrunk.candidates,
            accepted: shrunk.accepted,
            is_finished: shrunk.is_finished,
            replay: capsule_path.as_ref().map(|path| format!("cargo run --release -- replay {}", quoted(path))),
            capsule: capsule_unwritten.as_ref().map(|_| capsule.clone()),
            capsule_path,
            capsule_unwritten,
            rows: count,
            last_rows: rows.skip(count - shown).map(ToString::to_string).collect(),
        }
    }

    /// The report for a person.
    pub(crate) fn text(&self, shrunk: &Shrunk) -> String {
        let planted = self.mutant.as_ref().map_or(String::new(), |mutant| format!(", planted bug {mutant}"));
        let mut text = format!("scenario     {}, seed {}{planted}\n", self.scenario, self.seed);
        text += &found_text(&shrunk.violation);
        text += &format!("\n{}\n", self.sizes());
        for change in &self.changes {
            text += &format!("{change}\n");
        }
        for TapeEntry { site, key, choice } in &self.faults {
            text += &format!("fault left: {site} | {key}: {choice}\n");
        }
        let end = if self.is_finished { "nothing smaller found" } else { "the time budget was over: it may shrink further" };
        text += &format!("{} candidates, {} of them smaller; {end}\n\n", self.candidates, self.accepted);
        text += "the smaller scenario, to which the tape belongs:\n";
        for line in shrunk.capsule.scenario_text.lines() {
            text += &format!("  {line}\n").replace("  \n", "\n");
        }
        if self.last_rows.len() == self.rows {
            text += &format!("\nall {} rows:\n", self.rows);
        } else {
            text += &format!("\nthe last {} of {} rows:\n", self.last_rows.len(), self.rows);
        }
        for row in &self.last_rows {
            text += &format!("  {row}\n");
        }
        text.push('\n');
        match (&self.capsule_path, &self.replay) {
            (Some(path), Some(replay)) => text += &format!("capsule      {path}\nreplay       {replay}\n"),
            _ => text += &format!("capsule:\n{}\n", shrunk.capsule.to_json()),
        }
        text += &format!("verdict: {} (exit code {})\n", self.verdict.meaning(), self.verdict.code());
        text
    }

    fn sizes(&self) -> String {
        let row =
            |what: &str, of: fn(&Counts) -> u64| vec![what.to_owned(), of(&self.before).to_string(), of(&self.after).to_string()];
        let header = ["", "before", "after"].map(str::to_owned).to_vec();
        let rows = [
            header,
            row("faults", |counts| counts.faults),
            row("sends", |counts| counts.sends),
            row("operations", |counts| counts.operations),
            row("producers", |counts| counts.producers.into()),
            row("workers", |counts| counts.workers.into()),
            row("destinations", |counts| counts.destinations.into()),
            row("events", |counts| counts.events),
            row("decisions", |counts| counts.decisions),
            row("ms simulated", |counts| counts.sim_us / 1_000),
        ];
        table(&rows, &[1, 2])
    }
}
