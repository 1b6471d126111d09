//! The writer: group commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_channel::oneshot;
use restante_kv::{Committed, Expect, Mutation, StoreError, Txn, Version};
use rusqlite::{Connection, OptionalExtension, Statement};

use crate::OpenError;
use crate::error::is_busy;
use crate::queue::Queue;
use crate::worker::{SessionEnd, Work};

type Answer = Result<Committed, StoreError>;

/// A transaction within the limits, and the place for its answer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) txn: Txn,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// What became of a group.
enum Group {
    /// Committed, or nothing to commit: each member has its answer.
    Done(Vec<Answer>),
    /// `BEGIN` failed.
    NotBegun(rusqlite::Error),
    /// A statement of a member failed, and all was rolled back.
    Undone(rusqlite::Error),
    /// `COMMIT` failed; the answers are those that it would have confirmed.
    Unknown(Vec<Answer>, rusqlite::Error),
}

pub(crate) struct Writer {
    group_max: usize,
    /// Newest version that was ever tried on this handle, committed or not: none is tried twice.
    tried: i64,
    /// Groups committed.
    groups: Arc<AtomicU64>,
}

impl Writer {
    pub(crate) fn new(group_max: usize, groups: Arc<AtomicU64>) -> Self {
        Self { group_max, tried: 0, groups }
    }
}

impl Work for Writer {
    type Job = Job;

    fn session(&mut self, connection: &Connection, queue: &Queue<Job>) -> SessionEnd {
        let mut statements = match Statements::prepare(connection) {
            Ok(statements) => statements,
            Err(error) => {
                refuse_all(queue.try_pop(self.group_max), &error);
                return SessionEnd::Broken;
            }
        };
        while let Some(mut jobs) = queue.pop(self.group_max) {
            // Whoever dropped the future may not know the outcome; "it never happened" is a good one.
            jobs.retain(|job| !job.answer.is_canceled());
            if !jobs.is_empty() && self.settle(&mut statements, jobs) == Connected::No {
                return SessionEnd::Broken;
            }
        }
        SessionEnd::Closed
    }

    fn refuse(&self, job: Job, reason: &OpenError) {
        send(job, Err(StoreError::Unavailable(reason.to_string())));
    }
}

/// Whether the connection is sound for the next group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Connected {
    Yes,
    No,
}

fn send(job: Job, answer: Answer) {
    // The caller may be gone; then the answer is for nobody.
    let _ = job.answer.send(answer);
}

fn refuse_all(jobs: Vec<Job>, error: &rusqlite::Error) {
    jobs.into_iter().for_each(|job| send(job, Err(StoreError::Unavailable(error.to_string()))));
}

impl Writer {
    /// Runs a group and answers its members.
    fn settle(&mut self, statements: &mut Statements<'_>, jobs: Vec<Job>) -> Connected {
        match self.run(statements, &jobs) {
            Group::Done(answers) => {
                jobs.into_iter().zip(answers).for_each(|(job, answer)| send(job, answer));
                statements.connected()
            }
            Group::NotBegun(error) => {
                refuse_all(jobs, &error);
                if is_busy(&error) { Connected::Yes } else { Connected::No }
            }
            Group::Undone(error) if jobs.len() == 1 => {
                refuse_all(jobs, &error);
                statements.connected()
            }
            // The fault of one member is not its neighbours': each runs by itself.
            Group::Undone(error) => {
                let mut connected = statements.connected();
                for job in jobs {
                    match connected {
                        Connected::Yes => connected = self.settle(statements, vec![job]),
                        Connected::No => refuse_all(vec![job], &error),
                    }
                }
                connected
            }
            Group::Unknown(answers, error) => {
                for (job, answer) in jobs.into_iter().zip(answers) {
                    send(job, answer.and(Err(StoreError::Ambiguous(format!("COMMIT failed: {error}")))));
                }
                Connected::No
            }
        }
    }

