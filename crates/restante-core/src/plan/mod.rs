//! The planner: `(command, snapshot) -> transaction`, straight-line and total.
//!
//! A plan function asks for the records it needs ([`Stop::Need`] until the view holds them all), decides, and writes into a
//! `Planner`. It sees one snapshot only: every round reads the whole read set again. Five kinds of read exist:
//!
//! - `Planner::guard`: what was read becomes a check at commit;
//! - `Planner::peek`: no check; allowed for a predicate that, once true, is true for ever ([`Stable`]);
//! - `Planner::under`: no check of its own; allowed for a record whose every writer checks and writes a record that is
//!   guarded here;
//! - `Planner::hint`: no check, proves nothing, like a scan; may only steer puts that are idempotent;
//! - `Planner::snapshot`: no check; allowed in plans that commit nothing, whose answer is the snapshot itself.
//!
//! Scans prove nothing and happen outside the planner; what they suggest comes back here to be checked.

mod accept;
mod adopt;
mod circuit;
mod claim;
mod entries;
mod expand;
mod expire;
mod gate;
mod hold;
mod intake;
mod lane;
mod park;
mod planner;
mod publish;
mod quarantine;
mod queue;
mod recount;
mod repair;
mod revive;
mod settle;
mod staging;
mod sweep;
mod wake;

pub use accept::{Accept, INBOX_BYTES_MAX, NAME_BYTES_MAX, ResolveAccept, SIGNING_BYTES_MAX};
pub(crate) use accept::{check_recipients, request_digest};
pub use adopt::{Adopt, LegacyAnswer, LegacyGate};
pub use circuit::{CountAttempt, Reach};
pub use claim::{Claim, Claimed, Renew};
pub use expand::{ClaimIntent, DropIntent, Expand, chunk_len};
pub use expire::Expire;
pub use gate::{Gate, GateAnswer};
pub use hold::{HoldNotice, SetHold};
pub use intake::{Depth, DepthReport, SetIntake};
pub use park::{Obstacle, ParkIntent};
pub(crate) use planner::Planner;
pub use planner::Stable;
pub use publish::{FANOUT_RECIPIENTS_MAX, Publish, StageRecipients};
pub use quarantine::{DropQuarantined, Quarantine};
pub use queue::RepairQueue;
pub use recount::Recount;
pub use repair::{RepairIndex, RepairLane, TidyPointer};
pub use revive::Revive;
pub use settle::{Settle, Settled, Verdict};
pub use staging::{StageBegin, StageChunk};
pub use sweep::{AdvanceSweep, BeginSweep, FinishSweep, Prune};
pub use wake::Wake;

pub(crate) use sweep::sweep_record_ms;

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::{Key, StoreTime, Txn, Versioned};

use crate::atoms::{EntryId, SendId};
use crate::config::Config;
use crate::effect::Effect;
use crate::keys::Keys;
use crate::record::{Intent, SweepPlace, Unreadable};

pub use crate::record::Recipient;

/// What planning needs beside the view: settings and the key layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Env {
    /// The settings.
    pub config: Config,
    /// The key layout.
    pub keys: Keys,
}

impl Env {
    /// From settings.
    pub fn new(config: Config) -> Self {
        let keys = Keys::new(&config);
        Self { config, keys }
    }
}

/// What was read: keys with their records, from one point in time.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, VisitAtoms)]
pub struct View {
    /// Store time of the snapshot.
    pub at: StoreTime,
    /// Every key that was read; a key that is not here was not read.
    pub records: Vec<(Key, Option<Versioned>)>,
}

impl View {
    fn get(&self, key: &Key) -> Option<&Option<Versioned>> {
        self.records.iter().find(|(read, _)| read == key).map(|(_, record)| record)
    }
}

