//! What is answered when something cannot be done: one table for the command line and the HTTP API.

use restante_core::machine::Failure;
use restante_core::plan::Rejection;
use restante_driver::{BuildError, InvalidInbox, SendError};
use restante_kv::StoreError;
use thiserror::Error;

use crate::Exit;

/// Kinds of trouble, by the name that a program can rely on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Code {
    /// The arguments do not fit together.
    Usage,
    /// The configuration cannot be used.
    Configuration,
    /// The address cannot be listened on.
    CannotListen,
    /// The store cannot be opened.
    StoreRefused,
    /// A body is not the JSON that is asked for.
    InvalidJson,
    /// A value is out of its bounds.
    InvalidRequest,
    /// A recipient is none.
    InvalidInbox,
    /// The token is missing or wrong.
    Unauthorized,
    /// There is nothing under this path.
    UnknownRoute,
    /// There is no record of that id.
    UnknownId,
    /// The path has no such method.
    MethodNotAllowed,
    /// The request did not arrive in time.
    RequestTimeout,
    /// Another request has the idempotency key.
    IdempotencyConflict,
    /// The record, or the backlog, is not in a state for it.
    Refused,
    /// A body is longer than allowed.
    BodyTooLarge,
    /// A record cannot be read by this version.
    RecordUnreadable,
    /// A mistake of this program.
    Internal,
    /// Intake is closed.
    IntakeClosed,
    /// Another request of this kind is under way, or the server stops.
    Busy,
    /// Others commit to the same records all the time.
    Contention,
    /// The store does not answer, or refuses.
    StoreUnavailable,
    /// It is not known whether it was done.
    OutcomeUnknown,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Usage,
        Self::Configuration,
        Self::CannotListen,
        Self::StoreRefused,
        Self::InvalidJson,
        Self::InvalidRequest,
        Self::InvalidInbox,
        Self::Unauthorized,
        Self::UnknownRoute,
        Self::UnknownId,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::IdempotencyConflict,
        Self::Refused,
        Self::BodyTooLarge,
        Self::RecordUnreadable,
        Self::Internal,
        Self::IntakeClosed,
        Self::Busy,
        Self::Contention,
        Self::StoreUnavailable,
        Self::OutcomeUnknown,
    ];

    /// Name, status of an HTTP answer (`None`: only the command line says it), exit code.
    const fn row(self) -> (&'static str, Option<u16>, Exit) {
        match self {
            Self::Usage => ("usage", None, Exit::Usage),
            Self::Configuration => ("configuration", None, Exit::Usage),
            Self::CannotListen => ("cannot_listen", None, Exit::Usage),
            Self::StoreRefused => ("store_refused", None, Exit::Store),
            Self::InvalidJson => ("invalid_json", Some(400), Exit::Usage),
            Self::InvalidRequest => ("invalid_request", Some(400), Exit::Usage),
            Self::InvalidInbox => ("invalid_inbox", Some(400), Exit::Usage),
            Self::Unauthorized => ("unauthorized", Some(401), Exit::Usage),
            Self::UnknownRoute => ("unknown_route", Some(404), Exit::Usage),
            Self::UnknownId => ("unknown_id", Some(404), Exit::Refused),
            Self::MethodNotAllowed => ("method_not_allowed", Some(405), Exit::Usage),
            Self::RequestTimeout => ("request_timeout", Some(408), Exit::Usage),
            Self::IdempotencyConflict => ("idempotency_conflict", Some(409), Exit::Refused),
            Self::Refused => ("refused", Some(409), Exit::Refused),
            Self::BodyTooLarge => ("body_too_large", Some(413), Exit::Usage),
            Self::RecordUnreadable => ("record_unreadable", Some(500), Exit::Store),
            Self::Internal => ("internal", Some(500), Exit::Store),
            Self::IntakeClosed => ("intake_closed", Some(503), Exit::Refused),
            Self::Busy => ("busy", Some(503), Exit::Refused),
            Self::Contention => ("contention", Some(503), Exit::Store),
            Self::StoreUnavailable => ("store_unavailable", Some(503), Exit::Store),
            Self::OutcomeUnknown => ("outcome_unknown", Some(503), Exit::Unknown),
        }
    }

    /// Its name, stable.
    pub const fn name(self) -> &'static str {
        self.row().0
    }
    /// The status of an HTTP answer.
    pub const fn status(self) -> Option<u16> {
        self.row().1
    }
    /// The exit code of a command.
    pub const fn exit(self) -> Exit {
        self.row().2
    }
}

/// Why something was not done, or may not have been.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{message}; {what_to_do}")]
pub struct Fault {
    /// The kind.
    pub code: Code,
    /// What happened, and to what.
    pub message: String,
    /// What to do about it.
    pub what_to_do: String,
}

impl Fault {
    /// A fault. `message` and `what_to_do` begin in lower case and end without a full stop.
    pub fn new(code: Code, message: impl Into<String>, what_to_do: impl Into<String>) -> Self {
        Self { code, message: message.into(), what_to_do: what_to_do.into() }
    }

