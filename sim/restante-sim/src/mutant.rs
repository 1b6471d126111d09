//! Planted bugs: named rewritings of what crosses the boundary between production code and its world.
//!
//! Production code has no branch for them. A mutant changes what a machine reads, what it commits, what it is told, or what
//! it says; each is there to trip one property, and the same seed passes without it.

use restante_core::atoms::{Bytes, Fence, SendId};
use restante_core::keys::EXPANSIONS;
use restante_core::keys::Kind;
use restante_core::machine::{About, Failure, LegacyReply, PostResult, Reply, RunReport, SendError};
use restante_core::record::{
    Body, Breaker, Circuit, Destination, DueRow, Entry, HoldInterval, Intake, Intent, Lease, Marker, MarkerState, Pointer,
    Quarantined, RecipientChunk, Record, SweepPlace, SweepState,
};
use restante_core::{Config, Effect, Env, Subject};
use restante_engine::SimTime;
use restante_kv::{Committed, Guard, Key, Mutation, StoreError, StoreTime, Txn, Value, Version, Versioned, Write};

use crate::world::{EPOCH_MS, Origin, alias};

macro_rules! mutants {
    (@explored $bound:literal) => {
        Ok($bound)
    };
    (@beyond $reason:literal) => {
        Err($reason)
    };
    ($($variant:ident $name:literal trips $property:literal in $scenario:literal, $how:ident $bound:literal: $sentence:literal;)+) => {
        /// A planted bug.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[expect(missing_docs, reason = "each variant's sentence is in the table")]
        pub enum Mutant { $($variant),+ }

        impl Mutant {
            /// All planted bugs.
            pub const ALL: &[Self] = &[$(Self::$variant),+];
            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
            /// The property it is there to trip.
            pub const fn property(self) -> &'static str {
                match self { $(Self::$variant => $property),+ }
            }
            /// The scenario it is looked for in.
            pub const fn scenario(self) -> &'static str {
                match self { $(Self::$variant => $scenario),+ }
            }
            /// The bound in which exploration finds it, or why no bound has what it needs.
            pub const fn bound(self) -> Result<&'static str, &'static str> {
                match self { $(Self::$variant => mutants!(@$how $bound)),+ }
            }
            /// What it does, in one sentence.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),+ }
            }
        }
    };
}

