//! What a caller sends.

use std::sync::Arc;

use restante_core::atoms::{Bytes, Sealed};
use restante_core::machine::FanoutChoice;
use restante_core::plan::Recipient;
use restante_kv::StoreTime;
use url::{Origin, Url};

/// One payload for some inboxes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    payload: Bytes,
    inboxes: Vec<Arc<str>>,
    idempotency_key: Option<Arc<str>>,
    order_key: Option<Arc<str>>,
    signing: Sealed,
    pub(crate) fanout: FanoutChoice,
    deadline: Option<StoreTime>,
}

/// Why an inbox is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{inbox:?} is no inbox: {why}")]
pub struct InvalidInbox {
    /// What was given.
    pub inbox: String,
    /// What is wrong with it, and what is expected.
    pub why: String,
}

impl Message {
    /// A message to one inbox, an `http` or `https` URL. The payload is what is POSTed, byte for byte.
    pub fn new(inbox: impl Into<Arc<str>>, payload: impl Into<Bytes>) -> Self {
        Self {
            payload: payload.into(),
            inboxes: vec![inbox.into()],
            idempotency_key: None,
            order_key: None,
            signing: Sealed::default(),
            fanout: FanoutChoice::default(),
            deadline: None,
        }
    }

    /// One inbox more.
    #[must_use]
    pub fn and_to(mut self, inbox: impl Into<Arc<str>>) -> Self {
        self.inboxes.push(inbox.into());
        self
    }

    /// Messages under one key (1 to 512 bytes) are one send, for as long as accepted sends are remembered
    /// (`marker_retention_ms`). Without one, every call is another send.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Messages of one order key (1 to 512 bytes) reach each destination in the order in which they were accepted.
    #[must_use]
    pub fn order_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.order_key = Some(key.into());
        self
    }

    /// What the sender needs to sign: a sealed reference, never a key.
    #[must_use]
    pub fn signing(mut self, reference: Sealed) -> Self {
        self.signing = reference;
        self
    }

    /// Whether it is accepted as an intent, which workers expand into its deliveries, or with all of them at once. By itself, a
    /// message to more than `recipients_max` inboxes is.
    #[must_use]
    pub fn fanout(mut self, choice: FanoutChoice) -> Self {
        self.fanout = choice;
        self
    }

    /// After this instant it is of no use any more, and is dropped as expired, also if its retention lasts.
    #[must_use]
    pub fn deadline(mut self, at: StoreTime) -> Self {
        self.deadline = Some(at);
        self
    }

    pub(crate) fn recipients(&self) -> Result<Vec<Recipient>, InvalidInbox> {
        let to = |inbox| recipient(inbox).map(|to| Recipient { deadline: self.deadline, ..to });
        self.inboxes.iter().map(to).collect()
    }

    pub(crate) fn into_parts(self) -> (Bytes, Option<Arc<str>>, Option<Arc<str>>, Sealed) {
        (self.payload, self.idempotency_key, self.order_key, self.signing)
    }
}

/// An inbox with its destination: scheme, host and, if it is not the default one, port.
pub(crate) fn recipient(inbox: &Arc<str>) -> Result<Recipient, InvalidInbox> {
    let invalid = |why: String| InvalidInbox { inbox: inbox.to_string(), why };
    if inbox.chars().any(|c| c.is_whitespace() || c.is_control()) {
        // A parser would drop some of them, and two spellings would be two inboxes.
        return Err(invalid("it holds white space or control characters".to_owned()));
    }
    let url = Url::parse(inbox).map_err(|error| invalid(error.to_string()))?;
    match url.origin() {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Err(InvalidInbox { inbox: url.host_str().unwrap_or_default().to_owned(), why: "it holds credentials".to_owned() })
        }
        origin @ Origin::Tuple(..) if matches!(url.scheme(), "http" | "https") => {
            Ok(Recipient { inbox: Arc::clone(inbox), destination: origin.ascii_serialization().into(), deadline: None })
        }
        Origin::Tuple(..) | Origin::Opaque(_) => Err(invalid("it is neither http nor https".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(inbox: &str) -> Result<String, String> {
        recipient(&inbox.into()).map(|recipient| recipient.destination.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_destination_is_scheme_host_and_a_port_that_is_not_the_default() {
        assert_eq!(destination("https://Example.ORG/inbox").as_deref(), Ok("https://example.org"));
        assert_eq!(destination("https://example.org:443/inbox").as_deref(), Ok("https://example.org"));
        assert_eq!(destination("https://example.org:8443/a?b").as_deref(), Ok("https://example.org:8443"));
        assert_eq!(destination("http://[::1]:80/").as_deref(), Ok("http://[::1]"));
        assert_eq!(destination("https://bücher.example/inbox").as_deref(), Ok("https://xn--bcher-kva.example"));
    }

    #[test]
    fn what_is_no_inbox_is_refused_and_credentials_are_not_repeated() {
        assert!(destination("ftp://example.org/").is_err());
        assert!(destination("example.org/inbox").is_err());
        assert!(destination(" https://example.org/in\nbox").is_err());
        let error = destination("https://user:secret@example.org/inbox").unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
}