    /// An id that is none, or of nothing.
    pub fn unknown_id(id: &str) -> Self {
        Self::new(Code::UnknownId, format!("there is no record of id {id:?}"), "list what there is, and take an id from there")
    }
}

impl From<Rejection> for Fault {
    fn from(rejection: Rejection) -> Self {
        let (code, what_to_do) = match &rejection {
            Rejection::IntakeClosed => {
                let message = "intake is closed: nothing was accepted";
                return Self::new(Code::IntakeClosed, message, "send to the legacy queue, or open intake again");
            }
            Rejection::IdempotencyConflict(send) => {
                let message = format!("another request was accepted under this idempotency key as send {send}");
                return Self::new(Code::IdempotencyConflict, message, "use a key of its own for each request");
            }
            Rejection::Invalid(why) => {
                return Self::new(Code::InvalidRequest, format!("the request is invalid: {why}"), "correct it");
            }
            Rejection::Gone => (Code::UnknownId, "list what there is, and take an id from there"),
            Rejection::Aborted | Rejection::StageGone => (Code::Refused, "send again"),
            Rejection::NotDue | Rejection::LeaseLost | Rejection::Taken => (Code::Refused, "look again later"),
            Rejection::StillUnreadable(_) => (Code::Refused, "use the version that wrote it, or drop it"),
            Rejection::NotNeeded => (Code::Refused, "nothing: it is as it should be"),
            Rejection::Expired => (Code::Refused, "nothing: its time is over"),
        };
        Self::new(code, rejection.to_string(), what_to_do)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Unavailable(why) => Self::new(
                Code::StoreUnavailable,
                format!("the store is unavailable ({why}): nothing happened"),
                "try again; if that does not help, look at its file and disk",
            ),
            StoreError::Ambiguous(why) => Self::unknown(format!("the outcome is unknown ({why})")),
            StoreError::Conflict { .. } => Self::new(Code::Contention, message, "try again later"),
            StoreError::LimitExceeded { .. } | StoreError::InvalidRequest(_) => {
                Self::new(Code::InvalidRequest, message, "ask for less at once")
            }
        }
    }
}

impl Fault {
    fn unknown(message: impl Into<String>) -> Self {
        Self::new(
            Code::OutcomeUnknown,
            message,
            "repeat the same request, a send under the same idempotency key: that is harmless",
        )
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure {
            Failure::Rejected(rejection) => rejection.into(),
            Failure::Inconsistent { .. } => {
                Self::new(Code::RecordUnreadable, message, "use the version that wrote it, or run `restante doctor`")
            }
            Failure::Contention => Self::new(
                Code::Contention,
                "every try conflicted with somebody else's commit: nothing was committed",
                "try again later",
            ),
            Failure::Store(error) => error.into(),
            Failure::Unknown => Self::unknown("it is unknown whether it was committed"),
        }
    }
}

impl From<InvalidInbox> for Fault {
    fn from(error: InvalidInbox) -> Self {
        Self::new(Code::InvalidInbox, error.to_string(), "give an absolute http or https URL without credentials")
    }
}

impl From<SendError> for Fault {
    fn from(error: SendError) -> Self {
        match error {
            SendError::InvalidInbox(error) => error.into(),
            SendError::IntakeClosed => Rejection::IntakeClosed.into(),
            SendError::NotAccepted(failure) => failure.into(),
            // The program has no legacy queue; whoever embeds the backlog beside one is told that nobody owns the send.
            SendError::NotHandedOver | SendError::NotTranslated { .. } => Rejection::IntakeClosed.into(),
            SendError::Unknown { idempotency_key } => Self::new(
                Code::OutcomeUnknown,
                "it is unknown whether the send was accepted",
                format!("repeat it under the idempotency key {idempotency_key:?}: it is accepted once"),
            ),
        }
    }
}

impl From<BuildError> for Fault {
    fn from(error: BuildError) -> Self {
        let what_to_do = match &error {
            BuildError::Config(_) => "correct the configuration file",
            BuildError::NotDurable { .. } => "use a sqlite: store, or --allow-volatile where losing work is fine",
            BuildError::NoClock => "set max_clock_skew in the configuration file",
            BuildError::VisibilityTooShort { .. } => "lengthen visible_ms of the legacy queue",
        };
        let message = match &error {
            BuildError::NotDurable { .. } => "the store loses what it has acknowledged when this process ends".to_owned(),
            BuildError::Config(_) | BuildError::NoClock | BuildError::VisibilityTooShort { .. } => error.to_string(),
        };
        Self::new(Code::Configuration, message, what_to_do)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_name_of_its_own() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn only_an_unknown_outcome_exits_as_unknown() {
        let unknown: Vec<_> = Code::ALL.iter().filter(|code| code.exit() == Exit::Unknown).collect();
        assert_eq!(unknown, [&Code::OutcomeUnknown]);
        assert_eq!(Fault::from(Failure::Unknown).code, Code::OutcomeUnknown);
        assert_eq!(Fault::from(StoreError::Ambiguous("disk".into())).code, Code::OutcomeUnknown);
        assert_eq!(Fault::from(StoreError::Unavailable("disk".into())).code, Code::StoreUnavailable);
    }
}
