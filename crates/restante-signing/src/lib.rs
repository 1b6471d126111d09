//! Signs requests with keys that lie sealed in a store. The contract in six sentences:
//!
//! 1. An entry carries a [`SigningReference`]: the *name* of a key, a scheme and a key id. No secret is in it.
//! 2. A [`Signer`] turns a request and such a reference into headers, or into a [`SignError`]; what cannot be signed is not
//!    sent, least of all unsigned.
//! 3. A [`Vault`] keeps private keys in any [`AtomicKv`](restante_kv::AtomicKv), sealed under a [`MasterKey`] that the operator
//!    supplies and the store never sees; a record opens only under its own key of the store.
//! 4. Master keys have numbers, records name them; [`Vault::rotate`] seals every record anew, and may be broken off and repeated.
//! 5. Errors of the store stay what they are: an ambiguous commit is reported as ambiguous, unless the record itself shows how
//!    it ended.
//! 6. Nothing secret can be printed or serialised, by type. [`PrivateKey`], [`MasterKey`] and opened records are wiped from
//!    memory when dropped; a parsed [`SigningKey`] is in the memory of the process for as long as it is kept, and the
//!    cryptographic library does not wipe it.
//!
//! *Architecture invariant:* a private key leaves this crate as a signature and as a sealed record, in no other way. The
//! cryptography is that of `ring` and `chacha20poly1305`; here are formats only. The instant that a request is signed at is an
//! argument; the one clock that is read is that of the cache, for the age of its keys.
//!
//! *API boundary:* [`Signer`] for whoever sends; [`Vault`] for whoever manages keys; [`SigningReference`] for whoever sends
//! off an entry.
//!
//! What sealing does not do: whoever can write to the store can put an older record of the same name back.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, SystemTime};
//!
//! use restante_kv::{Limits, MemoryKv, StoreTime};
//! use restante_kv_conformance::block_on; // any executor will do
//! use restante_signing::{KeyName, MasterKey, MasterKeys, Outgoing, PrivateKey, Scheme, Signer, SigningReference, Vault, VaultSigner};
//!
//! let store = Arc::new(MemoryKv::new(Limits::FLOOR, Arc::new(|| StoreTime::from_ms(0))));
//! let master = MasterKey::from_text(1, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")?;
//! let vault = Arc::new(Vault::new(store, "vault/", MasterKeys::new(master)));
//!
//! // The test key that RFC 9421 publishes.
//! let pem = "-----BEGIN PRIVATE KEY-----
//! MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
//! -----END PRIVATE KEY-----";
//! let name = KeyName::new("ada")?;
//! block_on(vault.put(&name, &PrivateKey::from_pem(pem)?))?;
//!
//! let reference = SigningReference::new(name, Scheme::Rfc9421, "https://social.example/users/ada#key")?.seal();
//! let request = Outgoing {
//!     method: &http::Method::POST,
//!     url: &"https://other.example/inbox".parse()?,
//!     headers: &http::HeaderMap::new(),
//!     body: b"{}",
//!     at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
//! };
//! let headers = block_on(VaultSigner::new(vault).sign(request, &reference))?;
//! assert_eq!(headers["date"], "Tue, 14 Nov 2023 22:13:20 GMT");
//! assert!(headers["signature-input"].to_str()?.contains("alg=\"ed25519\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod key;
mod reference;
mod scheme;
mod signer;
mod vault;

pub use key::{KeyError, KeyKind, PrivateKey, SigningKey};
pub use reference::{KeyName, ReferenceError, Scheme, SigningReference};
pub use signer::{Outgoing, SignError, Signer, VaultSigner};
pub use vault::{CacheLimits, ListedKey, MasterKey, MasterKeyError, MasterKeys, Put, Rotation, Vault, VaultError};
