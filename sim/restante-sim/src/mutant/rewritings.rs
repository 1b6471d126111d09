//! What each planted bug rewrites, where: settings, transactions, records, replies, reports.

use restante_core::atoms::{Bytes, Fence, SendId};
use restante_core::keys::Kind;
use restante_core::machine::{About, Failure, LegacyReply, PostResult, Reply, RunReport, SendError};
use restante_core::record::{
    Body, Breaker, Circuit, Destination, Entry, HoldInterval, Intake, Intent, Lease, Marker, MarkerState, Pointer, Quarantined,
    RecipientChunk, Record, SweepPlace,
};
use restante_core::{Config, Effect, Env};
use restante_engine::SimTime;
use restante_kv::{Committed, Guard, Key, Mutation, StoreError, StoreTime, Txn, Version, Versioned, Write};

use super::Mutant;
use super::txn::{
    activate_intents, activate_successors, drop_writes, entry_puts, index_entries, is_own, lose_last_recipient, rewrite,
    rewrite_destinations, rewrite_intents, rewrite_own_entry, rewrite_sweep,
};
use crate::world::{EPOCH_MS, Origin, alias};

impl Mutant {
    /// The settings that production code believes in, if they are not the scenario's.
    pub(crate) fn on_config(self, config: &Config) -> Option<Config> {
        match self {
            Self::ShareUnbounded => Some(Config { concurrency_per_destination: config.concurrency, ..config.clone() }),
            Self::WindowUnbounded => Some(Config { window: 1_000, ..config.clone() }),
            Self::ConcurrencyOfOne => Some(Config { concurrency: 1, ..config.clone() }),
            Self::LeaseShorterThanPost => Some(Config { lease_ms: config.request_timeout_ms, ..config.clone() }),
            Self::ChunksBeyondLimits => Some(Config { expand_entries_max: 100_000, expand_lanes_max: 100_000, ..config.clone() }),
            Self::ReleaseUnnoticed => Some(Config { held_recheck_interval_ms: 3_600_000, ..config.clone() }),
            _ => None,
        }
    }

    /// What a machine has planned, before the world looks at it.
    pub(crate) fn on_planned(self, about: &About, txn: &mut Txn, env: &Env) {
        match (self, about.what) {
            (Self::SettleUnchecked, "settle") => txn.checks.retain(|check| !is_own(about, &check.key, env)),
            (Self::Panics, "settle") => panic!("planted"),
            _ => {}
        }
    }

    /// How long a machine is about to wait.
    pub(crate) fn on_sleep(self, about: &About, ms: &mut u64) {
        match (self, about.what) {
            (Self::NeverIdle, "idle") => *ms = 1,
            (Self::WaitsForASignal, "idle") => *ms = 3_600_000,
            _ => {}
        }
    }

    /// What happens again, unasked, after this was committed: after how long, and which writes.
    pub(crate) fn replayed(self, about: &About, txn: &Txn, env: &Env) -> Option<(u64, Txn)> {
        if !matches!((self, about.what), (Self::AcceptReplayed, "accept") | (Self::ExpansionReplayed, "expand")) {
            return None;
        }
        let mut again = Txn { checks: Vec::new(), writes: txn.writes.clone() };
        again.writes.retain(|write| matches!(env.keys.kind_of(&write.key), Some(Kind::Entry | Kind::DueRow | Kind::Pointer)));
        Some((8_000, again))
    }

