//! A running digest of what happened.

use std::fmt;

use crate::mix::{K0, K1, K2, K3, avalanche, fold, word};

/// A chain of everything fed to it, in order, in 128 bits: two runs with equal digests did the same.
///
/// It is *not cryptographic*: nobody is trying to forge a simulation. Each word goes through a 128-bit product whose halves
/// are folded together, in a Feistel step that loses nothing of the state. The values are pinned by a golden test and are
/// the same on every machine; changing them invalidates recorded runs.
///
/// ```
/// use restante_engine::Digest;
/// let mut digest = Digest::new();
/// digest.str("claim");
/// digest.u64(3);
/// assert_eq!(digest.to_string(), format!("{:032x}", digest.value()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    left: u64,
    right: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    /// The digest of nothing.
    pub const fn new() -> Self {
        Self { left: K0, right: K1 }
    }

    /// Feeds one number.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        let mixed = self.left ^ value;
        (self.left, self.right) = (self.right.wrapping_add(fold(mixed ^ K3, K2)), mixed.rotate_left(23));
    }

    /// Feeds bytes. Their count is part of it: `"ab", "c"` and `"a", "bc"` differ.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        let (blocks, rest) = bytes.as_chunks::<64>();
        if !blocks.is_empty() {
            // Four independent lanes, so that the multiplications overlap.
            let mut lanes = [K0, K1, K2, K3];
            for block in blocks {
                let (pairs, _) = block.as_chunks::<16>();
                for (lane, pair) in lanes.iter_mut().zip(pairs) {
                    *lane = fold(*lane ^ word(&pair[..8]), word(&pair[8..]) ^ K2).wrapping_add(lane.rotate_left(29));
                }
            }
            for lane in lanes {
                self.u64(lane);
            }
        }
        for eight in rest.chunks(8) {
            self.u64(word(eight));
        }
    }

    /// Feeds text, as its UTF-8 bytes.
    pub fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// The digest so far; feeding may go on.
    pub fn value(&self) -> u128 {
        let high = avalanche(self.left ^ fold(self.right ^ K0, K3));
        let low = avalanche(self.right.wrapping_add(high));
        (u128::from(high) << 64) | u128::from(low)
    }
}

impl fmt::Display for Digest {
    /// 32 lower-case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.value())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Digest;

    fn of(feed: impl FnOnce(&mut Digest)) -> u128 {
        let mut digest = Digest::new();
        feed(&mut digest);
        digest.value()
    }

    #[test]
    fn golden() {
        let long: Vec<u8> = (0..=255).cycle().take(1_403).collect();
        let values = [
            of(|_| {}),
            of(|digest| digest.u64(0)),
            of(|digest| digest.u64(u64::MAX)),
            of(|digest| digest.str("poste restante")),
            of(|digest| digest.bytes(&long)),
        ]
        .map(|value| format!("{value:032x}"));
        let pinned = [
            "dc93da24e97acdbb5920df44ef0411ee",
            "7d73025548c7b5421c00f0d269cadfe9",
            "64fff5f39ffc37c7fc542be919627202",
            "3febdcda80345d68e2f8b3f2e4f8a2e6",
            "6096968056a7f95292b3338cb456f510",
        ];
        assert_eq!(values, pinned);
    }

    #[test]
    fn lengths_and_order_count() {
        assert_ne!(of(|digest| digest.bytes(&[])), of(|_| {}));
        assert_ne!(of(|digest| digest.bytes(&[0])), of(|digest| digest.bytes(&[0, 0])));
        let pair = |a: &'static str, b: &'static str| {
            of(|digest| {
                digest.str(a);
                digest.str(b);
            })
        };
        assert_ne!(pair("ab", "c"), pair("a", "bc"));
        assert_ne!(pair("a", "b"), pair("b", "a"));
    }

    proptest! {
        #[test]
        fn every_bit_counts(mut bytes in proptest::collection::vec(any::<u8>(), 1..300), at in any::<prop::sample::Index>(), bit in 0..8_u32) {
            let before = of(|digest| digest.bytes(&bytes));
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            let after = of(|digest| digest.bytes(&bytes));
            // 128 fair coins: fewer than 24 heads, or more than 104, come once in 10^12 throws.
            prop_assert!((24..=104).contains(&(before ^ after).count_ones()));
        }
    }
}
