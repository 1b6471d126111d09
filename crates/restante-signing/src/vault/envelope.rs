//! The sealed record: format, the master key's number and check value, nonce, ciphertext.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format, 1 |
//! | 4 | number of the master key, big-endian |
//! | 8 | check value of the master key |
//! | 24 | nonce, random |
//! | rest | form of the private key and its DER, encrypted with XChaCha20-Poly1305 |
//!
//! Everything before the nonce and the record's own store key are associated data, so a record opens only where it was put.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key as AeadKey, XChaCha20Poly1305, XNonce};
use restante_kv::{Key, Value};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::master::{CHECK_BYTES, MasterKey, MasterKeys};

const FORMAT: u8 = 1;
const HEADER_BYTES: usize = 1 + 4 + CHECK_BYTES;
const NONCE_BYTES: usize = 24;

/// Why a record does not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unopened {
    Format(u8),
    /// No master key has this number.
    NoMasterKey(u32),
    /// The master key of this number is another one than the one that sealed.
    OtherMasterKey(u32),
    Tampered,
}

/// What stands before the nonce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) number: u32,
    check: [u8; CHECK_BYTES],
}

impl Header {
    pub(super) fn read(record: &Value) -> Result<Self, Unopened> {
        match record.as_bytes() {
            [FORMAT, n0, n1, n2, n3, rest @ ..] => {
                let (check, _) = rest.split_first_chunk::<CHECK_BYTES>().ok_or(Unopened::Tampered)?;
                Ok(Self { number: u32::from_be_bytes([*n0, *n1, *n2, *n3]), check: *check })
            }
            [] | [FORMAT, ..] => Err(Unopened::Tampered),
            [other, ..] => Err(Unopened::Format(*other)),
        }
    }

    /// Whether `master` sealed this record.
    pub(super) fn is_of(&self, master: &MasterKey) -> bool {
        self.number == master.number() && self.check == master.check()
    }

    fn write(master: &MasterKey) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[0] = FORMAT;
        header[1..5].copy_from_slice(&master.number().to_be_bytes());
        header[5..].copy_from_slice(&master.check());
        header
    }
}

/// Seals `plaintext` for the place `key`. `None` when the system gives no random numbers.
pub(super) fn seal(master: &MasterKey, key: &Key, plaintext: &[u8]) -> Option<Value> {
    let header = Header::write(master);
    let mut nonce = [0; NONCE_BYTES];
    SystemRandom::new().fill(&mut nonce).ok()?;
    let aad = associated_data(&header, key);
    // The cipher refuses only what is longer than 256 GiB.
    let sealed = cipher(master).encrypt(&XNonce::from(nonce), Payload { msg: plaintext, aad: &aad }).ok()?;
    Some(Value::from([&header[..], &nonce, &sealed].concat()))
}

/// Opens the record under `key`.
pub(super) fn open(masters: &MasterKeys, key: &Key, record: &Value) -> Result<Zeroizing<Vec<u8>>, Unopened> {
    let header = Header::read(record)?;
    let master = masters.by_number(header.number).ok_or(Unopened::NoMasterKey(header.number))?;
    if !header.is_of(master) {
        return Err(Unopened::OtherMasterKey(header.number));
    }
    let (head, rest) = record.as_bytes().split_at_checked(HEADER_BYTES).ok_or(Unopened::Tampered)?;
    let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(Unopened::Tampered)?;
    let aad = associated_data(head, key);
    let opened = cipher(master).decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: &aad });
    opened.map(Zeroizing::new).map_err(|_| Unopened::Tampered)
}

fn cipher(master: &MasterKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&AeadKey::from(*master.bytes()))
}

/// The header has a fixed length, so header and place cannot run into each other.
fn associated_data(header: &[u8], key: &Key) -> Vec<u8> {
    [header, key.as_bytes()].concat()
}