    /// What a machine is about to commit.
    pub(crate) fn on_txn(self, about: &About, txn: &mut Txn, env: &Env, at: SimTime) {
        match (self, about.what) {
            (Self::FenceRestarts, "settle") => rewrite_own_entry(about, txn, env, |entry| entry.fence = Fence::default()),
            (Self::RetentionFromLastAttempt, "settle") => rewrite_own_entry(about, txn, env, |entry| {
                entry.origin = StoreTime::from_ms(EPOCH_MS + at.as_ms());
            }),
            (Self::WakeDropped, "wake") => rewrite_own_entry(about, txn, env, |entry| {
                if entry.lease.is_some() {
                    entry.wake_gen -= 1;
                }
            }),
            (Self::LifetimesTruncated, "claim" | "renew") => {
                let now = StoreTime::from_ms(EPOCH_MS + at.as_ms());
                rewrite_own_entry(about, txn, env, |entry| {
                    if let Some(lease) = &mut entry.lease {
                        let whole_ms = lease.expires_at.since_ms(now) / 60_000 * 60_000;
                        lease.expires_at = now.plus_ms(whole_ms);
                    }
                });
            }
            (Self::ExpiredLeaseKept, "claim") => {
                rewrite_own_entry(about, txn, env, |entry| entry.vest_at = entry.vest_at.plus_ms(3_600_000));
                let is_put_row = |write: &Write| {
                    matches!(write.mutation, Mutation::Put(_))
                        && matches!(env.keys.kind_of(&write.key), Some(Kind::DueRow | Kind::Pointer))
                };
                txn.writes.retain(|write| !is_put_row(write));
                index_entries(txn, env);
            }
            (Self::MarkerIgnored, "accept") => txn.checks.retain(|check| env.keys.kind_of(&check.key) != Some(Kind::Marker)),
            (Self::IntakeUnchecked, "accept") => txn.checks.retain(|check| check.key != env.keys.intake()),
            (Self::IndexNotRepaired, "repair-index") => txn.writes.clear(),
            (Self::SweepPlaceAhead, "advance-sweep") => rewrite_sweep(txn, env, |state| {
                let last = env.keys.all(Kind::Destination).start;
                state.place = state.place.take().map(|place| SweepPlace { next: last, ..place });
            }),
            (Self::SweepCountsFromItsEnd, "finish-sweep") => {
                rewrite_sweep(txn, env, |state| state.completed_from = StoreTime::from_ms(EPOCH_MS + at.as_ms()));
            }
            (Self::CountersNotWritten, "settle") => drop_writes(txn, env, Kind::Counters),
            (Self::DropUnrecorded, "settle") => drop_writes(txn, env, Kind::DeadLetter),
            (Self::RevivedOutOfTurn, "revive") => {
                rewrite_own_entry(about, txn, env, |entry| entry.active = true);
                // Where it steps in front of another, that one is put too, and has to wait.
                if entry_puts(txn, env).count() == 1 {
                    index_entries(txn, env);
                }
            }
            (Self::SuccessorActiveEarly, "accept") => activate_successors(txn, env),
            (Self::RecipientLost, "accept") => lose_last_recipient(txn, env),
            (Self::PayloadTruncated, "accept") => {
                for (_, value) in entry_puts(txn, env) {
                    if let Ok(mut entry) = Entry::decode(value)
                        && let Body::Inline(bytes) = &entry.body
                    {
                        entry.body = Body::Inline(Bytes::from(&bytes.as_slice()[..bytes.len().saturating_sub(1)]));
                        *value = entry.encode();
                    }
                }
            }
            (Self::WakeEndsLease, "wake") => {
                let now = StoreTime::from_ms(EPOCH_MS + at.as_ms());
                rewrite_own_entry(about, txn, env, |entry| {
                    if let Some(lease) = &mut entry.lease {
                        (lease.expires_at, entry.vest_at) = (now, now);
                    }
                });
                index_entries(txn, env);
            }
            (Self::SettleNotCommitted, "settle") => {
                let goes = |write: &Write| write.mutation == Mutation::Delete && is_own(about, &write.key, env);
                if txn.writes.iter().any(goes) {
                    txn.writes.clear();
                }
            }
            (Self::SuccessorNotActivated, "settle") => {
                let slot_deleted = |write: &Write| env.keys.kind_of(&write.key) == Some(Kind::LaneSlot);
                if txn.writes.iter().any(slot_deleted) {
                    txn.writes.retain(|write| {
                        let is_put = matches!(write.mutation, Mutation::Put(_));
                        !(is_put && matches!(env.keys.kind_of(&write.key), Some(Kind::Entry | Kind::DueRow)))
                    });
                }
            }
            (Self::CursorNotAdvanced, "expand") => {
                let made = entry_puts(txn, env).count() as u32;
                rewrite_intents(txn, env, |intent| intent.cursor -= made.min(intent.cursor));
            }
            (Self::ExpansionUnchecked, "expand") => {
                txn.checks.retain(|check| env.keys.kind_of(&check.key) != Some(Kind::Intent));
            }
            (Self::WaitingIntentExpanded, "publish" | "accept") => activate_intents(txn, env),
            (Self::QueueNotAsked, "accept") => {
                txn.checks.retain(|check| env.keys.kind_of(&check.key) != Some(Kind::OrderKeyQueue));
            }
            (Self::PendingMiscounted, "expand") => drop_writes(txn, env, Kind::Counters),
            (Self::StageLeftBehind, "publish") => txn.writes.retain(|write| env.keys.kind_of(&write.key) != Some(Kind::Stage)),
            (Self::ExpiredUnrecorded, "drop-intent") => drop_writes(txn, env, Kind::DeadIntent),
            (Self::QuarantineEmptied, "quarantine") => {
                for write in &mut txn.writes {
                    if let (Some(Kind::Quarantined), Mutation::Put(value)) = (env.keys.kind_of(&write.key), &mut write.mutation)
                        && let Ok(record) = Quarantined::decode(value)
                    {
                        *value = Quarantined { record: Bytes::default(), ..record }.encode();
                    }
                }
            }
            (Self::OpenHoldUncapped, "set-hold") => rewrite_destinations(txn, env, |known| {
                for hold in known.holds.iter_mut().filter(|hold| hold.is_open) {
                    hold.until = hold.until.plus_ms(3_600_000);
                }
            }),
            (Self::ReleaseUnnoticed, "set-hold") => drop_writes(txn, env, Kind::Pointer),
            (Self::ReleaseTouchesAll, "set-hold") => {
                let pointers = txn.writes.iter().filter_map(|write| env.keys.read_pointer(&write.key).ok());
                let more: Vec<Key> = pointers
                    .flat_map(|found| (1..9).map(move |n| (found.destination.clone(), found.bucket_at.plus_ms(n * 1_000))))
                    .map(|(destination, at)| env.keys.pointer(&destination, at))
                    .collect();
                let put = |key| Write { key, mutation: Mutation::Put(Pointer {}.encode()), guard: Guard::Idempotent };
                txn.writes.extend(more.into_iter().map(put));
            }
            (Self::AdoptionIgnoresMarker, "adopt") => {
                txn.checks.retain(|check| env.keys.kind_of(&check.key) != Some(Kind::Marker));
            }
            (Self::AdoptionIgnoresIntake, "adopt") => txn.checks.retain(|check| check.key != env.keys.intake()),
            (Self::OwnedAndAttempted, "legacy-gate") => {
                txn.checks.retain(|check| env.keys.kind_of(&check.key) != Some(Kind::Marker));
            }
            (Self::OldAttemptsForgotten, "adopt") => {
                for (_, value) in entry_puts(txn, env) {
                    if let Ok(entry) = Entry::decode(value) {
                        *value = Entry { failure_count: 0, ..entry }.encode();
                    }
                }
                rewrite_intents(txn, env, |intent| intent.failure_count = 0);
            }
            (Self::OverdueKept, "expire") | (Self::ProbeNotTaken, "gate") | (Self::UnreadableKept, "quarantine") => {
                txn.writes.clear()
            }
            (Self::ProbeUnchecked, "gate") => txn.checks.clear(),
            (Self::BreakerImmortal, "count-attempt") => rewrite_destinations(txn, env, |known| {
                if let Some(breaker) = &mut known.breaker {
                    breaker.expires_at = breaker.expires_at.plus_ms(365 * 24 * 3_600_000);
                }
            }),
            _ => {}
        }
    }

