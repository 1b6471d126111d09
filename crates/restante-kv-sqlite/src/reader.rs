//! The readers: what waits shares a read transaction, and so one point in time.

use std::sync::Arc;

use futures_channel::oneshot;
use restante_kv::{Key, KeyRange, Page, Snapshot, StoreError, StoreTime, Value, Versioned};
use rusqlite::{Connection, OptionalExtension, Row, Rows, Statement};

use crate::OpenError;
use crate::clock::Clock;
use crate::queue::Queue;
use crate::worker::{SessionEnd, Work};
use crate::writer::to_version;

/// A page ends early once its keys and values reach this size: `limit` alone would allow gigabytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Most requests that share one snapshot.
const GROUP_MAX: usize = 64;

/// A request within the limits, and the place for its answer.
#[derive(Debug)]
pub(crate) enum Job {
    GetMany { keys: Vec<Key>, answer: oneshot::Sender<Result<Snapshot, StoreError>> },
    Scan { range: KeyRange, limit: usize, answer: oneshot::Sender<Result<Page, StoreError>> },
}

pub(crate) struct Reader {
    clock: Arc<Clock>,
}

impl Reader {
    pub(crate) fn new(clock: Arc<Clock>) -> Self {
        Self { clock }
    }
}

impl Work for Reader {
    type Job = Job;

    fn session(&mut self, connection: &Connection, queue: &Queue<Job>) -> SessionEnd {
        let mut statements = match Statements::prepare(connection) {
            Ok(statements) => statements,
            Err(error) => {
                queue.try_pop(1).into_iter().for_each(|job| refuse(job, &error.to_string()));
                return SessionEnd::Broken;
            }
        };
        while let Some(jobs) = queue.pop(GROUP_MAX) {
            // Whatever failed, a new connection has no transaction open.
            if !self.answer_group(&mut statements, jobs) {
                return SessionEnd::Broken;
            }
        }
        SessionEnd::Closed
    }

    fn refuse(&self, job: Job, reason: &OpenError) {
        refuse(job, &reason.to_string());
    }
}

// In all answers: the caller may be gone, and then the answer is for nobody.
fn refuse(job: Job, reason: &str) {
    let error = StoreError::Unavailable(reason.to_owned());
    match job {
        Job::GetMany { answer, .. } => drop(answer.send(Err(error))),
        Job::Scan { answer, .. } => drop(answer.send(Err(error))),
    }
}

fn answer_with<T>(answer: oneshot::Sender<Result<T, StoreError>>, result: rusqlite::Result<T>) -> bool {
    let is_sound = result.is_ok();
    let _ = answer.send(result.map_err(|error| StoreError::Unavailable(error.to_string())));
    is_sound
}

impl Reader {
    /// Answers a group from one snapshot, which is not older than any of its requests. False when the connection is unsound.
    fn answer_group(&self, statements: &mut Statements<'_>, jobs: Vec<Job>) -> bool {
        if let Err(error) = statements.begin.execute([]) {
            jobs.into_iter().for_each(|job| refuse(job, &error.to_string()));
            return false;
        }
        let (mut is_sound, mut at) = (true, None);
        for job in jobs {
            if is_sound {
                is_sound = self.answer(statements, job, &mut at);
            } else {
                refuse(job, "the connection broke");
            }
        }
        is_sound && statements.end.execute([]).is_ok()
    }

    fn answer(&self, statements: &mut Statements<'_>, job: Job, at: &mut Option<StoreTime>) -> bool {
        match job {
            Job::GetMany { answer, .. } if answer.is_canceled() => true,
            Job::Scan { answer, .. } if answer.is_canceled() => true,
            Job::GetMany { keys, answer } => answer_with(answer, self.get_many(statements, &keys, at)),
            Job::Scan { range, limit, answer } => answer_with(answer, self.scan(statements, &range, limit, at)),
        }
    }

    fn get_many(&self, statements: &mut Statements<'_>, keys: &[Key], at: &mut Option<StoreTime>) -> rusqlite::Result<Snapshot> {
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            let record = statements.get.query_row([key.as_bytes()], |row| versioned(row, 0)).optional()?;
            values.push(record);
            self.stamp(at);
        }
        self.stamp(at);
        Ok(Snapshot { values, at: *at })
    }

    fn scan(
        &self,
        statements: &mut Statements<'_>,
        range: &KeyRange,
        limit: usize,
        at: &mut Option<StoreTime>,
    ) -> rusqlite::Result<Page> {
        let start = range.start.as_bytes();
        let rows = match &range.end {
            Some(end) => statements.scan.query([start, end.as_bytes()])?,
            None => statements.scan_to_end.query([start])?,
        };
        self.page(rows, limit, at)
    }

    fn page(&self, mut rows: Rows<'_>, limit: usize, at: &mut Option<StoreTime>) -> rusqlite::Result<Page> {
        let mut page = Page { entries: Vec::new(), next: None, at: None };
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            self.stamp(at);
            let key = Key::from(row.get_ref(0)?.as_blob()?);
            if page.entries.len() == limit || bytes >= PAGE_BYTES {
                page.next = Some(key);
                break;
            }
            let record = versioned(row, 1)?;
            bytes += key.len() + record.value.len();
            page.entries.push((key, record));
        }
        self.stamp(at);
        page.at = *at;
        Ok(page)
    }

    /// Reads the clock once a group, right after the first row fixed the snapshot: no record in an answer is younger than its
    /// `at`, and no request was made after it.
    fn stamp(&self, at: &mut Option<StoreTime>) {
        at.get_or_insert_with(|| self.clock.now());
    }
}

fn versioned(row: &Row<'_>, column: usize) -> rusqlite::Result<Versioned> {
    Ok(Versioned { version: to_version(row.get(column)?), value: Value::from(row.get_ref(column + 1)?.as_blob()?) })
}

/// The statements of one connection, prepared once.
struct Statements<'c> {
    begin: Statement<'c>,
    end: Statement<'c>,
    get: Statement<'c>,
    scan: Statement<'c>,
    scan_to_end: Statement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: connection.prepare("BEGIN DEFERRED")?,
            end: connection.prepare("COMMIT")?,
            get: connection.prepare("SELECT version, value FROM kv WHERE key = ?1")?,
            scan: connection.prepare("SELECT key, version, value FROM kv WHERE key >= ?1 AND key < ?2 ORDER BY key")?,
            scan_to_end: connection.prepare("SELECT key, version, value FROM kv WHERE key >= ?1 ORDER BY key")?,
        })
    }
}
