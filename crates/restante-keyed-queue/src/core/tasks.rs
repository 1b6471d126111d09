//! Outstanding tasks, and their order within a key.

use std::num::NonZeroU32;

use super::types::{KeyId, TaskId};

/// No such slot.
pub(super) const NONE: u32 = u32::MAX;

/// An outstanding task, or a free slot: then `number` is 0 and `later` leads to the next free one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Task {
    number: u64,
    pub(super) key: KeyId,
    pub(super) attempts_made: u32,
    pub(super) attempts_max: NonZeroU32,
    earlier: u32,
    later: u32,
}

const FREE: Task =
    Task { number: 0, key: KeyId::new(0), attempts_made: 0, attempts_max: NonZeroU32::MIN, earlier: NONE, later: NONE };

/// The tasks of one key in submission order, as ends of a list through the slots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Fifo {
    head: u32,
    tail: u32,
}

impl Fifo {
    pub(super) const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(super) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

/// Slots of tasks. A slot is used again, last freed first, so there are as many as tasks were ever outstanding at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Tasks {
    slots: Vec<Task>,
    free: u32,
}

impl Tasks {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE }
    }

    /// Appends a task to `fifo`.
    pub(super) fn append(&mut self, fifo: &mut Fifo, number: u64, key: KeyId, attempts_max: NonZeroU32) -> TaskId {
        let task = Task { number, key, attempts_made: 0, attempts_max, earlier: fifo.tail, later: NONE };
        let slot = if self.free == NONE {
            let slot = u32::try_from(self.slots.len()).expect("memory ends before 2^32 tasks are outstanding");
            self.slots.push(task);
            slot
        } else {
            let slot = self.free;
            let place = &mut self.slots[slot as usize];
            self.free = place.later;
            *place = task;
            slot
        };
        match fifo.tail {
            NONE => fifo.head = slot,
            tail => self.slots[tail as usize].later = slot,
        }
        fifo.tail = slot;
        TaskId::new(number, slot)
    }

    /// Takes a task out of `fifo`, wherever in it, and frees its slot.
    pub(super) fn remove(&mut self, fifo: &mut Fifo, id: TaskId) {
        debug_assert!(self.get(id).is_some(), "{id} is not outstanding");
        let Task { earlier, later, .. } = self.slots[id.slot()];
        match earlier {
            NONE => fifo.head = later,
            earlier => self.slots[earlier as usize].later = later,
        }
        match later {
            NONE => fifo.tail = earlier,
            later => self.slots[later as usize].earlier = earlier,
        }
        self.slots[id.slot()] = Task { later: self.free, ..FREE };
        self.free = id.slot() as u32;
    }

    /// The task, if it is outstanding.
    pub(super) fn get(&self, id: TaskId) -> Option<&Task> {
        self.slots.get(id.slot()).filter(|task| task.number == id.number())
    }

    pub(super) fn get_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        self.slots.get_mut(id.slot()).filter(|task| task.number == id.number())
    }

    /// The first task of `fifo`.
    pub(super) fn head(&self, fifo: Fifo) -> Option<TaskId> {
        self.slots.get(fifo.head as usize).map(|task| TaskId::new(task.number, fifo.head))
    }

    /// The task behind `id` in its key.
    pub(super) fn after(&self, id: TaskId) -> Option<TaskId> {
        let later = self.get(id)?.later;
        self.slots.get(later as usize).map(|task| TaskId::new(task.number, later))
    }
}
