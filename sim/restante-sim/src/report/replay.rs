//! The report of `replay`.

use restante_engine::{Match, TapeEntry, Violation};
use restante_sim::RunResult;
use restante_sim::campaign::{Simulated, Verdict};
use restante_sim::capsule::{Capsule, Replay, Replayed, sentence_of};
use serde::Serialize;

use super::found_text;

/// `restante-sim/replay/1`.
#[derive(Debug, Serialize)]
pub(crate) struct ReplayReport {
    schema: &'static str,
    verdict: Verdict,
    exit_code: u8,
    world: Simulated,
    scenario: String,
    seed: u64,
    mutant: Option<String>,
    digest: String,
    events: u64,
    /// Of the keyed queue, its tasks.
    entries: u64,
    /// Of the keyed queue, the tasks that completed.
    delivered: u64,
    sim_us: u64,
    /// What was violated.
    violation: Option<ViolationReport>,
    /// What became of the capsule's violation; none without a capsule.
    capsule: Option<CapsuleReport>,
    /// Every row, if asked for.
    trace: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
struct ViolationReport {
    property: &'static str,
    sentence: &'static str,
    fingerprint: String,
    at_us: u64,
}

#[derive(Debug, Serialize)]
struct CapsuleReport {
    outcome: &'static str,
    fingerprint: String,
    /// Of a schedule, its moves.
    decisions: Match,
    is_schedule: bool,
    is_digest_same: bool,
    environment_differences: Vec<String>,
    overrides_unused: Vec<TapeEntry>,
    overrides_unknown: Vec<TapeEntry>,
}

impl ReplayReport {
    /// Of one seed.
    pub(crate) fn of_seed(
        world: Simulated,
        scenario: &str,
        seed: u64,
        mutant: Option<&str>,
        run: &RunResult,
        has_trace: bool,
    ) -> Self {
        let verdict = if run.violation.is_some() { Verdict::Violated } else { Verdict::Pass };
        let violation = run.violation.as_ref().map(|violation| ViolationReport {
            property: violation.property,
            sentence: sentence_of(violation.property),
            fingerprint: violation.fingerprint(),
            at_us: violation.at.as_us(),
        });
        Self {
            schema: "restante-sim/replay/1",
            verdict,
            exit_code: verdict.code(),
            world,
            scenario: scenario.to_owned(),
            seed,
            mutant: mutant.map(str::to_owned),
            digest: format!("{:032x}", run.digest),
            events: run.events,
            entries: run.entries,
            delivered: run.delivered,
            sim_us: run.sim_time.as_us(),
            violation,
            capsule: None,
            trace: has_trace.then(|| run.trace.rows().map(ToString::to_string).collect()),
        }
    }

    /// Of a capsule.
    pub(crate) fn of_capsule(capsule: &Capsule, replayed: &Replayed, has_trace: bool) -> Self {
        let verdict = replayed.verdict();
        let owned = |entries: Vec<&TapeEntry>| entries.into_iter().cloned().collect();
        let report = CapsuleReport {
            outcome: match replayed.replay {
                Replay::Reproduced => "reproduced",
                Replay::Other => "another violation",
                Replay::Stale => "stale",
                Replay::Vanished => "vanished",
            },
            fingerprint: capsule.failure.fingerprint.clone(),
            decisions: replayed.decisions.clone(),
            is_schedule: !capsule.schedule.is_empty(),
            is_digest_same: replayed.is_digest_same,
            environment_differences: replayed.environment_differences.clone(),
            overrides_unused: owned(replayed.run.log.unused_overrides()),
            overrides_unknown: owned(replayed.run.log.unknown_overrides()),
        };
        let of_seed =
            Self::of_seed(capsule.world, &capsule.scenario, capsule.seed, capsule.mutant.as_deref(), &replayed.run, has_trace);
        Self { verdict, exit_code: verdict.code(), capsule: Some(report), ..of_seed }
    }

    /// The report for a person.
    pub(crate) fn text(&self, violation: Option<&Violation>) -> String {
        let mut text = String::new();
        let planted = self.mutant.as_ref().map_or(String::new(), |mutant| format!(", planted bug {mutant}"));
        text += &format!("scenario     {}, seed {}{planted}\n", self.scenario, self.seed);
        let seconds = self.sim_us / 1_000_000;
        let done = match self.world {
            Simulated::Backlog => format!("{} entries, {} deliveries", self.entries, self.delivered),
            Simulated::Keyed => format!("{} tasks, {} completed", self.entries, self.delivered),
        };
        text += &format!("run          {} events, {done}, {seconds} s of simulated time\n", self.events);
        text += &format!("digest       {}\n", self.digest);
        text += &violation.map_or("no violation\n".into(), found_text);
        if let Some(capsule) = &self.capsule {
            text += &capsule.text(violation.map(Violation::fingerprint).as_deref());
        }
        text += &format!("verdict: {} (exit code {})\n", self.verdict.meaning(), self.verdict.code());
        text
    }
}

impl CapsuleReport {
    fn text(&self, found: Option<&str>) -> String {
        let mut text = match (self.outcome, found) {
            ("reproduced", _) => "the capsule's violation came back\n".to_owned(),
            (_, Some(found)) => {
                format!("another violation than the capsule's:\n  capsule  {}\n  now      {found}\n", self.fingerprint)
            }
            (_, None) => format!("the capsule's violation did not come back: {}\n", self.fingerprint),
        };
        let Match { matched, recorded, made, .. } = self.decisions;
        text += &match self.is_schedule {
            true => format!("{matched} of {recorded} moves taken\n"),
            false => format!("{matched} of {recorded} decisions matched, {made} made\n"),
        };
        let decisions = &self.decisions;
        if let Some(difference) = &decisions.first_difference {
            text += &format!("  first difference: {difference}\n");
        }
        text +=
            if self.is_digest_same { "the run is the same in everything\n" } else { "the run is not the same in everything\n" };
        for (what, entries) in
            [("asked for by nobody", &self.overrides_unused), ("names nothing that can happen", &self.overrides_unknown)]
        {
            for TapeEntry { site, key, choice } in entries {
                text += &format!("override {what}: {site} | {key}: {choice}\n");
            }
        }
        if !self.environment_differences.is_empty() {
            text += "another build made the capsule:\n";
            for difference in &self.environment_differences {
                text += &format!("  {difference}\n");
            }
        }
        text
    }
}
