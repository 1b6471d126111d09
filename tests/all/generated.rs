//! Generated scenarios: whatever mixture of load, settings and faults is asked for, the properties hold and the same seed does
//! the same again.

use std::ops::RangeInclusive;

use proptest::prelude::*;
use proptest::strategy::Union;
use restante_sim::campaign::run_guarded;
use restante_sim::scenario::{self, Scenario};
use restante_sim::{RunOptions, RunResult};

/// A part of a scenario's file: some lines, or none. Shrinking leaves lines out, and what is left out is the default.
type Lines = BoxedStrategy<String>;

fn sometimes(lines: impl Strategy<Value = String> + 'static) -> Lines {
    Union::new_weighted(vec![(2, Just(String::new()).boxed()), (3, lines.boxed())]).boxed()
}

fn rarely(lines: impl Strategy<Value = String> + 'static) -> Lines {
    Union::new_weighted(vec![(4, Just(String::new()).boxed()), (1, lines.boxed())]).boxed()
}

fn count(key: &'static str, range: RangeInclusive<u64>) -> Lines {
    range.prop_map(move |value| format!("{key} = {value}\n")).boxed()
}

fn duration(key: &'static str, ms: RangeInclusive<u64>) -> Lines {
    ms.prop_map(move |value| format!("{key} = \"{value}ms\"\n")).boxed()
}

fn span(key: &'static str, min_ms: RangeInclusive<u64>, more_ms: RangeInclusive<u64>) -> Lines {
    (min_ms, more_ms).prop_map(move |(min, more)| format!("{key} = \"{min}ms..{}ms\"\n", min + more)).boxed()
}

/// A share of up to `permille`.
fn share(key: &'static str, permille: u64) -> Lines {
    (1..=permille).prop_map(move |value| format!("{key} = \"{}.{}%\"\n", value / 10, value % 10)).boxed()
}

fn all(parts: Vec<Lines>) -> Lines {
    parts.prop_map(|lines| lines.concat()).boxed()
}

/// A table of a file, left out when it says nothing.
fn table(name: &str, lines: &str) -> String {
    if lines.is_empty() { String::new() } else { format!("[{name}]\n{lines}\n") }
}

/// Who is there. Somebody delivers; where only bounded runs do, they come often enough to drain what is sent.
fn world() -> Lines {
    let cron = || (count("cron_callers", 1..=2), span("cron_every", 500..=2_000, 0..=2_000), count("cron_limit_count", 5..=20));
    let only_cron = cron().prop_map(|(callers, every, limit)| format!("workers = 0\n{callers}{every}{limit}"));
    let beside = cron().prop_map(|(callers, every, limit)| format!("{callers}{every}{limit}"));
    let who = prop_oneof![
        6 => sometimes(count("workers", 1..=3)),
        2 => (count("workers", 1..=2), beside).prop_map(|(workers, cron)| workers + &cron),
        1 => only_cron,
    ];
    all(vec![who.boxed(), sometimes(duration("heal_at", 5_000..=30_000))])
}

fn workload() -> Lines {
    // An operator's close that is repeated after an outage must not come after the open: that would be a world that stays closed.
    let intake = (1_000..=20_000_u64, 30_000..=40_000_u64, any::<bool>()).prop_map(|(close_at, after, opens)| {
        let open = if opens { format!("open_intake_at = \"{}ms\"\n", close_at + after) } else { String::new() };
        format!("close_intake_at = \"{close_at}ms\"\n{open}")
    });
    let holds =
        (count("holds_count", 1..=4), share("hold_unknown_end", 600), share("hold_extended", 600), share("hold_released", 600))
            .prop_map(|(count, unknown, extended, released)| count + &unknown + &extended + &released);
    all(vec![
        sometimes(count("producers", 1..=4)),
        sometimes(count("sends_count", 1..=14)),
        sometimes(span("gap", 1..=500, 0..=1_500)),
        sometimes(share("keyed", 1_000)),
        sometimes(count("order_keys", 1..=3)),
        sometimes(share("large", 600)),
        sometimes(share("repeated", 300)),
        sometimes(share("misused", 300)),
        sometimes(count("wakes_count", 1..=20)),
        sometimes(count("depths_count", 0..=20)),
        rarely(intake),
        rarely(holds),
    ])
}