mutants! {
    SettleWithoutFence "settle-without-fence" trips "settle-holds-the-fence" in "faults/slow-answers", explored "check/stale":
        "A settle takes whatever lease it finds for its own.";
    FenceRestarts "fence-restarts" trips "fence-rises" in "faults/receivers", explored "check/small":
        "A settle that puts an entry back sets its fencing token to zero.";
    ClaimIgnoresLease "claim-ignores-lease" trips "lease-is-exclusive" in "faults/crashes", explored "check/small":
        "A claim takes an entry although another's lease lasts.";
    AmbiguousTakenAsFailure "ambiguous-taken-as-failure" trips "told-not-owned-is-not-owned" in "faults/ambiguous-commits", explored "check/sends":
        "An accept of unknown outcome is reported as not accepted, and sent again.";
    UnknownTakenAsSuccess "unknown-taken-as-success" trips "told-owned-is-owned" in "faults/ambiguous-commits", beyond "the bound has one unknown commit, and an accept tries again":
        "An accept whose outcome stays unknown is reported as accepted.";
    MarkerIgnored "marker-ignored" trips "one-send-per-key" in "order/repeated-requests", explored "check/sends":
        "An accept does not look for an earlier request under its idempotency key.";
    IntakeUnchecked "intake-unchecked" trips "closed-intake-accepts-nothing" in "order/intake-closes", beyond "nobody closes intake in a bound":
        "An accept neither reads nor checks the intake record.";
    SuccessorActiveEarly "successor-active-early" trips "lane-order" in "order/lanes", explored "check/lane":
        "An entry behind another of its lane may be claimed at once.";
    SuccessorNotActivated "successor-not-activated" trips "drains-after-heal" in "order/lanes", explored "check/lane":
        "A terminal settle moves its lane on and leaves the next entry asleep.";
    RetentionFromLastAttempt "retention-from-last-attempt" trips "retention-origin-is-immutable" in "faults/receivers", explored "check/small":
        "A retry starts the entry's retention anew.";
    GateIgnoresRetention "gate-ignores-retention" trips "no-post-after-retention" in "faults/dead-host", beyond "retention outlasts a bound":
        "The gate takes every entry for a young one.";
    PauseIgnored "pause-ignored" trips "pause-is-honoured" in "faults/rate-limits", beyond "no destination asks for a pause in a bound":
        "The gate does not look at the destination's pause.";
    WakeDropped "wake-dropped" trips "wake-is-not-lost" in "faults/wakes", beyond "nobody wakes entries in a bound":
        "A wake of a leased entry leaves no word for its settle.";
    IndexNotRepaired "index-not-repaired" trips "swept-is-indexed" in "faults/lost-index-rows", explored "check/sweep":
        "The sweep's repair writes no row.";
    CountersNotWritten "counters-not-written" trips "depth-is-the-recount" in "smoke/plain", explored "check/small":
        "A settle leaves the counters as they are.";
    DropUnrecorded "drop-unrecorded" trips "nothing-vanishes" in "faults/receivers", explored "check/small":
        "A delivery is given up without a dead letter.";
    QuarantineEmptied "quarantine-emptied" trips "quarantine-keeps-the-record" in "faults/foreign-records", beyond "no record is of another version in a bound":
        "A quarantined record loses its bytes.";
    AcknowledgedAsFailed "acknowledged-as-failed" trips "acknowledged-is-not-retried" in "smoke/plain", explored "check/small":
        "An answer of 202 is taken for one of 502.";
    PayloadPrunedEarly "payload-pruned-early" trips "payload-outlives-its-entries" in "order/large-payloads", explored "check/sweep":
        "The sweep takes every send for one without members.";
    MoreFromShortBatch "more-from-short-batch" trips "no-more-means-swept" in "faults/cron-only", beyond "workers serve for good in a bound":
        "A run that processed fewer than its limit says that nothing is left.";
    AcceptReplayed "accept-replayed" trips "settled-stays-settled" in "smoke/plain", beyond "it waits eight seconds of a clock that stands still":
        "The entries of an accept are written once more, seconds later.";
    RecipientLost "recipient-lost" trips "recipients-are-conserved" in "smoke/plain", beyond "a send of a bound has one recipient":
        "An accept of several recipients forgets the last one.";
    PayloadTruncated "payload-truncated" trips "payload-arrives-whole" in "smoke/plain", explored "check/small":
        "An accept loses the last byte of the payload.";
    UnknownTakenAsUnsent "unknown-taken-as-unsent" trips "one-post-per-token" in "faults/network", beyond "no POST of a bound is of unknown outcome":
        "A POST of unknown outcome is taken for one that never began.";
    GateTrustsLease "gate-trusts-lease" trips "post-begins-under-lease" in "faults/slow-answers", explored "check/stale":
        "The gate takes every lease for a long one.";
    WakeEndsLease "wake-ends-lease" trips "lease-is-exclusive" in "faults/wakes", beyond "nobody wakes entries in a bound":
        "A wake of a leased entry ends its lease at once.";
    SettleNotCommitted "settle-not-committed" trips "settled-is-settled" in "smoke/plain", explored "check/small":
        "A terminal settle commits its checks and none of its writes.";
    SettleUnchecked "settle-unchecked" trips "writes-keep-their-rules" in "smoke/plain", explored "check/small":
        "A settle is planned without its check of the entry.";
    NeverIdle "never-idle" trips "ends-within-its-events" in "smoke/plain", beyond "waits take no time in a bound":
        "A worker that found nothing looks again at once.";
    Panics "panics" trips "does-not-panic" in "smoke/plain", explored "check/small":
        "A settle panics.";
    CursorNotAdvanced "cursor-not-advanced" trips "cursor-counts-entries" in "fanout/two-workers", explored "check/fanout":
        "An expansion makes its entries and leaves its cursor where it was.";
    ExpandedFromZero "expanded-from-zero" trips "cursor-never-goes-back" in "fanout/cursor-replay", explored "check/fanout":
        "A claim that takes an expansion over begins at the first recipient again.";
    ExpansionReplayed "expansion-replayed" trips "recipient-materialises-once" in "fanout/deleted-entries", beyond "it waits eight seconds of a clock that stands still":
        "The entries of an expansion are written once more, seconds later.";
    ExpansionUnchecked "expansion-unchecked" trips "expansion-holds-the-fence" in "fanout/deleted-entries", beyond "the one counter slot keeps what is outdated from committing":
        "An expansion commits its entries whatever became of its intent.";
    ExpansionWithoutFence "expansion-without-fence" trips "expansion-holds-the-fence" in "fanout/two-workers", beyond "one worker has nobody whose lease it could take":
        "An expansion takes whatever lease it finds for its own.";
    BorderRecipientSkipped "border-recipient-skipped" trips "snapshot-is-followed" in "fanout/huge", beyond "the recipients of a bound fit one chunk":
        "An expansion skips the first recipient behind each border of a chunk.";
    WaitingIntentExpanded "waiting-intent-expanded" trips "only-the-head-expands" in "fanout/behind-an-intent", explored "check/fanout":
        "An intent behind another of its order key may be expanded at once.";
    QueueNotAsked "queue-not-asked" trips "lane-order" in "fanout/behind-an-intent", beyond "every send of the bound is an intent":
        "A keyed direct send does not look for intents before it.";
    PendingMiscounted "pending-miscounted" trips "depth-is-the-recount" in "fanout/two-workers", explored "check/fanout":
        "An expansion leaves the counters as they are.";
    StageLeftBehind "stage-left-behind" trips "publish-is-whole" in "fanout/stage-to-publish", explored "check/fanout":
        "A publish leaves its stage where it is.";
    RecipientsPrunedEarly "recipients-pruned-early" trips "recipients-outlive-their-expansion" in "fanout/behind-an-intent", beyond "nobody sweeps in the bound":
        "The sweep takes every send for one without an intent.";
    ExpiredUnrecorded "expired-unrecorded" trips "intent-ends-visibly" in "fanout/expires-unexpanded", beyond "retention outlasts a bound":
        "An intent is given up without a trace.";
    ConflictOverwritten "conflict-overwritten" trips "conflict-is-parked" in "fanout/conflicting-chunk", beyond "nobody stands in the way in a bound":
        "An expansion does not look at what stands where its entries go.";
    HoldIgnored "hold-ignored" trips "no-post-under-a-hold" in "holds/notices", beyond "nobody passes on notices in a bound":
        "The gate does not look at the destination's holds.";
    HoldOutlived "hold-outlived" trips "held-only-under-a-hold" in "holds/notices", beyond "nobody passes on notices in a bound":
        "The gate takes every hold that ever was for one that lasts.";
    OverlapsCountedTwice "overlaps-counted-twice" trips "hold-credit-is-the-union" in "holds/credit", beyond "nobody passes on notices in a bound":
        "The gate counts the time under a hold twice.";
    OpenHoldUncapped "open-hold-uncapped" trips "held-work-is-looked-at" in "holds/unknown-end", beyond "nobody passes on notices in a bound":
        "A hold without a known end lasts for an hour.";
    ReleaseUnnoticed "release-unnoticed" trips "held-work-is-looked-at" in "holds/released", beyond "nobody passes on notices in a bound":
        "A held destination is looked at again when its hold should end, and a release moves no pointer.";
    ReleaseTouchesAll "release-touches-all" trips "destination-changes-touch-few-rows" in "holds/released", beyond "nobody passes on notices in a bound":
        "A release puts a pointer for everything that might wait.";
    OverdueKept "overdue-kept" trips "what-is-over-goes" in "holds/past-retention", beyond "retention outlasts a bound":
        "The sweep leaves what has outlived its retention where it is.";
    CircuitIgnored "circuit-ignored" trips "open-circuit-passes-only-probes" in "breaker/dead-host", explored "check/probe":
        "The gate does not look at the destination's circuit.";
    ProbeNotTaken "probe-not-taken" trips "open-circuit-passes-only-probes" in "breaker/dead-host", explored "check/probe":
        "A gate that admits a probe does not commit it.";
    ProbeOvertaken "probe-overtaken" trips "one-probe-in-flight" in "breaker/crashes", explored "check/probe":
        "The gate takes every probe for a stale one.";
    ProbeUnchecked "probe-unchecked" trips "one-probe-in-flight" in "breaker/crashes", explored "check/probe":
        "A probe is admitted without a check that nobody else's was meanwhile.";
    FailuresNeverOld "failures-never-old" trips "circuit-opens-by-its-rule" in "breaker/rare-failures", beyond "failures never get old in a bound":
        "Every failure that was ever counted is a recent one.";
    BreakerImmortal "breaker-immortal" trips "breaker-state-is-bounded" in "breaker/flapping", explored "check/probe":
        "What is known of a circuit is kept for ever.";
    ExpiredProbes "expired-probes" trips "expired-takes-no-probe" in "breaker/short-retention", beyond "retention outlasts a bound":
        "The gate asks for the probe first, and for retention later.";
    CircuitForgetful "circuit-forgetful" trips "circuit-holds-end" in "breaker/held-too-long", beyond "a circuit holds for longer than any bound lasts":
        "Nobody remembers since when a circuit has been open.";
    ShareUnbounded "share-unbounded" trips "destination-keeps-to-its-share" in "fairness/slow-host", beyond "a worker of a bound has one delivery under way":
        "A destination may have everything that a worker has under way.";
    OnlyTheOldest "only-the-oldest" trips "a-dead-host-starves-nobody" in "fairness/slow-host", beyond "a bound has one destination":
        "A pass looks at one destination of a shard, the one that has waited longest.";
    DeadlineIgnored "deadline-ignored" trips "no-post-after-retention" in "holds/deadlines", beyond "no entry of a bound has a deadline":
        "The gate does not look at an entry's own deadline.";
    UnknownVersionGuessed "unknown-version-guessed" trips "unknown-version-is-left" in "upgrade/rolling", beyond "all processes of a bound are of one build":
        "An older build reads what a newer one wrote as if it knew its format.";
    UnknownTakenForDamaged "unknown-taken-for-damaged" trips "unknown-version-is-left" in "upgrade/records", beyond "all processes of a bound are of one build":
        "An older build takes what a newer one wrote for damaged, unless it is an entry or an intent.";
    WaitsForASignal "waits-for-a-signal" trips "due-work-is-found" in "faults/restart-without-traffic", beyond "waits take no time in a bound":
        "A worker that found nothing looks again in an hour, or when a signal comes.";
    WindowUnbounded "window-unbounded" trips "reclaimed-waits-its-turn" in "fairness/reclaimed", beyond "a bound has fewer entries than a window":
        "A pass takes from everything that is due, in no order.";
    ConcurrencyOfOne "concurrency-of-one" trips "polling-keeps-up" in "faults/all-signals-lost", beyond "a worker of a bound has one delivery under way":
        "A worker has one delivery under way, whatever it may have.";
    DowntimeCredited "downtime-credited" trips "hold-credit-is-the-union" in "holds/downtime", beyond "nobody passes on notices in a bound":
        "A hold without a known end is taken to last until whoever looks has looked.";
    HeldForNothing "held-for-nothing" trips "held-only-under-a-hold" in "holds/off", beyond "nobody passes on notices in a bound":
        "A destination of which nothing is known is taken to be held.";
    ExpiredLeaseKept "expired-lease-kept" trips "drains-after-heal" in "faults/crashes", beyond "nobody sweeps away a lease in a bound":
        "An entry that was left leased is never due again.";
    RevivedOutOfTurn "revived-out-of-turn" trips "lane-order" in "upgrade/rolling", beyond "nobody revives anything in a bound":
        "A revived delivery may be claimed at once, whatever is in front of it.";
    LeaseShorterThanPost "lease-shorter-than-post" trips "ends-within-its-events" in "smoke/plain", beyond "waits take no time in a bound":
        "Settings are not held against each other: a lease ends before its POST could.";
    LifetimesTruncated "lifetimes-truncated" trips "ends-within-its-events" in "smoke/plain", beyond "waits take no time in a bound":
        "Leases are cut down to what is left of them in whole minutes, which is nothing.";
    ChunksBeyondLimits "chunks-beyond-limits" trips "drains-after-heal" in "fanout/huge", beyond "the recipients of a bound fit one chunk":
        "Settings are not held against the store's limits: a chunk of a fanout is larger than a transaction may be.";
    UnreadableKept "unreadable-kept" trips "ends-within-its-events" in "faults/foreign-records", beyond "no record is of another version in a bound":
        "What cannot be read stays where it is.";
    RampIgnored "ramp-ignored" trips "released-is-resumed-step-by-step" in "fairness/released", beyond "nobody passes on notices in a bound":
        "Discovery does not remember that a destination was held.";
    AdoptionGuessed "adoption-guessed" trips "adopted-before-completed" in "legacy/adopt-crashes", beyond "there is no old queue in a bound":
        "An adoption of unknown outcome is taken for one that happened.";
    AdoptionIgnoresMarker "adoption-ignores-marker" trips "adopted-at-most-once" in "legacy/adopt-crashes", beyond "there is no old queue in a bound":
        "Neither the gate of an old message nor its adoption looks for an earlier adoption.";
    AdoptionIgnoresIntake "adoption-ignores-intake" trips "closed-intake-adopts-nothing" in "legacy/closed-refuses-adoption", beyond "there is no old queue in a bound":
        "An adoption neither reads nor checks the intake record.";
    AdoptionTakesAnyMarker "adoption-takes-any-marker" trips "late-adoption-is-refused" in "legacy/received-again", beyond "there is no old queue in a bound":
        "Neither the gate of an old message nor its adoption looks whether it was tried meanwhile.";
    OwnedAndAttempted "owned-and-attempted" trips "owned-is-not-attempted" in "legacy/adopt-crashes", beyond "there is no old queue in a bound":
        "The gate of an old message does not look whether the backlog owns it.";
    OldHoldIgnored "old-hold-ignored" trips "old-hold-is-honoured" in "legacy/drain", beyond "there is no old queue in a bound":
        "The gate of an old message does not look at the destination's holds.";
    OldAttemptsForgotten "old-attempts-forgotten" trips "old-attempts-count" in "legacy/adopt-on-hold", beyond "there is no old queue in a bound":
        "An adoption begins to count attempts anew.";
    HandOverGuessed "hand-over-guessed" trips "handed-over-is-queued" in "legacy/closed-with-legacy-queue", beyond "there is no old queue in a bound":
        "A hand-over that the old queue refused is taken for one that it took.";
    DrainedGuessed "drained-guessed" trips "drained-is-drained" in "legacy/drained", beyond "nobody closes intake in a bound":
        "Once intake is closed, a depth query takes the counters for zero.";
    SweepPlaceAhead "sweep-place-ahead" trips "swept-is-indexed" in "faults/sweeps-left-half-way", beyond "a sweep of a bound is shorter than what it records its place by":
        "A sweep records that it has come further than it has.";
    DueRowsOverlooked "due-rows-overlooked" trips "no-more-means-none" in "faults/cron-only", beyond "nobody calls bounded runs in a bound":
        "A scan of due rows finds none.";
    SweepCountsFromItsEnd "sweep-counts-from-its-end" trips "no-more-means-swept" in "faults/sweeps-left-half-way", beyond "nobody calls bounded runs in a bound":
        "A complete sweep counts from its end, whenever it began.";
    SilenceTakenForEmpty "silence-taken-for-empty" trips "old-run-proves-empty" in "legacy/cron-only", beyond "there is no old queue in a bound":
        "A listener is told that there is no message where the old queue did not answer.";
    ListenerUnlimited "listener-unlimited" trips "old-run-keeps-to-its-limit" in "legacy/cron-only", beyond "there is no old queue in a bound":
        "The bounded run of a listener is begun without its limit.";
}

