//! Finding and reading scenario files; errors name file, line and column.

use std::path::{Path, PathBuf};

use restante_engine::{Property, Quantifier};
use restante_kv::Limits;
use thiserror::Error;

use super::Scenario;
use crate::Mutant;

/// Embeds the scenario files, so that the command works from anywhere.
macro_rules! builtin {
    ($($name:literal),+ $(,)?) => {
        const BUILTIN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../scenarios/", $name, ".toml")))),+];
    };
}
builtin![
    "smoke/plain",
    "faults/ambiguous-commits",
    "faults/store-trouble",
    "faults/direct-conflict",
    "faults/slow-answers",
    "faults/crashes",
    "faults/network",
    "faults/receivers",
    "faults/rate-limits",
    "faults/dead-host",
    "faults/wakes",
    "faults/crash-around-wake",
    "faults/signals",
    "faults/all-signals-lost",
    "faults/restart-without-traffic",
    "faults/clocks",
    "faults/lost-index-rows",
    "faults/sweeps-left-half-way",
    "faults/foreign-records",
    "faults/cron-only",
    "order/lanes",
    "order/large-payloads",
    "order/repeated-requests",
    "order/intake-closes",
    "order/cron-only",
    "fanout/two-workers",
    "fanout/cursor-replay",
    "fanout/deleted-entries",
    "fanout/conflicting-chunk",
    "fanout/conflict-revived",
    "fanout/behind-an-intent",
    "fanout/stage-to-publish",
    "fanout/expires-unexpanded",
    "fanout/huge",
    "fanout/cron-only",
    "holds/notices",
    "holds/released",
    "holds/unknown-end",
    "holds/downtime",
    "holds/credit",
    "holds/past-retention",
    "holds/deadlines",
    "holds/cron-only",
    "holds/off",
    "breaker/dead-host",
    "breaker/flapping",
    "breaker/crashes",
    "breaker/cron-only",
    "breaker/short-retention",
    "breaker/held-too-long",
    "breaker/lost-rows",
    "breaker/never-parked",
    "breaker/rare-failures",
    "fairness/all-healthy",
    "fairness/slow-host",
    "fairness/released",
    "fairness/reclaimed",
    "fairness/cron-only",
    "upgrade/rolling",
    "upgrade/cron-only",
    "upgrade/records",
    "upgrade/counters",
    "legacy/closed-with-legacy-queue",
    "legacy/drain",
    "legacy/adopt-on-hold",
    "legacy/adopt-crashes",
    "legacy/received-again",
    "legacy/closed-refuses-adoption",
    "legacy/drained",
    "legacy/cron-moves-back",
    "legacy/cron-only",
    "swarm/everything-at-once",
    "swarm/quiet-hours",
    "swarm/many-recipients",
    "swarm/two-queues",
    "swarm/full",
    "negative/stale-settle",
    "negative/ambiguous-guessed",
    "negative/silent-drop",
    "traces/one-delivery",
    "traces/lost-answer",
    "traces/crash-after-post",
    "traces/ambiguous-commits",
    "traces/lane-of-two",
    "traces/staged-payload",
    "traces/closed-intake",
    "check/backlog",
    "check/small",
    "check/lane",
    "check/stale",
    "check/sends",
    "check/sweep",
    "check/overtaken",
    "check/fanout",
    "check/probe",
];

/// Names of the scenarios that come with the command, in the order they run.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Names of the scenarios that `run` runs when none is named: all but the bounds of explorations.
pub fn suite_names() -> impl Iterator<Item = &'static str> {
    builtin_names().filter(|name| !name.starts_with("check/"))
}

/// Names of the general workloads: none of them was written for a planted bug, and all of them are to find most.
pub fn general_names() -> impl Iterator<Item = &'static str> {
    builtin_names().filter(|name| name.starts_with("swarm/"))
}

/// Why a scenario cannot be used.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// No such file and no such built-in scenario.
    #[error("{name}: no such scenario file and none of that name comes with restante-sim; `restante-sim list` shows them{hint}")]
    NotFound {
        /// What was asked for.
        name: String,
        /// A close name, or nothing.
        hint: String,
    },
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a scenario.
    #[error("{name}:{line}:{column}: {message}")]
    Malformed {
        /// The file or built-in name.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// The scenario contradicts itself.
    #[error("{name}: {message}")]
    Inconsistent {
        /// The file or built-in name.
        name: String,
        /// What is wrong.
        message: String,
    },
}

/// Loads a scenario by file path or by the name of one that comes with the command; also returns its text.
///
/// # Errors
/// [`ScenarioError`]
pub fn load(name: &str) -> Result<(Scenario, String), ScenarioError> {
    if let Some((name, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
        return Ok((parse(name, text)?, (*text).to_owned()));
    }
    let path = Path::new(name);
    if !path.is_file() {
        let close = builtin_names().find(|builtin| builtin.ends_with(name) || builtin.starts_with(name));
        let hint = close.map_or(String::new(), |close| format!("; did you mean {close}?"));
        return Err(ScenarioError::NotFound { name: name.to_owned(), hint });
    }
    let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Unreadable { path: path.to_owned(), source })?;
    Ok((parse(name, &text)?, text))
}