fn config() -> Lines {
    let backoff = (1..=2_000_u64, 0..=10_000_u64)
        .prop_map(|(initial, more)| format!("backoff_initial = \"{initial}ms\"\nbackoff_max = \"{}ms\"\n", initial + more));
    let breaker = (
        count("breaker_failures", 1..=5),
        duration("breaker_window", 3_000..=30_000),
        duration("breaker_recovery", 500..=8_000),
        duration("circuit_held_max", 20_000..=60_000),
    )
        .prop_map(|(failures, window, recovery, held)| failures + &window + &recovery + &held);
    let staging =
        (40..=600_u64, 30..=300_u64).prop_map(|(inline, chunk)| format!("inline_max = \"{inline}B\"\nchunk = \"{chunk}B\"\n"));
    all(vec![
        sometimes(backoff),
        rarely(staging),
        sometimes(duration("max_retention", 5_000..=120_000)),
        sometimes(count("attempts_max", 1..=15)),
        sometimes(duration("stage_deadline", 5_000..=30_000)),
        sometimes(duration("poll_interval", 200..=5_000)),
        sometimes(duration("sweep_interval", 3_000..=20_000)),
        sometimes(duration("quarantine_retention", 1_000..=30_000)),
        sometimes(count("window", 1..=16)),
        sometimes(count("concurrency", 1..=8)),
        sometimes(count("counter_slots", 1..=9)),
        sometimes(count("pointer_shards", 1..=6)),
        sometimes(count("tries_max", 1..=10)),
        sometimes(count("concurrency_per_destination", 1..=8)),
        rarely(duration("ramp_step", 100..=1_000)),
        rarely(duration("resume_jitter", 1..=1_000)),
        rarely(duration("retry_age_max", 10_000..=60_000)),
        rarely(breaker),
    ])
}

fn latency() -> Lines {
    all(vec![
        rarely(span("store", 1..=20, 0..=60)),
        sometimes(span("network", 1..=200, 0..=2_500)),
        rarely(span("signal", 1..=50, 0..=500)),
    ])
}

/// Every family may be there or not, each with small shares: several at once is the normal case.
fn faults() -> Lines {
    let store = vec![
        sometimes(share("unavailable", 30)),
        sometimes(share("conflict", 80)),
        sometimes(share("ambiguous_committed", 40)),
        sometimes(share("ambiguous_lost", 40)),
        sometimes(share("ambiguous_late", 40)),
        sometimes(share("short_page", 100)),
        sometimes(share("slow", 20)),
        rarely(
            (count("outages_count", 1..=2), span("outage", 200..=2_000, 0..=4_000)).prop_map(|(count, length)| count + &length),
        ),
        sometimes(count("lost_due_rows_count", 1..=5)),
        sometimes(count("lost_pointers_count", 1..=4)),
        sometimes(count("foreign_records_count", 1..=3)),
        sometimes(count("damaged_records_count", 1..=3)),
    ];
    let ways = ["lost_request", "lost_response", "duplicated", "reset", "refused", "dns", "tls", "late"];
    let network = ways.into_iter().map(|way| sometimes(share(way, 50))).collect();
    let receiver = vec![
        sometimes(share("server_error", 500)),
        sometimes(share("rate_limited", 150)),
        sometimes(share("gone", 100)),
        sometimes(share("refused", 100)),
        rarely(count("dead_hosts_count", 1..=1)),
        rarely(count("flapping_hosts_count", 1..=1)),
        rarely(count("slow_hosts_count", 1..=1)),
    ];
    let crashes = ["before_commit", "after_commit", "before_post", "after_post", "before_wake", "after_wake"];
    let crashes: Vec<Lines> =
        crashes.into_iter().map(|at| sometimes(share("", 30).prop_map(move |share| format!("crash_{at}{share}")))).collect();
    let crashes = (crashes, count("crashes_max", 1..=6), sometimes(span("restart_after", 1..=2_000, 0..=4_000)))
        .prop_map(|(shares, max, restart)| shares.concat() + &max + &restart);
    let process = vec![
        sometimes(crashes),
        sometimes(share("pause_before_post", 50)),
        sometimes(share("pause", 20)),
        sometimes(span("pause_length", 100..=3_000, 0..=9_000)),
        rarely(count("graceful_restarts_count", 1..=3)),
        rarely(count("downtimes_count", 1..=2)),
    ];
    let signals = ["lost", "duplicated", "late"].into_iter().map(|way| sometimes(share(way, 300))).collect();
    let families =
        vec![("store", store), ("network", network), ("receiver", receiver), ("process", process), ("signals", signals)];
    let tables: Vec<Lines> = families
        .into_iter()
        .map(|(name, parts)| sometimes(all(parts).prop_map(move |lines| table(&format!("faults.{name}"), &lines))))
        .collect();
    all(tables)
}

