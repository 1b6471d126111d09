//! What is shown, as JSON: by the HTTP API and by `--json` alike. No type here has a field for a payload or a secret.

mod dead_letters;
mod destinations;
mod doctor;
mod entries;
mod keys;

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use restante_core::atoms::{EntryId, SendId};
use restante_core::machine::RunReport;
use restante_core::plan::DepthReport;
use restante_driver::{Accepted, DrainReport};
use restante_kv::{Key, KeyRange, StoreTime};
use serde::{Deserialize, Serialize};

pub use dead_letters::{DeadIntentView, DeadLetterView, DeadLettersView};
pub use destinations::{CircuitView, DestinationView, DestinationsView, HoldView, UnreadableDestinationView};
pub use doctor::{DoctorView, FindingView};
pub(crate) use entries::Destinations;
pub use entries::{BlockView, EntriesView, EntryView, LeaseView, QuarantineView, QuarantinesView, UnreadableView};
pub use keys::{KeyView, KeysView, RotationView};

use crate::fault::{Code, Fault};

/// An error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in `Fault`")]
pub struct FaultView {
    pub code: String,
    pub message: String,
    pub what_to_do: String,
}

impl From<&Fault> for FaultView {
    fn from(fault: &Fault) -> Self {
        Self { code: fault.code.name().to_owned(), message: fault.message.clone(), what_to_do: fault.what_to_do.clone() }
    }
}

/// What a send came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedView {
    /// Its id; an earlier request's when `duplicate`.
    pub send: String,
    /// Whether an earlier request under the same idempotency key was accepted already.
    pub duplicate: bool,
}

impl From<Accepted> for AcceptedView {
    fn from(accepted: Accepted) -> Self {
        Self { send: accepted.send.to_string(), duplicate: accepted.duplicate }
    }
}

/// Open or closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intake {
    /// Sends are accepted.
    Open,
    /// Sends are refused.
    Closed,
}

impl Intake {
    pub(crate) fn of(open: bool) -> Self {
        if open { Self::Open } else { Self::Closed }
    }
    /// As a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// The state of intake, asked for or told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntakeView {
    /// Open or closed.
    pub intake: Intake,
}

/// What the backlog owns, at one snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DepthView {
    /// Deliveries that are not terminal, leased ones included, quarantined ones not.
    pub entries: i64,
    /// Deliveries taken by a claim and not settled.
    pub leased: i64,
    /// Records put aside.
    pub quarantined: i64,
    /// Sends to many recipients that are not expanded to the end.
    pub intents: i64,
    /// Their recipients that are not entries yet.
    pub pending_recipients: i64,
    /// Deliveries that were found held when they were last looked at.
    pub held: i64,
    /// Deliveries that were found before an open circuit when they were last looked at.
    pub circuit_held: i64,
    /// Whether sends are accepted.
    pub intake: Intake,
    /// Whether intake is closed and no intents and no entries are left.
    pub drained: bool,
}

impl From<DepthReport> for DepthView {
    fn from(report: DepthReport) -> Self {
        Self {
            entries: report.entries,
            leased: report.leased,
            quarantined: report.quarantined,
            intents: report.intents,
            pending_recipients: report.pending_recipients,
            held: report.held,
            circuit_held: report.circuit_held,
            intake: Intake::of(report.intake_open),
            drained: report.is_drained(),
        }
    }
}

/// What a bounded run came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunView {
    /// Deliveries claimed and brought to an end of their claim.
    pub processed: u64,
    /// `false` exactly when it is proved that nothing is due.
    pub more: bool,
    /// When the next known work is due; absent when none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<String>,
    /// The same in milliseconds from now, by this machine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_in_ms: Option<u64>,
}

impl From<RunReport> for RunView {
    fn from(report: RunReport) -> Self {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now_ms = u64::try_from(now_ms).unwrap_or(u64::MAX);
        Self {
            processed: report.processed,
            more: report.more,
            next_at: report.next_at.map(instant),
            next_in_ms: report.next_at.map(|at| at.as_ms().saturating_sub(now_ms)),
        }
    }
}

/// What became of the work under way when a stop was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in `DrainReport`")]
pub struct DrainView {
    pub completed: u64,
    pub failed: u64,
    pub abandoned: u64,
    pub timed_out: bool,
}

impl From<DrainReport> for DrainView {
    fn from(report: DrainReport) -> Self {
        let DrainReport { completed, failed, abandoned, timed_out } = report;
        Self { completed, failed, abandoned, timed_out }
    }
}

/// What `restante serve --json` says, one document a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ServeView {
    /// Requests are answered from now on.
    Listening {
        /// Where.
        address: String,
    },
    /// It is over.
    Stopped(DrainView),
}