/// Why a plan function stops without a plan.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Stop {
    /// These keys must be read too; the whole read set is read again.
    Need(Vec<Key>),
    /// The command has nothing to commit, for this reason.
    Reject(Rejection),
    /// A record cannot be used. Reload once; if it stays so, put it aside.
    Inconsistent {
        /// Where.
        key: Key,
        /// Why.
        why: Unreadable,
    },
}

/// Why a command commits nothing. Definite: nothing happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms, thiserror::Error)]
pub enum Rejection {
    /// New sends are refused.
    #[error("intake is closed: send to the legacy queue, or open intake again")]
    IntakeClosed,
    /// Another request was accepted under the same idempotency key.
    #[error("another request was accepted under this idempotency key as send {0}: nothing of this one was accepted")]
    IdempotencyConflict(SendId),
    /// The request breaks a documented bound.
    #[error("the request is invalid: {0}")]
    Invalid(String),
    /// While the outcome of an earlier commit of this accept was unknown, it was decided that it shall never happen.
    #[error("it was decided meanwhile that this send is not accepted, and it is not: send again")]
    Aborted,
    /// A staged payload was collected before it was published.
    #[error("the staged payload was collected before it was published: send again")]
    StageGone,
    /// The fencing token is not the current one.
    #[error("the lease was lost: another worker may own the entry now")]
    LeaseLost,
    /// The entry may not be claimed yet.
    #[error("the entry is not due")]
    NotDue,
    /// The record does not exist (any more).
    #[error("the record does not exist")]
    Gone,
    /// A quarantined record is as unreadable to this version as to the one that put it aside.
    #[error("it still cannot be read ({0}): use a version that knows its format, or drop it")]
    StillUnreadable(Unreadable),
    /// There is nothing to do.
    #[error("nothing to do")]
    NotNeeded,
    /// Somebody else is on it.
    #[error("somebody else is on it")]
    Taken,
    /// Its retention ran out.
    #[error("its retention ran out")]
    Expired,
}

/// A command: what an operation wants of the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
#[expect(missing_docs, reason = "each variant is the command of the same name")]
pub enum Command {
    StageBegin(StageBegin),
    StageChunk(StageChunk),
    Accept(Accept),
    ResolveAccept(ResolveAccept),
    Claim(Claim),
    Renew(Renew),
    Gate(Gate),
    Settle(Settle),
    Wake(Wake),
    Quarantine(Quarantine),
    DropQuarantined(DropQuarantined),
    Revive(Revive),
    Recount(Recount),
    RepairIndex(RepairIndex),
    RepairLane(RepairLane),
    TidyPointer(TidyPointer),
    Prune(Prune),
    BeginSweep(BeginSweep),
    AdvanceSweep(AdvanceSweep),
    FinishSweep(FinishSweep),
    SetIntake(SetIntake),
    Depth(Depth),
    Publish(Publish),
    StageRecipients(StageRecipients),
    ClaimIntent(ClaimIntent),
    Expand(Expand),
    DropIntent(DropIntent),
    ParkIntent(ParkIntent),
    RepairQueue(RepairQueue),
    SetHold(SetHold),
    CountAttempt(CountAttempt),
    Expire(Expire),
    LegacyGate(LegacyGate),
    Adopt(Box<Adopt>),
}

/// What a command is about, for traces.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Subject {
    /// A send.
    Send(SendId),
    /// A delivery.
    Entry(EntryId),
    /// A destination.
    Destination(Arc<str>),
    /// The backlog as a whole.
    Backlog,
}

