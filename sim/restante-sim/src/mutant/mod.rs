//! Planted bugs: named rewritings of what crosses the boundary between production code and its world.
//!
//! Production code has no branch for them. A mutant changes what a machine reads, what it commits, what it is told, or what
//! it says; each is there to trip one property, and the same seed passes without it.

mod rewritings;
mod txn;

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
}
