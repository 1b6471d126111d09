//! The list of properties: name, quantifier, one sentence. `docs/invariants.md` is checked against it.

use restante_engine::Property;

/// Every property of the backlog's world.
pub const PROPERTIES: &[Property] = &[
    // Ownership.
    Property::always("told-owned-is-owned", "A send that the caller was told is owned was committed before."),
    Property::always(
        "told-not-owned-is-not-owned",
        "A send that the caller was told is not owned is not committed, then or later.",
    ),
    Property::always("one-send-per-key", "Requests under one idempotency key become at most one send."),
    Property::always("closed-intake-accepts-nothing", "No accept commits while intake is closed."),
    Property::always("nothing-vanishes", "An entry goes only delivered, dropped with a dead letter, or quarantined whole."),
    Property::always("settled-is-settled", "What a worker takes for settled for good is gone from the store."),
    Property::always("settled-stays-settled", "An entry that was terminal is never created again."),
    Property::always(
        "recipients-are-conserved",
        "Accepted recipients are unexpanded, or entries, or quarantined, or delivered, or dropped: each exactly one of them.",
    ),
    Property::always("payload-arrives-whole", "Every request carries exactly the bytes that were accepted."),
    Property::always("payload-outlives-its-entries", "No delivery is given up for want of its payload."),
    // Leases and fences.
    Property::always("fence-rises", "Every claim of an entry has a higher fencing token than every claim before it."),
    Property::always("settle-holds-the-fence", "Only the current fencing token renews or settles."),
    Property::always("lease-is-exclusive", "No claim succeeds while another's lease lasts."),
    Property::always("one-post-per-token", "A claim posts at most once."),
    Property::always("post-begins-under-lease", "No POST begins after the lease it was claimed under has ended."),
    Property::always(
        "acknowledged-is-not-retried",
        "A delivery whose sender was told it arrived is never put back for another attempt.",
    ),
    // Order.
    Property::always(
        "lane-order",
        "Of one order key and destination, a POST begins only when every delivery accepted earlier is terminal.",
    ),
    Property::always("only-the-head-expands", "Of the intents of one order key, only the earliest accepted one is expanded."),
    // Fanout.
    Property::always(
        "publish-is-whole",
        "When a fanout is accepted, its stage is gone, and all its recipients and its payload lie in their chunks.",
    ),
    Property::always("recipient-materialises-once", "A recipient of a fanout becomes an entry at most once."),
    Property::always(
        "cursor-counts-entries",
        "A commit moves an intent's cursor exactly past the recipients that it makes entries of.",
    ),
    Property::always("cursor-never-goes-back", "The cursor of an intent never goes back."),
    Property::always(
        "snapshot-is-followed",
        "Entry number n of a fanout goes to recipient number n of the snapshot that was accepted.",
    ),
    Property::always("expansion-holds-the-fence", "Only the current fencing token of an intent expands it."),
    Property::always(
        "recipients-outlive-their-expansion",
        "No chunk of recipients goes while its send is staged, an intent, or kept aside.",
    ),
    Property::always(
        "conflict-is-parked",
        "No expansion writes over an entry that is there already: its intent is put aside whole.",
    ),
    Property::always(
        "intent-ends-visibly",
        "An intent goes only expanded to its last recipient, given up with a trace of how many were left, or quarantined whole.",
    ),
    // Time.
    Property::always("retention-origin-is-immutable", "The instant of ownership, from which retention runs, never changes."),
    Property::always(
        "no-post-after-retention",
        "No POST begins after the retention of its entry, or its own deadline, has ended.",
    ),
    Property::always(
        "pause-is-honoured",
        "After a Retry-After is committed, no gate passes a POST to that destination before it is over.",
    ),
    Property::always("wake-is-not-lost", "After a wake during a lease, the settle that keeps the entry makes it due at once."),
    // Holds.
    Property::always("no-post-under-a-hold", "No POST begins whose gate snapshot showed a hold of its destination."),
    Property::always(
        "held-only-under-a-hold",
        "A gate parks an entry as held only while a hold is known, to its last confirmation and cap.",
    ),
    Property::always(
        "hold-credit-is-the-union",
        "Retry age leaves out exactly the time under known holds, counted once, open ones to their last confirmation and cap.",
    ),
    Property::always(
        "held-work-is-looked-at",
        "After a hold has ended, what waited for its destination is looked at within the recheck interval, without traffic.",
    ),
    Property::always(
        "what-is-over-goes",
        "What has outlived its retention is dropped within two sweeps, also where nothing may be posted.",
    ),
    // Circuits.
    Property::always(
        "open-circuit-passes-only-probes",
        "No POST begins whose gate snapshot showed a circuit that was not closed, except the probe that it admitted.",
    ),
    Property::always("one-probe-in-flight", "A half-open circuit admits a probe only when no other is under way."),
    Property::always(
        "circuit-opens-by-its-rule",
        "A circuit opens when enough attempts failed within the window, and not before.",
    ),
    Property::always(
        "breaker-state-is-bounded",
        "What is kept of a destination is bounded in size and in time, and outlives its probe.",
    ),
    Property::always("expired-takes-no-probe", "An entry whose retention has ended takes no probe."),
    Property::always("circuit-holds-end", "What a circuit has kept back for its time is dropped."),
    Property::always(
        "destination-changes-touch-few-rows",
        "Holding and releasing a destination, and opening and closing its circuit, writes two rows at most, whatever waits there.",
    ),
    // Fairness.
    Property::always(
        "destination-keeps-to-its-share",
        "A worker has no more deliveries to one destination under way than its share.",
    ),
    Property::always("a-dead-host-starves-nobody", "Beside hosts that do not answer, the others are served in time."),
    Property::always(
        "polling-keeps-up",
        "Where no host ails, deliveries are done in time, with signals or without: polling keeps a worker's full concurrency.",
    ),
    Property::always(
        "reclaimed-waits-its-turn",
        "What is claimed again after its lease ended was among the first of its destination by its due time.",
    ),
    Property::always(
        "released-is-resumed-step-by-step",
        "After a hold or an open circuit, a worker has one more delivery to the destination under way with every step.",
    ),
    // The old queue.
    Property::always(
        "adopted-before-completed",
        "An old message leaves the old queue only delivered, given up as its policy says, expanded, or owned by the backlog.",
    ),
    Property::always("adopted-at-most-once", "A message of the old queue is adopted at most once."),
    Property::always("closed-intake-adopts-nothing", "No adoption commits while intake is closed."),
    Property::always("late-adoption-is-refused", "No message is adopted that has left the old queue another way."),
    Property::always("owned-is-not-attempted", "No old attempt is admitted for a message that the backlog owns."),
    Property::always(
        "old-run-proves-empty",
        "A listener's run that reports no more had empty hands when the old queue, asked, had nothing to hand out, and had handed out nothing unheard.",
    ),
    Property::always("old-run-keeps-to-its-limit", "A listener's run takes no more messages than it was told to."),
    Property::always("old-hold-is-honoured", "No old attempt begins whose gate snapshot showed a hold of its destination."),
    Property::always("old-attempts-count", "What is adopted has as many failed attempts behind it as it had in the old queue."),
    Property::always("handed-over-is-queued", "A send that the caller was told the old queue owns was put into it before."),
    Property::always(
        "drained-is-drained",
        "Drained is said only when neither entries nor intents are left, and stays true while intake stays closed and nothing is revived.",
    ),
    // Answers.
    Property::always("depth-is-the-recount", "Depth equals a recount of the records at the same snapshot."),
    Property::always(
        "no-more-means-none",
        "A run that reports no more work left no discoverable entry that was due when it began.",
    ),
    Property::always(
        "due-work-is-found",
        "What is due and not kept back is looked at within the poll interval, without traffic.",
    ),
    Property::always(
        "no-more-means-swept",
        "A run that reports no more work left follows a complete sweep that began within the interval before the run.",
    ),
    Property::always(
        "swept-is-indexed",
        "What had lost its due row before a sweep began, and stood unchanged, has it again when that sweep is complete.",
    ),
    Property::always("quarantine-keeps-the-record", "A quarantined record holds the bytes that were found."),
    Property::always("unknown-version-is-left", "What an older build cannot read it puts aside whole, or leaves as it is."),
    Property::always(
        "writes-keep-their-rules",
        "Every write is checked, or under a record that is checked and written, or idempotent.",
    ),
    Property::always("ends-within-its-events", "A run ends within its event cap: there is no livelock."),
    Property::always("does-not-panic", "Nothing panics."),
    // In the end.
    Property::eventually(
        "drains-after-heal",
        "Once faults have ended, everything accepted becomes terminal and all staged leftovers go, without new traffic.",
    ),
    // What a set of runs must have seen.
    Property::sometimes("lease-lost-before-settle", "A worker found its lease lost when it came to settle."),
    Property::sometimes("lease-ended-during-post", "A lease ended while its POST was under way."),
    Property::sometimes("reclaimed-after-expiry", "An entry was claimed again after its lease had ended."),
    Property::sometimes("posted-twice", "An entry reached its destination more than once."),
    Property::sometimes("ambiguous-settle-had-happened", "A settle of unknown outcome turned out to have happened."),
    Property::sometimes("accept-outcome-stayed-unknown", "A caller was told that the outcome of its send is unknown."),
    Property::sometimes("repetition-found-the-send-owned", "A repeated request found its send owned already."),
    Property::sometimes("misused-key-was-refused", "Another request under a used idempotency key was refused."),
    Property::sometimes("closed-intake-refused", "A send was refused because intake was closed."),
    Property::sometimes("lane-moved-on", "A terminal settle made the next entry of its lane claimable."),
    Property::sometimes("lane-was-repaired", "The sweep moved a lane past a head that had vanished."),
    Property::sometimes("wake-during-lease", "A wake was committed while its entry was leased."),
    Property::sometimes("retry-after-was-kept", "A Retry-After paced a destination."),
    Property::sometimes("gate-deferred", "A gate gave an entry back because its destination was paced."),
    Property::sometimes("lease-was-renewed", "A lease was renewed before a POST."),
    Property::sometimes("post-too-late-is-not-begun", "A worker that stood still did not begin a POST whose time was over."),
    Property::sometimes("index-was-repaired", "The sweep put a missing index row back."),
    Property::sometimes("sweep-was-taken-over", "A sweep that was left half-way was taken over where it had come to."),
    Property::sometimes("payload-was-staged", "A large payload was staged and published."),
    Property::sometimes("quarantined", "An entry was quarantined."),
    Property::sometimes("revived", "An operator brought a quarantined entry back."),
    Property::sometimes("intent-revived", "An operator brought a quarantined intent back."),
    Property::sometimes("newer-record-was-put-aside", "An older build put aside what a newer one had written."),
    Property::sometimes("newer-record-was-left", "An older build committed beside a record of a newer one, which it left."),
    Property::sometimes("newer-record-was-refused", "An older build gave something up for a record of a newer one."),
    Property::sometimes("quarantine-ended", "A quarantined record was dropped at the end of its retention."),
    Property::sometimes("dropped-permanent", "A delivery was given up because its destination refused it for good."),
    Property::sometimes("dropped-expired", "A delivery was given up because its retention ended."),
    Property::sometimes("dropped-exhausted", "A delivery was given up after the last attempt."),
    Property::sometimes("run-proved-empty", "A cron run proved that nothing was left."),
    Property::sometimes("listener-proved-empty", "A listener's run proved that the old queue had nothing to hand out."),
    Property::sometimes("worker-stopped-gracefully", "A worker ended what it had under way and stopped."),
    Property::sometimes("intent-expanded", "An intent was expanded to its last recipient."),
    Property::sometimes("expansion-taken-over", "An intent was claimed again after the lease of who expanded it had ended."),
    Property::sometimes("intent-waited-its-turn", "An intent became the head of its order key's FIFO after it had waited."),
    Property::sometimes("direct-send-queued-behind-intents", "A keyed direct send became an intent behind earlier ones."),
    Property::sometimes("intent-parked", "An intent was put aside."),
    Property::sometimes("intent-expired", "An intent was given up with recipients left because its retention ended."),
    Property::sometimes("unpublished-was-collected", "Recipients that were staged and never published were collected."),
    Property::sometimes("queue-was-repaired", "The sweep moved an order key's FIFO past a head that had vanished."),
    Property::sometimes("drained-was-proved", "With intake closed, depth proved the backlog drained."),
    Property::sometimes("hold-was-set", "A destination was held."),
    Property::sometimes("hold-was-released", "A destination was released before its hold ended."),
    Property::sometimes("gate-parked-held", "A gate parked an entry because its destination was held."),
    Property::sometimes("gate-parked-circuit", "A gate parked an entry because its destination's circuit was not closed."),
    Property::sometimes("circuit-opened", "A circuit opened."),
    Property::sometimes("circuit-half-opened", "A circuit admitted a probe."),
    Property::sometimes("circuit-closed", "A circuit that was not closed closed."),
    Property::sometimes("dropped-circuit-held", "A delivery was given up because a circuit had kept it back for too long."),
    Property::sometimes("old-message-attempted", "A message of the old queue was tried on the old path."),
    Property::sometimes("old-message-adopted", "A message of the old queue was adopted."),
    Property::sometimes("adopted-after-attempts", "A message of the old queue was adopted that had been tried before."),
    Property::sometimes("adoption-found-its-marker", "A message that was received again was found to be owned already."),
    Property::sometimes("adoption-stayed-unknown", "A listener did not learn whether its adoption happened."),
    Property::sometimes("closed-intake-refused-adoption", "A message was not adopted because intake was closed."),
    Property::sometimes("held-stays-in-the-old-queue", "A message whose destination is held stayed in the old queue."),
    Property::sometimes("old-fanout-expanded", "A fanout of the old queue was expanded there."),
    Property::sometimes("old-message-came-again", "A message of the old queue was received by another while it was worked on."),
    Property::sometimes("send-was-handed-over", "A send that a closed intake refused went to the old queue."),
    Property::sometimes("hand-over-stayed-unknown", "A caller was told that the outcome of its hand-over is unknown."),
    Property::sometimes("dropped-for-age", "A delivery was given up because it was too old for another attempt."),
];
