//! Nodes: processes with a clock of their own.

use std::collections::BTreeMap;

use restante_core::machine::{Listener, LocalTime, Sending, Transact, WorkId, Worker};
use restante_engine::{EventId, SimTime};
use restante_kv::StoreTime;

use super::event::Task;
use super::legacy::{HandingOver, InHand};

/// Store time at the beginning of every run: an instant of 2023, so that no arithmetic hides behind zero.
pub(crate) const EPOCH_MS: u64 = 1_700_000_000_000;

/// What a node does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Delivers for good.
    Worker,
    /// Delivers in bounded runs.
    Cron,
    /// Sends; the number is the producer's.
    Producer(u8),
    /// Works the old queue off for good.
    Listener,
    /// Works the old queue off in bounded runs.
    CronListener,
    /// Asks, opens, closes, wakes.
    Operator,
}

/// A node's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Clock {
    /// How far the wall clock is off, in milliseconds.
    pub(crate) offset_ms: i64,
    /// How much too fast it runs, in millionths.
    pub(crate) drift_millionths: i64,
}

impl Clock {
    /// Milliseconds that pass on this clock while `ms` pass in truth.
    pub(crate) fn stretch(&self, ms: u64) -> u64 {
        let drift = i128::from(ms) * i128::from(self.drift_millionths) / 1_000_000;
        u64::try_from(i128::from(ms) + drift).unwrap_or(0)
    }
    /// The monotonic clock.
    pub(crate) fn local(&self, now: SimTime) -> LocalTime {
        LocalTime::from_ms(self.stretch(now.as_ms()))
    }
    /// The wall clock.
    pub(crate) fn wall(&self, now: SimTime) -> StoreTime {
        let ms = i128::from(EPOCH_MS + self.stretch(now.as_ms())) + i128::from(self.offset_ms);
        StoreTime::from_ms(u64::try_from(ms).unwrap_or(0))
    }
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Rises with every start; replies to an earlier life are lost.
    pub(crate) life: u32,
    pub(crate) up: bool,
    /// The first life of the newer build.
    pub(crate) newer_since: Option<u32>,
    pub(crate) clock: Clock,
    pub(crate) stands_still_until: SimTime,
    pub(crate) worker: Option<Worker>,
    /// When the single run under way began.
    pub(crate) run_began_at: SimTime,
    pub(crate) sends: BTreeMap<u32, (u16, Sending)>,
    pub(crate) commands: BTreeMap<u32, Transact>,
    /// Waits that a wake ends.
    pub(crate) wakeable: BTreeMap<Task, EventId>,
    /// Per task: the operation whose first read has paid its latency already, and the name it runs under.
    pub(crate) paid: BTreeMap<Task, (u64, super::event::Act)>,
    /// Reads to be made once more before their reply is used ([`Perturbation::ExtraRead`](super::Perturbation::ExtraRead)).
    pub(crate) read_again: BTreeMap<Task, Vec<restante_kv::Key>>,
    pub(crate) listener: Option<Listener>,
    /// What the listener has received.
    pub(crate) in_hand: BTreeMap<WorkId, InHand>,
    /// A producer's sends on their way into the old queue.
    pub(crate) handing_over: BTreeMap<u32, HandingOver>,
}

impl Node {
    pub(crate) fn new(name: String, role: Role, clock: Clock) -> Self {
        Self {
            name,
            role,
            life: 0,
            up: false,
            newer_since: None,
            clock,
            stands_still_until: SimTime::ZERO,
            worker: None,
            run_began_at: SimTime::ZERO,
            sends: BTreeMap::new(),
            commands: BTreeMap::new(),
            wakeable: BTreeMap::new(),
            paid: BTreeMap::new(),
            read_again: BTreeMap::new(),
            listener: None,
            in_hand: BTreeMap::new(),
            handing_over: BTreeMap::new(),
        }
    }

    /// The process is gone, with everything it had in memory.
    pub(crate) fn forget(&mut self) {
        self.up = false;
        self.life += 1;
        self.worker = None;
        self.sends.clear();
        self.commands.clear();
        self.wakeable.clear();
        self.paid.clear();
        self.read_again.clear();
        self.listener = None;
        self.in_hand.clear();
        self.handing_over.clear();
        self.stands_still_until = SimTime::ZERO;
    }
}