    fn run(&mut self, statements: &mut Statements<'_>, jobs: &[Job]) -> Group {
        if let Err(error) = statements.begin.execute([]) {
            return Group::NotBegun(error);
        }
        let members = statements.newest().and_then(|newest| {
            let base = newest.max(self.tried);
            let mut version = base;
            let answers: Vec<Answer> =
                jobs.iter().map(|job| statements.member(&job.txn, &mut version)).collect::<Result<_, _>>()?;
            let is_written = version > base;
            if is_written {
                self.tried = version;
                statements.set_newest.execute([version])?;
            }
            Ok((answers, is_written))
        });
        match members {
            Err(error) => {
                statements.undo();
                Group::Undone(error)
            }
            Ok((answers, false)) => {
                statements.undo();
                Group::Done(answers)
            }
            // A failed checkpoint after the commit is not reported here, and needs no answer: the log holds the commit.
            Ok((answers, true)) => match statements.commit.execute([]) {
                Ok(_) => {
                    self.groups.fetch_add(1, Ordering::Relaxed);
                    Group::Done(answers)
                }
                Err(error) => {
                    statements.undo();
                    Group::Unknown(answers, error)
                }
            },
        }
    }
}

/// The statements of one connection, prepared once.
struct Statements<'c> {
    connection: &'c Connection,
    begin: Statement<'c>,
    commit: Statement<'c>,
    rollback: Statement<'c>,
    newest: Statement<'c>,
    set_newest: Statement<'c>,
    version: Statement<'c>,
    put: Statement<'c>,
    delete: Statement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            rollback: connection.prepare("ROLLBACK")?,
            newest: connection.prepare("SELECT newest FROM sequence WHERE id = 0")?,
            set_newest: connection.prepare("UPDATE sequence SET newest = ?1 WHERE id = 0")?,
            version: connection.prepare("SELECT version FROM kv WHERE key = ?1")?,
            put: connection.prepare(
                "INSERT INTO kv (key, version, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value",
            )?,
            delete: connection.prepare("DELETE FROM kv WHERE key = ?1")?,
        })
    }

    /// The version of the file's newest transaction with writes.
    fn newest(&mut self) -> rusqlite::Result<i64> {
        self.newest.query_row([], |row| row.get(0))
    }

    /// Runs one member: every check first, then, when all hold, every write. `version` is the newest one so far.
    fn member(&mut self, txn: &Txn, version: &mut i64) -> rusqlite::Result<Answer> {
        let mut failed = Vec::new();
        for (i, check) in txn.checks.iter().enumerate() {
            let found: Option<i64> = self.version.query_row([check.key.as_bytes()], |row| row.get(0)).optional()?;
            let holds = match check.expect {
                Expect::Absent => found.is_none(),
                Expect::Version(expected) => found.is_some_and(|found| to_version(found) == expected),
            };
            if !holds {
                failed.push(i);
            }
        }
        if !failed.is_empty() {
            return Ok(Err(StoreError::Conflict { failed }));
        }
        if !txn.writes.is_empty() {
            *version += 1;
        }
        for write in &txn.writes {
            let key = write.key.as_bytes();
            match &write.mutation {
                Mutation::Put(value) => self.put.execute((key, *version, value.as_bytes()))?,
                Mutation::Delete => self.delete.execute([key])?,
            };
        }
        Ok(Ok(Committed { version: to_version(*version) }))
    }

    /// Rolls back what is open. Some errors have rolled back already; what cannot be rolled back ends with the connection.
    fn undo(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.rollback.execute([]);
        }
    }

    /// Sound when no transaction is left open.
    fn connected(&self) -> Connected {
        if self.connection.is_autocommit() { Connected::Yes } else { Connected::No }
    }
}

/// Rows hold positive numbers; [`Version`] has room for any.
pub(crate) fn to_version(row: i64) -> Version {
    Version::from_raw(u128::from(row.unsigned_abs()))
}
