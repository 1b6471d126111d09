//! What each kind of command cost the store.

use std::collections::BTreeMap;

use restante_journal::{Event, IoRecord, ReplyRecord, to_key, to_value};

/// What the committed transactions of one kind of command came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Commits.
    pub commits: u64,
    /// Commits that met a conflict or another error.
    pub refused: u64,
    /// Checks.
    pub checks: u64,
    /// Rows put or deleted.
    pub rows: u64,
    /// Bytes of the keys and values of those rows.
    pub bytes: u64,
    /// Snapshots read for it.
    pub snapshots: u64,
}

/// Adds up while a journal is read.
#[derive(Debug, Default)]
pub(super) struct Costs {
    open: BTreeMap<(u64, u32), (String, IoRecord)>,
    by_command: BTreeMap<String, Cost>,
}

impl Costs {
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::Asked { op, task, about, io } => {
                self.open.insert((*op, *task), (about.clone(), io.clone()));
            }
            Event::Answered { op, task, reply, .. } => {
                let Some((about, io)) = self.open.remove(&(*op, *task)) else { return };
                let command = about.split(' ').next().unwrap_or_default().to_owned();
                let cost = self.by_command.entry(command).or_default();
                match (io, reply) {
                    (IoRecord::Read { .. }, ReplyRecord::Snapshot { .. }) => cost.snapshots += 1,
                    (IoRecord::Commit { checks, writes }, ReplyRecord::Committed { .. }) => {
                        cost.commits += 1;
                        cost.checks += checks.len() as u64;
                        cost.rows += writes.len() as u64;
                        for write in writes {
                            let key = to_key(&write.key).map_or(0, |key| key.len());
                            let value = write.put.and_then(|put| to_value(&put).ok()).map_or(0, |value| value.len());
                            cost.bytes += (key + value) as u64;
                        }
                    }
                    (IoRecord::Commit { .. }, _) => cost.refused += 1,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// By the command's name; commands that never committed are left out.
    pub(super) fn finish(self) -> BTreeMap<String, Cost> {
        self.by_command.into_iter().filter(|(_, cost)| cost.commits > 0).collect()
    }
}
