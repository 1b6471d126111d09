//! The core alone: what each call asks for. Every order of calls within a small bound is the simulator's to try.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Action, AttemptEnd, Core, DrainReport, End, KeyId, QueueStopped, QueueTime, Start, TaskId};

const A: KeyId = KeyId::new(0);
const B: KeyId = KeyId::new(1);
const C: KeyId = KeyId::new(2);
const BACKOFF: Duration = Duration::from_millis(10);

fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("not 0")
}

fn at(ms: u64) -> QueueTime {
    QueueTime::new(Duration::from_millis(ms))
}

fn actions(core: &mut Core) -> Vec<Action> {
    std::iter::from_fn(|| core.next_action()).collect()
}

/// Submits to each key, twice attempted at most.
fn submitted<const N: usize>(core: &mut Core, keys: [KeyId; N]) -> [TaskId; N] {
    keys.map(|key| core.submit(key, count(2)).expect("open"))
}

fn failed(now_ms: u64) -> AttemptEnd {
    AttemptEnd::Failed { now: at(now_ms), backoff: BACKOFF }
}

fn start(task: TaskId, attempt: u32) -> Start {
    Start { task, attempt: count(attempt) }
}

/// Starts all that can start.
fn starts(core: &mut Core) -> Vec<Start> {
    std::iter::from_fn(|| core.next_start()).collect()
}

fn settle(task: TaskId, end: End) -> Action {
    Action::Settle { task, end }
}

#[test]
fn keys_take_turns_when_there_are_more_than_the_width() {
    let mut core = Core::new(count(1));
    let [a1, a2, b1, c1] = submitted(&mut core, [A, A, B, C]);
    assert_eq!(starts(&mut core), [start(a1, 1)]);
    for (task, next) in [(a1, b1), (b1, c1), (c1, a2)] {
        core.on_attempt_ended(task, AttemptEnd::Succeeded);
        assert_eq!(starts(&mut core), [start(next, 1)], "the second of a key waits for one of each other");
    }
}

#[test]
fn a_backoff_holds_its_key_but_no_width() {
    let mut core = Core::new(count(1));
    let [a1, a2, b1] = submitted(&mut core, [A, A, B]);
    starts(&mut core);
    core.on_attempt_ended(a1, failed(0));
    assert_eq!(actions(&mut core), [Action::ArmBackoff { task: a1, attempt: count(1), at: at(10) }]);
    assert_eq!(starts(&mut core), [start(b1, 1)]);
    assert_eq!((core.counts().running, core.counts().backing_off, core.counts().queued), (2, 1, 1));
    core.on_backoff_elapsed(a1, count(1), at(10));
    assert_eq!(starts(&mut core), [], "the width is taken");
    core.on_attempt_ended(b1, AttemptEnd::Succeeded);
    assert_eq!(actions(&mut core), [settle(b1, End::Completed), Action::FreeKey(B)]);
    assert_eq!(starts(&mut core), [start(a1, 2)]);
    core.on_attempt_ended(a1, failed(20));
    assert_eq!(actions(&mut core), [settle(a1, End::Failed)]);
    assert_eq!(starts(&mut core), [start(a2, 1)]);
}

#[test]
fn a_sleep_that_was_short_is_repeated() {
    let mut core = Core::new(count(1));
    let [task] = submitted(&mut core, [A]);
    starts(&mut core);
    core.on_attempt_ended(task, failed(0));
    actions(&mut core);
    core.on_backoff_elapsed(task, count(1), at(9));
    assert_eq!(actions(&mut core), [Action::ArmBackoff { task, attempt: count(1), at: at(10) }]);
    core.stop(at(9), Some(at(20)));
    core.on_deadline(at(19));
    assert_eq!(actions(&mut core), [Action::ArmDeadline { at: at(20) }, Action::ArmDeadline { at: at(20) }]);
}

#[test]
fn what_comes_too_late_or_makes_no_sense_changes_nothing() {
    let mut core = Core::new(count(1));
    let [a1, a2] = submitted(&mut core, [A, A]);
    starts(&mut core);
    core.on_attempt_ended(a1, failed(0));
    actions(&mut core);
    let before = core.clone();
    core.on_attempt_ended(a1, AttemptEnd::Succeeded);
    core.on_attempt_ended(a2, AttemptEnd::Succeeded);
    core.on_backoff_elapsed(a2, count(1), at(99));
    core.on_backoff_elapsed(a1, count(2), at(99));
    core.on_deadline(at(99));
    let unknown = TaskId::new(99, 7);
    core.on_attempt_ended(unknown, AttemptEnd::GivenUp);
    assert!(!core.cancel(unknown) && !core.cancel(a1) && !core.resume() && !core.resume_key(B));
    assert_eq!(core, before);
}

#[test]
fn a_slot_that_is_used_again_does_not_bring_an_old_task_back() {
    let mut core = Core::new(count(1));
    let [old] = submitted(&mut core, [A]);
    starts(&mut core);
    core.on_attempt_ended(old, AttemptEnd::Succeeded);
    let [new] = submitted(&mut core, [A]);
    starts(&mut core);
    actions(&mut core);
    assert_eq!((old.slot(), old == new), (new.slot(), false));
    core.on_attempt_ended(old, AttemptEnd::Succeeded);
    assert_eq!(actions(&mut core), []);
}

