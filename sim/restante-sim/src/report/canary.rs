//! The report of `run --canary`.

use std::collections::BTreeMap;

use restante_sim::campaign::Verdict;
use serde::Serialize;

use super::table;

/// `restante-sim/canary/1`.
#[derive(Debug, Serialize)]
pub(crate) struct CanaryReport {
    schema: &'static str,
    pub(crate) verdict: Verdict,
    exit_code: u8,
    alarms: Vec<Alarm>,
}

/// A bug that was planted in a scenario's runs, and what became of it.
#[derive(Debug, Serialize)]
pub(crate) struct Alarm {
    pub(crate) planted: &'static str,
    pub(crate) property: &'static str,
    pub(crate) scenario: String,
    pub(crate) runs: u64,
    /// Why the alarm stayed silent; none if it was raised.
    pub(crate) silent: Option<String>,
}

impl CanaryReport {
    pub(crate) fn new(alarms: Vec<Alarm>) -> Self {
        // Nothing asked is nothing shown.
        let is_raised = !alarms.is_empty() && alarms.iter().all(|alarm| alarm.silent.is_none());
        let verdict = if is_raised { Verdict::Pass } else { Verdict::Harness };
        Self { schema: "restante-sim/canary/1", verdict, exit_code: verdict.code(), alarms }
    }

    /// The report for a person.
    pub(crate) fn text(&self) -> String {
        let mut counts: BTreeMap<(&str, &str), [u64; 3]> = BTreeMap::new();
        for alarm in &self.alarms {
            let [scenarios, raised, runs] = counts.entry((alarm.planted, alarm.property)).or_default();
            (*scenarios, *runs) = (*scenarios + 1, *runs + alarm.runs);
            *raised += u64::from(alarm.silent.is_none());
        }
        let header = ["planted bug", "property", "scenarios", "alarms", "runs"].map(str::to_owned).to_vec();
        let row = |((planted, property), numbers): (&(&str, &str), &[u64; 3])| {
            [*planted, *property].map(str::to_owned).into_iter().chain(numbers.map(|number| number.to_string())).collect()
        };
        let rows: Vec<Vec<String>> = [header].into_iter().chain(counts.iter().map(row)).collect();
        let mut text = table(&rows, &[2, 3, 4]);
        text += "(alarms: scenarios whose runs ended with exit code 1 and a capsule that brought the violation back)\n\n";
        for alarm in &self.alarms {
            if let Some(why) = &alarm.silent {
                text += &format!("silent: {} in {}, {} runs: {why}\n", alarm.planted, alarm.scenario, alarm.runs);
            }
        }
        let meaning = match self.verdict {
            Verdict::Pass => "the alarm works",
            _ => "the alarm stayed silent: what was green before says nothing",
        };
        text += &format!("verdict: {meaning} (exit code {})\n", self.verdict.code());
        text
    }
}

#[cfg(test)]
mod tests {
    use restante_sim::campaign::Verdict;

    use super::{Alarm, CanaryReport};

    #[test]
    fn one_silent_scenario_is_a_harness_error() {
        let alarm = |silent: Option<&str>| Alarm {
            planted: "panics",
            property: "does-not-panic",
            scenario: "smoke/plain".into(),
            runs: 1,
            silent: silent.map(str::to_owned),
        };
        assert_eq!(CanaryReport::new(vec![alarm(None), alarm(None)]).verdict, Verdict::Pass);
        let silent = CanaryReport::new(vec![alarm(None), alarm(Some("no capsule was written"))]);
        assert_eq!(silent.verdict, Verdict::Harness);
        let text = silent.text();
        assert!(text.contains("silent: panics in smoke/plain, 1 runs: no capsule was written\n"), "{text}");
        assert!(text.contains("panics       does-not-panic          2       1     2\n"), "{text}");
        assert_eq!(CanaryReport::new(Vec::new()).verdict, Verdict::Harness);
    }
}
