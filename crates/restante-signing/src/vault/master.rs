//! Master keys: what the operator supplies, and under which number.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ring::digest::{SHA256, digest};
use thiserror::Error;
use zeroize::Zeroizing;

/// Length of a master key in bytes.
pub(super) const KEY_BYTES: usize = 32;

/// Length of the check value that tells two master keys apart.
pub(super) const CHECK_BYTES: usize = 8;

/// A key that the operator supplies, and the number that sealed records name it by. Wiped when dropped; it cannot be printed.
///
/// A number belongs to one key for ever: give the next key the next number.
///
/// ```
/// use restante_signing::MasterKey;
///
/// let key = MasterKey::from_text(1, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")?;
/// assert_eq!(format!("{key:?}"), "MasterKey(1)");
/// # Ok::<(), restante_signing::MasterKeyError>(())
/// ```
///
/// ```compile_fail
/// fn show(key: &restante_signing::MasterKey) -> String { key.to_string() }
/// ```
pub struct MasterKey {
    number: u32,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    check: [u8; CHECK_BYTES],
}

impl MasterKey {
    /// From 32 random bytes.
    pub fn from_bytes(number: u32, bytes: [u8; KEY_BYTES]) -> Self {
        let bytes = Zeroizing::new(bytes);
        // Of a random key of full length, a hash tells nothing but whether two of them are the same.
        let named = Zeroizing::new([&b"restante-signing master key\0"[..], &bytes[..]].concat());
        let mut check = [0; CHECK_BYTES];
        check.copy_from_slice(&digest(&SHA256, &named).as_ref()[..CHECK_BYTES]);
        Self { number, bytes, check }
    }

    /// From text: 64 hexadecimal digits, or 32 bytes in base64. White space around it is ignored.
    ///
    /// # Errors
    /// [`MasterKeyError::Malformed`], which quotes nothing of the text.
    pub fn from_text(number: u32, text: &str) -> Result<Self, MasterKeyError> {
        /// One that minds no missing padding: shells and editors lose it.
        const BASE64: GeneralPurpose =
            GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));
        let text = text.trim();
        // 64 characters of base64 would be 48 bytes, so no text can be read both ways.
        let decoded = if text.len() == 2 * KEY_BYTES { from_hex(text) } else { BASE64.decode(text).ok().map(Zeroizing::new) };
        let decoded = decoded.ok_or(MasterKeyError::Malformed { number })?;
        let bytes = <[u8; KEY_BYTES]>::try_from(&decoded[..]).map_err(|_| MasterKeyError::Malformed { number })?;
        Ok(Self::from_bytes(number, bytes))
    }

    /// From an environment variable, as [text](Self::from_text).
    ///
    /// # Errors
    /// [`MasterKeyError::Variable`] when it is not set or not text, [`MasterKeyError::Malformed`].
    pub fn from_env(number: u32, variable: &str) -> Result<Self, MasterKeyError> {
        let text = std::env::var(variable).map_err(|_| MasterKeyError::Variable { number, variable: variable.to_owned() })?;
        Self::from_text(number, &Zeroizing::new(text))
    }

    /// From a file, as [text](Self::from_text).
    ///
    /// # Errors
    /// [`MasterKeyError::File`] when it cannot be read, [`MasterKeyError::Malformed`].
    pub fn from_file(number: u32, path: impl AsRef<Path>) -> Result<Self, MasterKeyError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| MasterKeyError::File {
            number,
            path: path.display().to_string(),
            why: error.kind(),
        })?;
        Self::from_text(number, &Zeroizing::new(text))
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }
    pub(super) fn check(&self) -> [u8; CHECK_BYTES] {
        self.check
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.number)
    }
}

fn from_hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digits: Option<Zeroizing<Vec<u8>>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>().map(Zeroizing::new);
    digits
        .map(|digits| Zeroizing::new(digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()))
}

/// The master keys of a vault: one that seals, and any number that still open.
///
/// To change the master key: give every process the new key as an [opening](Self::opening) one, then make it the sealing one
/// everywhere and the old one an opening one, then [rotate](crate::Vault::rotate); when that is complete, drop the old one.
#[derive(Debug)]
pub struct MasterKeys {
    sealing: MasterKey,
    opening: Vec<MasterKey>,
}

impl MasterKeys {
    /// New records are sealed with `sealing`; it opens as well.
    pub fn new(sealing: MasterKey) -> Self {
        Self { sealing, opening: Vec::new() }
    }

    /// Also opens records that were sealed with `key`.
    ///
    /// # Errors
    /// [`MasterKeyError::NumberTwice`] when another key has its number.
    pub fn opening(mut self, key: MasterKey) -> Result<Self, MasterKeyError> {
        if self.by_number(key.number).is_some() {
            return Err(MasterKeyError::NumberTwice { number: key.number });
        }
        self.opening.push(key);
        Ok(self)
    }

    pub(super) fn sealing(&self) -> &MasterKey {
        &self.sealing
    }
    pub(super) fn by_number(&self, number: u32) -> Option<&MasterKey> {
        std::iter::once(&self.sealing).chain(&self.opening).find(|key| key.number == number)
    }
    pub(super) fn numbers(&self) -> Vec<u32> {
        std::iter::once(&self.sealing).chain(&self.opening).map(MasterKey::number).collect()
    }
}

/// Why there is no master key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum MasterKeyError {
    /// The text is no key.
    #[error("master key {number} is malformed: it needs 64 hexadecimal digits, or 32 bytes in base64")]
    Malformed {
        /// The number it should have.
        number: u32,
    },
    /// The environment has none.
    #[error("master key {number}: the environment variable {variable} is not set, or is not text")]
    Variable {
        /// The number it should have.
        number: u32,
        /// The variable.
        variable: String,
    },
    /// The file cannot be read.
    #[error("master key {number}: {path} cannot be read ({why})")]
    File {
        /// The number it should have.
        number: u32,
        /// The file.
        path: String,
        /// What kept it from being read.
        why: std::io::ErrorKind,
    },
    /// Two keys have one number.
    #[error("two master keys have the number {number}: give each its own, and keep the numbers that sealed records name")]
    NumberTwice {
        /// The number.
        number: u32,
    },
}
