//! Settings of a backlog, validated once against the store's limits.

use std::sync::Arc;

use restante_kv::Limits;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::plan::NAME_BYTES_MAX;

/// Most bytes of an entry beside its payload: inbox, destination, order key, signing reference and the fixed fields.
const ENTRY_BYTES_BESIDE_PAYLOAD_MAX: usize = 16 * 1024;
/// Most bytes of a key behind the prefix: a name whose every byte is escaped, or two names that need no escape, and the rest.
const KEY_BYTES_MAX: usize = 2 * NAME_BYTES_MAX + 64;

/// Settings of a backlog. Every duration is in milliseconds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Config {
    /// First bytes of every key.
    pub prefix: Arc<str>,
    /// How long an entry may live, from ownership; never extended. At least 1.
    pub max_retention_ms: u64,
    /// How long a claim lasts before another worker may take over.
    pub lease_ms: u64,
    /// How long a POST may take in all.
    pub request_timeout_ms: u64,
    /// What must remain of the lease when a POST begins, beyond `request_timeout_ms`: time to settle.
    pub lease_margin_ms: u64,
    /// How old a gate's answer may be when its POST begins.
    pub gate_freshness_ms: u64,
    /// How far clocks that judge the same lease may lie apart; 0 where the store has a clock of its own.
    pub max_clock_skew_ms: u64,
    /// Most attempts in all, the first included.
    pub attempts_max: u32,
    /// Delay after the first failure.
    pub backoff_initial_ms: u64,
    /// Longest delay, jitter included.
    pub backoff_max_ms: u64,
    /// Status codes after which a delivery is given up at once.
    pub permanent_codes: Vec<u16>,
    /// Largest payload that is kept in the entry itself; a larger one is staged.
    pub inline_bytes_max: usize,
    /// Size of a staged chunk.
    pub chunk_bytes: usize,
    /// How long a staged payload may stay unpublished.
    pub stage_deadline_ms: u64,
    /// Most recipients of a direct send; a send with more becomes an intent, which workers expand.
    pub recipients_max: usize,
    /// How often a worker looks for due work without any signal.
    pub poll_interval_ms: u64,
    /// How often all records are swept and missing index rows put back.
    pub sweep_interval_ms: u64,
    /// How many records a discovery scan reads at once; candidates are taken from this window at random.
    pub window: usize,
    /// How many deliveries a worker has under way at most.
    pub concurrency: usize,
    /// Number of shards of the pointer index.
    pub pointer_shards: u64,
    /// Width of a pointer bucket.
    pub pointer_bucket_ms: u64,
    /// Number of counter slots; all of them and the intake record are read in one snapshot.
    pub counter_slots: u64,
    /// How long the marker of an accept is kept, at least the longest time a commit may stay ambiguous.
    pub marker_retention_ms: u64,
    /// How long a dead letter is kept.
    pub dead_letter_retention_ms: u64,
    /// How long a quarantined record is kept.
    pub quarantine_retention_ms: u64,
    /// Most tries of one commit before the item is yielded.
    pub tries_max: u32,
    /// Longest pause before a try after a conflict.
    pub conflict_pause_ms: u64,
    /// Most entries that one commit of an expansion makes.
    #[serde(default = "expand_entries_max")]
    pub expand_entries_max: usize,
    /// Most lanes that one commit of a keyed expansion takes places in: each is a check of its transaction.
    #[serde(default = "expand_lanes_max")]
    pub expand_lanes_max: usize,
    /// How many deliveries to one destination a worker has under way at most; 0 for a quarter of `concurrency`, at least one.
    pub concurrency_per_destination: usize,
    /// After a pause, a hold or an open circuit, a worker begins with one delivery to the destination and has one more under way
    /// with every step; 0 for all at once.
    pub ramp_step_ms: u64,
    /// How much later than a pause, a hold or a circuit's recovery the destination is looked at again, at most. Until then its work is
    /// not found, and a run that finds nothing else says so, with `next_at`.
    pub resume_jitter_ms: u64,
    /// How often a held destination is looked at without any signal.
    pub held_recheck_interval_ms: u64,
    /// How long a hold without a known end lasts after it was last confirmed.
    pub hold_cap_ms: u64,
    /// How old a delivery may be that is to be tried again, time under holds not counted; 0 for as old as its retention lets it be.
    pub retry_age_max_ms: u64,
    /// Failures within `breaker_window_ms` that open a destination's circuit; 0 for no circuit breaker.
    pub breaker_failures: usize,
    /// How long a failure counts.
    pub breaker_window_ms: u64,
    /// How long after it opened a circuit admits a probe.
    pub breaker_recovery_ms: u64,
    /// How long a circuit may keep a delivery back before it is given up.
    pub circuit_held_max_ms: u64,
}

