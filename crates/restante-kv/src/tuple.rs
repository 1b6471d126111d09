//! Order-preserving tuple keys: the byte order of two keys is the order of the tuples they were built from.
//!
//! | element | bytes | order |
//! |---|---|---|
//! | `u64` | one length byte (0 to 8), then that many big-endian bytes without leading zeros | numeric |
//! | `bytes`, `str` | the bytes, `0x00` written as `0x01 0x01` and `0x01` as `0x01 0x02`, then `0x00` | bytewise, a prefix first |
//! | `raw` | as they are | bytewise; the width must never vary at that place |
//! | `tag` | one byte, as it is | numeric |
//!
//! No element's encoding is a prefix of another encoding of the same kind, so tuples of one shape keep their order whatever
//! stands behind an element, and [`KeyBuilder::range`] after a whole element finds exactly the tuples that begin with it.
//! (Escaping `0x00` as `0x00 0xFF` before a lone `0x00` would not do: `("", "\xFF")` and `("\0")` would be the same key.)
//! Every tuple has one encoding and [`KeyReader`] refuses any other, so reading and building again gives the same bytes.
//!
//! ```
//! use restante_kv::tuple::{KeyBuilder, KeyReader};
//!
//! let key = KeyBuilder::new(b"app/").tag(b'd').str("inbox.example").u64(300).key();
//! let mut reader = KeyReader::new(key.as_bytes());
//! reader.strip(b"app/")?;
//! assert_eq!(reader.tag()?, b'd');
//! assert_eq!(reader.str()?, "inbox.example");
//! assert_eq!(reader.u64()?, 300);
//! reader.end()?;
//! # Ok::<(), restante_kv::tuple::TupleError>(())
//! ```

use thiserror::Error;

use crate::{Key, KeyRange};

#[cfg(test)]
mod tests;

const END: u8 = 0x00;
const ESCAPE: u8 = 0x01;
const ESCAPED_END: u8 = 0x01;
const ESCAPED_ESCAPE: u8 = 0x02;

/// Builds a key, element by element.
#[derive(Clone, Debug)]
pub struct KeyBuilder {
    buf: Vec<u8>,
}

impl KeyBuilder {
    /// Room for the usual key: no second allocation below it.
    const CAPACITY_BYTES: usize = 64;

    /// A key that begins with `prefix`, copied as it is.
    pub fn new(prefix: &[u8]) -> Self {
        let mut buf = Vec::with_capacity(prefix.len() + Self::CAPACITY_BYTES);
        buf.extend_from_slice(prefix);
        Self { buf }
    }

    /// Appends a number, in 1 to 9 bytes.
    #[must_use]
    pub fn u64(mut self, v: u64) -> Self {
        let skip = (v.leading_zeros() / 8) as usize;
        self.buf.push(8 - skip as u8);
        self.buf.extend_from_slice(&v.to_be_bytes()[skip..]);
        self
    }

    /// Appends bytes of any length.
    #[must_use]
    pub fn bytes(mut self, mut bytes: &[u8]) -> Self {
        while let Some(at) = bytes.iter().position(|&b| b <= ESCAPE) {
            self.buf.extend_from_slice(&bytes[..at]);
            self.buf.extend_from_slice(&[ESCAPE, if bytes[at] == END { ESCAPED_END } else { ESCAPED_ESCAPE }]);
            bytes = &bytes[at + 1..];
        }
        self.buf.extend_from_slice(bytes);
        self.buf.push(END);
        self
    }

    /// Appends text, as its UTF-8 [`bytes`](Self::bytes): no normalisation, no collation.
    #[must_use]
    pub fn str(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Appends bytes as they are, without an end mark: only for elements whose width never varies at that place (an
    /// identity of 16 bytes, a hash). Elements of varying width would lose the order and run into each other.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.buf.extend_from_slice(bytes);
        self
    }

    /// Appends one byte: the kind of a record, or the name of a column.
    #[must_use]
    pub fn tag(mut self, tag: u8) -> Self {
        self.buf.push(tag);
        self
    }

    /// The key.
    pub fn key(self) -> Key {
        Key::from(self.buf)
    }

    /// All keys that begin with what was built so far, that very key included.
    pub fn range(self) -> KeyRange {
        KeyRange::prefix(&self.buf)
    }

    /// What was built so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.buf
    }
}

