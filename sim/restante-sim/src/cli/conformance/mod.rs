//! `conformance`: holds a store against the contract.

mod stores;

use std::time::Duration;

use clap::Args;
use restante_kv_conformance::{Check, Outcome, Ran, Report, Suite};
use restante_sim::campaign::Verdict;
use serde::Serialize;

use super::Failed;
use super::output::{Output, note};
use crate::report::table;
use stores::StoreName;

#[derive(Debug, Args)]
pub(super) struct ConformanceArgs {
    /// Which store: `memory`, `simulated`, `simulated-in-flight` or `sqlite:PATH` [default: none; not needed with --list]
    #[arg(long, value_name = "STORE", required_unless_present = "list")]
    store: Option<StoreName>,
    /// Only checks whose names contain this [default: all]
    #[arg(long, value_name = "F")]
    filter: Option<String>,
    /// Show the checks instead of running them
    #[arg(long)]
    list: bool,
    /// Seed of random programs, and of what a simulated store decides
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Size of the stress checks; 0 for none of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    stress: u32,
    /// Leave what the checks wrote, under a random prefix each
    #[arg(long)]
    keep: bool,
    /// Print the results as one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn conformance(args: &ConformanceArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let Some(store) = args.store.as_ref().filter(|_| !args.list) else { return list(args, output) };
    let suite = configured(args, Suite::new(store.to_string(), store.opener(args.seed).map_err(Failed::usage)?));
    if suite.chosen().next().is_none() {
        return Err(nothing_matches(args));
    }
    // Once by itself: a store that cannot be opened is one message, not one a check.
    if let Err(error) = store.opener(args.seed).map_err(Failed::usage)?().and_then(|subject| subject.open().map(drop)) {
        return Err(Failed { verdict: Verdict::Harness, message: error.to_string() });
    }
    let mut took = Duration::ZERO;
    let report = suite.run_each(|ran| {
        took += ran.took;
        if !args.json {
            output.text(&format!("{ran}\n"));
        }
        if args.keep {
            note(&format!("kept: {} {}", ran.prefix, ran.check.name));
        }
    });
    let verdict = verdict(&report);
    if args.json {
        output.json(&Results::new(&report, verdict, args.keep));
    } else {
        let (passed, failed, skipped) = (report.passed(), report.failed(), report.skipped());
        output.text(&format!("\n{store}: {passed} passed; {failed} failed; {skipped} skipped\n"));
    }
    note(&format!("{:.1} s", took.as_secs_f64()));
    Ok(verdict)
}

fn configured(args: &ConformanceArgs, suite: Suite) -> Suite {
    let suite = suite.seed(args.seed).stress(args.stress).keep(args.keep);
    match &args.filter {
        Some(filter) => suite.filter(filter),
        None => suite,
    }
}

fn nothing_matches(args: &ConformanceArgs) -> Failed {
    let filter = args.filter.as_deref().unwrap_or_default();
    Failed::usage(format!("no check is called like {filter:?}: see `restante-sim conformance --list`"))
}

fn verdict(report: &Report) -> Verdict {
    let is_lost = report.ran.iter().any(|ran| matches!(ran.outcome, Outcome::NotOpened { .. }));
    match (report.failed(), report.passed()) {
        (1.., _) if is_lost => Verdict::Harness,
        (1.., _) => Verdict::Violated,
        (0, 0) => Verdict::Vacuous,
        (0, 1..) => Verdict::Pass,
    }
}

/// `restante-sim/conformance/1`.
#[derive(Debug, Serialize)]
struct Results<'r> {
    schema: &'static str,
    store: &'r str,
    seed: u64,
    verdict: Verdict,
    passed: usize,
    failed: usize,
    skipped: usize,
    checks: Vec<ResultOfCheck<'r>>,
}

#[derive(Debug, Serialize)]
struct ResultOfCheck<'r> {
    name: &'static str,
    tier: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    breaks: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<&'r str>,
}

impl<'r> Results<'r> {
    fn new(report: &'r Report, verdict: Verdict, keep: bool) -> Self {
        Self {
            schema: "restante-sim/conformance/1",
            store: &report.store,
            seed: report.seed,
            verdict,
            passed: report.passed(),
            failed: report.failed(),
            skipped: report.skipped(),
            checks: report.ran.iter().map(|ran| ResultOfCheck::new(ran, keep)).collect(),
        }
    }
}

impl<'r> ResultOfCheck<'r> {
    fn new(ran: &'r Ran, keep: bool) -> Self {
        let plain = Self {
            name: ran.check.name,
            tier: ran.check.tier.to_string(),
            outcome: "passed",
            why: None,
            expected: None,
            found: None,
            breaks: None,
            prefix: keep.then_some(ran.prefix.as_str()),
        };
        match &ran.outcome {
            Outcome::Passed => plain,
            Outcome::Skipped { why } => Self { outcome: "skipped", why: Some((*why).to_owned()), ..plain },
            Outcome::NotOpened { error } => Self { outcome: "not opened", why: Some(error.to_string()), ..plain },
            Outcome::Failed(failure) => Self {
                outcome: "failed",
                expected: Some(&failure.breach.expected),
                found: Some(&failure.breach.found),
                breaks: Some(failure.protects),
                ..plain
            },
        }
    }
}

/// `restante-sim/conformance-list/1`.
#[derive(Debug, Serialize)]
struct Listed {
    schema: &'static str,
    checks: Vec<ListedCheck>,
}

#[derive(Debug, Serialize)]
struct ListedCheck {
    name: &'static str,
    tier: String,
    sentence: &'static str,
    protects: &'static str,
}

fn list(args: &ConformanceArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let is_named = |check: &&Check| args.filter.as_ref().is_none_or(|filter| check.name.contains(filter.as_str()));
    let listed = |check: &Check| ListedCheck {
        name: check.name,
        tier: check.tier.to_string(),
        sentence: check.sentence,
        protects: check.protects,
    };
    let checks: Vec<ListedCheck> = Check::all().filter(is_named).map(listed).collect();
    if checks.is_empty() {
        return Err(nothing_matches(args));
    }
    if args.json {
        output.json(&Listed { schema: "restante-sim/conformance-list/1", checks });
    } else {
        let row = |check: &ListedCheck| vec![check.tier.clone(), check.name.to_owned(), check.sentence.to_owned()];
        output.text(&table(&checks.iter().map(row).collect::<Vec<_>>(), &[]));
    }
    Ok(Verdict::Pass)
}