impl Mutant {
    /// The mutant of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mutant| mutant.name() == name)
    }

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

fn rewrite<R: Record>(record: &mut Option<Versioned>, change: impl FnOnce(&mut R)) {
    if let Some(found) = record
        && let Ok(mut decoded) = R::decode(&found.value)
    {
        change(&mut decoded);
        found.value = decoded.encode();
    }
}

fn rewrite_sweep(txn: &mut Txn, env: &Env, change: impl Fn(&mut SweepState)) {
    for write in txn.writes.iter_mut().filter(|write| write.key == env.keys.sweep()) {
        if let Mutation::Put(value) = &mut write.mutation
            && let Ok(mut state) = SweepState::decode(value)
        {
            change(&mut state);
            *value = state.encode();
        }
    }
}

fn rewrite_destinations(txn: &mut Txn, env: &Env, change: impl Fn(&mut Destination)) {
    for write in &mut txn.writes {
        if let (Some(Kind::Destination), Mutation::Put(value)) = (env.keys.kind_of(&write.key), &mut write.mutation)
            && let Ok(mut known) = Destination::decode(value)
        {
            change(&mut known);
            *value = known.encode();
        }
    }
}

fn entry_puts<'t>(txn: &'t mut Txn, env: &'t Env) -> impl Iterator<Item = (&'t Key, &'t mut Value)> {
    txn.writes.iter_mut().filter_map(|write| match &mut write.mutation {
        Mutation::Put(value) if env.keys.kind_of(&write.key) == Some(Kind::Entry) => Some((&write.key, value)),
        _ => None,
    })
}

