//! Checks of the contract's sentences, for the tests of an adapter (feature `conformance`).
//!
//! Each [`Trial`] works under a prefix of its own and needs nothing but an [`AtomicKv`]; it panics when the store breaks the
//! contract. [`run_all`] runs every trial on a store of its own and reports all failures, not only the first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::AtomicKv;

mod atomicity;
mod bed;
mod concurrency;
mod limits;
mod reads;
mod scan;
#[cfg(test)]
mod tests;
mod versions;

pub use bed::Bed;

/// One check of the contract.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// What the store must do.
    pub name: &'static str,
    /// Panics when it does not.
    pub run: fn(&Bed<'_>),
}

macro_rules! trials {
    ($($module:ident: $($name:ident),+;)+) => {
        /// All trials.
        pub const TRIALS: &[Trial] = &[$($(Trial { name: stringify!($name), run: $module::$name }),+),+];
    };
}

trials! {
    atomicity: all_or_nothing_whichever_check_fails, put_delete_and_create_commit_together,
        a_check_only_key_blocks_the_writes, a_check_only_transaction_confirms_what_was_read,
        expecting_absence_of_a_present_key_conflicts, expecting_a_version_of_an_absent_key_conflicts,
        deleting_what_is_absent_is_no_error, a_delete_removes_the_version_it_checked, an_empty_transaction_is_refused,
        a_key_twice_is_refused, a_conflict_names_only_failed_checks;
    versions: every_put_changes_the_version, puts_of_one_transaction_have_the_version_answered,
        no_version_returns_after_delete_and_recreate, a_failed_transaction_leaves_versions_alone,
        a_version_from_elsewhere_conflicts;
    reads: answers_stand_in_request_order, no_keys_have_an_empty_answer, an_empty_value_is_not_absence,
        bytes_come_back_as_they_were, similar_keys_are_different_keys, own_writes_are_read, the_clock_does_not_run_backwards;
    scan: keys_come_in_unsigned_byte_order, the_end_is_not_in_the_range, a_prefix_ending_in_ff_has_an_end,
        an_empty_range_is_read_to_its_end, a_limit_of_0_is_refused, every_limit_gives_the_same_records,
        a_page_goes_on_after_its_cursor_was_deleted, a_neighbouring_prefix_is_not_touched;
    limits: limits_do_not_change, the_longest_key_works_and_one_more_byte_does_not,
        the_longest_value_works_and_one_more_byte_does_not, the_most_checks_work_and_one_more_does_not,
        the_most_writes_work_and_one_more_does_not, the_largest_transaction_works_and_one_more_byte_does_not,
        the_most_keys_are_read_and_one_more_is_not;
    concurrency: one_of_64_creators_wins, no_increment_is_lost, check_only_versions_prevent_write_skew,
        check_only_absences_prevent_write_skew, no_snapshot_or_page_is_torn;
}

/// A trial that the store did not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// [`Trial::name`].
    pub name: &'static str,
    /// What the trial said when it panicked.
    pub message: String,
}

/// Runs each trial on a store from `open` (given the trial's name) and under a prefix of its own; answers all failures.
pub fn failures<S: AtomicKv>(open: impl Fn(&str) -> S) -> Vec<Failure> {
    let run = |trial: &Trial| {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let store = open(trial.name);
            (trial.run)(&Bed::new(&store, trial.name.as_bytes()));
        }));
        outcome.err().map(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Failure { name: trial.name, message: text.unwrap_or_default() }
        })
    };
    TRIALS.iter().filter_map(run).collect()
}

/// Asserts that a store passes all trials. `open` is called once a trial, with its name.
///
/// # Panics
/// After the last trial, when any of them failed: with the names and messages of all that did.
pub fn run_all<S: AtomicKv>(open: impl Fn(&str) -> S) {
    let failures = failures(open);
    let lines: Vec<String> = failures.iter().map(|failure| format!("{}: {}", failure.name, failure.message)).collect();
    let passed = TRIALS.len() - failures.len();
    assert!(failures.is_empty(), "{passed} passed, {} failed\n{}", failures.len(), lines.join("\n"));
}

/// Waits for a future on this thread, without any runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
