//! The shell under loom: every interleaving of a few threads, with the shell and its answers exactly as they are.
//!
//! Only the lock is loom's, by way of [`Platform`]; so these run with every `cargo test`. Work is executed by whichever
//! thread is told to send a worker.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use loom::thread;

use super::answer::Answer;
use super::{Chores, Lock, MoreChores, Platform, Shell, Start};
use crate::TaskError;
use crate::core::{AttemptEnd, DrainReport, QueueTime, TaskId};

enum Loom {}

impl<T: Send> Lock<T> for loom::sync::Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().expect("no model panics under the lock"))
    }
}

impl Platform for Loom {
    type Mutex<T: Send> = loom::sync::Mutex<T>;
    type Timer = ();
}

/// A task's work: where its value goes, and the value.
type Work = (Arc<BedAnswer>, u8);
type BedAnswer = Answer<u8, (), Loom>;
type BedChores = Chores<u8, Work, Loom>;

struct Bed {
    shell: Shell<u8, Work, Loom>,
    /// What was begun, in order. Not a lock of loom's: it is not under test, and no thread is switched while it is held.
    begun: Mutex<Vec<u8>>,
}

impl Bed {
    fn new() -> Arc<Self> {
        Arc::new(Self { shell: Shell::new(NonZeroU32::MIN), begun: Mutex::default() })
    }

    /// Submits work that comes to `value`, and leaves a worker to be sent.
    fn submit(&self, key: u8, value: u8) -> Option<(TaskId, Arc<BedAnswer>, BedChores)> {
        let answer = Arc::new(Answer::new());
        let submitted = self.shell.submit((u64::from(key), &key), NonZeroU32::MIN, answer.clone(), (answer.clone(), value));
        submitted.ok().map(|(task, chores)| (task, answer, chores))
    }

    /// Does all chores and all work they lead to.
    fn perform(&self, chores: BedChores) {
        let needs_worker = self.perform_but_work(chores);
        if needs_worker {
            let (start, chores) = self.shell.worker_comes();
            self.perform(chores);
            if let Some(start) = start {
                self.execute(start);
            }
        }
    }

    fn perform_but_work(&self, chores: BedChores) -> bool {
        let Chores { settled, needs_worker, key: _, more } = chores;
        let (mut results, mut to_wake) = (Vec::from_iter(settled), None);
        if let Some(more) = more {
            let MoreChores { settled, wakers, .. } = *more;
            results.extend(settled);
            to_wake = Some(wakers);
        }
        results.into_iter().for_each(|(answer, end)| answer.settle(end));
        to_wake.into_iter().flatten().for_each(|(_, waker)| waker.wake());
        needs_worker
    }

    fn execute(&self, start: Start<Work>) {
        let mut next = Some(start);
        while let Some(Start { task, work: (answer, value), .. }) = next {
            self.begun.lock().expect("not poisoned").push(value);
            answer.store(Ok(value));
            let (start, chores) = self.shell.attempt_ended(task, AttemptEnd::Succeeded, None, true);
            self.perform(chores);
            next = start;
        }
    }

    fn begun(&self) -> Vec<u8> {
        self.begun.lock().expect("not poisoned").clone()
    }

    fn stopped(&self) -> DrainReport {
        let mut waiter = None;
        loom::future::block_on(std::future::poll_fn(|context| self.shell.poll_stopped(&mut waiter, context)))
    }
}

fn result(answer: &BedAnswer) -> Result<u8, TaskError<()>> {
    loom::future::block_on(std::future::poll_fn(|context| answer.poll_take(context)))
}

fn report(completed: u64, abandoned: u64) -> DrainReport {
    DrainReport { completed, failed: 0, abandoned, timed_out: abandoned > 0 }
}

/// Runs a model in every interleaving there is. A model with only one shows nothing.
fn explored(model: impl Fn() + Send + Sync + 'static) {
    let interleavings = Arc::new(Mutex::new(0_u64));
    let counted = interleavings.clone();
    loom::model(move || {
        *counted.lock().expect("not poisoned") += 1;
        model();
    });
    let interleavings = *interleavings.lock().expect("not poisoned");
    assert!(interleavings > 10, "{interleavings} interleavings");
}

#[test]
fn a_task_submitted_beside_a_stop_is_refused_or_done() {
    explored(|| {
        let bed = Bed::new();
        let submitting = [7, 8].map(|value| {
            let bed = bed.clone();
            thread::spawn(move || {
                let (_, answer, chores) = bed.submit(1, value)?;
                bed.perform(chores);
                Some(answer)
            })
        });
        bed.perform(bed.shell.stop(QueueTime::ZERO, None));
        let report = bed.stopped();
        let accepted = submitting.map(|submitting| submitting.join().expect("no panic"));
        for (answer, value) in accepted.iter().zip([7, 8]) {
            match answer {
                Some(answer) => assert_eq!(result(answer), Ok(value)),
                None => assert!(!bed.begun().contains(&value)),
            }
        }
        // It was accepted before the stop: done before it too, or counted in the drain.
        let accepted = accepted.iter().flatten().count() as u64;
        assert!(report.completed <= accepted && report == self::report(report.completed, 0));
        let counts = bed.shell.look().counts;
        assert_eq!((counts.submitted, counts.completed, bed.begun().len() as u64), (accepted, accepted, accepted));
    });
}

