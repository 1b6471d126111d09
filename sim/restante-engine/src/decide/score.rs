//! Weighted rendezvous in integers: which alternative wins, given one block.

use super::{Alternative, key::name_hash};
use crate::mix::avalanche;

/// Binary places of a score. The greatest, -log2(2^-64) = 64, still fits 64 bits.
const SCORE_BITS: u32 = 57;
const INTERVALS: usize = 256;
/// 1 in Q63.
const ONE: u64 = 1 << 63;
/// log2(e) in Q63.
const LOG2_E: u64 = 0xb8aa_3b29_5c17_f0bc;

/// Per interval of the mantissa, of which `c` is the lower end: log2(c) and 1/c, both in Q63.
static INTERVAL: [(u64, u64); INTERVALS] = {
    let mut table = [(0, 0); INTERVALS];
    let mut i = 0;
    while i < INTERVALS {
        let mantissa = ONE + ((i as u64) << 55);
        table[i] = (log2_by_squaring(mantissa), (((INTERVALS as u128) << 63) / (INTERVALS + i) as u128) as u64);
        i += 1;
    }
    table
};

/// log2 of a mantissa in Q63, 1 <= mantissa < 2, bit by bit. Slow; makes the table.
const fn log2_by_squaring(mut mantissa: u64) -> u64 {
    let mut log2 = 0;
    let mut bit = 62;
    while bit >= 3 {
        let square = (mantissa as u128 * mantissa as u128) >> 63;
        if square >> 64 != 0 {
            log2 |= 1 << bit;
            mantissa = (square >> 1) as u64;
        } else {
            mantissa = square as u64;
        }
        bit -= 1;
    }
    log2
}

/// -log2(u / 2^64) with [`SCORE_BITS`] binary places; `u` = 0 counts as 1.
///
/// The mantissa's interval gives the greater part, four terms of the series of ln(1 + r), r < 1/256, the rest: an error
/// below 2^-41, and below 2^-46 near u = 2^64, where rare alternatives are decided. Never below [`lower_bound`].
#[inline]
pub(super) fn minus_log2(u: u64) -> u64 {
    const fn times(a: u64, b: u64) -> u64 {
        ((a as u128 * b as u128) >> 63) as u64
    }
    let u = u.max(1);
    let zeros = u.leading_zeros();
    let mantissa = u << zeros;
    let (log2_c, inverse_c) = INTERVAL[((mantissa >> 55) & 0xff) as usize];
    let r = times(mantissa & ((1 << 55) - 1), inverse_c);
    // log2(e) (r - r^2/2 + r^3/3 - r^4/4), arranged so that few multiplications wait for each other.
    let scaled = times(r, LOG2_E);
    let tail = times(times(r, r), LOG2_E / 3 - (scaled >> 2));
    let log2_rest = times(r, LOG2_E - (scaled >> 1) + tail);
    let log2_mantissa = (log2_c + log2_rest) >> (63 - SCORE_BITS);
    (u64::from(zeros + 1) << SCORE_BITS).saturating_sub(log2_mantissa).max(lower_bound(u))
}

/// 1 - u / 2^64, rounded down: less than -log2(u / 2^64), and much cheaper.
#[inline]
const fn lower_bound(u: u64) -> u64 {
    (u64::MAX - u) >> (64 - SCORE_BITS)
}

/// The index of the alternative with the smallest -log2(u) / weight, where each name derives its own uniform `u` from the
/// block: avalanche(word 0 + word 1 * hash of the name).
///
/// For each that is an exponential variable of rate `weight`, so an alternative wins in proportion to its weight; and adding
/// one changes only the draws that it wins. Weight 0 never wins; when all weights are 0, the first does.
#[inline]
pub(super) fn winner(block: [u64; 2], alternatives: &[Alternative]) -> usize {
    struct Best {
        index: usize,
        score: u64,
        weight: u32,
        name: u64,
    }
    let mut best: Option<Best> = None;
    for (index, alternative) in alternatives.iter().enumerate() {
        let weight = alternative.weight;
        if weight == 0 {
            continue;
        }
        let name = name_hash(alternative.name);
        let u = avalanche(block[0].wrapping_add(block[1].wrapping_mul(name)));
        if let Some(best) = &best
            && u128::from(lower_bound(u)) * u128::from(best.weight) > u128::from(best.score) * u128::from(weight)
        {
            // It cannot win: most of the rare alternatives end here, without a logarithm.
            continue;
        }
        let score = minus_log2(u);
        let better = best.as_ref().is_none_or(|best| {
            let (this, that) = (u128::from(score) * u128::from(best.weight), u128::from(best.score) * u128::from(weight));
            // A tie is as good as impossible; by name, it still does not depend on the order of the alternatives.
            this < that || (this == that && name < best.name)
        });
        if better {
            best = Some(Best { index, score, weight, name });
        }
    }
    best.map_or(0, |best| best.index)
}
