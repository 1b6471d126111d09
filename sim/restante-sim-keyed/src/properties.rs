//! What is promised of a keyed queue. Each promise has a planted bug that breaks it ([`Mutant`](crate::Mutant)).

use restante_engine::Property;

/// Every property of the keyed queue's world.
pub const PROPERTIES: &[Property] = &[
    Property::always("one-at-a-time", "Of one key, no attempt begins while another is under way."),
    Property::always(
        "submission-order",
        "Of one key, the first outstanding task in submission order is the only one that starts, retries included.",
    ),
    Property::always("width-is-kept", "No more keys are in an attempt than the width."),
    Property::always("attempts-are-counted", "Attempts of a task are numbered from 1 without a gap, up to its most."),
    Property::always("backoff-is-kept", "No backoff is over, and no attempt begins, before its time."),
    Property::always("settles-once", "Every task that is over has one result, at once and for good."),
    Property::always("result-is-true", "A result says what happened to its task."),
    Property::always(
        "cancel-takes-what-has-not-started",
        "A cancel says yes exactly for a task that has not started, and that task never starts.",
    ),
    Property::always(
        "counts-add-up",
        "What is running, queued and over, by its end, is what a recount finds, and adds up to what was submitted.",
    ),
    Property::always("paused-starts-nothing", "No attempt begins while the queue or its key is paused."),
    Property::always(
        "startable-starts",
        "While there is width, a task whose turn it is and that no pause or backoff holds back can start.",
    ),
    Property::always("idle-is-told", "Idle is told exactly when the last outstanding task is over."),
    Property::always("empty-key-is-freed", "A key is freed exactly when nothing of it is outstanding and it is not paused."),
    Property::always("stopped-takes-nothing", "A submission is refused from the stop on, and not before."),
    Property::always("held-is-abandoned", "While the queue drains, nothing waits for the end of a pause."),
    Property::always("stop-returns-by-its-deadline", "At its deadline a stop has told its report, whatever is under way."),
    Property::always("stop-ends-when-drained", "A stop tells its report, once, when nothing is left to drain."),
    Property::always("report-is-the-drain", "The report counts what became of tasks between the stop and its end."),
    Property::sometimes("backoff-held-its-key", "A task waited while the one before it was between two attempts."),
    Property::sometimes("backoff-freed-width", "A key started while another was between two attempts, at a width of one."),
    Property::sometimes("width-was-full", "A key waited for width."),
    Property::sometimes("last-attempt-failed", "A task came to the end of its attempts."),
    Property::sometimes("cancelled", "A task was cancelled before it started."),
    Property::sometimes("cancel-came-too-late", "A cancel met a task that was between two attempts."),
    Property::sometimes("pause-held-an-attempt", "A pause held back the next attempt of a task that had started."),
    Property::sometimes("held-work-was-abandoned", "A pause in a drain left work to be abandoned."),
    Property::sometimes("drained-in-time", "A stop with a deadline ended before it."),
    Property::sometimes("deadline-came-first", "A stop ended at its deadline with work left."),
    Property::sometimes("late-result-was-dropped", "An attempt ended after its task was abandoned."),
    Property::sometimes("sleep-was-short", "A sleep ended before its time and was repeated."),
];
