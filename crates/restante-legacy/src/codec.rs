//! The messages of the old queue: JSON objects, told apart by their `type`.
//!
//! Whatever a message says that is not needed here stays in it, byte for byte: [`OutboxMessage::encode`] gives back what was
//! decoded, but for what was set. Nothing that a message holds is printed, and no error repeats it: keys lie in it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;

type Fields = BTreeMap<String, Box<RawValue>>;

/// Why bytes are no message.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Malformed {
    /// They are no JSON object.
    #[error("it is no JSON object: line {line}, column {column}")]
    NotAnObject {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// A field is missing.
    #[error("it has no {field}")]
    Missing {
        /// Which.
        field: &'static str,
    },
    /// A field is of another type.
    #[error("its {field} is not {expected}")]
    Wrong {
        /// Which.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

/// A private key as the old messages hold it, a JSON Web Key. It cannot be printed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrivateKey(Box<RawValue>);

impl PrivateKey {
    /// From the text of a JSON Web Key.
    ///
    /// # Errors
    /// [`Malformed::Wrong`]: it is no JSON.
    pub fn new(jwk: String) -> Result<Self, Malformed> {
        let wrong = |_| Malformed::Wrong { field: "privateKey", expected: "a JSON Web Key" };
        RawValue::from_string(jwk).map(Self).map_err(wrong)
    }

    /// The JSON Web Key, for whoever seals it or signs with it.
    pub fn expose(&self) -> &str {
        self.0.get()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

/// A key pair of a sender: what others know it by, and the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LegacyKey {
    /// URL of the public key.
    #[serde(rename = "keyId")]
    pub key_id: String,
    /// The secret.
    #[serde(rename = "privateKey")]
    pub private_key: PrivateKey,
}

/// A message of the old queue.
#[derive(Clone, Debug)]
pub enum LegacyMessage {
    /// One delivery.
    Outbox(OutboxMessage),
    /// One send to many inboxes.
    Fanout(FanoutMessage),
    /// A kind that is none of ours, such as `inbox` and `task`: it stays on the old path.
    Other {
        /// Its `type`, cut to 64 bytes.
        kind: String,
    },
}

/// Takes a message apart.
///
/// # Errors
/// See [`Malformed`]. Never a panic.
pub fn decode(bytes: &[u8]) -> Result<LegacyMessage, Malformed> {
    let not_an_object =
        |error: serde_json::Error| Malformed::NotAnObject { line: error.line().max(1), column: error.column().max(1) };
    let fields: Fields = serde_json::from_slice(bytes).map_err(not_an_object)?;
    let kind: String = required(&fields, "type", "a string")?;
    match kind.as_str() {
        "outbox" => OutboxMessage::of(fields).map(LegacyMessage::Outbox),
        "fanout" => FanoutMessage::of(fields).map(LegacyMessage::Fanout),
        _ => {
            let end = (0..=kind.len().min(64)).rev().find(|end| kind.is_char_boundary(*end)).unwrap_or(0);
            Ok(LegacyMessage::Other { kind: kind[..end].to_owned() })
        }
    }
}

/// A field, if it is there and not `null`.
fn optional<T: DeserializeOwned>(fields: &Fields, field: &'static str, expected: &'static str) -> Result<Option<T>, Malformed> {
    let Some(raw) = fields.get(field) else { return Ok(None) };
    // The error would repeat what it found.
    serde_json::from_str(raw.get()).map_err(|_| Malformed::Wrong { field, expected })
}

fn required<T: DeserializeOwned>(fields: &Fields, field: &'static str, expected: &'static str) -> Result<T, Malformed> {
    optional(fields, field, expected)?.ok_or(Malformed::Missing { field })
}

fn set(fields: &mut Fields, field: &str, value: &impl Serialize) {
    // Plain values always serialise; one that did not would leave the field as it was.
    if let Ok(raw) = to_raw_value(value) {
        fields.insert(field.to_owned(), raw);
    }
}

fn encode(fields: &Fields) -> Vec<u8> {
    // A map of strings to JSON always serialises.
    serde_json::to_vec(fields).unwrap_or_default()
}

/// The names of fields; what they hold may be secret.
struct Names<'f>(&'f Fields);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// One delivery of the old queue.
#[derive(Clone)]
pub struct OutboxMessage {
    fields: Fields,
    id: Arc<str>,
    inbox: Arc<str>,
    activity: Box<RawValue>,
    keys: Vec<LegacyKey>,
    attempt: u32,
    ordering_key: Option<String>,
    circuit_held_since: Option<String>,
}

impl fmt::Debug for OutboxMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fields, id, inbox, attempt, .. } = self;
        let mut shown = f.debug_struct("OutboxMessage");
        shown.field("id", id).field("inbox", inbox).field("attempt", attempt).field("fields", &Names(fields)).finish()
    }
}

