//! Integer mixers shared by keys, scores and digests. They are part of what a seed means: changing one changes every seed.

/// The first words of the fraction of pi: odd constants without structure, none of which can be eight bytes of UTF-8 text.
pub(crate) const K0: u64 = 0x243f_6a88_85a3_08d3;
pub(crate) const K1: u64 = 0x1319_8a2e_0370_7345;
pub(crate) const K2: u64 = 0xa409_3822_299f_31d1;
pub(crate) const K3: u64 = 0x082e_fa98_ec4e_6c89;

/// The 128-bit product of `a` and `b`, its halves folded together.
#[inline]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product as u64) ^ ((product >> 64) as u64)
}

/// A bijection of 64-bit words in which every input bit reaches every output bit (the finaliser of SplitMix64).
#[inline]
pub(crate) const fn avalanche(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Up to eight bytes as a little-endian word, zero-padded.
#[inline]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    // Two reads that overlap put a short text together faster than a copy into a padded buffer does.
    let four = |at: usize| u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    let one = |at: usize| u64::from(bytes[at]) << (8 * at);
    match bytes.len() {
        0 => 0,
        len @ 1..=3 => one(0) | one(len / 2) | one(len - 1),
        len @ 4..=7 => four(0) | four(len - 4) << (8 * (len - 4)),
        _ => four(0) | four(4) << 32,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_padded_with_zeros() {
        let bytes = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8];
        for len in 0..=8 {
            let mut padded = [0; 8];
            padded[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(super::word(&bytes[..len]), u64::from_le_bytes(padded), "{len} bytes");
        }
    }
}
