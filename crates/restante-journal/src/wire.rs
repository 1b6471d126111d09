//! What a line of a journal says.

use std::sync::Arc;

use restante_core::atoms::{Bytes, EntryId, OwnerId, Sealed, SendId};
use restante_core::machine::{FanoutChoice, Io, PostResult, Reply, SendRequest, Slots};
use restante_core::plan::Recipient;
use restante_core::record::redact;
use restante_core::{Config, Env};
use restante_kv::{
    Committed, Expect, Guard, Key, KeyRange, LimitKind, Mutation, Page, StoreError, StoreTime, Value, Version, Versioned,
};
use serde::{Deserialize, Serialize};

use crate::text;

/// The format that this build writes and reads.
pub const FORMAT: u32 = 1;

/// One event. Operations are numbered in the order in which they began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// The journal begins.
    Opened {
        /// [`FORMAT`].
        format: u32,
        /// Version of the program that wrote it.
        version: String,
        /// The backlog's settings.
        config: Box<Config>,
    },
    /// An operation began.
    Began {
        /// Its number.
        op: u64,
        /// The process's monotonic clock.
        local_ms: u64,
        /// What it is.
        operation: Operation,
    },
    /// A machine asked for something.
    Asked {
        /// Whose.
        op: u64,
        /// Which of its tasks; 0 where there is only one.
        task: u32,
        /// What it is for.
        about: String,
        /// What it asked for.
        io: IoRecord,
    },
    /// An answer came and was handed to the machine.
    Answered {
        /// Whose.
        op: u64,
        /// Which of its tasks.
        task: u32,
        /// The process's monotonic clock.
        local_ms: u64,
        /// The answer.
        reply: ReplyRecord,
    },
    /// A wake found the machine at work.
    Woken {
        /// Whose.
        op: u64,
    },
    /// The machine was asked to stop.
    Stopped {
        /// Whose.
        op: u64,
    },
    /// The journal reached its size; nothing is recorded any more.
    Full {},
}

/// What an operation is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Operation {
    /// A worker that serves.
    Serve {
        /// Its owner id.
        owner: OwnerId,
        /// Its counter slots.
        slots: Slots,
    },
    /// A worker that runs once.
    Once {
        /// Its owner id.
        owner: OwnerId,
        /// Its counter slots.
        slots: Slots,
        /// Most deliveries.
        limit: u64,
    },
    /// A send.
    Send {
        /// Its id.
        send: SendId,
        /// Its idempotency key.
        idempotency_key: Arc<str>,
        /// Its recipients: inbox and destination.
        recipients: Vec<(Arc<str>, Arc<str>)>,
        /// The deadline of each recipient, in milliseconds of store time; none where it has none, nothing where none has one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        deadlines_ms: Vec<Option<u64>>,
        /// Its order key.
        order_key: Option<Arc<str>>,
        /// How many bytes its payload has.
        payload_bytes: usize,
        /// Digest of its payload.
        payload_digest: u64,
        /// How many bytes its signing reference has.
        signing_bytes: usize,
        /// Its counter slot.
        slot: u64,
        /// Whether it was to become an intent; what journals that do not say it left to the number of recipients.
        #[serde(default, skip_serializing_if = "is_auto")]
        fanout: FanoutChoice,
    },
    /// An operator's command; only what it read and committed is recorded.
    Command {
        /// Its name.
        name: String,
    },
}

fn is_auto(fanout: &FanoutChoice) -> bool {
    *fanout == FanoutChoice::Auto
}

impl Operation {
    /// A send, without its payload.
    pub fn of_send(request: &SendRequest, payload_digest: u64, slot: u64) -> Self {
        Self::Send {
            send: request.send,
            idempotency_key: request.idempotency_key.clone(),
            recipients: request.recipients.iter().map(|to| (to.inbox.clone(), to.destination.clone())).collect(),
            deadlines_ms: match request.recipients.iter().any(|to| to.deadline.is_some()) {
                true => request.recipients.iter().map(|to| to.deadline.map(StoreTime::as_ms)).collect(),
                false => Vec::new(),
            },
            order_key: request.order_key.clone(),
            payload_bytes: request.payload.len(),
            payload_digest,
            signing_bytes: request.signing.expose().len(),
            slot,
            fanout: request.fanout,
        }
    }

    /// The request that a recorded send stands for, with zeros in place of what is not recorded; its digest; and its slot.
    pub fn to_request(&self) -> Option<(SendRequest, u64, u64)> {
        let Self::Send {
            send,
            idempotency_key,
            recipients,
            deadlines_ms,
            order_key,
            payload_bytes,
            payload_digest,
            signing_bytes,
            slot,
            fanout,
        } = self
        else {
            return None;
        };
        // A length from outside: bounded by what a journal line could describe at all.
        let zeros = |length: &usize| vec![0; (*length).min(64 * 1024 * 1024)];
        let recipient = |(index, (inbox, destination)): (usize, &(Arc<str>, Arc<str>))| Recipient {
            inbox: inbox.clone(),
            destination: destination.clone(),
            deadline: deadlines_ms.get(index).copied().flatten().map(StoreTime::from_ms),
        };
        let request = SendRequest {
            send: *send,
            idempotency_key: idempotency_key.clone(),
            recipients: recipients.iter().enumerate().map(recipient).collect(),
            order_key: order_key.clone(),
            payload: Bytes::from(zeros(payload_bytes)),
            signing: Sealed::new(zeros(signing_bytes)),
            fanout: *fanout,
        };
        Some((request, *payload_digest, *slot))
    }
}