/// Why a key is not the tuple it was read as. `at` is a position in the key, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum TupleError {
    /// The key ends inside an element, or before it.
    #[error("the key ends at byte {at}, inside or before an element")]
    UnexpectedEnd {
        /// Where the key ends.
        at: usize,
    },
    /// A number's length byte is over 8, or its first byte is 0: no builder writes that.
    #[error("byte {at} does not begin a number")]
    NotANumber {
        /// Where the element begins.
        at: usize,
    },
    /// An escape byte is followed by something that no builder writes.
    #[error("byte {at} is not an escape")]
    BadEscape {
        /// Where the escape begins.
        at: usize,
    },
    /// The element is not UTF-8.
    #[error("the text at byte {at} is not UTF-8")]
    NotUtf8 {
        /// Where the element begins.
        at: usize,
    },
    /// The key does not go on with the bytes that were expected.
    #[error("the key differs from the expected prefix at or after byte {at}")]
    OtherPrefix {
        /// Where the prefix should begin.
        at: usize,
    },
    /// The key goes on after its last element.
    #[error("the key goes on after its last element, at byte {at}")]
    TrailingBytes {
        /// Where the first byte too many stands.
        at: usize,
    },
}

/// Reads a key, element by element. Total: any bytes give an element or a [`TupleError`], never a panic.
///
/// After an error the position is unspecified; the key as a whole is to be refused.
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> KeyReader<'a> {
    /// A reader at the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], TupleError> {
        let taken = self.rest().get(..count).ok_or(TupleError::UnexpectedEnd { at: self.bytes.len() })?;
        self.at += count;
        Ok(taken)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// [`TupleError::UnexpectedEnd`], [`TupleError::NotANumber`].
    pub fn u64(&mut self) -> Result<u64, TupleError> {
        let at = self.at;
        let len = usize::from(self.tag()?);
        if len > 8 {
            return Err(TupleError::NotANumber { at });
        }
        let digits = self.take(len)?;
        if digits.first() == Some(&0) {
            return Err(TupleError::NotANumber { at });
        }
        Ok(digits.iter().fold(0, |v, &digit| v << 8 | u64::from(digit)))
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// [`TupleError::UnexpectedEnd`], [`TupleError::BadEscape`].
    pub fn bytes(&mut self) -> Result<Vec<u8>, TupleError> {
        let mut out = Vec::new();
        loop {
            let rest = self.rest();
            let special = rest.iter().position(|&b| b <= ESCAPE).ok_or(TupleError::UnexpectedEnd { at: self.bytes.len() })?;
            out.extend_from_slice(&rest[..special]);
            self.at += special + 1;
            if rest[special] == END {
                return Ok(out);
            }
            let at = self.at - 1;
            match self.tag()? {
                ESCAPED_END => out.push(END),
                ESCAPED_ESCAPE => out.push(ESCAPE),
                _ => return Err(TupleError::BadEscape { at }),
            }
        }
    }

    /// Reads text.
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes), and [`TupleError::NotUtf8`].
    pub fn str(&mut self) -> Result<String, TupleError> {
        let at = self.at;
        String::from_utf8(self.bytes()?).map_err(|_| TupleError::NotUtf8 { at })
    }

    /// Reads `N` bytes as they are.
    ///
    /// # Errors
    /// [`TupleError::UnexpectedEnd`].
    pub fn raw<const N: usize>(&mut self) -> Result<[u8; N], TupleError> {
        let (taken, _) = self.rest().split_first_chunk::<N>().ok_or(TupleError::UnexpectedEnd { at: self.bytes.len() })?;
        self.at += N;
        Ok(*taken)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`TupleError::UnexpectedEnd`].
    pub fn tag(&mut self) -> Result<u8, TupleError> {
        let [tag] = self.raw::<1>()?;
        Ok(tag)
    }

    /// Passes over `prefix`.
    ///
    /// # Errors
    /// [`TupleError::OtherPrefix`] when the key does not go on with it.
    pub fn strip(&mut self, prefix: &[u8]) -> Result<(), TupleError> {
        if !self.rest().starts_with(prefix) {
            return Err(TupleError::OtherPrefix { at: self.at });
        }
        self.at += prefix.len();
        Ok(())
    }

    /// Asserts that the whole key was read.
    ///
    /// # Errors
    /// [`TupleError::TrailingBytes`].
    pub fn end(&self) -> Result<(), TupleError> {
        if self.rest().is_empty() { Ok(()) } else { Err(TupleError::TrailingBytes { at: self.at }) }
    }
}