impl OutboxMessage {
    fn of(fields: Fields) -> Result<Self, Malformed> {
        let id: String = required(&fields, "id", "a string")?;
        let inbox: String = required(&fields, "inbox", "a string")?;
        // Looked at for their types only: they stay as they are.
        optional::<String>(&fields, "started", "a string")?;
        optional::<bool>(&fields, "sharedInbox", "true or false")?;
        optional::<bool>(&fields, "circuitHeld", "true or false")?;
        optional::<Vec<String>>(&fields, "actorIds", "a list of strings")?;
        optional::<BTreeMap<String, String>>(&fields, "headers", "an object of strings")?;
        Ok(Self {
            id: id.into(),
            inbox: inbox.into(),
            activity: required(&fields, "activity", "an activity")?,
            keys: optional(&fields, "keys", "a list of keys")?.unwrap_or_default(),
            attempt: optional(&fields, "attempt", "a count")?.unwrap_or(0),
            ordering_key: optional(&fields, "orderingKey", "a string")?,
            circuit_held_since: optional(&fields, "circuitHeldSince", "a string")?,
            fields,
        })
    }

    /// Its id; the same however often it is tried.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Where it goes.
    pub fn inbox(&self) -> &Arc<str> {
        &self.inbox
    }

    /// The activity, byte for byte as it lies in the message.
    pub fn activity(&self) -> &str {
        self.activity.get()
    }

    /// Who signs it.
    pub fn keys(&self) -> &[LegacyKey] {
        &self.keys
    }

    /// Attempts that failed before: 0 for a message that was not tried yet.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Since when the old path's circuit breaker has held it, as it says.
    pub fn circuit_held_since(&self) -> Option<&str> {
        self.circuit_held_since.as_deref()
    }

    /// Under which key the old queue orders it: the caller's, a line feed, and the inbox's origin.
    pub fn queue_order_key(&self) -> Option<&str> {
        self.ordering_key.as_deref()
    }

    /// The caller's order key, without the origin behind it.
    pub fn order_key(&self) -> Option<&str> {
        let whole = self.ordering_key.as_deref()?;
        Some(whole.rsplit_once('\n').map_or(whole, |(key, _origin)| key))
    }

    /// The message with another count of failed attempts; it is held by no circuit then.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        set(&mut self.fields, "attempt", &attempt);
        self.attempt = attempt;
        self
    }

    /// The message as it is, or with what was set.
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.fields)
    }
}

/// What is said of one inbox of a fanout.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FanoutInbox {
    /// The actors behind it.
    #[serde(rename = "actorIds", default)]
    pub actor_ids: Vec<String>,
    /// Whether it is an inbox that many share.
    #[serde(rename = "sharedInbox", default)]
    pub shared_inbox: bool,
}

/// One send to many inboxes.
#[derive(Clone)]
pub struct FanoutMessage {
    fields: Fields,
    id: Arc<str>,
    inboxes: BTreeMap<String, FanoutInbox>,
    ordering_key: Option<String>,
}

impl fmt::Debug for FanoutMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fields, id, inboxes, .. } = self;
        let mut shown = f.debug_struct("FanoutMessage");
        shown.field("id", id).field("inboxes", &inboxes.len()).field("fields", &Names(fields)).finish()
    }
}

impl FanoutMessage {
    fn of(fields: Fields) -> Result<Self, Malformed> {
        let id: String = required(&fields, "id", "a string")?;
        required::<Box<RawValue>>(&fields, "activity", "an activity")?;
        optional::<Vec<LegacyKey>>(&fields, "keys", "a list of keys")?;
        Ok(Self {
            id: id.into(),
            inboxes: required(&fields, "inboxes", "an object of inboxes")?,
            ordering_key: optional(&fields, "orderingKey", "a string")?,
            fields,
        })
    }

    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The caller's order key, under which the old queue orders it.
    pub fn order_key(&self) -> Option<&str> {
        self.ordering_key.as_deref()
    }

    /// Where it goes, in the order of the URLs.
    pub fn inboxes(&self) -> &BTreeMap<String, FanoutInbox> {
        &self.inboxes
    }

