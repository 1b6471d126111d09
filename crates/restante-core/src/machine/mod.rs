//! Pure machines: what to do next, given what just came back.
//!
//! A machine is stepped with a [`Reply`] and answers with [`Io`] to execute. It never waits, reads a clock or draws a random
//! number: [`LocalTime`] and entropy come with the replies. Every machine is plain data (`Clone + Eq + Hash + Debug`), so a
//! running operation can be stored, compared and explored.
//!
//! - [`Transact`]: one command, from reading to a commit whose outcome is known.
//! - [`Sending`]: one send, staged when it is large.
//! - [`Listener`]: works an old queue off; [`HandOver`] puts into it what a closed intake refuses.
//! - [`Worker`]: discovery, deliveries and the sweep of one lease owner; once ([`Worker::once`]) or for good
//!   ([`Worker::serve`]).

mod classify;
mod delivery;
mod discovery;
mod doctor;
mod expansion;
mod inspect;
mod job;
mod legacy;
mod sending;
mod sweep;
mod transact;
mod worker;

pub use classify::{NotSent, PostResult, classify, reach};
pub use delivery::DeliveryEnd;
pub use doctor::{Diagnosis, Doctor, DoctorReport, DoctorStep, Finding};
pub use expansion::ExpansionEnd;
pub use inspect::{
    DeadIntentRow, DeadLetterPage, DeadLetterRow, DestinationPage, DestinationRow, InspectPage, InspectRow, IntentPage,
    IntentRow, QuarantinePage, QuarantineRow, dead_letter_page, dead_letter_range, destination_keys, destination_page,
    destination_range, destinations_read, inspect_page, inspect_range, intent_page, intent_range, quarantine_page,
    quarantine_range, row_of_destination,
};
pub use legacy::{
    HandOver, HandOverError, HandOverStep, LegacyEnd, LegacyIo, LegacyMode, LegacyReply, LegacyRunReport, LegacySettings,
    LegacyStep, Listener, OldDelivery, OldMessage, OldPolicy, OtherEnd, QueueFailure, WorkId,
};
pub use sending::{FanoutChoice, SendError, SendRequest, Sending, SendingStep};
pub use transact::{Failure, Transact, TransactStep};
pub use worker::{RunReport, Slots, TaskId, Worker, WorkerStep};

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Committed, Key, KeyRange, Page, StoreError, StoreTime, Txn, Versioned};

use crate::atoms::{Bytes, EntryId, Fence, Sealed};
use crate::plan::Subject;

/// Milliseconds of a monotonic clock of this process. Only differences mean anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LocalTime(u64);

impl LocalTime {
    /// From milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }
    /// Milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.0
    }
    /// Later by `ms` milliseconds; saturates.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
    /// Milliseconds since `earlier`, 0 when it is not earlier.
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Something to execute. Each is answered by the [`Reply`] of the same name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Io {
    /// Read these keys at one point in time; answered by [`Reply::Snapshot`].
    Read(Vec<Key>),
    /// Read one page; answered by [`Reply::Page`].
    Scan {
        /// What to read.
        range: KeyRange,
        /// Most records of the page.
        limit: usize,
    },
    /// Commit; answered by [`Reply::Committed`].
    Commit(Txn),
    /// Wait `ms` and a random part of `jitter_ms`; answered by [`Reply::Slept`], early when `wakeable` and a wake arrives.
    Sleep {
        /// Milliseconds to wait at least.
        ms: u64,
        /// Milliseconds that may come on top.
        jitter_ms: u64,
        /// Whether a wake ends the wait.
        wakeable: bool,
    },
    /// Deliver; answered by [`Reply::Posted`] or [`Reply::PostTooLate`].
    Post(Post),
}

/// One attempt to deliver.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Post {
    /// The delivery.
    pub entry: EntryId,
    /// The claim's token.
    pub fence: Fence,
    /// Where to.
    pub inbox: Arc<str>,
    /// Scheme, host and non-default port of `inbox`.
    pub destination: Arc<str>,
    /// The prepared bytes.
    pub payload: Bytes,
    /// What the sender needs to sign.
    pub signing: Sealed,
    /// The attempt must begin before this instant, or not at all: then the answer is [`Reply::PostTooLate`].
    pub post_by: LocalTime,
    /// How long the attempt may take.
    pub timeout_ms: u64,
    /// Attempts that share it are not executed side by side in one process.
    pub execution_key: ExecutionKey,
}

/// What one process does not execute twice at a time: a lane, or an unkeyed delivery. Leases keep processes apart; inside one,
/// an attempt whose lease ran out may still be on its way when its successor is claimed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, VisitAtoms)]
pub enum ExecutionKey {
    /// A delivery without an order key.
    Entry(EntryId),
    /// A lane.
    Lane {
        /// Its order key.
        order_key: Arc<str>,
        /// Its destination.
        destination: Arc<str>,
    },
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// Nothing yet: the first step.
    Start,
    /// One point in time.
    Snapshot {
        /// A record a key, in the order asked.
        result: Result<Vec<Option<Versioned>>, StoreError>,
        /// The store's clock at that point (the executor's wall clock for a store without one).
        at: StoreTime,
    },
    /// One page.
    Page {
        /// The page.
        result: Result<Page, StoreError>,
        /// The store's clock when it was read (the executor's wall clock for a store without one).
        at: StoreTime,
        /// 64 random bits.
        entropy: u64,
    },
    /// How a commit ended.
    Committed(Result<Committed, StoreError>),
    /// The wait is over.
    Slept,
    /// How an attempt ended.
    Posted {
        /// Its result.
        result: PostResult,
        /// 64 random bits.
        entropy: u64,
    },
    /// The attempt was not begun.
    PostTooLate,
}

/// What an action is for: the semantic name under which a trace shows it and a simulator decides about it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct About {
    /// The command, or the activity.
    pub what: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// The fencing token it acts under, 0 where there is none.
    pub fence: Fence,
    /// How many tries of this operation failed before.
    pub tries: u32,
}

impl crate::atoms::VisitAtoms for LocalTime {
    fn visit_atoms(&mut self, visitor: &mut dyn crate::atoms::AtomVisitor) {
        visitor.local_time(self);
    }
}

/// The due row through which a delivery was found.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub(crate) struct DueHint {
    pub(crate) key: crate::keys::DueKey,
    pub(crate) version: restante_kv::Version,
    pub(crate) lane: Option<crate::record::LaneRef>,
}