/// Something was done to the record of this id, or to the key of this name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoneView {
    /// To what.
    pub done: String,
}

impl DoneView {
    pub(crate) fn new(to: &str) -> Self {
        Self { done: to.to_owned() }
    }
}

/// Whether the store answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthView {
    /// `ok`.
    pub status: String,
}

/// An instant in RFC 3339, UTC; the end of the year 9999 for whatever is later.
pub(crate) fn instant(at: StoreTime) -> String {
    let ms = i64::try_from(at.as_ms()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX).to_string()
}

/// An instant from RFC 3339.
///
/// # Errors
/// Words for a text that is none, or one of a time that no store knows.
pub(crate) fn read_instant(text: &str) -> Result<StoreTime, InvalidInstant> {
    let at = text.parse::<Timestamp>().ok().and_then(|at| u64::try_from(at.as_millisecond()).ok());
    at.map(StoreTime::from_ms).ok_or_else(|| InvalidInstant { text: text.to_owned() })
}

/// Why a text is no instant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text:?} is no instant since 1970: write it in RFC 3339, as in 2026-01-01T12:00:00Z")]
pub(crate) struct InvalidInstant {
    /// The text.
    pub(crate) text: String,
}

fn write_cursor(key: &Key) -> String {
    URL_SAFE_NO_PAD.encode(key.as_bytes())
}

/// Where a page of what lies in `all` begins, from its cursor.
///
/// # Errors
/// A [`Fault`] for a text that no page of this backlog gave.
pub(crate) fn read_cursor(all: &KeyRange, cursor: &str) -> Result<Key, Fault> {
    let key = URL_SAFE_NO_PAD.decode(cursor).ok().map(Key::from).filter(|key| all.contains(key));
    key.ok_or_else(|| {
        Fault::new(
            Code::InvalidRequest,
            format!("{cursor:?} is no cursor of this backlog"),
            "take next_cursor of the page before",
        )
    })
}

/// An entry's id from its text.
pub(crate) fn read_entry_id(text: &str) -> Option<EntryId> {
    let (send, index) = text.split_once('.')?;
    let is_plain = |text: &str, is: fn(&u8) -> bool| text.bytes().all(|byte| is(&byte));
    if send.len() != 32 || !is_plain(send, u8::is_ascii_hexdigit) || !is_plain(index, u8::is_ascii_digit) {
        return None;
    }
    let send = u128::from_str_radix(send, 16).ok()?;
    Some(EntryId { send: SendId::from_bytes(send.to_be_bytes()), index: index.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use restante_core::keys::Kind;

    use super::*;

    #[test]
    fn an_entry_id_is_read_as_it_is_shown() {
        let id = EntryId { send: SendId::from_bytes([0xab; 16]), index: 3 };
        assert_eq!(read_entry_id(&id.to_string()), Some(id));
        let send = "ab".repeat(16);
        for text in ["", ".", "ab.0", &send, &format!("{send}.-1"), &format!("{send}.4294967296"), &format!("+{}.0", &send[1..])]
        {
            assert_eq!(read_entry_id(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_an_id_or_none_and_a_cursor_or_none(
            text in r"[0-9a-f]{30,34}\.?[0-9]{0,12}|[A-Za-z0-9_-]{0,60}|\PC{0,40}",
        ) {
            let env = restante_core::Env::new(restante_core::Config::new(1));
            let _ = (read_entry_id(&text), read_cursor(&env.keys.all(Kind::Entry), &text), read_instant(&text));
        }
    }

    #[test]
    fn an_instant_is_read_as_it_is_shown_and_with_any_offset() {
        for text in ["1970-01-01T00:00:00Z", "2026-01-01T12:00:03.25Z"] {
            assert_eq!(read_instant(text).map(instant).as_deref(), Ok(text));
        }
        assert_eq!(read_instant("2026-01-01T14:00:00+02:00").map(instant).as_deref(), Ok("2026-01-01T12:00:00Z"));
        for text in ["", "now", "2026-01-01", "2026-01-01T12:00:00", "2026-13-01T12:00:00Z", "1969-12-31T23:59:59Z", "1767268800"]
        {
            let error = read_instant(text).expect_err(text).to_string();
            assert!(error.contains("write it in RFC 3339"), "{error}");
        }
    }

    #[test]
    fn an_instant_that_no_calendar_holds_is_the_last_one() {
        assert_eq!(instant(StoreTime::from_ms(0)), "1970-01-01T00:00:00Z");
        assert!(instant(StoreTime::from_ms(u64::MAX)).starts_with("9999-12-30T"));
    }
}