/// Reads a scenario from its text.
///
/// # Errors
/// [`ScenarioError::Malformed`] and [`ScenarioError::Inconsistent`]
pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let mut scenario: Scenario = toml::from_str(text).map_err(|error| {
        let before = error.span().map_or("", |span| &text[..span.start.min(text.len())]);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        let message = error.message().trim_end().replace('\n', " ");
        ScenarioError::Malformed { name: name.to_owned(), line, column, message }
    })?;
    scenario.name = name.strip_suffix(".toml").unwrap_or(name).to_owned();
    let inconsistent = |message: String| Err(ScenarioError::Inconsistent { name: name.to_owned(), message });
    if scenario.world.workers + scenario.world.cron_callers == 0 {
        return inconsistent("nobody delivers: give world.workers or world.cron_callers".into());
    }
    if scenario.workload.producers == 0 || scenario.workload.producers > 20 || scenario.workload.sends_count == 0 {
        return inconsistent("nobody sends: give 1 to 20 workload.producers and a positive workload.sends_count".into());
    }
    if scenario.world.destinations == 0 || scenario.world.destinations > 200 || scenario.workload.order_keys == 0 {
        return inconsistent("give 1 to 200 world.destinations and a positive workload.order_keys".into());
    }
    if scenario.workload.recipients_max == 0 || scenario.workload.recipients_max > scenario.world.destinations.min(4) {
        return inconsistent("workload.recipients_max must be 1 to 4 and at most world.destinations".into());
    }
    let (least, most) = (scenario.workload.fanout_recipients_min, scenario.workload.fanout_recipients_max);
    if least == 0 || least > most || most > 100_000 {
        return inconsistent("workload.fanout_recipients_min must be 1 to workload.fanout_recipients_max, at most 100000".into());
    }
    if scenario.latency.store.min.0 == 0 || scenario.latency.network.min.0 == 0 || scenario.latency.signal.min.0 == 0 {
        return inconsistent("latencies begin at 1ms: a world where nothing takes time cannot go wrong in time".into());
    }
    for mark in &scenario.expect.sometimes {
        let is_known = |property: &Property| property.name == mark && property.quantifier == Quantifier::Sometimes;
        if !crate::audit::PROPERTIES.iter().any(is_known) {
            return inconsistent(format!("expect.sometimes names {mark}, which is not a `sometimes` property"));
        }
    }
    if let Some(name) = &scenario.planted
        && Mutant::by_name(name).is_none()
    {
        return inconsistent(format!("planted names {name}, which is no planted bug; `restante-sim list` shows them"));
    }
    match (&scenario.planted, &scenario.expect.violation) {
        (Some(_), None) => return inconsistent("planted needs expect.violation: which property must find it?".into()),
        (None, Some(_)) => return inconsistent("expect.violation needs planted: production code is not to violate it".into()),
        (Some(_), Some(property)) if !crate::audit::PROPERTIES.iter().any(|known| known.name == property) => {
            return inconsistent(format!("expect.violation names {property}, which is not a property"));
        }
        _ => {}
    }
    let (legacy, legacy_faults) = (&scenario.legacy, &scenario.faults.legacy);
    if legacy.mode.is_none() && (legacy.messages_count > 0 || *legacy_faults != Default::default()) {
        return inconsistent("there is no old queue: give legacy.mode".into());
    }
    let listeners = legacy.listeners.saturating_add(legacy.cron_listeners);
    if legacy.mode.is_some() && (listeners == 0 || listeners > 20 || legacy.messages_count > 9_999) {
        let message = "give 1 to 20 legacy.listeners and legacy.cron_listeners, and at most 9999 legacy.messages_count";
        return inconsistent(message.into());
    }
    if legacy.mode.is_some() && legacy.visible.0 <= scenario.config.request_timeout.0 + scenario.config.lease_margin.0 {
        return inconsistent("legacy.visible must exceed config.request_timeout + config.lease_margin".into());
    }
    for (site, sum) in crate::world::fault_sums(&scenario.faults) {
        if sum > 1_000_000 {
            return inconsistent(format!("the faults of {site} add up to more than 100%"));
        }
    }
    let can_crash = legacy_faults.crash_before_complete.0 + legacy_faults.crash_after_complete.0 > 0;
    if (can_crash || scenario.faults.process.can_crash()) && scenario.faults.process.crashes_max == 0 {
        return inconsistent("crashes are asked for and faults.process.crashes_max is 0".into());
    }
    if let Err(error) = scenario.config.to_config().validate(&Limits { has_clock: scenario.world.store_clock, ..Limits::FLOOR }) {
        return inconsistent(format!("config: {error}"));
    }
    if let Some(message) = super::swarm::contradiction(&scenario) {
        return inconsistent(message);
    }
    Ok(scenario)
}
