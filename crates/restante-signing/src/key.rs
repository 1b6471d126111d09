//! Private keys: as bytes to be sealed, and prepared to sign. Neither can be printed.

use std::fmt;

use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{Ed25519KeyPair, RSA_PKCS1_SHA256};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

/// What a key can sign with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KeyKind {
    /// RSA, 2048 to 4096 bits.
    Rsa,
    /// Ed25519.
    Ed25519,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rsa => "RSA",
            Self::Ed25519 => "Ed25519",
        })
    }
}

/// How the bytes of a private key are to be read. The numbers stand in sealed records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Form {
    Pkcs8 = 1,
    /// `RSA PRIVATE KEY`, as older software exports it.
    Pkcs1 = 2,
}

/// A private key in transit to a vault: bytes that are known to make a usable key, wiped when dropped.
///
/// It cannot be printed, shown or serialised; `Debug` tells its kind.
///
/// ```
/// use restante_signing::{KeyKind, PrivateKey};
///
/// // The test key that RFC 9421 publishes.
/// let pem = "-----BEGIN PRIVATE KEY-----
/// MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
/// -----END PRIVATE KEY-----";
/// let key = PrivateKey::from_pem(pem)?;
/// assert_eq!(key.kind(), KeyKind::Ed25519);
/// assert_eq!(format!("{key:?}"), "PrivateKey(Ed25519)");
/// # Ok::<(), restante_signing::KeyError>(())
/// ```
///
/// ```compile_fail
/// fn show(key: &restante_signing::PrivateKey) -> String { key.to_string() }
/// ```
///
/// ```compile_fail
/// fn serialised(key: &restante_signing::PrivateKey) -> impl serde::Serialize { key }
/// ```
pub struct PrivateKey {
    form: Form,
    der: Zeroizing<Vec<u8>>,
    kind: KeyKind,
}

impl PrivateKey {
    /// A key from PEM: `PRIVATE KEY` (PKCS #8) or `RSA PRIVATE KEY` (PKCS #1). The text itself is the caller's to wipe.
    ///
    /// # Errors
    /// [`KeyError`] when there is no such section, or its key cannot sign.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let mut der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| KeyError::NotPem)?;
        let form = match &der {
            PrivateKeyDer::Pkcs8(_) => Form::Pkcs8,
            PrivateKeyDer::Pkcs1(_) => Form::Pkcs1,
            _ => return Err(KeyError::UnsupportedKind),
        };
        let made = Self::new(form, der.secret_der());
        der.zeroize();
        made
    }

    /// A key from the DER encoding of a PKCS #8 `PrivateKeyInfo`.
    ///
    /// # Errors
    /// [`KeyError`] when it is none, or its key cannot sign.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self, KeyError> {
        Self::new(Form::Pkcs8, der)
    }

    fn new(form: Form, der: &[u8]) -> Result<Self, KeyError> {
        let kind = prepare(form, der)?.kind();
        Ok(Self { form, der: Zeroizing::new(der.to_vec()), kind })
    }

    /// What it can sign with.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The key, ready to sign.
    ///
    /// # Errors
    /// None in practice: the bytes were found usable before.
    pub fn prepare(&self) -> Result<SigningKey, KeyError> {
        prepare(self.form, &self.der)
    }

    /// What is sealed: a byte for the form, then the key.
    pub(crate) fn to_plaintext(&self) -> Zeroizing<Vec<u8>> {
        let mut plaintext = Zeroizing::new(Vec::with_capacity(1 + self.der.len()));
        plaintext.push(self.form as u8);
        plaintext.extend_from_slice(&self.der);
        plaintext
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.kind)
    }
}

/// The key in what [`PrivateKey::to_plaintext`] made.
pub(crate) fn prepare_plaintext(plaintext: &[u8]) -> Result<SigningKey, KeyError> {
    match plaintext {
        [form, der @ ..] if *form == Form::Pkcs8 as u8 => prepare(Form::Pkcs8, der),
        [form, der @ ..] if *form == Form::Pkcs1 as u8 => prepare(Form::Pkcs1, der),
        _ => Err(KeyError::UnsupportedKind),
    }
}

fn prepare(form: Form, der: &[u8]) -> Result<SigningKey, KeyError> {
    let rejected = |why: ring::error::KeyRejected| KeyError::Rejected { why: why.to_string() };
    match form {
        Form::Pkcs1 => Ok(SigningKey(Prepared::Rsa(Box::new(RsaKeyPair::from_der(der).map_err(rejected)?)))),
        // The public half is optional in PKCS #8, and most tools leave it out for Ed25519: "maybe unchecked" is about that.
        Form::Pkcs8 => match Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            Ok(pair) => Ok(SigningKey(Prepared::Ed25519(pair))),
            Err(_) => Ok(SigningKey(Prepared::Rsa(Box::new(RsaKeyPair::from_pkcs8(der).map_err(rejected)?)))),
        },
    }
}

enum Prepared {
    Rsa(Box<RsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

/// A private key, parsed and ready to sign. It cannot be printed either.
pub struct SigningKey(Prepared);

impl SigningKey {
    /// What it signs with.
    pub fn kind(&self) -> KeyKind {
        match &self.0 {
            Prepared::Rsa(_) => KeyKind::Rsa,
            Prepared::Ed25519(_) => KeyKind::Ed25519,
        }
    }

    /// Signs `message`: RSASSA-PKCS1-v1_5 with SHA-256, or Ed25519.
    ///
    /// # Errors
    /// [`KeyError::NotSigned`] when the system has no random numbers for the blinding of RSA.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        match &self.0 {
            Prepared::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).map_err(|_| KeyError::NotSigned)?;
                Ok(signature)
            }
            Prepared::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.kind())
    }
}

/// Why a private key is of no use. It quotes nothing of the key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum KeyError {
    /// No PEM section that holds a private key.
    #[error("there is no PRIVATE KEY or RSA PRIVATE KEY section in the PEM text (encrypted ones are not read)")]
    NotPem,
    /// A private key of a kind that nothing here signs with.
    #[error("the key is neither RSA nor Ed25519: nothing here signs with it")]
    UnsupportedKind,
    /// The key cannot be used.
    #[error("the key cannot be used ({why}): RSA keys need 2048 to 4096 bits, Ed25519 keys PKCS #8")]
    Rejected {
        /// The cryptographic library's word for it.
        why: String,
    },
    /// The key is good, and yet there is no signature.
    #[error("no signature was made: the system gave no random numbers")]
    NotSigned,
}
