//! Every broken store is caught by the checks made for its fault, and every required check catches some broken store.

mod broken;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use broken::{Broken, Fault};
use restante_kv_conformance::{Check, Outcome, Suite, Tier};

/// Each fault, and checks that must fail for it.
const CAUGHT: &[(Fault, &[&str])] = &[
    (Fault::FirstCheckOnly, &["one-stale-check-stops-every-write", "the-most-checks-work-and-one-more-does-not"]),
    (
        Fault::CheckOnlyKeysIgnored,
        &[
            "a-check-only-key-blocks-the-writes",
            "check-only-versions-prevent-write-skew",
            "check-only-absences-prevent-write-skew",
        ],
    ),
    (
        Fault::AbsenceIgnored,
        &[
            "expecting-absence-of-a-present-key-conflicts",
            "one-of-64-creators-wins",
            "an-abort-marker-settles-a-dropped-transaction",
        ],
    ),
    (Fault::VersionOfAbsentHolds, &["expecting-a-version-of-an-absent-key-conflicts"]),
    (Fault::FirstWriteDespiteConflict, &["one-stale-check-stops-every-write"]),
    (Fault::DirtyThenRolledBack, &["a-failed-transaction-leaves-versions-alone"]),
    (Fault::ConfirmsAnything, &["a-check-only-transaction-confirms-what-was-read"]),
    (Fault::CheckedKeysTouched, &["a-check-only-key-blocks-the-writes", "a-check-only-transaction-confirms-what-was-read"]),
    (Fault::DeleteOfAbsentRefused, &["deleting-what-is-absent-is-no-error"]),
    (Fault::DeletesUnchecked, &["a-delete-removes-only-the-version-it-checked"]),
    (Fault::DeletesBesidePutsForgotten, &["put-delete-and-create-commit-together"]),
    (Fault::EmptyTxnAccepted, &["an-empty-transaction-is-refused"]),
    (Fault::FirstOfDuplicates, &["a-key-twice-is-refused"]),
    (Fault::ConflictNamesAll, &["a-conflict-names-only-failed-checks", "random-programs-answer-as-the-model-does"]),
    (
        Fault::CheckedBeforehand,
        &["no-increment-is-lost", "one-of-64-creators-wins", "transfers-keep-their-sum", "many-increments-are-not-lost"],
    ),
    (Fault::WritesOneByOne, &["no-intermediate-state-is-seen", "no-snapshot-is-torn", "a-lease-has-one-holder-at-a-time"]),
    (Fault::ConflictSpreads, &["a-conflict-leaves-its-neighbours-alone"]),
    (Fault::PutTouchesNeighbour, &["what-no-transaction-names-is-not-touched"]),
    (Fault::OppositeOrdersWait, &["opposite-key-orders-do-not-deadlock"]),
    (Fault::LaterHandlesStarve, &["every-caller-of-a-hot-key-gets-its-turn"]),
    (Fault::ReadersHoldUpWriters, &["an-unfinished-reader-does-not-hold-up-a-writer"]),
    (Fault::SentBeforeThePoll, &["nothing-is-sent-before-the-first-poll"]),
    (Fault::HalfWhenDropped, &["a-dropped-transaction-happens-whole-or-not-at-all"]),
    (
        Fault::LateWithoutChecks,
        &[
            "a-repeat-settles-a-dropped-transaction",
            "a-newer-version-shuts-out-a-dropped-transaction",
            "an-abort-marker-settles-a-dropped-transaction",
        ],
    ),
    (Fault::CommittedAsConflict, &["a-conflict-means-nothing-happened", "a-refused-caller-wrote-nothing"]),
    (Fault::VersionsOfAKey, &["no-version-returns-after-delete-and-recreate"]),
    (Fault::VersionsOfAHandle, &["versions-of-two-handles-do-not-meet", "no-version-returns-after-reopening"]),
    (Fault::VersionsOfTheBytes, &["every-put-changes-the-version", "many-random-programs-answer-as-the-model-does"]),
    (Fault::VersionsOf64Bits, &["a-version-from-elsewhere-conflicts"]),
    (Fault::AnswersAnotherVersion, &["the-version-answered-is-the-version-read", "own-writes-are-read"]),
    (Fault::Torn, &["no-snapshot-is-torn"]),
    (Fault::AnswersSorted, &["answers-stand-in-request-order"]),
    (Fault::NoKeysRefused, &["no-keys-have-an-empty-answer"]),
    (Fault::EmptyIsAbsent, &["an-empty-value-is-not-absence"]),
    (Fault::ValuesAreText, &["bytes-come-back-as-they-were", "the-longest-value-works-and-one-more-byte-does-not"]),
    (Fault::OldReads, &["own-writes-are-read"]),
    (Fault::OthersUnseen, &["another-handle-reads-what-was-acknowledged"]),
    (Fault::ReadsGoBackwards, &["reads-do-not-go-backwards"]),
    (Fault::KeysFolded, &["case-and-normal-forms-differ"]),
    (Fault::KeysOf7Bits, &["every-byte-may-stand-in-a-key"]),
    (Fault::KeysTrimmed, &["trailing-blanks-and-zeros-differ"]),
    (Fault::KeysCollapse, &["patterns-and-wildcards-are-plain-bytes"]),
    (Fault::KeysCut, &["long-keys-differ-in-their-last-byte"]),
    (Fault::PrefixesIgnored, &["equal-keys-under-two-prefixes-are-two-records"]),
    (Fault::SignedOrder, &["keys-come-in-unsigned-byte-order", "tuple-keys-keep-their-order"]),
    (
        Fault::EndIncluded,
        &[
            "the-start-is-in-the-range-and-the-end-is-not",
            "a-prefix-that-begins-another-is-not-the-other",
            "clearing-one-prefix-leaves-the-other",
        ],
    ),
    (Fault::StartLeftOut, &["the-start-is-in-the-range-and-the-end-is-not", "every-limit-gives-the-same-records"]),
    (Fault::PrefixOverflows, &["a-prefix-ending-in-ff-has-an-end"]),
    (Fault::EmptyRangeRefused, &["an-empty-range-is-read-to-its-end"]),
    (Fault::LimitOf0, &["a-limit-of-0-is-refused"]),
    (Fault::ScanShowsOtherVersions, &["a-scan-answers-what-a-read-answers"]),
    (Fault::PageIsTheEnd, &["only-no-next-page-means-the-end", "every-limit-gives-the-same-records"]),
    (Fault::LargePageIsTheEnd, &["large-records-do-not-stop-a-scan"]),
    (Fault::OneRecordMore, &["a-page-keeps-its-limit"]),
    (Fault::SkipsAfterDeletedCursor, &["a-page-goes-on-after-its-cursor-was-deleted"]),
    (Fault::CursorOfAHandle, &["a-cursor-works-on-another-handle"]),
    (Fault::BeginsAtRecordsOnly, &["a-page-may-begin-at-any-key"]),
    (Fault::PagesByOffset, &["unchanged-keys-are-seen-once-while-others-change"]),
    (Fault::TornPages, &["no-page-is-torn"]),
    (
        Fault::OneMoreOfEach,
        &[
            "the-longest-key-works-and-one-more-byte-does-not",
            "the-longest-value-works-and-one-more-byte-does-not",
            "the-most-checks-work-and-one-more-does-not",
            "the-most-writes-work-and-one-more-does-not",
            "the-largest-transaction-works-and-one-more-byte-does-not",
            "the-most-keys-are-read-and-one-more-is-not",
        ],
    ),
    (Fault::LimitsChange, &["limits-do-not-change"]),
    (Fault::BelowTheFloor, &["limits-reach-the-floor"]),
    (Fault::ClockRunsBackwards, &["the-clock-does-not-run-backwards"]),
    (Fault::ClockStands, &["the-clock-goes-on"]),
    (Fault::ClockMissing, &["answers-carry-a-clock-exactly-if-limits-say-so"]),
    (Fault::ForgetsWhenOpened, &["records-survive-reopening", "a-cursor-works-after-reopening"]),
];

