//! What is asked, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_core::atoms::{Bytes, Sealed};
use restante_driver::Message;
use restante_kv::StoreTime;
use restante_signing::{KeyName, SigningReference};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::fault::{Code, Fault};
use crate::views::{Intake, InvalidInstant, read_instant};

/// A message to hand over.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendBody {
    /// Who gets it.
    pub inboxes: Vec<String>,
    /// What they get.
    pub payload: PayloadBody,
    /// Requests under one key are one send.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// Deliveries of one order key to one destination happen in accepted order.
    #[serde(default)]
    pub order_key: Option<String>,
    /// Who signs.
    #[serde(default)]
    pub signing: Option<SigningBody>,
}

/// A payload: it is POSTed byte for byte.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadBody {
    /// As it stands in the request, spaces included.
    Json(Box<RawValue>),
    /// Bytes in base64.
    Base64(String),
}

/// Which key of the vault signs, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningBody {
    /// Its name.
    pub key: String,
    /// The scheme.
    pub scheme: Scheme,
    /// Where receivers find the public key.
    pub key_id: String,
}

/// How requests are signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// HTTP Signatures as the fediverse uses them.
    Cavage,
    /// RFC 9421.
    Rfc9421,
}

/// How much to deliver.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOnceBody {
    /// Most deliveries.
    #[serde(default = "limit_default")]
    pub limit: u64,
}

fn limit_default() -> u64 {
    100
}

/// Open or close intake.
pub type SetIntakeBody = crate::views::IntakeView;

/// Keep what goes to a destination.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetHoldBody {
    /// Which: a URL there, or the host alone.
    pub destination: String,
    /// From when on; from now, if it is absent.
    #[serde(default)]
    pub from: Option<String>,
    /// Until when; until it is released, and at most for `hold_cap`, if it is absent.
    #[serde(default)]
    pub until: Option<String>,
}

/// Deliver to a destination again.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseHoldBody {
    /// Which: a URL there, or the host alone.
    pub destination: String,
    /// From when on; from now, if it is absent.
    #[serde(default)]
    pub from: Option<String>,
}

/// The instant in a field that may be absent.
pub(crate) fn optional_instant(field: &str, text: Option<&str>) -> Result<Option<StoreTime>, Fault> {
    let wrong = |InvalidInstant { text }| {
        let message = format!("{field} is {text:?}, which is no instant since 1970");
        Fault::new(Code::InvalidRequest, message, "write it in RFC 3339, as in 2026-01-01T12:00:00Z")
    };
    text.map(read_instant).transpose().map_err(wrong)
}

impl SigningBody {
    /// The reference, sealed.
    ///
    /// # Errors
    /// A [`Fault`] for a name or key id that cannot be one.
    pub fn seal(&self) -> Result<Sealed, Fault> {
        let scheme = match self.scheme {
            Scheme::Cavage => restante_signing::Scheme::Cavage,
            Scheme::Rfc9421 => restante_signing::Scheme::Rfc9421,
        };
        let reference = KeyName::new(&self.key).and_then(|key| SigningReference::new(key, scheme, &self.key_id));
        match reference {
            Ok(reference) => Ok(reference.seal()),
            Err(error) => Err(Fault::new(Code::InvalidRequest, error.to_string(), "correct the signing reference")),
        }
    }
}

impl PayloadBody {
    fn into_bytes(self) -> Result<Bytes, Fault> {
        match self {
            Self::Json(json) => Ok(json.get().as_bytes().into()),
            Self::Base64(text) => STANDARD.decode(&text).map(Bytes::from).map_err(|error| {
                Fault::new(
                    Code::InvalidRequest,
                    format!("payload.base64 is no base64 ({error})"),
                    "use the standard alphabet, padded",
                )
            }),
        }
    }
}

impl SendBody {
    /// The message.
    ///
    /// # Errors
    /// A [`Fault`] for what cannot be one.
    pub fn into_message(self) -> Result<Message, Fault> {
        message(self.inboxes, self.payload.into_bytes()?, self.idempotency_key, self.order_key, self.signing.as_ref())
    }
}

/// A message from its parts.
pub(crate) fn message(
    inboxes: Vec<String>,
    payload: Bytes,
    idempotency_key: Option<String>,
    order_key: Option<String>,
    signing: Option<&SigningBody>,
) -> Result<Message, Fault> {
    let mut inboxes = inboxes.into_iter();
    let first = inboxes.next().ok_or_else(|| Fault::new(Code::InvalidRequest, "there is no inbox", "name at least one"))?;
    let mut message = inboxes.fold(Message::new(first, payload), Message::and_to);
    if let Some(key) = idempotency_key {
        message = message.idempotency_key(key);
    }
    if let Some(key) = order_key {
        message = message.order_key(key);
    }
    if let Some(signing) = signing {
        message = message.signing(signing.seal()?);
    }
    Ok(message)
}

impl From<Intake> for bool {
    /// Whether it is open.
    fn from(intake: Intake) -> Self {
        matches!(intake, Intake::Open)
    }
}