    /// The message as it is.
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.fields)
    }

    /// The delivery to `inbox`, number `index` of the inboxes, under an id that follows from both. `origin` is the inbox's, and
    /// `started` the instant of the expansion. What the fanout says beside its inboxes, its order key and the digests of its
    /// collection, the delivery says too.
    pub(crate) fn delivery(&self, index: usize, inbox: &str, of: &FanoutInbox, origin: &str, started: &str) -> OutboxMessage {
        let mut fields = self.fields.clone();
        for field in ["inboxes", "collectionSync", "orderingKey", "circuitHeld", "circuitHeldSince"] {
            fields.remove(field);
        }
        let id = format!("{}/{index}", self.id);
        let ordering_key = self.ordering_key.as_ref().map(|key| format!("{key}\n{origin}"));
        set(&mut fields, "type", &"outbox");
        set(&mut fields, "id", &id);
        set(&mut fields, "inbox", &inbox);
        set(&mut fields, "sharedInbox", &of.shared_inbox);
        set(&mut fields, "actorIds", &of.actor_ids);
        set(&mut fields, "started", &started);
        set(&mut fields, "attempt", &0);
        set(&mut fields, "headers", &BTreeMap::<String, String>::new());
        if let Some(key) = &ordering_key {
            set(&mut fields, "orderingKey", key);
        }
        OutboxMessage {
            id: id.into(),
            inbox: inbox.into(),
            activity: fields.get("activity").cloned().unwrap_or_default(),
            keys: optional(&fields, "keys", "a list of keys").ok().flatten().unwrap_or_default(),
            attempt: 0,
            ordering_key,
            circuit_held_since: None,
            fields,
        }
    }
}

/// A new message: what an old server would have put into its queue.
pub(crate) struct NewMessage<'m> {
    pub(crate) id: &'m str,
    pub(crate) base_url: &'m str,
    pub(crate) keys: &'m [LegacyKey],
    pub(crate) activity: &'m RawValue,
    pub(crate) order_key: Option<&'m str>,
}

/// What is looked at of an activity, to say it beside it.
#[derive(Deserialize, Default)]
struct Activity {
    #[serde(default)]
    id: Option<String>,
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

impl NewMessage<'_> {
    fn fields(&self, kind: &str) -> Fields {
        let activity: Activity = serde_json::from_str(self.activity.get()).unwrap_or_default();
        let mut fields = Fields::new();
        set(&mut fields, "type", &kind);
        set(&mut fields, "id", &self.id);
        set(&mut fields, "baseUrl", &self.base_url);
        set(&mut fields, "keys", &self.keys);
        set(&mut fields, "activity", &self.activity);
        set(&mut fields, "activityType", &activity.kind.unwrap_or_default());
        if let Some(id) = activity.id {
            set(&mut fields, "activityId", &id);
        }
        set(&mut fields, "traceContext", &BTreeMap::<String, String>::new());
        fields
    }

    /// As one delivery.
    pub(crate) fn outbox(&self, inbox: &str, started: &str) -> Vec<u8> {
        let mut fields = self.fields("outbox");
        set(&mut fields, "inbox", &inbox);
        set(&mut fields, "sharedInbox", &false);
        set(&mut fields, "started", &started);
        set(&mut fields, "attempt", &0);
        set(&mut fields, "headers", &BTreeMap::<String, String>::new());
        encode(&fields)
    }

    /// As one send to many inboxes.
    pub(crate) fn fanout<'i>(&self, inboxes: impl Iterator<Item = &'i str>) -> Vec<u8> {
        let mut fields = self.fields("fanout");
        let inboxes: BTreeMap<&str, FanoutInbox> = inboxes.map(|inbox| (inbox, FanoutInbox::default())).collect();
        set(&mut fields, "inboxes", &inboxes);
        if let Some(key) = self.order_key {
            set(&mut fields, "orderingKey", &key);
        }
        encode(&fields)
    }
}

/// An instant as the old messages write it: UTC, with milliseconds.
pub(crate) fn instant(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    // Days since the first of March of the year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", of_day % 1_000)
}

#[cfg(test)]
mod tests {
    use super::instant;

    #[test]
    fn instants_are_written_in_utc() {
        assert_eq!(instant(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(instant(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(instant(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(instant(4_107_542_399_999), "2100-02-28T23:59:59.999Z");
        assert!(instant(u64::MAX).starts_with("584556019-04-03T"), "far ahead, and no panic: {}", instant(u64::MAX));
    }
}
