//! The identity of a decision: a stable 64-bit hash of its site and key.

use std::fmt::{self, Write};

use crate::mix::{K0, K1, K2, K3, fold, word};

/// Between site and key, as in a file of fields; neither contains it.
const SEPARATOR: &str = "\u{1f}";
const BUFFER_LEN: usize = 64;
const LANE_LEN: usize = 16;

/// Hashes text as it is formatted, without allocating; how the text is cut into pieces does not matter.
///
/// `state` starts as `K0`. Each 16 bytes, read as two little-endian words `x, y` (the last zero-padded), make it
/// `fold(x ^ K1, y ^ state)`. The result is `fold(state ^ K2, length ^ K3)`.
pub(super) struct KeyHasher {
    state: u64,
    /// Bytes absorbed from full buffers.
    absorbed: u64,
    filled: usize,
    buffer: [u8; BUFFER_LEN],
}

impl KeyHasher {
    #[inline]
    pub(super) fn new() -> Self {
        Self { state: K0, absorbed: 0, filled: 0, buffer: [0; BUFFER_LEN] }
    }

    #[inline]
    fn absorb(&mut self, len: usize) {
        for lane in self.buffer[..len].as_chunks::<LANE_LEN>().0 {
            self.state = absorb_lane(self.state, word(&lane[..8]), word(&lane[8..]));
        }
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        match self.buffer.get_mut(self.filled..self.filled + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.filled += bytes.len();
            }
            None => self.long(bytes),
        }
    }

    #[cold]
    fn long(&mut self, mut bytes: &[u8]) {
        while self.filled + bytes.len() > BUFFER_LEN {
            let (now, later) = bytes.split_at(BUFFER_LEN - self.filled);
            self.buffer[self.filled..].copy_from_slice(now);
            self.absorb(BUFFER_LEN);
            self.absorbed += BUFFER_LEN as u64;
            self.filled = 0;
            bytes = later;
        }
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        self.filled = bytes.len();
    }

    #[inline]
    pub(super) fn finish(&mut self) -> u64 {
        let end = self.filled.next_multiple_of(LANE_LEN);
        self.buffer[self.filled..end].fill(0);
        self.absorb(end);
        result(self.state, self.absorbed + self.filled as u64)
    }
}

#[inline]
fn absorb_lane(state: u64, x: u64, y: u64) -> u64 {
    fold(x ^ K1, y ^ state)
}

#[inline]
fn result(state: u64, length: u64) -> u64 {
    fold(state ^ K2, length ^ K3)
}

impl Write for KeyHasher {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

/// The id of the decision `key` at `site`.
#[inline]
pub(super) fn decision_id(site: &str, key: fmt::Arguments<'_>) -> u64 {
    let mut hasher = KeyHasher::new();
    hasher.text(site);
    hasher.text(SEPARATOR);
    format_into(&mut hasher, key);
    hasher.finish()
}

/// The hash of one formatted text.
#[inline]
pub(super) fn text_hash(text: fmt::Arguments<'_>) -> u64 {
    let mut hasher = KeyHasher::new();
    format_into(&mut hasher, text);
    hasher.finish()
}

/// The hash of a text that is whole already: the same as [`KeyHasher`]'s, without its buffer.
#[inline]
pub(super) fn name_hash(name: &str) -> u64 {
    let mut state = K0;
    for lane in name.as_bytes().chunks(LANE_LEN) {
        let (x, y) = lane.split_at(lane.len().min(LANE_LEN / 2));
        state = absorb_lane(state, word(x), word(y));
    }
    result(state, name.len() as u64)
}

#[inline]
fn format_into(hasher: &mut KeyHasher, text: fmt::Arguments<'_>) {
    match text.as_str() {
        Some(text) => hasher.text(text),
        // A `Display` that fails leaves a shorter text, deterministically; the hasher itself never fails.
        None => {
            let _ = fmt::write(hasher, text);
        }
    }
}
