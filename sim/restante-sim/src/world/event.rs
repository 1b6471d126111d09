//! What can be in flight.

use std::sync::Arc;

use restante_core::Command;
use restante_core::atoms::{Bytes, EntryId, Fence};
use restante_core::machine::{About, LegacyReply, Post, Reply, TaskId, WorkId};
use restante_kv::{Key, KeyRange, Txn};
use restante_legacy::{Draft, Receipt};

use super::legacy::InHand;

/// A task of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Task {
    /// A task of the node's worker.
    Worker(TaskId),
    /// A producer's send, by number.
    Send(u32),
    /// An operator's command, by number.
    Operate(u32),
    /// What a caller from outside asked, by number.
    Caller(u64),
    /// A message of the old queue, or its listener itself.
    Legacy(WorkId),
}

/// Where a reply goes: a task of one life of a node. Replies to an earlier life are lost with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Origin {
    pub(crate) node: usize,
    pub(crate) life: u32,
    pub(crate) task: Task,
}

/// What an action is for, with the label under which everything about it is decided: command, alias, token, try.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) about: About,
    pub(crate) label: Arc<str>,
}

/// An operation of the store.
#[derive(Clone, Debug)]
pub(crate) enum StoreOp {
    Read(Vec<Key>),
    Scan { range: KeyRange, limit: usize },
    Commit(Txn),
}

/// An operation of the old queue.
#[derive(Clone, Debug)]
pub(crate) enum OldOp {
    Receive { visible_ms: u64 },
    Complete(InHand),
    PutBack { in_hand: InHand, delay_ms: u64, body: Bytes },
    Enqueue { drafts: Vec<Draft>, expands: Option<Arc<str>> },
}

/// Something in flight.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An operation reaches the store; its answer takes `back_ms` more.
    Store { origin: Origin, act: Act, op: StoreOp, fate: &'static str, back_ms: u64 },
    /// A commit whose answer was "unknown" happens after all.
    LateCommit { origin: Origin, act: Act, txn: Txn },
    /// An answer reaches a node; `resumed` if the node stood still when it came and goes on now.
    Reply { origin: Origin, act: Act, reply: Reply, resumed: bool },
    /// A node executes a POST it decided on.
    PostBegin { origin: Origin, act: Act, post: Box<Post> },
    /// A request reaches a destination.
    Arrive { entry: EntryId, fence: Fence, destination: u32, payload: Bytes, answer_to: Option<(Origin, Act, u64)> },
    /// A wake signal reaches a node.
    Wake { node: usize, life: u32 },
    /// A node starts.
    Start { node: usize },
    /// A cron caller's next run is due.
    Cron { node: usize, life: u32 },
    /// A producer has something to send.
    Produce { node: usize, number: u32, attempt: u16 },
    /// An operator does something.
    Operate { number: u32, what: Operation },
    /// The old server puts a message into its queue.
    OldMessage { number: u32 },
    /// An operation reaches the old queue; its answer takes `back_ms` more.
    OldQueue { origin: Origin, act: Act, op: OldOp, fate: &'static str, back_ms: u64 },
    /// An answer of the old side reaches a node, with the message that was received.
    OldReply { origin: Origin, act: Act, reply: LegacyReply, in_hand: Option<InHand> },
    /// A message that is worked on may be received by others.
    OldExposed { receipt: Receipt },
    /// Something happens to the world.
    Incident(Incident),
    /// Faults end.
    Heal,
    /// Is everything drained?
    Check,
}

/// What an operator does.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Run this command.
    Run(Box<Command>),
    /// Run this command, which says that a hold lasts longer.
    Extend(Box<Command>),
    /// Wake some entry that exists then.
    WakeSome,
}

/// What happens to the world from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Incident {
    OutageBegins { length_ms: u64 },
    LoseDueRow { number: u32 },
    LosePointer { number: u32 },
    ForeignRecord { number: u32 },
    DamagedRecord { number: u32 },
    ForeignIntent { number: u32 },
    ConflictingEntry { number: u32 },
    ClockStep { number: u32 },
    GracefulRestart { number: u32 },
    Downtime { number: u32 },
    Upgrade { node: usize },
}
