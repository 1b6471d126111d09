//! What is known of each key, and the keys that wait for a place among the running ones.

use super::tasks::{Fifo, NONE};
use super::types::{KeyId, QueueTime};

/// What the head of a key does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// There is none.
    Empty,
    /// It waits for its turn.
    Ready,
    /// It waits for the key's pause to end.
    Held,
    /// It is in an attempt: this takes up width.
    Running,
    /// It is between two attempts: this keeps its followers waiting, and takes up no width.
    BackingOff {
        /// When the next attempt may begin.
        until: QueueTime,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct KeyState {
    pub(super) phase: Phase,
    pub(super) is_paused: bool,
    pub(super) fifo: Fifo,
    /// Neighbours among the ready ones.
    earlier: u32,
    later: u32,
}

const FRESH: KeyState = KeyState { phase: Phase::Empty, is_paused: false, fifo: Fifo::EMPTY, earlier: NONE, later: NONE };

/// All keys by number, with the ready ones in the order of their turns.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Keys {
    states: Vec<KeyState>,
    first_ready: u32,
    last_ready: u32,
}

impl Keys {
    pub(super) const fn new() -> Self {
        Self { states: Vec::new(), first_ready: NONE, last_ready: NONE }
    }

    /// The state of `key`, which exists from here on.
    pub(super) fn touch(&mut self, key: KeyId) -> &mut KeyState {
        if key.index() >= self.states.len() {
            self.states.resize(key.index() + 1, FRESH);
        }
        &mut self.states[key.index()]
    }

    /// The state of a key that was touched before.
    pub(super) fn at(&mut self, key: KeyId) -> &mut KeyState {
        &mut self.states[key.index()]
    }

    pub(super) fn get(&self, key: KeyId) -> Option<&KeyState> {
        self.states.get(key.index())
    }

    /// Every key there ever was.
    pub(super) fn all(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.states.len() as u32).map(KeyId::new)
    }

    /// Whether a key is ready.
    pub(super) fn has_ready(&self) -> bool {
        self.first_ready != NONE
    }

    /// Puts `key` behind all ready ones.
    pub(super) fn make_ready(&mut self, key: KeyId) {
        let last = std::mem::replace(&mut self.last_ready, key.number());
        match last {
            NONE => self.first_ready = key.number(),
            last => self.states[last as usize].later = key.number(),
        }
        let state = self.at(key);
        state.phase = Phase::Ready;
        (state.earlier, state.later) = (last, NONE);
    }

    /// Takes `key` from among the ready ones; its new phase is the caller's.
    pub(super) fn withdraw(&mut self, key: KeyId) {
        let state = self.at(key);
        let (earlier, later) = (state.earlier, state.later);
        (state.earlier, state.later) = (NONE, NONE);
        match earlier {
            NONE => self.first_ready = later,
            earlier => self.states[earlier as usize].later = later,
        }
        match later {
            NONE => self.last_ready = earlier,
            later => self.states[later as usize].earlier = earlier,
        }
    }

    /// Takes the key whose turn it is.
    pub(super) fn next_ready(&mut self) -> Option<KeyId> {
        if self.first_ready == NONE {
            return None;
        }
        let key = KeyId::new(self.first_ready);
        self.withdraw(key);
        Some(key)
    }
}