impl Command {
    /// The command's name, stable, lower case.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StageBegin(_) => "stage-begin",
            Self::StageChunk(_) => "stage-chunk",
            Self::Accept(_) => "accept",
            Self::ResolveAccept(_) => "resolve-accept",
            Self::Claim(_) => "claim",
            Self::Renew(_) => "renew",
            Self::Gate(_) => "gate",
            Self::Settle(_) => "settle",
            Self::Wake(_) => "wake",
            Self::Quarantine(_) => "quarantine",
            Self::DropQuarantined(_) => "drop-quarantined",
            Self::Revive(_) => "revive",
            Self::Recount(_) => "recount",
            Self::RepairIndex(_) => "repair-index",
            Self::RepairLane(_) => "repair-lane",
            Self::TidyPointer(_) => "tidy-pointer",
            Self::Prune(_) => "prune",
            Self::BeginSweep(_) => "begin-sweep",
            Self::AdvanceSweep(_) => "advance-sweep",
            Self::FinishSweep(_) => "finish-sweep",
            Self::SetIntake(_) => "set-intake",
            Self::Depth(_) => "depth",
            Self::Publish(_) => "publish",
            Self::StageRecipients(_) => "stage-recipients",
            Self::ClaimIntent(_) => "claim-intent",
            Self::Expand(_) => "expand",
            Self::DropIntent(_) => "drop-intent",
            Self::ParkIntent(_) => "park-intent",
            Self::RepairQueue(_) => "repair-queue",
            Self::SetHold(_) => "set-hold",
            Self::CountAttempt(_) => "count-attempt",
            Self::Expire(_) => "expire",
            Self::LegacyGate(_) => "legacy-gate",
            Self::Adopt(_) => "adopt",
        }
    }

    /// What it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Self::StageBegin(command) => Subject::Send(command.send),
            Self::StageChunk(command) => Subject::Send(command.send),
            Self::Accept(command) => Subject::Send(command.send),
            Self::ResolveAccept(command) => Subject::Send(command.send),
            Self::Claim(command) => Subject::Entry(command.id),
            Self::Renew(command) => Subject::Entry(command.id),
            Self::Gate(command) => Subject::Entry(command.id),
            Self::Settle(command) => Subject::Entry(command.id),
            Self::Wake(command) => Subject::Entry(command.id),
            Self::Quarantine(command) => Subject::Entry(command.id),
            Self::DropQuarantined(command) => Subject::Entry(command.id),
            Self::Revive(command) => Subject::Entry(command.id),
            Self::RepairIndex(command) => Subject::Entry(command.id),
            Self::RepairLane(command) => Subject::Destination(command.destination.clone()),
            Self::TidyPointer(command) => Subject::Destination(command.destination.clone()),
            Self::Publish(command) => Subject::Send(command.send),
            Self::StageRecipients(command) => Subject::Send(command.send),
            Self::ClaimIntent(command) => Subject::Send(command.send),
            Self::Expand(command) => Subject::Send(command.send),
            Self::DropIntent(command) => Subject::Send(command.send),
            Self::ParkIntent(command) => Subject::Send(command.send),
            Self::SetHold(command) => Subject::Destination(command.destination.clone()),
            Self::CountAttempt(command) => Subject::Entry(command.id),
            Self::Expire(command) => Subject::Entry(command.id),
            Self::LegacyGate(command) => Subject::Send(command.send),
            Self::Adopt(command) => Subject::Send(command.accept.send),
            Self::RepairQueue(_)
            | Self::Recount(_)
            | Self::Prune(_)
            | Self::BeginSweep(_)
            | Self::AdvanceSweep(_)
            | Self::FinishSweep(_)
            | Self::SetIntake(_)
            | Self::Depth(_) => Subject::Backlog,
        }
    }

    /// Plans the command against what was read.
    ///
    /// `attempted` says that an earlier commit of this very operation had an unknown outcome: the plan then looks for its own
    /// witness first.
    ///
    /// # Errors
    /// [`Stop`]: more to read, nothing to commit, or an unusable record.
    pub fn plan(&self, env: &Env, view: &View, attempted: bool) -> Result<Plan, Stop> {
        let mut planner = Planner::new(env, view, attempted);
        let outcome = match self {
            Self::StageBegin(command) => command.plan(&mut planner),
            Self::StageChunk(command) => command.plan(&mut planner),
            Self::Accept(command) => command.plan(&mut planner),
            Self::ResolveAccept(command) => command.plan(&mut planner),
            Self::Claim(command) => command.plan(&mut planner),
            Self::Renew(command) => command.plan(&mut planner),
            Self::Gate(command) => command.plan(&mut planner),
            Self::Settle(command) => command.plan(&mut planner),
            Self::Wake(command) => command.plan(&mut planner),
            Self::Quarantine(command) => command.plan(&mut planner),
            Self::DropQuarantined(command) => command.plan(&mut planner),
            Self::Revive(command) => command.plan(&mut planner),
            Self::Recount(command) => command.plan(&mut planner),
            Self::RepairIndex(command) => command.plan(&mut planner),
            Self::RepairLane(command) => command.plan(&mut planner),
            Self::TidyPointer(command) => command.plan(&mut planner),
            Self::Prune(command) => command.plan(&mut planner),
            Self::BeginSweep(command) => command.plan(&mut planner),
            Self::AdvanceSweep(command) => command.plan(&mut planner),
            Self::FinishSweep(command) => command.plan(&mut planner),
            Self::SetIntake(command) => command.plan(&mut planner),
            Self::Depth(command) => command.plan(&mut planner),
            Self::Publish(command) => command.plan(&mut planner),
            Self::StageRecipients(command) => command.plan(&mut planner),
            Self::ClaimIntent(command) => command.plan(&mut planner),
            Self::Expand(command) => command.plan(&mut planner),
            Self::DropIntent(command) => command.plan(&mut planner),
            Self::ParkIntent(command) => command.plan(&mut planner),
            Self::RepairQueue(command) => command.plan(&mut planner),
            Self::SetHold(command) => command.plan(&mut planner),
            Self::CountAttempt(command) => command.plan(&mut planner),
            Self::Expire(command) => command.plan(&mut planner),
            Self::LegacyGate(command) => command.plan(&mut planner),
            Self::Adopt(command) => command.plan(&mut planner),
        }?;
        planner.finish(outcome)
    }
}

