//! Between old messages and what the backlog needs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use restante_core::atoms::{Bytes, Sealed};
use restante_core::machine::{OldDelivery, OldMessage};
use restante_core::plan::Recipient;
use restante_kv::BoxFuture;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::codec::{FanoutMessage, LegacyKey, LegacyMessage, NewMessage, OutboxMessage, instant};
use crate::contract::Draft;

/// Why keys could not be sealed or opened. It says nothing secret.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the keys cannot be used: {0}")]
pub struct KeyError(pub String);

/// The caller's keys: old messages hold them as they are, the backlog only a sealed reference to them.
///
/// Only the caller knows how one becomes the other. With the vault of `restante-signing`: put the key into the vault and give
/// its reference; and look it up again.
pub trait Keyring: fmt::Debug + Send + Sync + 'static {
    /// The reference with which the backlog's sender signs what these keys signed. Asked before a message is adopted.
    ///
    /// # Errors
    /// [`KeyError`]: then the message stays in the old queue.
    fn seal<'k>(&'k self, keys: &'k [LegacyKey]) -> BoxFuture<'k, Result<Sealed, KeyError>>;

    /// The keys that a reference stands for. Asked before a send is handed over to the old queue.
    ///
    /// # Errors
    /// [`KeyError`]: then the send is not handed over.
    fn open<'k>(&'k self, signing: &'k Sealed) -> BoxFuture<'k, Result<Vec<LegacyKey>, KeyError>>;

    /// The base URL of the server, as old messages say it.
    fn base_url(&self) -> &str;
}

/// Finds the destination of an inbox; `None` for what is none.
pub type RecipientOf<'r> = &'r (dyn Fn(&str) -> Option<Recipient> + Sync);

/// What the machines need to know of a delivery; `None` if its inbox is none.
pub fn old_delivery(message: &OutboxMessage, recipient_of: RecipientOf<'_>) -> Option<OldDelivery> {
    Some(OldDelivery {
        id: message.id().clone(),
        to: recipient_of(message.inbox())?,
        order_key: message.order_key().map(Into::into),
        failure_count: message.attempt(),
        payload: Bytes::from(message.activity().as_bytes()),
    })
}

/// What the machines need to know of a message.
pub fn old_message(message: &LegacyMessage, recipient_of: RecipientOf<'_>) -> OldMessage {
    match message {
        LegacyMessage::Outbox(outbox) => match old_delivery(outbox, recipient_of) {
            Some(delivery) => OldMessage::Delivery(Box::new(delivery)),
            None => OldMessage::Other,
        },
        LegacyMessage::Fanout(_) => OldMessage::Fanout,
        LegacyMessage::Other { .. } => OldMessage::Other,
    }
}

/// What a message says once `failure_count` attempts have not delivered it; `None` if it is no delivery, and counts nothing.
pub fn body_with_failures(message: &LegacyMessage, failure_count: u32) -> Option<Bytes> {
    match message {
        LegacyMessage::Outbox(outbox) => Some(outbox.clone().with_attempt(failure_count).encode().into()),
        LegacyMessage::Fanout(_) | LegacyMessage::Other { .. } => None,
    }
}

/// The deliveries of a fanout, each under an id that follows from the fanout's; `now_ms` is the time, in milliseconds since the
/// Unix epoch.
pub fn deliveries_of(fanout: &FanoutMessage, recipient_of: RecipientOf<'_>, now_ms: u64) -> Vec<Draft> {
    let started = instant(now_ms);
    let inboxes = fanout.inboxes().iter().enumerate();
    let draft = |(index, (inbox, of)): (usize, (&String, _))| {
        let recipient = recipient_of(inbox);
        let origin = recipient.as_ref().map_or(inbox.as_str(), |to| &to.destination);
        let delivery = fanout.delivery(index, inbox, of, origin, &started);
        Draft {
            id: delivery.id().clone(),
            body: delivery.encode().into(),
            delay: Duration::ZERO,
            order_key: delivery.queue_order_key().map(Into::into),
        }
    };
    inboxes.map(draft).collect()
}

/// A send that a closed intake refused.
#[derive(Debug)]
pub struct HandedOver<'h> {
    /// Its idempotency key: the message's id follows from it.
    pub idempotency_key: &'h str,
    /// Who signs it.
    pub keys: &'h [LegacyKey],
    /// The base URL of the server.
    pub base_url: &'h str,
    /// Where it goes.
    pub recipients: &'h [Recipient],
    /// Its order key.
    pub order_key: Option<&'h Arc<str>>,
    /// What is to be POSTed: an activity, in JSON.
    pub payload: &'h Bytes,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// A payload that no old message can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the payload is no JSON: old messages hold activities")]
pub struct NotAnActivity;

/// The one message that a send becomes, so that it is in the old queue whole or not at all: a delivery if it has one recipient
/// and no order key, and else a fanout, which keeps its place in the order of its key until it is expanded.
///
/// # Errors
/// [`NotAnActivity`].
pub fn message_of(send: &HandedOver<'_>) -> Result<Draft, NotAnActivity> {
    let text = std::str::from_utf8(send.payload.as_slice()).map_err(|_| NotAnActivity)?;
    let activity: &RawValue = serde_json::from_str(text).map_err(|_| NotAnActivity)?;
    let order_key = send.order_key.map(|key| &**key);
    let message = NewMessage { id: send.idempotency_key, base_url: send.base_url, keys: send.keys, activity, order_key };
    let body = match (send.recipients, order_key) {
        ([one], None) => message.outbox(&one.inbox, &instant(send.now_ms)),
        (many, _) => message.fanout(many.iter().map(|to| &*to.inbox)),
    };
    let draft = Draft::new(send.idempotency_key, body);
    Ok(match send.order_key {
        Some(key) => draft.order_key(Arc::clone(key)),
        None => draft,
    })
}
