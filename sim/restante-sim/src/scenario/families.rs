//! The fault families by name, and the setting that each of them hangs on.

use super::{
    ClockFaults, Faults, LegacyFaults, Ms, NetworkFaults, ProcessFaults, ReceiverFaults, Share, SignalFaults, StoreFaults,
};

/// How much of something a scenario asks for.
#[derive(Debug)]
pub(crate) enum Amount<'s> {
    Share(&'s mut Share),
    Count(&'s mut u32),
    Duration(&'s mut Ms),
}

impl Amount<'_> {
    /// Whether it is asked for at all.
    pub(crate) fn is_some(&self) -> bool {
        match self {
            Self::Share(share) => share.0 > 0,
            Self::Count(count) => **count > 0,
            Self::Duration(ms) => ms.0 > 0,
        }
    }

    /// It is not asked for any more.
    pub(crate) fn clear(self) {
        match self {
            Self::Share(share) => *share = Share(0),
            Self::Count(count) => *count = 0,
            Self::Duration(ms) => *ms = Ms(0),
        }
    }

    /// What a scenario's file says when it is not asked for.
    pub(crate) fn none_text(&self) -> toml::Value {
        match self {
            Self::Share(_) => "0%".into(),
            Self::Count(_) => 0.into(),
            Self::Duration(_) => "0ms".into(),
        }
    }
}

/// A fault family.
#[derive(Debug)]
pub(crate) struct Family<'s> {
    /// Its name; what stands before the dot is its table in a scenario's file.
    pub(crate) name: &'static str,
    /// The key in that table.
    pub(crate) key: &'static str,
    pub(crate) amount: Amount<'s>,
}

impl Family<'_> {
    /// The section of a scenario's file: `faults.store`.
    pub(crate) fn section(&self) -> &'static str {
        section_of(self.name)
    }
}

/// The section of a scenario's file in which a family stands.
pub(crate) fn section_of(family: &str) -> &'static str {
    match family.split('.').next().unwrap_or_default() {
        "store" => "faults.store",
        "network" => "faults.network",
        "receiver" => "faults.receiver",
        "process" => "faults.process",
        "signals" => "faults.signals",
        "legacy" => "faults.legacy",
        _ => "faults.clocks",
    }
}