#[test]
fn a_cancel_beside_a_start_wins_or_loses_but_not_both() {
    explored(|| {
        let bed = Bed::new();
        let (_, first, chores) = bed.submit(1, 1).expect("open");
        let (second_id, second, more) = bed.submit(1, 2).expect("open");
        assert!(!more.needs_worker, "its key is taken");
        let other = bed.clone();
        let working = thread::spawn(move || other.perform(chores));
        let other = bed.clone();
        let cancel = move || {
            let (cancelled, chores) = other.shell.cancel(second_id);
            other.perform(chores);
            cancelled
        };
        let cancelling = thread::spawn(cancel.clone());
        let cancelled = [cancel(), cancelling.join().expect("no panic")];
        working.join().expect("no panic");
        assert_eq!(result(&first), Ok(1));
        match cancelled {
            [false, false] => assert_eq!((result(&second), bed.begun()), (Ok(2), vec![1, 2])),
            [true, false] | [false, true] => {
                assert_eq!((result(&second), bed.begun()), (Err(TaskError::Cancelled), vec![1]));
            }
            [true, true] => panic!("both say that they cancelled it"),
        }
    });
}

#[test]
fn whoever_waits_for_idle_is_woken_by_the_last_completion() {
    explored(|| {
        let bed = Bed::new();
        let (_, _, chores) = bed.submit(1, 1).expect("open");
        let other = bed.clone();
        let working = thread::spawn(move || other.perform(chores));
        if let Some(seen) = bed.shell.idle_count() {
            let mut waiter = None;
            loom::future::block_on(std::future::poll_fn(|context| bed.shell.poll_idle(seen, &mut waiter, context)));
        }
        assert_eq!(bed.shell.look().counts.completed, 1);
        working.join().expect("no panic");
    });
}

#[test]
fn whoever_has_a_result_finds_it_counted() {
    explored(|| {
        let bed = Bed::new();
        let (_, answer, chores) = bed.submit(1, 1).expect("open");
        let other = bed.clone();
        let working = thread::spawn(move || other.perform(chores));
        assert_eq!(result(&answer), Ok(1));
        assert_eq!(bed.shell.look().counts.completed, 1);
        working.join().expect("no panic");
    });
}

#[test]
fn a_completion_beside_the_deadline_counts_or_is_dropped_but_not_both() {
    explored(|| {
        let bed = Bed::new();
        let (_, answer, chores) = bed.submit(1, 1).expect("open");
        assert!(bed.perform_but_work(chores));
        let (start, chores) = bed.shell.worker_comes();
        bed.perform(chores);
        let deadline = QueueTime::new(std::time::Duration::from_secs(5));
        bed.perform(bed.shell.stop(QueueTime::ZERO, Some(deadline)));
        let other = bed.clone();
        let working = thread::spawn(move || other.execute(start.expect("it was sent for")));
        let other = bed.clone();
        let waiting = thread::spawn(move || other.stopped());
        bed.perform(bed.shell.deadline_reached(deadline));
        let expected = match result(&answer) {
            Ok(1) => report(1, 0),
            Err(TaskError::Stopped) => report(0, 1),
            other => panic!("the task came to {other:?}"),
        };
        assert_eq!(waiting.join().expect("no panic"), expected);
        working.join().expect("no panic");
        // The late completion changes nothing.
        let counts = bed.shell.look().counts;
        assert_eq!((bed.stopped(), counts.completed, counts.abandoned), (expected, expected.completed, expected.abandoned));
    });
}

#[test]
fn nothing_starts_after_a_pause_has_returned() {
    explored(|| {
        let bed = Bed::new();
        let (_, _, chores) = bed.submit(1, 1).expect("open");
        let (_, second, more) = bed.submit(1, 2).expect("open");
        assert!(!more.needs_worker, "its key is taken");
        let other = bed.clone();
        let working = thread::spawn(move || other.perform(chores));
        let (_, chores) = bed.shell.pause();
        bed.perform(chores);
        let has_started = bed.shell.look().counts.queued == 0;
        working.join().expect("no panic");
        assert_eq!(bed.begun().contains(&2), has_started);
        let (_, chores) = bed.shell.resume();
        bed.perform(chores);
        assert_eq!((result(&second), bed.begun()), (Ok(2), vec![1, 2]));
    });
}

#[test]
fn every_start_finds_a_worker_even_if_all_wait() {
    explored(|| {
        let bed = Arc::new(Bed { shell: Shell::new(NonZeroU32::new(3).expect("positive")), begun: Mutex::default() });
        /// Workers that begin what they are handed, and wait for it without end.
        fn send(bed: &Bed, chores: BedChores) {
            if bed.perform_but_work(chores) {
                let (start, chores) = bed.shell.worker_comes();
                bed.begun.lock().expect("not poisoned").extend(start.map(|start| start.work.1));
                send(bed, chores);
            }
        }
        let other = bed.clone();
        let submitting = thread::spawn(move || {
            let (_, _, chores) = other.submit(1, 1).expect("open");
            send(&other, chores);
        });
        for value in [2, 3] {
            let (_, _, chores) = bed.submit(value, value).expect("open");
            send(&bed, chores);
        }
        submitting.join().expect("no panic");
        let mut begun = bed.begun();
        begun.sort_unstable();
        assert_eq!(begun, [1, 2, 3]);
    });
}