const fn expand_entries_max() -> usize {
    128
}
const fn expand_lanes_max() -> usize {
    5
}

/// Most failures that a breaker counts before it opens.
const BREAKER_FAILURES_MAX: usize = 100;

impl Config {
    /// Settings with the documented defaults and the one that has none: how long an entry may live.
    pub fn new(max_retention_ms: u64) -> Self {
        const SECOND: u64 = 1_000;
        const HOUR: u64 = 3_600 * SECOND;
        Self {
            prefix: "restante/".into(),
            max_retention_ms,
            lease_ms: 60 * SECOND,
            request_timeout_ms: 10 * SECOND,
            lease_margin_ms: 5 * SECOND,
            gate_freshness_ms: 2 * SECOND,
            max_clock_skew_ms: 0,
            attempts_max: 11,
            backoff_initial_ms: SECOND,
            backoff_max_ms: 12 * HOUR,
            permanent_codes: vec![404, 410],
            inline_bytes_max: 4 * 1024,
            chunk_bytes: 48 * 1024,
            stage_deadline_ms: 10 * 60 * SECOND,
            recipients_max: 4,
            poll_interval_ms: SECOND,
            sweep_interval_ms: 60 * SECOND,
            window: 32,
            concurrency: 16,
            pointer_shards: 4,
            pointer_bucket_ms: SECOND,
            counter_slots: 8,
            marker_retention_ms: 24 * HOUR,
            dead_letter_retention_ms: 7 * 24 * HOUR,
            quarantine_retention_ms: 7 * 24 * HOUR,
            tries_max: 8,
            conflict_pause_ms: 20,
            expand_entries_max: expand_entries_max(),
            expand_lanes_max: expand_lanes_max(),
            concurrency_per_destination: 0,
            ramp_step_ms: SECOND,
            resume_jitter_ms: SECOND,
            held_recheck_interval_ms: 60 * SECOND,
            hold_cap_ms: 24 * HOUR,
            retry_age_max_ms: 0,
            breaker_failures: 5,
            breaker_window_ms: 10 * 60 * SECOND,
            breaker_recovery_ms: 30 * 60 * SECOND,
            circuit_held_max_ms: 7 * 24 * HOUR,
        }
    }

    /// How many deliveries to one destination a worker has under way at most.
    pub fn share_per_destination(&self) -> usize {
        match self.concurrency_per_destination {
            0 => (self.concurrency / 4).max(1),
            share => share.min(self.concurrency),
        }
    }

    /// How long a breaker's state is kept after its last change: while it counts, as long as a failure counts; else until a probe
    /// was admitted and whatever it keeps back is over.
    pub fn breaker_life_ms(&self, is_counting: bool) -> u64 {
        if is_counting {
            return self.breaker_window_ms;
        }
        let after_ms = self.breaker_window_ms.max(self.circuit_held_max_ms).max(self.lease_ms);
        self.breaker_recovery_ms.saturating_add(after_ms)
    }

