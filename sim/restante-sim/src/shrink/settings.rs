//! The settings of a scenario that have a smaller value, and what smaller is.

use crate::scenario::{Ms, Scenario, Share, Span};

/// A setting: section, key, and its value in a scenario.
pub(super) struct Setting<T> {
    pub(super) section: &'static str,
    pub(super) key: &'static str,
    pub(super) of: fn(&Scenario) -> T,
}

const fn setting<T>(section: &'static str, key: &'static str, of: fn(&Scenario) -> T) -> Setting<T> {
    Setting { section, key, of }
}

/// How much is asked of the backlog and of the world, with the least that makes sense.
pub(super) const LOAD: [(Setting<u64>, u64); 6] = [
    (setting("workload", "sends_count", |scenario| scenario.workload.sends_count.into()), 1),
    (setting("workload", "producers", |scenario| scenario.workload.producers.into()), 1),
    (setting("workload", "depths_count", |scenario| scenario.workload.depths_count.into()), 0),
    (setting("workload", "wakes_count", |scenario| scenario.workload.wakes_count.into()), 0),
    (setting("workload", "holds_count", |scenario| scenario.workload.holds_count.into()), 0),
    (setting("legacy", "messages_count", |scenario| scenario.legacy.messages_count.into()), 0),
];

/// How often something goes wrong, with the least that differs from never.
pub(super) const INCIDENTS: [(Setting<u64>, u64); 13] = [
    (setting("faults.store", "outages_count", |scenario| scenario.faults.store.outages_count.into()), 0),
    (setting("faults.store", "lost_due_rows_count", |scenario| scenario.faults.store.lost_due_rows_count.into()), 0),
    (setting("faults.store", "lost_pointers_count", |scenario| scenario.faults.store.lost_pointers_count.into()), 0),
    (setting("faults.store", "foreign_records_count", |scenario| scenario.faults.store.foreign_records_count.into()), 0),
    (setting("faults.store", "damaged_records_count", |scenario| scenario.faults.store.damaged_records_count.into()), 0),
    (setting("faults.store", "foreign_intents_count", |scenario| scenario.faults.store.foreign_intents_count.into()), 0),
    (setting("faults.store", "conflicting_entries_count", |scenario| scenario.faults.store.conflicting_entries_count.into()), 0),
    (setting("faults.receiver", "dead_hosts_count", |scenario| scenario.faults.receiver.dead_hosts_count.into()), 0),
    (setting("faults.process", "graceful_restarts_count", |scenario| scenario.faults.process.graceful_restarts_count.into()), 0),
    (setting("faults.receiver", "flapping_hosts_count", |scenario| scenario.faults.receiver.flapping_hosts_count.into()), 0),
    (setting("faults.receiver", "slow_hosts_count", |scenario| scenario.faults.receiver.slow_hosts_count.into()), 0),
    (setting("faults.process", "downtimes_count", |scenario| scenario.faults.process.downtimes_count.into()), 0),
    (setting("faults.clocks", "steps_count", |scenario| scenario.faults.clocks.steps_count.into()), 0),
];

/// Who and what is there, with the least.
pub(super) const ACTORS: [(Setting<u64>, u64); 10] = [
    (setting("world", "cron_callers", |scenario| scenario.world.cron_callers.into()), 0),
    (setting("world", "workers", |scenario| scenario.world.workers.into()), 0),
    (setting("legacy", "cron_listeners", |scenario| scenario.legacy.cron_listeners.into()), 0),
    (setting("legacy", "listeners", |scenario| scenario.legacy.listeners.into()), 0),
    (setting("workload", "recipients_max", |scenario| scenario.workload.recipients_max.into()), 1),
    (setting("world", "destinations", |scenario| scenario.world.destinations.into()), 1),
    (setting("workload", "fanout_recipients_min", |scenario| scenario.workload.fanout_recipients_min.into()), 1),
    (setting("workload", "fanout_recipients_max", |scenario| scenario.workload.fanout_recipients_max.into()), 1),
    (setting("workload", "order_keys", |scenario| scenario.workload.order_keys.into()), 1),
    (setting("faults.process", "crashes_max", |scenario| scenario.faults.process.crashes_max.into()), 0),
];

/// Until when things may take.
pub(super) const HEAL_AT: Setting<Ms> = setting("world", "heal_at", |scenario| scenario.world.heal_at);
pub(super) const SETTLE_WITHIN: Setting<Ms> = setting("world", "settle_within", |scenario| scenario.world.settle_within);
/// The least of both.
pub(super) const DURATION_MIN: Ms = Ms(1_000);

/// How long things take, with the site that decides it.
pub(super) const SPANS: [(Setting<Option<Span>>, &str); 9] = [
    (setting("workload", "gap", |scenario| Some(scenario.workload.gap)), "load.gap"),
    (setting("latency", "store", |scenario| Some(scenario.latency.store)), "kv.latency"),
    (setting("latency", "network", |scenario| Some(scenario.latency.network)), "net.latency"),
    (setting("latency", "signal", |scenario| Some(scenario.latency.signal)), "signal.latency"),
    (setting("world", "cron_every", |scenario| Some(scenario.world.cron_every)), "cron.every"),
    (setting("faults.store", "outage", |scenario| scenario.faults.store.outage), "store.outage-length"),
    (setting("faults.process", "restart_after", |scenario| scenario.faults.process.restart_after), "process.restart"),
    (setting("faults.process", "pause_length", |scenario| scenario.faults.process.pause_length), "pause.length"),
    (setting("faults.clocks", "step", |scenario| scenario.faults.clocks.step), "clock.step-size"),
];
/// How many of the lengths that a span had in a run are tried as its only one.
pub(super) const LENGTHS_MAX: usize = 4;