/// Every fault family. The tables are taken apart whole, so that a family cannot be forgotten here.
pub(crate) fn families_mut(faults: &mut Faults) -> Vec<Family<'_>> {
    let Faults { store, network, receiver, process, signals, clocks, legacy } = faults;
    let StoreFaults {
        unavailable,
        conflict,
        ambiguous_committed,
        ambiguous_lost,
        ambiguous_late,
        short_page,
        slow,
        outages_count,
        outage: _,
        lost_due_rows_count,
        lost_pointers_count,
        foreign_records_count,
        damaged_records_count,
        foreign_intents_count,
        conflicting_entries_count,
    } = store;
    let NetworkFaults { lost_request, lost_response, duplicated, reset, refused, dns, tls, late } = network;
    let ReceiverFaults {
        server_error,
        rate_limited,
        gone,
        refused: receiver_refused,
        dead_hosts_count,
        flapping_hosts_count,
        flap_every: _,
        slow_hosts_count,
    } = receiver;
    let ProcessFaults {
        crash_before_commit,
        crash_after_commit,
        crash_before_post,
        crash_after_post,
        crash_before_wake,
        crash_after_wake,
        crashes_max: _,
        restart_after: _,
        pause_before_post,
        pause,
        pause_length: _,
        graceful_restarts_count,
        downtimes_count,
        downtime: _,
        upgrade_at,
        upgrade_within: _,
        upgrade_kinds: _,
    } = process;
    let SignalFaults { lost: signal_lost, duplicated: signal_duplicated, late: signal_late } = signals;
    let LegacyFaults {
        unavailable: legacy_unavailable,
        ambiguous_done,
        ambiguous_lost: legacy_ambiguous_lost,
        redelivered,
        crash_before_complete,
        crash_after_complete,
    } = legacy;
    let ClockFaults { skew, drift, steps_count, step: _ } = clocks;
    let share = |name, key, share| Family { name, key, amount: Amount::Share(share) };
    let count = |name, key, count| Family { name, key, amount: Amount::Count(count) };
    vec![
        share("store.unavailable", "unavailable", unavailable),
        share("store.conflict", "conflict", conflict),
        share("store.ambiguous-committed", "ambiguous_committed", ambiguous_committed),
        share("store.ambiguous-lost", "ambiguous_lost", ambiguous_lost),
        share("store.ambiguous-late", "ambiguous_late", ambiguous_late),
        share("store.short-page", "short_page", short_page),
        share("store.slow", "slow", slow),
        count("store.outage", "outages_count", outages_count),
        count("store.lost-due-row", "lost_due_rows_count", lost_due_rows_count),
        count("store.lost-pointer", "lost_pointers_count", lost_pointers_count),
        count("store.foreign-record", "foreign_records_count", foreign_records_count),
        count("store.foreign-intent", "foreign_intents_count", foreign_intents_count),
        count("store.conflicting-entry", "conflicting_entries_count", conflicting_entries_count),
        count("store.damaged-record", "damaged_records_count", damaged_records_count),
        share("network.lost-request", "lost_request", lost_request),
        share("network.lost-response", "lost_response", lost_response),
        share("network.duplicated", "duplicated", duplicated),
        share("network.reset", "reset", reset),
        share("network.refused", "refused", refused),
        share("network.dns", "dns", dns),
        share("network.tls", "tls", tls),
        share("network.late", "late", late),
        share("receiver.server-error", "server_error", server_error),
        share("receiver.rate-limited", "rate_limited", rate_limited),
        share("receiver.gone", "gone", gone),
        share("receiver.refused", "refused", receiver_refused),
        count("receiver.dead-host", "dead_hosts_count", dead_hosts_count),
        count("receiver.flapping-host", "flapping_hosts_count", flapping_hosts_count),
        count("receiver.slow-host", "slow_hosts_count", slow_hosts_count),
        share("process.crash-before-commit", "crash_before_commit", crash_before_commit),
        share("process.crash-after-commit", "crash_after_commit", crash_after_commit),
        share("process.crash-before-post", "crash_before_post", crash_before_post),
        share("process.crash-after-post", "crash_after_post", crash_after_post),
        share("process.crash-before-wake", "crash_before_wake", crash_before_wake),
        share("process.crash-after-wake", "crash_after_wake", crash_after_wake),
        share("process.pause-before-post", "pause_before_post", pause_before_post),
        share("process.pause", "pause", pause),
        count("process.graceful-restart", "graceful_restarts_count", graceful_restarts_count),
        count("process.downtime", "downtimes_count", downtimes_count),
        Family { name: "process.upgrade", key: "upgrade_at", amount: Amount::Duration(upgrade_at) },
        share("signals.lost", "lost", signal_lost),
        share("signals.duplicated", "duplicated", signal_duplicated),
        share("signals.late", "late", signal_late),
        Family { name: "clocks.skew", key: "skew", amount: Amount::Duration(skew) },
        share("clocks.drift", "drift", drift),
        count("clocks.step", "steps_count", steps_count),
        share("legacy.unavailable", "unavailable", legacy_unavailable),
        share("legacy.ambiguous-done", "ambiguous_done", ambiguous_done),
        share("legacy.ambiguous-lost", "ambiguous_lost", legacy_ambiguous_lost),
        share("legacy.redelivered", "redelivered", redelivered),
        share("legacy.crash-before-complete", "crash_before_complete", crash_before_complete),
        share("legacy.crash-after-complete", "crash_after_complete", crash_after_complete),
    ]
}

/// Every fault family, with whether `faults` asks for it.
pub fn families(faults: &Faults) -> Vec<(&'static str, bool)> {
    let mut faults = faults.clone();
    families_mut(&mut faults).iter().map(|family| (family.name, family.amount.is_some())).collect()
}