    /// Checks the settings against each other and against what the store can do.
    ///
    /// # Errors
    /// The first [`ConfigError`] found.
    pub fn validate(&self, limits: &Limits) -> Result<(), ConfigError> {
        let positive: [(&'static str, u64); 22] = [
            ("max_retention_ms", self.max_retention_ms),
            // An answer that is stale at once would be asked for again for ever.
            ("gate_freshness_ms", self.gate_freshness_ms),
            ("request_timeout_ms", self.request_timeout_ms),
            ("attempts_max", self.attempts_max.into()),
            ("backoff_initial_ms", self.backoff_initial_ms),
            ("chunk_bytes", self.chunk_bytes as u64),
            ("recipients_max", self.recipients_max as u64),
            ("poll_interval_ms", self.poll_interval_ms),
            ("sweep_interval_ms", self.sweep_interval_ms),
            ("window", self.window as u64),
            ("concurrency", self.concurrency as u64),
            ("pointer_shards", self.pointer_shards),
            ("pointer_bucket_ms", self.pointer_bucket_ms),
            ("counter_slots", self.counter_slots),
            ("tries_max", self.tries_max.into()),
            ("expand_entries_max", self.expand_entries_max as u64),
            ("expand_lanes_max", self.expand_lanes_max as u64),
            ("held_recheck_interval_ms", self.held_recheck_interval_ms),
            ("hold_cap_ms", self.hold_cap_ms),
            ("breaker_window_ms", self.breaker_window_ms),
            ("breaker_recovery_ms", self.breaker_recovery_ms),
            ("circuit_held_max_ms", self.circuit_held_max_ms),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(ConfigError::Zero(name));
        }
        let needed_ms = self
            .request_timeout_ms
            .saturating_add(self.lease_margin_ms)
            .saturating_add(self.gate_freshness_ms)
            .saturating_add(self.max_clock_skew_ms.saturating_mul(2));
        if self.lease_ms <= needed_ms {
            return Err(ConfigError::LeaseTooShort { lease_ms: self.lease_ms, needed_ms });
        }
        if self.backoff_max_ms < self.backoff_initial_ms {
            return Err(ConfigError::BackoffInverted { initial_ms: self.backoff_initial_ms, max_ms: self.backoff_max_ms });
        }
        if self.breaker_failures > BREAKER_FAILURES_MAX {
            return Err(ConfigError::TooManyFailures { failures: self.breaker_failures, max: BREAKER_FAILURES_MAX });
        }
        let floor = Limits::FLOOR;
        let (counter_slots, recipients) = (usize::try_from(self.counter_slots).unwrap_or(usize::MAX), self.recipients_max);
        // A keyed, staged accept checks intake, marker, counters, stage and order key, and one lane a recipient.
        let accept_keys = recipients.saturating_add(5);
        let entry_bytes = self.inline_bytes_max.saturating_add(ENTRY_BYTES_BESIDE_PAYLOAD_MAX);
        // Per recipient: entry, member, due row, pointer and lane slot.
        let accept_bytes = recipients.saturating_add(1).saturating_mul(entry_bytes.saturating_add(5 * floor.key_bytes_max));
        // The last chunk of a keyed expansion checks intent, counters, order key and the next intent, and one lane a destination;
        // it reads the next place beside them. Per entry it writes as much as an accept.
        let lanes = self.expand_lanes_max;
        let expand_writes = self.expand_entries_max.saturating_mul(6).saturating_add(16);
        for (what, has, needs) in [
            ("checks in a transaction", limits.txn_checks_max, lanes.saturating_add(4)),
            ("keys in a snapshot", limits.get_keys_max, lanes.saturating_add(5)),
            ("writes in a transaction", limits.txn_writes_max, expand_writes),
            ("keys in a snapshot", limits.get_keys_max, floor.get_keys_max.max(counter_slots.saturating_add(1)).max(accept_keys)),
            ("checks in a transaction", limits.txn_checks_max, floor.txn_checks_max.max(accept_keys)),
            ("writes in a transaction", limits.txn_writes_max, recipients.saturating_mul(8).saturating_add(8)),
            ("bytes in a value", limits.value_bytes_max, floor.value_bytes_max.max(self.chunk_bytes.saturating_add(64))),
            ("bytes in a value", limits.value_bytes_max, entry_bytes),
            ("bytes in a transaction", limits.txn_bytes_max, floor.txn_bytes_max.max(accept_bytes)),
            ("bytes in a key", limits.key_bytes_max, floor.key_bytes_max.max(self.prefix.len().saturating_add(KEY_BYTES_MAX))),
            ("records in a page", limits.scan_page_max, 1),
        ] {
            if has < needs {
                return Err(ConfigError::StoreTooSmall { what, has, needs });
            }
        }
        Ok(())
    }

    /// Delay before the next attempt after `failure_count` failures (at least 1): `initial * 2^(n-1)`, times a jitter in
    /// [1, 2) taken from `entropy`. Where that exceeds the maximum, the delay lies in the last quarter before it: deliveries that
    /// have failed for long must not all come back at one instant either. Saturates.
    pub fn backoff_ms(&self, failure_count: u32, entropy: u64) -> u64 {
        let doublings = failure_count.saturating_sub(1).min(63);
        let base = (u128::from(self.backoff_initial_ms) << doublings).min(u64::MAX.into());
        let jittered = base + ((base * u128::from(entropy)) >> 64);
        let max = u128::from(self.backoff_max_ms);
        let spread = ((max / 4) * u128::from(entropy)) >> 64;
        let delay = if jittered > max { (max - spread).max(self.backoff_initial_ms.into()) } else { jittered };
        u64::try_from(delay).unwrap_or(self.backoff_max_ms)
    }
}

/// Why settings are refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ConfigError {
    /// A setting that must be positive is 0.
    #[error("{0} is 0: give it a positive value")]
    Zero(&'static str),
    /// The lease could end in the middle of a POST.
    #[error(
        "lease_ms is {lease_ms}, but a POST, its margins and the clock skew need more than {needed_ms}: \
         lengthen the lease or shorten request_timeout_ms"
    )]
    LeaseTooShort {
        /// The lease.
        lease_ms: u64,
        /// What it must exceed.
        needed_ms: u64,
    },
    /// The longest delay is shorter than the first.
    #[error("backoff_max_ms is {max_ms}, less than backoff_initial_ms ({initial_ms})")]
    BackoffInverted {
        /// First delay.
        initial_ms: u64,
        /// Longest delay.
        max_ms: u64,
    },
    /// The breaker's record would grow too large.
    #[error("breaker_failures is {failures}, at most {max} are counted")]
    TooManyFailures {
        /// The setting.
        failures: usize,
        /// The most.
        max: usize,
    },
    /// The store is below the floor or below what the settings need.
    #[error("the store allows {has} {what}, these settings need {needs}: use another store or smaller settings")]
    StoreTooSmall {
        /// Which limit.
        what: &'static str,
        /// What the store allows.
        has: usize,
        /// What is needed.
        needs: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    #[test]
    fn defaults_fit_the_floor() {
        assert_eq!(Config::new(7 * DAY).validate(&Limits::FLOOR), Ok(()));
    }

    #[test]
    fn a_lease_that_a_post_can_outlive_is_refused() {
        let config = Config { lease_ms: 17_000, ..Config::new(DAY) };
        assert_eq!(config.validate(&Limits::FLOOR), Err(ConfigError::LeaseTooShort { lease_ms: 17_000, needed_ms: 17_000 }));
    }

    #[test]
    fn a_store_below_the_floor_is_refused() {
        let limits = Limits { txn_checks_max: 9, ..Limits::FLOOR };
        assert!(matches!(Config::new(DAY).validate(&limits), Err(ConfigError::StoreTooSmall { has: 9, needs: 10, .. })));
    }

    #[test]
    fn backoff_doubles_is_jittered_below_double_and_never_exceeds_its_maximum() {
        let config = Config::new(DAY);
        assert_eq!(config.backoff_ms(1, 0), 1_000);
        assert_eq!(config.backoff_ms(1, u64::MAX), 1_999);
        assert_eq!(config.backoff_ms(4, 0), 8_000);
        assert_eq!(config.backoff_ms(u32::MAX, 0), config.backoff_max_ms);
        let least = config.backoff_ms(u32::MAX, u64::MAX);
        assert!(least > config.backoff_max_ms / 4 * 3 && least < config.backoff_max_ms, "jittered at the maximum too: {least}");
    }
}