    /// What a machine is about to read.
    pub(crate) fn on_records(
        self,
        origin: Origin,
        about: &About,
        keys: &[Key],
        records: &mut [Option<Versioned>],
        env: &Env,
        now: StoreTime,
    ) {
        let is_closed = |record: &Option<Versioned>| {
            let intake = record.as_ref().and_then(|found| Intake::decode(&found.value).ok());
            intake.is_some_and(|intake| !intake.open)
        };
        let intake_closed = keys.iter().zip(&*records).any(|(key, record)| *key == env.keys.intake() && is_closed(record));
        for (key, record) in keys.iter().zip(records) {
            let Some(kind) = env.keys.kind_of(key) else { continue };
            match (self, about.what, kind) {
                (Self::AdoptionIgnoresMarker, "legacy-gate" | "adopt", Kind::Marker)
                | (Self::OwnedAndAttempted, "legacy-gate", Kind::Marker) => {
                    let marker = record.as_ref().and_then(|found| Marker::decode(&found.value).ok());
                    if marker.is_some_and(|marker| matches!(marker.state, MarkerState::Accepted { .. })) {
                        *record = None;
                    }
                }
                (Self::AdoptionTakesAnyMarker, "legacy-gate" | "adopt", Kind::Marker) => {
                    rewrite(record, |marker: &mut Marker| {
                        if let MarkerState::Tried { .. } = marker.state {
                            marker.state = MarkerState::Aborted;
                        }
                    });
                }
                (Self::AdoptionIgnoresIntake, "legacy-gate" | "adopt", Kind::Intake) => {
                    rewrite(record, |intake: &mut Intake| intake.open = true)
                }
                (Self::OldHoldIgnored, "legacy-gate", Kind::Destination) => {
                    rewrite(record, |known: &mut Destination| known.holds.clear())
                }
                (Self::DrainedGuessed, "depth", Kind::Counters) if intake_closed => *record = None,
                (Self::SettleWithoutFence, "settle", Kind::Entry) if is_own(about, key, env) => {
                    rewrite(record, |entry: &mut Entry| {
                        entry.fence = about.fence;
                        let lease = Lease { owner: alias::owner_id(origin.node, origin.life), expires_at: now };
                        entry.lease = Some(lease);
                    })
                }
                (Self::ClaimIgnoresLease, "claim", Kind::Entry) => rewrite(record, |entry: &mut Entry| {
                    if entry.lease.take().is_some() {
                        entry.vest_at = entry.vest_at.min(now);
                    }
                }),
                (Self::DeadlineIgnored, "gate", Kind::Entry) => rewrite(record, |entry: &mut Entry| entry.deadline = None),
                (Self::HeldForNothing, "gate", Kind::Destination) if record.is_none() => {
                    let hold = HoldInterval { from: now, until: now.plus_ms(5_000), is_open: false };
                    let value = Destination { holds: vec![hold], ..Destination::default() }.encode();
                    *record = Some(Versioned { value, version: Version::from_raw(0) });
                }
                (Self::GateIgnoresRetention, "gate", Kind::Entry) => rewrite(record, |entry: &mut Entry| entry.origin = now),
                (Self::GateTrustsLease, "gate", Kind::Entry) => rewrite(record, |entry: &mut Entry| {
                    if let Some(lease) = &mut entry.lease {
                        lease.expires_at = lease.expires_at.plus_ms(3_600_000);
                    }
                }),
                (Self::PauseIgnored, "gate", Kind::Destination) | (Self::MarkerIgnored, "accept", Kind::Marker) => *record = None,
                (Self::QueueNotAsked, "accept", Kind::OrderKeyQueue)
                | (Self::RecipientsPrunedEarly, "prune", Kind::Intent | Kind::Quarantined) => *record = None,
                (Self::ExpandedFromZero, "claim-intent", Kind::Intent) => rewrite(record, |intent: &mut Intent| {
                    if intent.lease.is_some() {
                        (intent.cursor, intent.chunk) = (0, 0);
                    }
                }),
                (Self::ExpansionWithoutFence, "expand", Kind::Intent) => rewrite(record, |intent: &mut Intent| {
                    intent.fence = about.fence;
                    intent.lease = Some(Lease { owner: alias::owner_id(origin.node, origin.life), expires_at: now });
                }),
                (Self::BorderRecipientSkipped, "load-recipients", Kind::RecipientChunk) => {
                    rewrite(record, |chunk: &mut RecipientChunk| {
                        if chunk.first > 0 && chunk.recipients.len() > 1 {
                            chunk.recipients.remove(0);
                        }
                    })
                }
                (_, "gate" | "expire" | "count-attempt" | "read-destinations", Kind::Destination) => {
                    rewrite(record, |known: &mut Destination| self.on_destination(about.what, known, now));
                }
                (Self::ExpiredProbes, "gate", Kind::Entry) => rewrite(record, |entry: &mut Entry| entry.origin = now),
                (Self::IntakeUnchecked, "accept", Kind::Intake) => rewrite(record, |intake: &mut Intake| intake.open = true),
                _ => {}
            }
        }
    }

