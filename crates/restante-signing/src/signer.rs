//! [`Signer`]: what a sender asks for headers that sign a request; and the one that signs with the keys of a [`Vault`].

use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, Method};
use restante_core::atoms::Sealed;
use restante_kv::BoxFuture;
use thiserror::Error;
use url::Url;

use crate::{KeyError, KeyKind, ReferenceError, Scheme, SigningReference, Vault, VaultError, scheme};

/// A request that is about to be sent.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Where it goes. Credentials and a fragment are no part of what is signed, nor of what is sent.
    pub url: &'a Url,
    /// The headers that the sender sets; `content-type` is signed where it is among them.
    pub headers: &'a HeaderMap,
    /// All of its body.
    pub body: &'a [u8],
    /// The instant of its date, by the sender's wall clock.
    pub at: SystemTime,
}

/// Makes the headers that sign a request.
pub trait Signer: Send + Sync {
    /// The headers to add to `request` (each replaces what is there under its name), signed as `reference` says.
    ///
    /// `reference` is never empty: whether an entry without one may be sent is the sender's question.
    ///
    /// # Errors
    /// [`SignError`]: the request must then not be sent, least of all unsigned.
    fn sign<'a>(&'a self, request: Outgoing<'a>, reference: &'a Sealed) -> BoxFuture<'a, Result<HeaderMap, SignError>>;
}

/// Signs with the keys of a vault, as the entry's [`SigningReference`] says.
///
/// A signature is made on the thread that asks for it: an RSA key of 2048 bits keeps it for less than a millisecond, one of 4096 bits for some.
#[derive(Clone, Debug)]
pub struct VaultSigner {
    vault: Arc<Vault>,
}

impl VaultSigner {
    /// A signer with the keys of `vault`.
    pub fn new(vault: Arc<Vault>) -> Self {
        Self { vault }
    }
}

impl Signer for VaultSigner {
    fn sign<'a>(&'a self, request: Outgoing<'a>, reference: &'a Sealed) -> BoxFuture<'a, Result<HeaderMap, SignError>> {
        Box::pin(async move {
            let reference = SigningReference::open(reference)?;
            let key = self.vault.get(reference.key()).await?;
            scheme::sign(reference.scheme(), &request, &key, reference.key_id())
        })
    }
}

/// Why a request is not signed. It is then not sent either.
#[derive(Debug, Error)]
pub enum SignError {
    /// The entry does not say who signs it, or in a way that this version cannot read.
    #[error("the request is not signed: {0}")]
    Reference(#[from] ReferenceError),
    /// The vault does not give the key.
    #[error("the request is not signed: {0}")]
    Vault(#[from] VaultError),
    /// The key gives no signature.
    #[error("the request is not signed: {0}")]
    Key(#[from] KeyError),
    /// The scheme has no use for such a key.
    #[error("the request is not signed: {scheme} does not know {kind} keys; refer to another key or to another scheme")]
    KeyDoesNotFit {
        /// The scheme.
        scheme: Scheme,
        /// The key's kind.
        kind: KeyKind,
    },
    /// The URL has no host.
    #[error("the request is not signed: its URL has no host")]
    Url,
    /// A header that is signed occurs twice or holds bytes that no signature can cover.
    #[error("the request is not signed: its header {name} occurs twice or is not visible ASCII")]
    Header {
        /// The header.
        name: &'static str,
    },
    /// The clock shows a year that no date header can say.
    #[error("the request is not signed: the clock is before 1970 or after 9999; set it right")]
    Clock,
    /// Whatever kept another kind of signer from signing.
    #[error("the request is not signed: {0}")]
    Other(Box<dyn std::error::Error + Send + Sync>),
}
