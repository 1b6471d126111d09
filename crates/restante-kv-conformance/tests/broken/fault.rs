//! What can be wrong.

use restante_kv::{Key, Limits};

/// One fault of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    // Transactions.
    FirstCheckOnly,
    CheckOnlyKeysIgnored,
    AbsenceIgnored,
    VersionOfAbsentHolds,
    FirstWriteDespiteConflict,
    DirtyThenRolledBack,
    ConfirmsAnything,
    CheckedKeysTouched,
    DeleteOfAbsentRefused,
    DeletesUnchecked,
    DeletesBesidePutsForgotten,
    EmptyTxnAccepted,
    FirstOfDuplicates,
    ConflictNamesAll,
    CheckedBeforehand,
    WritesOneByOne,
    ConflictSpreads,
    PutTouchesNeighbour,
    OppositeOrdersWait,
    LaterHandlesStarve,
    ReadersHoldUpWriters,
    // Outcomes.
    SentBeforeThePoll,
    HalfWhenDropped,
    LateWithoutChecks,
    CommittedAsConflict,
    // Versions.
    VersionsOfAKey,
    VersionsOfAHandle,
    VersionsOfTheBytes,
    VersionsOf64Bits,
    AnswersAnotherVersion,
    // Reads.
    Torn,
    AnswersSorted,
    NoKeysRefused,
    EmptyIsAbsent,
    ValuesAreText,
    OldReads,
    OthersUnseen,
    ReadsGoBackwards,
    // Keys.
    KeysFolded,
    KeysOf7Bits,
    KeysTrimmed,
    KeysCollapse,
    KeysCut,
    PrefixesIgnored,
    // Scans.
    SignedOrder,
    EndIncluded,
    StartLeftOut,
    PrefixOverflows,
    EmptyRangeRefused,
    LimitOf0,
    ScanShowsOtherVersions,
    PageIsTheEnd,
    LargePageIsTheEnd,
    OneRecordMore,
    SkipsAfterDeletedCursor,
    CursorOfAHandle,
    BeginsAtRecordsOnly,
    PagesByOffset,
    TornPages,
    // Limits, clock, durability.
    OneMoreOfEach,
    LimitsChange,
    BelowTheFloor,
    ClockRunsBackwards,
    ClockStands,
    ClockMissing,
    ForgetsWhenOpened,
}

impl Fault {
    /// What the model behind the wrapper allows.
    pub(super) fn inner_limits(self) -> Limits {
        let floor = Limits::FLOOR;
        match self {
            Self::OneMoreOfEach => Limits {
                key_bytes_max: floor.key_bytes_max + 1,
                value_bytes_max: floor.value_bytes_max + 1,
                txn_checks_max: floor.txn_checks_max + 1,
                txn_writes_max: floor.txn_writes_max + 1,
                txn_bytes_max: floor.txn_bytes_max + 1,
                get_keys_max: floor.get_keys_max + 1,
                ..floor
            },
            // Room for what the fault itself does.
            Self::LimitsChange | Self::CheckedKeysTouched | Self::PutTouchesNeighbour | Self::OneRecordMore => Limits {
                get_keys_max: floor.get_keys_max + 1,
                txn_writes_max: floor.txn_writes_max + 10,
                scan_page_max: floor.scan_page_max + 1,
                ..floor
            },
            _ => floor,
        }
    }

    /// The key that the store takes for `key`.
    pub(super) fn key(self, key: Key) -> Key {
        let bytes = key.as_bytes();
        match self {
            Self::KeysFolded => Key::from(bytes.to_ascii_lowercase()),
            Self::KeysOf7Bits => Key::from(bytes.iter().map(|b| b & 0x7F).collect::<Vec<_>>()),
            Self::KeysTrimmed => Key::from(bytes.strip_suffix(b"\0").unwrap_or(bytes)),
            Self::KeysCollapse => Key::from(String::from_utf8_lossy(bytes).replace("..", ".").into_bytes()),
            Self::KeysCut => Key::from(&bytes[..bytes.len().min(Limits::FLOOR.key_bytes_max - 1)]),
            Self::PrefixesIgnored => {
                Key::from(String::from_utf8_lossy(bytes).replace("one/", "").replace("two/", "").into_bytes())
            }
            _ => key,
        }
    }
}