    /// What a machine is about to read of a destination.
    fn on_destination(self, what: &str, known: &mut Destination, now: StoreTime) {
        match (self, what) {
            (Self::HoldIgnored, "gate") => known.holds.clear(),
            (Self::HoldOutlived, "gate") => {
                known.holds.iter_mut().for_each(|hold| hold.until = hold.until.max(now.plus_ms(60_000)))
            }
            (Self::DowntimeCredited, "gate") => {
                known.holds.iter_mut().filter(|hold| hold.is_open).for_each(|hold| hold.until = hold.until.max(now));
            }
            (Self::OverlapsCountedTwice, "gate") => known.holds.extend(known.holds.clone()),
            (Self::CircuitIgnored, "gate") => known.breaker = None,
            (Self::ProbeOvertaken, "gate") => {
                if let Some(Breaker { circuit: Circuit::HalfOpen(probe), .. }) = &mut known.breaker {
                    probe.expires_at = probe.expires_at.min(now);
                }
            }
            (Self::FailuresNeverOld, "count-attempt") => {
                if let Some(breaker) = &mut known.breaker {
                    breaker.expires_at = breaker.expires_at.max(now.plus_ms(1));
                    if let Circuit::Counting(failures) = &mut breaker.circuit {
                        failures.iter_mut().for_each(|failed| failed.0 = now);
                    }
                }
            }
            (Self::CircuitForgetful, "gate" | "expire") => {
                if let Some(breaker) = &mut known.breaker {
                    breaker.since = now;
                }
            }
            (Self::RampIgnored, "read-destinations") => {
                known.holds.retain(|hold| hold.until > now);
                known.resumed_at = StoreTime::default();
            }
            _ => {}
        }
    }