/// Clocks lie at most this far apart: offsets either way, steps that add up, and drift over a run's length.
const SKEW_MS: u64 = 1_500;

/// True clocks; clocks that are off beside a store that has one; or clocks that are all there is, within the stated skew.
fn clocks() -> BoxedStrategy<(bool, String)> {
    let off = all(vec![
        sometimes(duration("skew", 1..=300)),
        sometimes((count("steps_count", 1..=3), span("step", 1..=100, 0..=100)).prop_map(|(count, step)| count + &step)),
        sometimes((1..=200_u64).prop_map(|millionths| format!("drift = \"0.{millionths:04}%\"\n"))),
    ]);
    prop_oneof![3 => rarely(off.clone()).prop_map(|lines| (true, lines)), 2 => off.prop_map(|lines| (false, lines))].boxed()
}

/// Request timeout, margin, freshness, and what the lease has beyond them and the skew of the clocks: each of them more than
/// a store's answer takes, or a gate's answer would always come too late to be used.
fn lease() -> impl Strategy<Value = Option<(u64, u64, u64, u64)>> {
    proptest::option::of((200..=4_000_u64, 1..=2_000_u64, 200..=2_000_u64, 300..=6_000_u64))
}

/// A scenario's text: settings that depend on each other are put together here.
fn text() -> impl Strategy<Value = String> {
    let places = (1..=6_u64, 1..=4_u64);
    let parts = (world(), workload(), places, config(), lease(), latency(), faults(), clocks());
    parts.prop_map(|(world, workload, (destinations, recipients), config, lease, latency, faults, (has_clock, clocks))| {
        let skew_ms = if has_clock { 0 } else { SKEW_MS };
        let (timeout, margin, freshness, more) = lease.unwrap_or((2_000, 1_000, 1_000, 2_000));
        let lease = timeout + margin + freshness + 2 * skew_ms + more;
        let config = format!(
            "lease = \"{lease}ms\"\nrequest_timeout = \"{timeout}ms\"\nlease_margin = \"{margin}ms\"\n\
             gate_freshness = \"{freshness}ms\"\nmax_clock_skew = \"{skew_ms}ms\"\n{config}"
        );
        let world = format!("destinations = {destinations}\nstore_clock = {has_clock}\n{world}");
        let workload = format!("recipients_max = {}\n{workload}", recipients.min(destinations));
        [
            "why = \"Generated.\"\n\n".to_owned(),
            table("world", &world),
            table("workload", &workload),
            table("config", &config),
            table("latency", &latency),
            faults,
            table("faults.clocks", &clocks),
        ]
        .concat()
    })
}

fn run(scenario: &Scenario, seed: u64) -> Result<RunResult, TestCaseError> {
    run_guarded(scenario, seed, &RunOptions::default()).map_err(|error| TestCaseError::fail(error.to_string()))
}

proptest! {
    // A failure prints the whole scenario and its seed: there is no need of a file that remembers it.
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(60, |_| ProptestConfig::default().cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn properties_hold_in_any_mixture_of_load_settings_and_faults(text in text(), seed in (1..=u64::from(u32::MAX)).no_shrink()) {
        let again = format!("put this into FILE and see it again with `restante-sim run FILE --seed {seed}`:\n{text}");
        let scenario = scenario::parse("generated", &text).map_err(|error| TestCaseError::fail(format!("{error}; {again}")))?;
        let once = run(&scenario, seed)?;
        prop_assert!(once.violation.is_none(), "{:?}; {again}", once.violation);
        let twice = run(&scenario, seed)?;
        prop_assert_eq!((once.digest, once.events), (twice.digest, twice.events), "two runs differ; {}", again);
    }
}
