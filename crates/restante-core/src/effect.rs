//! What the world is told after a commit. An effect comes only out of a transaction that is known to be committed.

use std::sync::Arc;

use restante_core_derive::VisitAtoms;
use restante_kv::StoreTime;

use crate::atoms::{EntryId, Fence, SendId};
use crate::record::{DropReason, QuarantineReason};

/// Something to tell the world after a commit.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum Effect {
    /// A hint that a destination has due work. Losing it costs time, never work.
    Wake {
        /// The destination.
        destination: Arc<str>,
    },
    /// Something an operator may want to see.
    Observed(Observation),
}

/// Something an operator may want to see. Drops are recorded durably in the same commit; the observation is their echo.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub enum Observation {
    /// The backlog took ownership of a send.
    Accepted {
        /// The send.
        send: SendId,
    },
    /// A delivery was acknowledged by its destination.
    Delivered {
        /// The delivery.
        entry: EntryId,
        /// The token that settled it.
        fence: Fence,
    },
    /// A delivery was given up.
    Dropped {
        /// The delivery.
        entry: EntryId,
        /// Why.
        reason: DropReason,
    },
    /// A record was put aside.
    Quarantined {
        /// The delivery it belonged to.
        entry: EntryId,
        /// Why.
        reason: QuarantineReason,
    },
    /// A quarantined record reached the end of its retention.
    QuarantineDropped {
        /// The delivery it belonged to.
        entry: EntryId,
    },
    /// A missing index row was put back.
    IndexRepaired {
        /// The delivery it makes discoverable.
        entry: EntryId,
    },
    /// A lane whose head had vanished was moved on.
    LaneRepaired {
        /// The lane's destination.
        destination: Arc<str>,
    },
    /// Recipients of an intent became deliveries.
    Expanded {
        /// The send.
        send: SendId,
        /// How many.
        recipient_count: u32,
    },
    /// An intent was given up with recipients left; a durable trace tells how many.
    IntentDropped {
        /// The send.
        send: SendId,
        /// How many recipients were given up.
        recipient_count: u32,
        /// Why.
        reason: DropReason,
    },
    /// An order key's FIFO whose head had vanished was moved on.
    QueueRepaired {
        /// The order key.
        order_key: Arc<str>,
    },
    /// The circuit of a destination changed its state.
    CircuitChanged {
        /// The destination.
        destination: Arc<str>,
        /// Into which.
        change: CircuitChange,
    },
    /// A destination is held.
    HoldSet {
        /// The destination.
        destination: Arc<str>,
        /// Until when, as far as it is known.
        until: StoreTime,
    },
    /// A destination is not held any more.
    HoldReleased {
        /// The destination.
        destination: Arc<str>,
    },
}

/// What became of a circuit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, VisitAtoms)]
pub enum CircuitChange {
    /// Too many attempts failed, or the probe did.
    Opened,
    /// A probe was admitted.
    HalfOpened,
    /// The destination was reached.
    Closed,
}

impl CircuitChange {
    /// The state it is in now, as telemetry names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "open",
            Self::HalfOpened => "half_open",
            Self::Closed => "closed",
        }
    }
}