/// Shares of the workload: none or all is simpler than some.
pub(super) const SHARES: [Setting<Share>; 8] = [
    setting("workload", "misused", |scenario| scenario.workload.misused),
    setting("workload", "repeated", |scenario| scenario.workload.repeated),
    setting("workload", "large", |scenario| scenario.workload.large),
    setting("workload", "keyed", |scenario| scenario.workload.keyed),
    setting("workload", "fanout", |scenario| scenario.workload.fanout),
    setting("legacy", "fanout", |scenario| scenario.legacy.fanout),
    setting("legacy", "keyed", |scenario| scenario.legacy.keyed),
    setting("legacy", "others", |scenario| scenario.legacy.others),
];

/// Settings that only say how something else happens, or that ask for an act of an operator: with it gone, they may go.
const HELPERS: [(&str, &str); 11] = [
    ("workload", "close_intake_at"),
    ("workload", "open_intake_at"),
    ("faults.store", "outage"),
    ("faults.process", "crashes_max"),
    ("faults.process", "restart_after"),
    ("faults.process", "pause_length"),
    ("faults.clocks", "step"),
    ("expect", "sometimes"),
    ("expect", "no_empty_row_from"),
    ("world", "healthy_p99"),
    ("world", "reorder_within"),
];

pub(super) fn is_helper(section: &str, key: &str) -> bool {
    HELPERS.contains(&(section, key))
}

/// Whether the setting turns a family of faults on.
pub(super) fn is_family(section: &str, key: &str) -> bool {
    section.starts_with("faults.") && !is_helper(section, key)
}

/// Whether the setting is the chance of a fault, which a tape can do without.
pub(super) fn is_chance(section: &str, key: &str) -> bool {
    is_family(section, key) && section != "faults.clocks" && !key.ends_with("_count")
}

/// Whether the setting says how many sends, operations, incidents, workers or destinations there are.
pub(super) fn is_count(section: &str, key: &str) -> bool {
    let counts = LOAD.iter().chain(&INCIDENTS).chain(ACTORS.iter().filter(|(setting, _)| setting.section == "world"));
    counts.into_iter().any(|(setting, _)| (setting.section, setting.key) == (section, key))
}

/// Smaller values to try: the least, the half, one less. None is smaller than the least.
pub(super) fn smaller(value: u64, least: u64) -> Vec<u64> {
    let mut values = vec![least, (value / 2).max(least), value.saturating_sub(1).max(least)];
    values.retain(|smaller| *smaller < value);
    values.dedup();
    values
}

/// Shorter durations to try, in whole seconds: the least, the half, three quarters.
pub(super) fn shorter(value: Ms) -> Vec<Ms> {
    let seconds = |ms: u64| Ms(ms.next_multiple_of(1_000));
    let mut values = vec![DURATION_MIN, seconds(value.0 / 2), seconds(value.0 / 4 * 3)];
    values.retain(|shorter| DURATION_MIN <= *shorter && *shorter < value);
    values.dedup();
    values
}

/// A duration as a scenario file has it.
pub(super) fn ms_text(ms: Ms) -> String {
    if ms.0 > 0 && ms.0.is_multiple_of(1_000) { format!("{}s", ms.0 / 1_000) } else { format!("{}ms", ms.0) }
}

/// A span that is always the same, as a scenario file has it.
pub(super) fn always_text(ms: Ms) -> String {
    format!("{0}..{0}", ms_text(ms))
}

#[cfg(test)]
mod tests {
    use super::{Ms, always_text, is_chance, is_family, ms_text, shorter, smaller};

    #[test]
    fn smaller_is_smaller() {
        assert_eq!(smaller(36, 1), [1, 18, 35]);
        assert_eq!(smaller(2, 1), [1]);
        assert_eq!(smaller(1, 1), [0_u64; 0]);
        assert_eq!(smaller(0, 1), [0_u64; 0]);
        assert_eq!(shorter(Ms(30_000)), [Ms(1_000), Ms(15_000), Ms(23_000)]);
        assert_eq!(shorter(Ms(2_000)), [Ms(1_000)]);
        assert_eq!(shorter(Ms(1_000)), []);
    }

    #[test]
    fn texts_are_those_of_a_scenario() {
        assert_eq!([ms_text(Ms(0)), ms_text(Ms(1_500)), ms_text(Ms(3_000))], ["0ms", "1500ms", "3s"]);
        assert_eq!(always_text(Ms(2)), "2ms..2ms");
    }

    #[test]
    fn kinds_of_fault_settings() {
        for (section, key, expect) in [
            ("faults.store", "slow", (true, true)),
            ("faults.store", "outages_count", (true, false)),
            ("faults.store", "outage", (false, false)),
            ("faults.clocks", "drift", (true, false)),
            ("workload", "keyed", (false, false)),
        ] {
            assert_eq!((is_family(section, key), is_chance(section, key)), expect, "{section}.{key}");
        }
    }
}
