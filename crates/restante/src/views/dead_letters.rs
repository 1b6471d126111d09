//! What was given up.

use restante_core::machine::{DeadIntentRow, DeadLetterPage, DeadLetterRow};
use restante_core::record::DropReason;
use serde::{Deserialize, Serialize};

use super::{UnreadableView, instant, write_cursor};

/// The trace of a delivery that was given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterView {
    /// The id of the entry it was.
    pub id: String,
    /// Where it should have gone.
    pub inbox: String,
    /// `permanent`, `expired`, `attempts_exhausted`, `payload_unreadable`, `circuit_held` or `retry_age`.
    pub reason: String,
    /// The status code that refused it for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Attempts that were made and settled.
    pub attempts: u32,
    /// When the backlog had taken ownership.
    pub origin: String,
    /// When this trace is forgotten.
    pub expires_at: String,
}

impl DeadLetterView {
    fn new(row: &DeadLetterRow) -> Self {
        let (reason, status) = reason_name(row.reason);
        Self {
            id: row.id.to_string(),
            inbox: row.inbox.to_string(),
            reason: reason.to_owned(),
            status,
            attempts: row.attempts,
            origin: instant(row.origin),
            expires_at: instant(row.expires_at),
        }
    }
}

/// The trace of an intent that was given up before all its recipients were deliveries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadIntentView {
    /// The id of the send.
    pub send: String,
    /// As of a dead letter.
    pub reason: String,
    /// The status code that refused it for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Recipients that were given up with it.
    pub recipients_given_up: u32,
    /// Recipients in all. Those that were deliveries already have an end of their own.
    pub recipients_total: u32,
    /// When the backlog had taken ownership.
    pub origin: String,
    /// When this trace is forgotten.
    pub expires_at: String,
}

impl DeadIntentView {
    fn new(row: &DeadIntentRow) -> Self {
        let (reason, status) = reason_name(row.reason);
        Self {
            send: row.send.to_string(),
            reason: reason.to_owned(),
            status,
            recipients_given_up: row.total.saturating_sub(row.expanded),
            recipients_total: row.total,
            origin: instant(row.origin),
            expires_at: instant(row.expires_at),
        }
    }
}

/// Why something was given up, as a word, and the status code that says more.
const fn reason_name(reason: DropReason) -> (&'static str, Option<u16>) {
    match reason {
        DropReason::Permanent(status) => ("permanent", Some(status)),
        DropReason::Expired => ("expired", None),
        DropReason::AttemptsExhausted => ("attempts_exhausted", None),
        DropReason::PayloadUnreadable => ("payload_unreadable", None),
        DropReason::CircuitHeld => ("circuit_held", None),
        DropReason::RetryAge => ("retry_age", None),
    }
}

/// One page of what was given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLettersView {
    /// Intents; they come before all deliveries.
    pub dead_intents: Vec<DeadIntentView>,
    /// Deliveries.
    pub dead_letters: Vec<DeadLetterView>,
    /// Traces that this version cannot read, an intent's under the id of its send.
    pub unreadable: Vec<UnreadableView>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl DeadLettersView {
    pub(crate) fn new(page: &DeadLetterPage) -> Self {
        let unreadable = page.unreadable.iter().map(|(id, why)| UnreadableView {
            id: if id.is_intent() { id.send.to_string() } else { id.to_string() },
            why: why.to_string(),
        });
        Self {
            dead_intents: page.intents.iter().map(DeadIntentView::new).collect(),
            dead_letters: page.rows.iter().map(DeadLetterView::new).collect(),
            unreadable: unreadable.collect(),
            next_cursor: page.next.as_ref().map(write_cursor),
        }
    }
}