/// Whether the key is that of the entry the action is about.
fn is_own(about: &About, key: &Key, env: &Env) -> bool {
    matches!(&about.subject, Subject::Entry(id) if env.keys.entry(*id) == *key)
}

fn rewrite_own_entry(about: &About, txn: &mut Txn, env: &Env, change: impl FnOnce(&mut Entry)) {
    if let Some((_, value)) = entry_puts(txn, env).find(|(key, _)| is_own(about, key, env))
        && let Ok(mut entry) = Entry::decode(value)
    {
        change(&mut entry);
        *value = entry.encode();
    }
}

fn rewrite_intents(txn: &mut Txn, env: &Env, mut change: impl FnMut(&mut Intent)) {
    for write in &mut txn.writes {
        if let (Some(Kind::Intent), Mutation::Put(value)) = (env.keys.kind_of(&write.key), &mut write.mutation)
            && let Ok(mut intent) = Intent::decode(value)
        {
            change(&mut intent);
            *value = intent.encode();
        }
    }
}

/// Makes every intent that is put claimable, with its index rows.
fn activate_intents(txn: &mut Txn, env: &Env) {
    let mut rows = Vec::new();
    rewrite_intents(txn, env, |intent| intent.active = true);
    for write in &txn.writes {
        if let (Ok(send), Mutation::Put(value)) = (env.keys.read_send(Kind::Intent, &write.key), &write.mutation)
            && let Ok(intent) = Intent::decode(value)
        {
            rows.push((env.keys.intent_due(send, intent.vest_at), DueRow { lane: intent.place.clone() }.encode()));
            rows.push((env.keys.pointer(EXPANSIONS, intent.vest_at), Pointer {}.encode()));
        }
    }
    put_rows(txn, rows);
}

