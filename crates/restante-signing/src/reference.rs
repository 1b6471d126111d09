//! What an entry says about its signature: which key signs, in which scheme, under which key id. No secret is in it.

use std::fmt;
use std::sync::Arc;

use restante_core::atoms::Sealed;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use url::Url;

/// The first byte of every reference this version writes.
const FORMAT: u8 = 1;

/// The name of a key in a vault: text without control characters, 1 to [`KeyName::BYTES_MAX`] bytes long.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(Arc<str>);

impl KeyName {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = 512;

    /// A name.
    ///
    /// # Errors
    /// [`ReferenceError::KeyName`] when it is empty, too long, or holds a control character.
    pub fn new(name: &str) -> Result<Self, ReferenceError> {
        if name.is_empty() || name.len() > Self::BYTES_MAX || name.chars().any(char::is_control) {
            return Err(ReferenceError::KeyName { bytes: name.len() });
        }
        Ok(Self(name.into()))
    }
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyName({:?})", &self.0)
    }
}

/// How a request is signed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Scheme {
    /// HTTP Signatures as the fediverse uses them (`draft-cavage-http-signatures`), with RSA keys only.
    Cavage,
    /// HTTP Message Signatures, RFC 9421, with RSA (`rsa-v1_5-sha256`) or Ed25519 keys.
    Rfc9421,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cavage => "draft-cavage-http-signatures",
            Self::Rfc9421 => "RFC 9421",
        })
    }
}

/// The signing reference of an entry.
///
/// ```
/// use restante_signing::{KeyName, Scheme, SigningReference};
///
/// let key_id = "https://social.example/users/ada#main-key";
/// let reference = SigningReference::new(KeyName::new("ada")?, Scheme::Cavage, key_id)?;
/// let sealed = reference.seal(); // goes with the send
/// assert_eq!(SigningReference::open(&sealed)?, reference); // when it is signed
/// # Ok::<(), restante_signing::ReferenceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SigningReference {
    key: KeyName,
    scheme: Scheme,
    key_id: Arc<str>,
}

/// The reference as it is written: plain data, checked when it is read.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    key: &'a str,
    scheme: Scheme,
    key_id: &'a str,
}

impl SigningReference {
    /// The longest key id, in bytes.
    pub const KEY_ID_BYTES_MAX: usize = 2048;

    /// A reference to `key`, whose public half receivers find under `key_id`.
    ///
    /// # Errors
    /// [`ReferenceError::KeyId`] when `key_id` is not an absolute URL in visible ASCII without quotes and backslashes (it is
    /// written between quotes), or is too long.
    pub fn new(key: KeyName, scheme: Scheme, key_id: &str) -> Result<Self, ReferenceError> {
        let writable = key_id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        if !writable || key_id.len() > Self::KEY_ID_BYTES_MAX || Url::parse(key_id).is_err() {
            return Err(ReferenceError::KeyId { bytes: key_id.len() });
        }
        Ok(Self { key, scheme, key_id: key_id.into() })
    }

    /// The name of the key that signs.
    pub fn key(&self) -> &KeyName {
        &self.key
    }
    /// How it signs.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }
    /// Where receivers find the public key.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The reference as an entry carries it.
    pub fn seal(&self) -> Sealed {
        let written = Written { key: self.key.as_str(), scheme: self.scheme, key_id: &self.key_id };
        match postcard::to_extend(&written, vec![FORMAT]) {
            Ok(bytes) => Sealed::new(bytes),
            // Text and an enum into a growing vector: nothing here can fail.
            Err(error) => unreachable!("a reference always serialises: {error}"),
        }
    }

    /// Reads what [`seal`](Self::seal) wrote.
    ///
    /// # Errors
    /// [`ReferenceError`]: the entry must then not be sent, least of all unsigned. Never a panic, whatever the bytes are.
    pub fn open(sealed: &Sealed) -> Result<Self, ReferenceError> {
        let body = match sealed.expose() {
            [] => return Err(ReferenceError::Missing),
            [FORMAT, body @ ..] => body,
            [other, ..] => return Err(ReferenceError::UnknownFormat(*other)),
        };
        match postcard::take_from_bytes::<Written<'_>>(body) {
            Ok((written, [])) => Self::new(KeyName::new(written.key)?, written.scheme, written.key_id),
            Ok(_) | Err(_) => Err(ReferenceError::Damaged),
        }
    }
}

/// Why there is no usable signing reference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum ReferenceError {
    /// The entry carries none.
    #[error("the entry carries no signing reference")]
    Missing,
    /// Another version wrote it.
    #[error("the signing reference has format {0}, this version reads format {FORMAT}: let a newer version deliver it")]
    UnknownFormat(u8),
    /// Its bytes are no reference.
    #[error("the bytes of the signing reference are damaged")]
    Damaged,
    /// The name of the key cannot be one.
    #[error("a key name is 1 to {max} bytes of text without control characters, this one has {bytes} bytes", max = KeyName::BYTES_MAX)]
    KeyName {
        /// Its length.
        bytes: usize,
    },
    /// The key id cannot be written into a header.
    #[error(
        "a key id is an absolute URL of at most {max} bytes in visible ASCII without quotes and backslashes, this one has {bytes} bytes",
        max = SigningReference::KEY_ID_BYTES_MAX
    )]
    KeyId {
        /// Its length.
        bytes: usize,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reference() -> SigningReference {
        let name = KeyName::new("ada").expect("a name");
        SigningReference::new(name, Scheme::Rfc9421, "https://a.example/ada#k").expect("a reference")
    }

    #[test]
    fn the_bytes_of_a_reference_are_pinned() {
        let sealed = reference().seal();
        assert_eq!(sealed.expose().escape_ascii().to_string(), r"\x01\x03ada\x01\x17https://a.example/ada#k");
    }

    #[test]
    fn another_version_is_a_typed_error() {
        let mut bytes = reference().seal().expose().to_vec();
        bytes[0] = 2;
        assert_eq!(SigningReference::open(&Sealed::new(bytes)), Err(ReferenceError::UnknownFormat(2)));
        assert_eq!(SigningReference::open(&Sealed::default()), Err(ReferenceError::Missing));
    }

    #[test]
    fn trailing_bytes_are_damage() {
        let mut bytes = reference().seal().expose().to_vec();
        bytes.push(0);
        assert_eq!(SigningReference::open(&Sealed::new(bytes)), Err(ReferenceError::Damaged));
    }

    #[test]
    fn a_key_id_cannot_leave_its_quotes() {
        for key_id in
            ["https://a.example/\"", "https://a.example/\\", "https://a.example/\r\nx: y", "/relative", "https://ä.example/"]
        {
            let made = SigningReference::new(KeyName::new("ada").expect("a name"), Scheme::Cavage, key_id);
            assert!(matches!(made, Err(ReferenceError::KeyId { .. })), "{key_id}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_reference_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80), tagged: bool) {
            let bytes = if tagged { [&[FORMAT][..], &bytes].concat() } else { bytes };
            if let Ok(read) = SigningReference::open(&Sealed::new(bytes)) {
                prop_assert_eq!(SigningReference::open(&read.seal()), Ok(read));
            }
        }
    }
}