    /// What a machine is about to be told.
    pub(crate) fn on_reply(self, about: &About, reply: &mut Reply) {
        match (self, about.what, reply) {
            (Self::AmbiguousTakenAsFailure, "accept", Reply::Committed(result)) => {
                if matches!(result, Err(StoreError::Ambiguous(_))) {
                    *result = Err(StoreError::InvalidRequest("planted: taken as failed".into()));
                }
            }
            (Self::AdoptionGuessed, "adopt", Reply::Committed(result)) => {
                if matches!(result, Err(StoreError::Ambiguous(_))) {
                    *result = Ok(Committed { version: Version::from_raw(0) });
                }
            }
            (Self::UnknownTakenAsUnsent, _, reply @ Reply::Posted { result: PostResult::Unknown, .. }) => {
                *reply = Reply::PostTooLate;
            }
            (Self::AcknowledgedAsFailed, _, Reply::Posted { result: PostResult::Status { code: code @ 202, .. }, .. }) => {
                *code = 502;
            }
            (Self::OnlyTheOldest, "scan-pointers", Reply::Page { result: Ok(page), .. }) => {
                page.entries.truncate(1);
                page.next = None;
            }
            (Self::PayloadPrunedEarly, "sweep-count", Reply::Page { result: Ok(page), .. })
            | (Self::DueRowsOverlooked, "scan-due", Reply::Page { result: Ok(page), .. }) => {
                page.entries.clear();
                page.next = None;
            }
            (Self::ConflictOverwritten, "expand-probe", Reply::Page { result: Ok(page), .. }) => {
                page.entries.clear();
                page.next = None;
            }
            _ => {}
        }
    }

    /// What the old side is about to tell.
    pub(crate) fn on_old_reply(self, about: &About, reply: &mut LegacyReply) {
        match (self, about.what, reply) {
            (Self::HandOverGuessed, "hand-over", LegacyReply::Queue(result)) => *result = Ok(()),
            (Self::SilenceTakenForEmpty, "legacy-receive", LegacyReply::Received(result)) if result.is_err() => {
                *result = Ok(None)
            }
            _ => {}
        }
    }

    /// How many messages a bounded run of a listener is told to take at most.
    pub(crate) fn on_listener_limit(self, limit: u64) -> u64 {
        if self == Self::ListenerUnlimited { u64::MAX } else { limit }
    }

    /// What a single run is about to report.
    pub(crate) fn on_report(self, report: &mut RunReport, limit: u64) {
        if self == Self::MoreFromShortBatch && report.processed < limit {
            report.more = false;
        }
    }

    /// What a caller is about to be told of its send.
    pub(crate) fn on_send_result(self, send: SendId, result: &mut Result<(SendId, bool, Vec<Effect>), SendError>) {
        let is_unknown = matches!(result, Err(SendError::Unknown))
            || matches!(result, Err(SendError::NotAccepted(Failure::Store(StoreError::Ambiguous(_)))));
        if self == Self::UnknownTakenAsSuccess && is_unknown {
            *result = Ok((send, false, Vec::new()));
        }
    }
}