/// What a machine asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "io")]
#[expect(missing_docs, reason = "the fields are those of restante_core::machine::Io")]
pub enum IoRecord {
    Read { keys: Vec<String> },
    Scan { start: String, end: Option<String>, limit: usize },
    Commit { checks: Vec<CheckRecord>, writes: Vec<WriteRecord> },
    Sleep { ms: u64, jitter_ms: u64, wakeable: bool },
    Post { entry: EntryId, fence: u64, inbox: Arc<str>, payload_bytes: usize, post_by_ms: u64, timeout_ms: u64 },
}

/// A check: absent, or this version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckRecord {
    /// The key.
    pub key: String,
    /// The version; `None` means absent.
    pub version: Option<String>,
}

/// A write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WriteRecord {
    /// The key.
    pub key: String,
    /// The redacted value; `None` means a delete.
    pub put: Option<String>,
    /// Why it is safe: `checked`, `idempotent`, or the key it is under.
    pub guard: String,
}

impl IoRecord {
    /// What `io` asks for, without secrets.
    pub fn of(env: &Env, io: &Io) -> Self {
        match io {
            Io::Read(keys) => Self::Read { keys: keys.iter().map(key_text).collect() },
            Io::Scan { range: KeyRange { start, end }, limit } => {
                Self::Scan { start: key_text(start), end: end.as_ref().map(key_text), limit: *limit }
            }
            Io::Commit(txn) => Self::Commit {
                checks: txn
                    .checks
                    .iter()
                    .map(|check| CheckRecord {
                        key: key_text(&check.key),
                        version: match check.expect {
                            Expect::Absent => None,
                            Expect::Version(version) => Some(version_text(version)),
                        },
                    })
                    .collect(),
                writes: txn
                    .writes
                    .iter()
                    .map(|write| WriteRecord {
                        key: key_text(&write.key),
                        put: match &write.mutation {
                            Mutation::Put(value) => Some(text::from_value(redacted(env, &write.key, value).as_bytes())),
                            Mutation::Delete => None,
                        },
                        guard: match &write.guard {
                            Guard::Checked => "checked".to_owned(),
                            Guard::Idempotent => "idempotent".to_owned(),
                            Guard::Under(key) => format!("under {}", key_text(key)),
                        },
                    })
                    .collect(),
            },
            Io::Sleep { ms, jitter_ms, wakeable } => Self::Sleep { ms: *ms, jitter_ms: *jitter_ms, wakeable: *wakeable },
            Io::Post(post) => Self::Post {
                entry: post.entry,
                fence: post.fence.get(),
                inbox: post.inbox.clone(),
                payload_bytes: post.payload.len(),
                post_by_ms: post.post_by.as_ms(),
                timeout_ms: post.timeout_ms,
            },
        }
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reply")]
#[expect(missing_docs, reason = "the fields are those of restante_core::machine::Reply")]
pub enum ReplyRecord {
    Snapshot { at_ms: u64, records: Vec<Option<Found>> },
    Page { at_ms: u64, entropy: u64, entries: Vec<(String, Found)>, next: Option<String> },
    Committed { version: String },
    Slept {},
    Posted { result: PostResult, entropy: u64 },
    PostTooLate {},
    Failed { of: Of, at_ms: u64, entropy: u64, error: ErrorRecord },
}

/// Which request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "named after the replies")]
pub enum Of {
    Snapshot,
    Page,
    Commit,
}

/// A record that was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// Its version.
    pub version: String,
    /// Its redacted value.
    pub value: String,
}

/// An error of the store. Texts of drivers are left out: they may hold anything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "named after restante_kv::StoreError")]
pub enum ErrorRecord {
    Conflict,
    LimitExceeded,
    InvalidRequest,
    Unavailable,
    Ambiguous,
}

/// Why a line cannot be used, although its checksum is right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} is not what a journal writes: {text:?}")]
pub struct Malformed {
    /// Which part.
    pub what: &'static str,
    /// What is there.
    pub text: String,
}

impl ReplyRecord {
    /// What `reply` says, without secrets. `asked` are the keys of a read.
    pub fn of(env: &Env, reply: &Reply, asked: &[Key]) -> Self {
        let found = |key: &Key, record: &Versioned| Found {
            version: version_text(record.version),
            value: text::from_value(redacted(env, key, &record.value).as_bytes()),
        };
        let failed = |of, at: StoreTime, entropy, error: &StoreError| Self::Failed {
            of,
            at_ms: at.as_ms(),
            entropy,
            error: ErrorRecord::of(error),
        };
        match reply {
            Reply::Snapshot { result: Ok(records), at } => Self::Snapshot {
                at_ms: at.as_ms(),
                records: records.iter().zip(asked).map(|(record, key)| record.as_ref().map(|it| found(key, it))).collect(),
            },
            Reply::Snapshot { result: Err(error), at } => failed(Of::Snapshot, *at, 0, error),
            Reply::Page { result: Ok(page), at, entropy } => Self::Page {
                at_ms: at.as_ms(),
                entropy: *entropy,
                entries: page.entries.iter().map(|(key, record)| (key_text(key), found(key, record))).collect(),
                next: page.next.as_ref().map(key_text),
            },
            Reply::Page { result: Err(error), at, entropy } => failed(Of::Page, *at, *entropy, error),
            Reply::Committed(Ok(committed)) => Self::Committed { version: version_text(committed.version) },
            Reply::Committed(Err(error)) => failed(Of::Commit, StoreTime::default(), 0, error),
            Reply::Start | Reply::Slept => Self::Slept {},
            Reply::Posted { result, entropy } => Self::Posted { result: *result, entropy: *entropy },
            Reply::PostTooLate => Self::PostTooLate {},
        }
    }

