//! The fault families by name, and which of them a scenario asks for.

use crate::scenario::{
    ClockFaults, Faults, LegacyFaults, NetworkFaults, ProcessFaults, ReceiverFaults, SignalFaults, StoreFaults,
};

/// Every fault family, with whether `faults` asks for it. The tables are taken apart whole, so that a family cannot be
/// forgotten here.
pub fn families(faults: &Faults) -> Vec<(&'static str, bool)> {
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
    vec![
        ("store.unavailable", unavailable.0 > 0),
        ("store.conflict", conflict.0 > 0),
        ("store.ambiguous-committed", ambiguous_committed.0 > 0),
        ("store.ambiguous-lost", ambiguous_lost.0 > 0),
        ("store.ambiguous-late", ambiguous_late.0 > 0),
        ("store.short-page", short_page.0 > 0),
        ("store.slow", slow.0 > 0),
        ("store.outage", *outages_count > 0),
        ("store.lost-due-row", *lost_due_rows_count > 0),
        ("store.lost-pointer", *lost_pointers_count > 0),
        ("store.foreign-record", *foreign_records_count > 0),
        ("store.foreign-intent", *foreign_intents_count > 0),
        ("store.conflicting-entry", *conflicting_entries_count > 0),
        ("store.damaged-record", *damaged_records_count > 0),
        ("network.lost-request", lost_request.0 > 0),
        ("network.lost-response", lost_response.0 > 0),
        ("network.duplicated", duplicated.0 > 0),
        ("network.reset", reset.0 > 0),
        ("network.refused", refused.0 > 0),
        ("network.dns", dns.0 > 0),
        ("network.tls", tls.0 > 0),
        ("network.late", late.0 > 0),
        ("receiver.server-error", server_error.0 > 0),
        ("receiver.rate-limited", rate_limited.0 > 0),
        ("receiver.gone", gone.0 > 0),
        ("receiver.refused", receiver_refused.0 > 0),
        ("receiver.dead-host", *dead_hosts_count > 0),
        ("receiver.flapping-host", *flapping_hosts_count > 0),
        ("receiver.slow-host", *slow_hosts_count > 0),
        ("process.crash-before-commit", crash_before_commit.0 > 0),
        ("process.crash-after-commit", crash_after_commit.0 > 0),
        ("process.crash-before-post", crash_before_post.0 > 0),
        ("process.crash-after-post", crash_after_post.0 > 0),
        ("process.crash-before-wake", crash_before_wake.0 > 0),
        ("process.crash-after-wake", crash_after_wake.0 > 0),
        ("process.pause-before-post", pause_before_post.0 > 0),
        ("process.pause", pause.0 > 0),
        ("process.graceful-restart", *graceful_restarts_count > 0),
        ("process.downtime", *downtimes_count > 0),
        ("signals.lost", signal_lost.0 > 0),
        ("signals.duplicated", signal_duplicated.0 > 0),
        ("signals.late", signal_late.0 > 0),
        ("clocks.skew", skew.0 > 0),
        ("clocks.drift", drift.0 > 0),
        ("clocks.step", *steps_count > 0),
        ("legacy.unavailable", legacy_unavailable.0 > 0),
        ("legacy.ambiguous-done", ambiguous_done.0 > 0),
        ("legacy.ambiguous-lost", legacy_ambiguous_lost.0 > 0),
        ("legacy.redelivered", redelivered.0 > 0),
        ("legacy.crash-before-complete", crash_before_complete.0 > 0),
        ("legacy.crash-after-complete", crash_after_complete.0 > 0),
    ]
}