#[test]
fn a_cancelled_head_leaves_its_turn_to_the_next_of_its_key() {
    let mut core = Core::new(count(1));
    let [a1, b1, b2, c1] = submitted(&mut core, [A, B, B, C]);
    starts(&mut core);
    assert!(core.cancel(b1) && core.cancel(c1));
    assert_eq!(actions(&mut core), [settle(b1, End::Cancelled), settle(c1, End::Cancelled), Action::FreeKey(C)]);
    core.on_attempt_ended(a1, AttemptEnd::Succeeded);
    assert_eq!(actions(&mut core), [settle(a1, End::Completed), Action::FreeKey(A)]);
    assert_eq!(starts(&mut core), [start(b2, 1)]);
}

#[test]
fn a_paused_key_is_kept_and_freed_when_its_pause_ends() {
    let mut core = Core::new(count(2));
    assert!(core.pause_key(B) && !core.pause_key(B));
    let [a1, b1] = submitted(&mut core, [A, B]);
    assert_eq!(starts(&mut core), [start(a1, 1)]);
    assert!(core.cancel(b1));
    assert_eq!(actions(&mut core), [settle(b1, End::Cancelled)], "the number stays B's");
    assert!(core.resume_key(B));
    assert_eq!(actions(&mut core), [Action::FreeKey(B)]);
}

#[test]
fn a_stop_reports_the_drain_alone() {
    let mut core = Core::new(count(1));
    let [a1] = submitted(&mut core, [A]);
    starts(&mut core);
    core.on_attempt_ended(a1, AttemptEnd::Succeeded);
    let [a2, b1] = submitted(&mut core, [A, B]);
    starts(&mut core);
    actions(&mut core);
    core.stop(at(0), None);
    assert_eq!(core.submit(A, count(1)), Err(QueueStopped));
    core.on_attempt_ended(a2, AttemptEnd::GivenUp);
    starts(&mut core);
    core.on_attempt_ended(b1, AttemptEnd::Succeeded);
    let report = DrainReport { completed: 1, failed: 1, abandoned: 0, timed_out: false };
    assert_eq!(actions(&mut core).split_off(3), [Action::FreeKey(B), Action::Idle, Action::Stopped(report)]);
    core.stop(at(0), Some(at(0)));
    assert_eq!((actions(&mut core), core.report()), (vec![], Some(report)));
}

#[test]
fn a_stop_of_an_idle_queue_is_over_at_once_and_says_idle_to_nobody() {
    let mut core = Core::new(count(1));
    core.stop(at(0), Some(at(5)));
    assert_eq!(actions(&mut core), [Action::Stopped(DrainReport::default())]);
}

#[test]
fn a_later_stop_brings_the_deadline_forward_and_never_puts_it_off() {
    let mut core = Core::new(count(1));
    let [task] = submitted(&mut core, [A]);
    starts(&mut core);
    core.stop(at(0), Some(at(50)));
    core.stop(at(1), None);
    core.stop(at(1), Some(at(90)));
    assert_eq!(actions(&mut core), [Action::ArmDeadline { at: at(50) }]);
    core.stop(at(2), Some(at(20)));
    assert_eq!(actions(&mut core), [Action::ArmDeadline { at: at(20) }]);
    core.on_deadline(at(20));
    let report = DrainReport { completed: 0, failed: 0, abandoned: 1, timed_out: true };
    let last = [settle(task, End::Abandoned), Action::FreeKey(A), Action::Idle, Action::Stopped(report)];
    assert_eq!(actions(&mut core), last);
    core.on_attempt_ended(task, AttemptEnd::Succeeded);
    assert_eq!((core.counts().completed, core.counts().abandoned, core.counts().running), (0, 1, 0));
}

#[test]
fn what_a_pause_holds_back_is_abandoned_by_a_stop_whichever_comes_first() {
    for pause_first in [true, false] {
        let mut core = Core::new(count(2));
        // A runs, with one behind it; B waits for its next attempt; C waits for width.
        let [a1, a2, b1, c1] = submitted(&mut core, [A, A, B, C]);
        starts(&mut core);
        core.on_attempt_ended(b1, failed(0));
        actions(&mut core);
        starts(&mut core);
        if pause_first {
            core.pause();
            core.stop(at(0), None);
        } else {
            core.stop(at(0), None);
            core.pause();
        }
        let mut settled = actions(&mut core);
        settled.retain(|action| matches!(action, Action::Settle { .. }));
        // C took the width that B left, so it runs.
        assert_eq!(settled, [a2, b1].map(|task| settle(task, End::Abandoned)));
        core.on_attempt_ended(a1, failed(1));
        core.on_attempt_ended(c1, AttemptEnd::Succeeded);
        let report = DrainReport { completed: 1, failed: 0, abandoned: 3, timed_out: false };
        assert_eq!(core.report(), Some(report), "nobody waits for an attempt that the pause would hold back");
    }
}