fn suite(fault: Fault) -> Suite {
    // Some faults are to wait for ever.
    let patience =
        Duration::from_millis(if matches!(fault, Fault::CheckedBeforehand | Fault::WritesOneByOne) { 10_000 } else { 500 });
    Suite::new(format!("{fault:?}"), move || Ok::<_, Infallible>(Broken::subject(fault))).patience(patience).stress(3)
}

#[test]
fn every_fault_is_caught_by_the_checks_made_for_it() {
    let mut missed = Vec::new();
    for (fault, checks) in CAUGHT {
        for name in *checks {
            let check = Check::by_name(name).unwrap_or_else(|| panic!("there is no check {name}"));
            let ran = suite(*fault).run_check(check);
            let is_caught = match &ran.outcome {
                // A check that fails because the store fell over is not what is meant.
                Outcome::Failed(failure) => !failure.breach.found.contains("a panic"),
                _ => false,
            };
            if !is_caught {
                missed.push(format!("{fault:?} is not caught by {ran}"));
            }
            if std::env::var_os("RESTANTE_CONFORMANCE_SHOW").is_some() {
                println!("{fault:?} {:?}\n{ran}\n", ran.took);
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_check_catches_some_fault() {
    let caught: BTreeSet<&str> = CAUGHT.iter().flat_map(|(_, checks)| checks.iter().copied()).collect();
    let idle: Vec<&str> = Check::all().filter(|check| !caught.contains(check.name)).map(|check| check.name).collect();
    assert!(idle.is_empty(), "no broken store shows that these checks can fail: {idle:?}");
    assert!(Check::all().filter(|check| check.tier == Tier::Required).count() >= 40);
}