    /// The reply that a machine is handed.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn to_reply(&self) -> Result<Reply, Malformed> {
        Ok(match self {
            Self::Snapshot { at_ms, records } => Reply::Snapshot {
                result: Ok(records
                    .iter()
                    .map(|record| record.as_ref().map(Found::to_versioned).transpose())
                    .collect::<Result<_, _>>()?),
                at: StoreTime::from_ms(*at_ms),
            },
            Self::Page { at_ms, entropy, entries, next } => {
                let at = StoreTime::from_ms(*at_ms);
                let entries =
                    entries.iter().map(|(key, record)| Ok((to_key(key)?, record.to_versioned()?))).collect::<Result<_, _>>()?;
                let next = next.as_deref().map(to_key).transpose()?;
                Reply::Page { result: Ok(Page { entries, next, at: Some(at) }), at, entropy: *entropy }
            }
            Self::Committed { version } => Reply::Committed(Ok(Committed { version: to_version(version)? })),
            Self::Slept {} => Reply::Slept,
            Self::Posted { result, entropy } => Reply::Posted { result: *result, entropy: *entropy },
            Self::PostTooLate {} => Reply::PostTooLate,
            Self::Failed { of, at_ms, entropy, error } => {
                let (at, error) = (StoreTime::from_ms(*at_ms), error.to_error());
                match of {
                    Of::Snapshot => Reply::Snapshot { result: Err(error), at },
                    Of::Page => Reply::Page { result: Err(error), at, entropy: *entropy },
                    Of::Commit => Reply::Committed(Err(error)),
                }
            }
        })
    }
}

impl Found {
    fn to_versioned(&self) -> Result<Versioned, Malformed> {
        Ok(Versioned { version: to_version(&self.version)?, value: to_value(&self.value)? })
    }
}

impl ErrorRecord {
    fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => Self::Conflict,
            StoreError::LimitExceeded { .. } => Self::LimitExceeded,
            StoreError::InvalidRequest(_) => Self::InvalidRequest,
            StoreError::Unavailable(_) => Self::Unavailable,
            StoreError::Ambiguous(_) => Self::Ambiguous,
        }
    }

    fn to_error(&self) -> StoreError {
        let text = || "as recorded".to_owned();
        match self {
            Self::Conflict => StoreError::Conflict { failed: Vec::new() },
            Self::LimitExceeded => StoreError::LimitExceeded { which: LimitKind::TxnBytes, max: 0, actual: 0 },
            Self::InvalidRequest => StoreError::InvalidRequest(text()),
            Self::Unavailable => StoreError::Unavailable(text()),
            Self::Ambiguous => StoreError::Ambiguous(text()),
        }
    }
}

fn key_text(key: &Key) -> String {
    text::from_key(key.as_bytes())
}

/// The key that a journal wrote as `text`.
///
/// # Errors
/// [`Malformed`].
pub fn to_key(text: &str) -> Result<Key, Malformed> {
    text::to_key(text).map(Key::from).ok_or_else(|| Malformed { what: "a key", text: text.to_owned() })
}

/// The value that a journal wrote as `text`.
///
/// # Errors
/// [`Malformed`].
pub fn to_value(text: &str) -> Result<Value, Malformed> {
    text::to_value(text).map(Value::from).ok_or_else(|| Malformed { what: "a value", text: text.to_owned() })
}

fn version_text(version: Version) -> String {
    version.to_raw().to_string()
}

fn to_version(text: &str) -> Result<Version, Malformed> {
    text.parse().map(Version::from_raw).map_err(|_| Malformed { what: "a version", text: text.to_owned() })
}

fn redacted(env: &Env, key: &Key, value: &Value) -> Value {
    match env.keys.kind_of(key) {
        Some(kind) => redact(kind, value),
        // Somebody else's: nothing is known of what it holds.
        None => Value::from(Vec::new()),
    }
}
