//! What can be asked.

use crate::fault::Code;

/// One method of one path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// Whether the store answers.
    Health,
    /// Hands a message over.
    Send,
    /// What the backlog owns.
    Depth,
    /// One page of entries.
    Entries,
    /// One entry.
    Entry,
    /// Delivers what is due, once.
    RunOnce,
    /// Opens or closes intake.
    SetIntake,
    /// Whether intake is closed and nothing is left.
    Drained,
    /// One page of what was put aside.
    Quarantine,
    /// Makes what was put aside an entry again.
    Revive,
    /// Drops what was put aside.
    DropQuarantined,
    /// One page of what was given up.
    DeadLetters,
    /// One page of destinations of which something is known.
    Destinations,
    /// Takes note that a destination wants no deliveries for a while.
    SetHold,
    /// Takes note that it wants them again.
    ReleaseHold,
}

/// What reading from the store can end in.
const LOOK: &[Code] = &[Code::Unauthorized, Code::InvalidRequest, Code::RecordUnreadable, Code::Internal, Code::StoreUnavailable];
/// What a commit can end in.
const COMMIT: &[Code] = &[
    Code::Unauthorized,
    Code::InvalidRequest,
    Code::RecordUnreadable,
    Code::Internal,
    Code::Contention,
    Code::StoreUnavailable,
    Code::OutcomeUnknown,
];
/// What reading a body can end in.
const BODY: &[Code] = &[Code::InvalidJson, Code::InvalidRequest, Code::RequestTimeout, Code::BodyTooLarge];

impl Operation {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Health,
        Self::Send,
        Self::Depth,
        Self::Entries,
        Self::Entry,
        Self::RunOnce,
        Self::SetIntake,
        Self::Drained,
        Self::Quarantine,
        Self::Revive,
        Self::DropQuarantined,
        Self::DeadLetters,
        Self::Destinations,
        Self::SetHold,
        Self::ReleaseHold,
    ];

    /// Its method.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Health
            | Self::Depth
            | Self::Entries
            | Self::Entry
            | Self::Drained
            | Self::Quarantine
            | Self::DeadLetters
            | Self::Destinations => "GET",
            Self::Send | Self::RunOnce | Self::Revive | Self::ReleaseHold => "POST",
            Self::SetIntake | Self::SetHold => "PUT",
            Self::DropQuarantined => "DELETE",
        }
    }

    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Health => "/healthz",
            Self::Send => "/v1/sends",
            Self::Depth => "/v1/depth",
            Self::Entries => "/v1/entries",
            Self::Entry => "/v1/entries/{id}",
            Self::RunOnce => "/v1/run-once",
            Self::SetIntake => "/v1/intake",
            Self::Drained => "/v1/drained",
            Self::Quarantine => "/v1/quarantine",
            Self::Revive => "/v1/quarantine/{id}/revive",
            Self::DropQuarantined => "/v1/quarantine/{id}",
            Self::DeadLetters => "/v1/dead-letters",
            Self::Destinations => "/v1/destinations",
            Self::SetHold => "/v1/holds",
            Self::ReleaseHold => "/v1/holds/release",
        }
    }

    /// The status when it is done.
    pub const fn done(self) -> u16 {
        match self {
            Self::Send => 202,
            Self::Health
            | Self::Depth
            | Self::Entries
            | Self::Entry
            | Self::RunOnce
            | Self::SetIntake
            | Self::Drained
            | Self::Quarantine
            | Self::Revive
            | Self::DropQuarantined
            | Self::DeadLetters
            | Self::Destinations
            | Self::SetHold
            | Self::ReleaseHold => 200,
        }
    }

    /// What it can end in otherwise.
    pub fn faults(self) -> Vec<Code> {
        let parts: [&[Code]; 3] = match self {
            Self::Health => [&[Code::Internal, Code::StoreUnavailable], &[], &[]],
            Self::Depth | Self::Entries | Self::Drained | Self::Quarantine | Self::DeadLetters | Self::Destinations => {
                [LOOK, &[], &[]]
            }
            Self::Entry => [LOOK, &[], &[Code::UnknownId]],
            Self::Send => [COMMIT, BODY, &[Code::InvalidInbox, Code::IdempotencyConflict, Code::Refused, Code::IntakeClosed]],
            Self::SetIntake | Self::ReleaseHold => [COMMIT, BODY, &[]],
            Self::SetHold => [COMMIT, BODY, &[Code::Refused]],
            Self::Revive | Self::DropQuarantined => [COMMIT, &[], &[Code::UnknownId, Code::Refused]],
            Self::RunOnce => {
                [&[Code::Unauthorized, Code::Internal, Code::StoreUnavailable, Code::OutcomeUnknown, Code::Busy], BODY, &[]]
            }
        };
        let mut codes = parts.concat();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// All statuses it can answer with, in order, each once.
    pub fn statuses(self) -> Vec<u16> {
        let mut statuses: Vec<u16> = self.faults().iter().filter_map(|code| code.status()).chain([self.done()]).collect();
        statuses.sort_unstable();
        statuses.dedup();
        statuses
    }
}