fn put_rows(txn: &mut Txn, rows: Vec<(Key, Value)>) {
    for (key, value) in rows {
        txn.writes.retain(|write| write.key != key);
        txn.writes.push(Write { key, mutation: Mutation::Put(value), guard: Guard::Idempotent });
    }
}

fn drop_writes(txn: &mut Txn, env: &Env, kind: Kind) {
    txn.writes.retain(|write| env.keys.kind_of(&write.key) != Some(kind));
    txn.checks.retain(|check| env.keys.kind_of(&check.key) != Some(kind));
}

fn lose_last_recipient(txn: &mut Txn, env: &Env) {
    let entries = |write: &Write| env.keys.kind_of(&write.key) == Some(Kind::Entry);
    if txn.writes.iter().filter(|write| entries(write)).count() < 2 {
        return;
    }
    let Some(at) = txn.writes.iter().rposition(entries) else { return };
    let Ok(lost) = env.keys.read_entry(Kind::Entry, &txn.writes[at].key) else { return };
    txn.writes.remove(at);
    txn.writes.retain(|write| env.keys.read_due(&write.key).map(|due| due.entry) != Ok(lost));
}

fn activate_successors(txn: &mut Txn, env: &Env) {
    for (_, value) in entry_puts(txn, env) {
        if let Ok(entry) = Entry::decode(value) {
            *value = Entry { active: true, ..entry }.encode();
        }
    }
    index_entries(txn, env);
}

/// Adds the index rows of every entry that is put.
fn index_entries(txn: &mut Txn, env: &Env) {
    let mut rows = Vec::new();
    for (key, value) in entry_puts(txn, env) {
        if let (Ok(entry), Ok(id)) = (Entry::decode(value), env.keys.read_entry(Kind::Entry, key)) {
            rows.push((env.keys.due(&entry.destination, entry.vest_at, id), DueRow { lane: entry.lane.clone() }.encode()));
            rows.push((env.keys.pointer(&entry.destination, entry.vest_at), Pointer {}.encode()));
        }
    }
    put_rows(txn, rows);
}
