//! Recording operations in a journal, where there is one.

use std::sync::Arc;

use restante_core::machine::{About, Io, LocalTime, Reply, TaskId};
use restante_journal::{Event, IoRecord, Journal, Operation, ReplyRecord};
use restante_kv::Key;

use crate::shared::Shared;

/// One operation's place in the journal; without a journal it does nothing.
pub(crate) struct Recording {
    place: Option<(Arc<Journal>, u64)>,
}

impl Recording {
    /// Notes that an operation began.
    pub(crate) fn begin(shared: &Shared, local: LocalTime, operation: impl FnOnce() -> Operation) -> Self {
        let place = shared.journal.as_ref().map(|journal| {
            let op = journal.next_op();
            journal.record(|| Event::Began { op, local_ms: local.as_ms(), operation: operation() });
            (Arc::clone(journal), op)
        });
        Self { place }
    }

    pub(crate) fn asked(&self, shared: &Shared, task: TaskId, about: &About, io: &Io) {
        let Some((journal, op)) = &self.place else { return };
        let About { what, subject, fence, tries } = about;
        journal.record(|| {
            let about = format!("{what} {subject:?}, fence {}, tries {tries}", fence.get());
            Event::Asked { op: *op, task: task.get(), about, io: IoRecord::of(&shared.env, io) }
        });
    }

    /// Notes an answer; `asked` are the keys of a read, and `local` what the machine is told of the time.
    pub(crate) fn answered(&self, shared: &Shared, task: TaskId, reply: &Reply, asked: &[Key], local: LocalTime) {
        let Some((journal, op)) = &self.place else { return };
        let reply = || ReplyRecord::of(&shared.env, reply, asked);
        journal.record(|| Event::Answered { op: *op, task: task.get(), local_ms: local.as_ms(), reply: reply() });
    }

    pub(crate) fn woken(&self) {
        if let Some((journal, op)) = &self.place {
            journal.record(|| Event::Woken { op: *op });
        }
    }

    pub(crate) fn stopped(&self) {
        if let Some((journal, op)) = &self.place {
            journal.record(|| Event::Stopped { op: *op });
        }
    }

    /// The keys of a read, to name the records of its answer.
    pub(crate) fn keys_of(&self, io: &Io) -> Vec<Key> {
        let is_recording = self.place.as_ref().is_some_and(|(journal, _)| !journal.has_ended());
        match io {
            Io::Read(keys) if is_recording => keys.clone(),
            _ => Vec::new(),
        }
    }
}