/// What a command came to, once its transaction is committed (or, for one without a transaction, at its snapshot).
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum Outcome {
    /// The backlog owns the send.
    Accepted {
        /// Its id: of an earlier request under the same idempotency key when `duplicate`.
        send: SendId,
        /// Whether an earlier request was accepted already.
        duplicate: bool,
    },
    /// An ambiguous accept was decided: the send that is owned under the key, or none for good.
    Resolved(Option<SendId>),
    /// A claim succeeded.
    Claimed(Box<Claimed>),
    /// A lease now ends later.
    Renewed {
        /// When.
        lease_expires_at: StoreTime,
    },
    /// What the gate says.
    Gate(GateAnswer),
    /// What is to be done with a message of the old queue.
    Legacy(LegacyAnswer),
    /// A delivery was settled.
    Settled(Settled),
    /// A record was put aside.
    Quarantined,
    /// Intake is in the wanted state.
    Intake {
        /// Whether it is open.
        open: bool,
        /// How often it changed.
        epoch: u64,
    },
    /// Depth at one snapshot.
    Depth(DepthReport),
    /// An entry whose time was over is gone.
    Expired {
        /// The new head of its lane, which may be over as well.
        next: Option<EntryId>,
    },
    /// A sweep is begun or taken over: where it goes on, if not at the beginning.
    Sweep(Option<SweepPlace>),
    /// Done; there is nothing more to say.
    Done,
    /// A claim of an intent succeeded; its `fence` and `lease` are the claim's.
    IntentClaimed(Box<Intent>),
    /// Recipients became entries.
    Expanded {
        /// Where the cursor is now.
        cursor: u32,
        /// Whether the intent is gone: nothing is left to expand.
        done: bool,
    },
}

/// A transaction to commit and what follows from it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct Plan {
    /// What to commit; without checks and writes there is nothing to commit and the outcome holds at the snapshot.
    pub txn: Txn,
    /// What the command came to once the transaction is committed.
    pub outcome: Outcome,
    /// What to tell the world, only after the commit.
    pub effects: Vec<Effect>,
}
