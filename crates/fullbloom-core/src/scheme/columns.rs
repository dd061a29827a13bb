//! Scheme 2, `columns`: one 512-bit line per key, T distinct positions in each of its four columns.
//!
//! A line is four columns of 128 bits; column `j` is word `j` (bits 0..64) and word `j + 4`. With
//! `h` the hash of the key and `&` masking to 7 bits:
//!
//! ```text
//! line = fastrange(h, num_lines)                               top bits of h
//! g    = h * M1 mod 2^64,  g' = h * M2 mod 2^64
//! p1_j = g  >> (57 - 7j) &                                     1st position, any of 128
//! d2_j = max(g >> (29 - 7j) &, 1),         p2 = p1 ^ d2        2nd, differs from the 1st
//! e_j  = 1 + min(g' >> (57 - 7j) &, 125),
//! d3_j = e + (e >= d2 ? 1 : 0),            p3 = p1 ^ d3        3rd, differs from both
//! ```
//!
//! k = 4T, T in 1..=3. Why columns: they fit two 256-bit registers without a gather, and distinct
//! positions cost less space than free ones: 10.07, 15.64 and 21.99 bits per key at 1, 0.1 and
//! 0.01 % (one bit a 64-bit word: 10.10, 15.72, 23.61; the Parquet block: 10.53, 16.89, 26.34).
//! Why the multiplications: the line has used up the top bits of `h`; the products' upper 56 bits
//! depend on the rest.

use super::block::{Widest, widest};
use super::pattern::LineScheme;
use super::range::fastrange;
use crate::cells::LINE_WORDS;

/// Odd multipliers with good spectra (Steele and Vigna, "Computationally easy, spectrally good
/// multipliers for congruential pseudorandom number generators", 2021).
const M1: u64 = 0xd134_2543_de82_ef95;
const M2: u64 = 0xaf25_1af3_b0f0_25b5;

/// Largest T of the scheme.
pub const MAX_PER_COLUMN: u32 = 3;

/// The scheme with `T` positions per column.
#[derive(Clone, Copy, Debug)]
pub struct Columns<const T: usize>;

#[rustfmt::skip] // one arm a line
/// Runs `$work` with the scheme of `$per_column` positions per column as type `$S`.
macro_rules! by_columns {
    ($per_column:expr, $S:ident => $work:expr) => {
        match $per_column {
            1 => { type $S = $crate::scheme::columns::Columns<1>; $work }
            2 => { type $S = $crate::scheme::columns::Columns<2>; $work }
            _ => { type $S = $crate::scheme::columns::Columns<3>; $work }
        }
    };
}
pub(crate) use by_columns;

impl<const T: usize> LineScheme for Columns<T> {
    type Words = [u64; LINE_WORDS];
    type Registers = [Widest; widest(LINE_WORDS)];

    #[inline(always)]
    fn line(hash: u64, lines: u64) -> u64 {
        fastrange(hash, lines)
    }

    #[inline(always)]
    fn words(hash: u64) -> Self::Words {
        let (g, g2) = (hash.wrapping_mul(M1), hash.wrapping_mul(M2));
        let mut words = [0u64; LINE_WORDS];
        for j in 0..4 {
            let mut set = |p: u64| {
                // A position is in the low or the high word of its column, never both: no branch.
                words[j] |= if p < 64 { 1 << p } else { 0 };
                words[j + 4] |= if p < 64 { 0 } else { 1 << (p & 63) };
            };
            let p1 = (g >> (57 - 7 * j)) & 127;
            let d2 = ((g >> (29 - 7 * j)) & 127).max(1);
            set(p1);
            if T >= 2 {
                set(p1 ^ d2);
            }
            if T >= 3 {
                let e = 1 + ((g2 >> (57 - 7 * j)) & 127).min(125);
                set(p1 ^ (e + u64::from(e >= d2)));
            }
        }
        words.map(u64::to_le)
    }

    // Four columns in the four 64-bit lanes of a register; low words in one, high in another.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn registers(hash: u64) -> Self::Registers {
        use std::arch::x86_64::*;
        // SAFETY: register arithmetic only; AVX2 by the caller's promise.
        unsafe {
            let seven = _mm256_set1_epi64x(127);
            let first = _mm256_setr_epi64x(57, 50, 43, 36);
            let second = _mm256_setr_epi64x(29, 22, 15, 8);
            let one = _mm256_set1_epi64x(1);
            let half = _mm256_set1_epi64x(64);
            let g = _mm256_set1_epi64x(hash.wrapping_mul(M1) as i64);
            let p1 = _mm256_and_si256(_mm256_srlv_epi64(g, first), seven);
            // A shift count of 64 or more yields 0, and so does the wrapped one below 64.
            let mut low = _mm256_sllv_epi64(one, p1);
            let mut high = _mm256_sllv_epi64(one, _mm256_sub_epi64(p1, half));
            if T >= 2 {
                let x2 = _mm256_and_si256(_mm256_srlv_epi64(g, second), seven);
                let d2 = _mm256_max_epu32(x2, one);
                let p2 = _mm256_xor_si256(p1, d2);
                low = _mm256_or_si256(low, _mm256_sllv_epi64(one, p2));
                high = _mm256_or_si256(high, _mm256_sllv_epi64(one, _mm256_sub_epi64(p2, half)));
                if T >= 3 {
                    let g2 = _mm256_set1_epi64x(hash.wrapping_mul(M2) as i64);
                    let x3 = _mm256_and_si256(_mm256_srlv_epi64(g2, first), seven);
                    let e = _mm256_add_epi64(_mm256_min_epu32(x3, _mm256_set1_epi64x(125)), one);
                    // e + (e >= d2) = e + 1 + (d2 > e ? -1 : 0)
                    let d3 = _mm256_add_epi64(_mm256_add_epi64(e, one), _mm256_cmpgt_epi64(d2, e));
                    let p3 = _mm256_xor_si256(p1, d3);
                    low = _mm256_or_si256(low, _mm256_sllv_epi64(one, p3));
                    high = _mm256_or_si256(high, _mm256_sllv_epi64(one, _mm256_sub_epi64(p3, half)));
                }
            }
            [low, high]
        }
    }

    // Columns 0, 1 and 2, 3 in the lanes of two registers, low words in the first two, high in the others.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    #[inline(always)]
    unsafe fn registers(hash: u64) -> Self::Registers {
        use std::arch::aarch64::*;
        // SAFETY: register arithmetic; the two-word loads read local arrays.
        unsafe {
            let mut block = [vdupq_n_u64(0); 4];
            for pair in 0..2 {
                let lanes = |first: i64| {
                    let counts = [14 * pair - first, 14 * pair + 7 - first];
                    vld1q_s64(counts.as_ptr())
                };
                let (seven, one) = (vdupq_n_u64(127), vdupq_n_u64(1));
                let half = vdupq_n_s64(64);
                // USHL shifts right by a negative count and yields 0 for counts outside -63..=63.
                let low_bit = |p: uint64x2_t| vshlq_u64(one, vreinterpretq_s64_u64(p));
                let high_bit = |p: uint64x2_t| vshlq_u64(one, vsubq_s64(vreinterpretq_s64_u64(p), half));
                let at_most = |x: uint64x2_t, top: u64| {
                    let top = vdupq_n_u64(top);
                    vbslq_u64(vcgtq_u64(x, top), top, x)
                };
                let g = vdupq_n_u64(hash.wrapping_mul(M1));
                let p1 = vandq_u64(vshlq_u64(g, lanes(57)), seven);
                let (mut low, mut high) = (low_bit(p1), high_bit(p1));
                if T >= 2 {
                    let x2 = vandq_u64(vshlq_u64(g, lanes(29)), seven);
                    let d2 = vbslq_u64(vceqzq_u64(x2), one, x2);
                    let p2 = veorq_u64(p1, d2);
                    (low, high) = (vorrq_u64(low, low_bit(p2)), vorrq_u64(high, high_bit(p2)));
                    if T >= 3 {
                        let g2 = vdupq_n_u64(hash.wrapping_mul(M2));
                        let x3 = vandq_u64(vshlq_u64(g2, lanes(57)), seven);
                        let e = vaddq_u64(at_most(x3, 125), one);
                        // A comparison that holds is all ones, that is -1.
                        let d3 = vsubq_u64(e, vcgeq_u64(e, d2));
                        let p3 = veorq_u64(p1, d3);
                        (low, high) = (vorrq_u64(low, low_bit(p3)), vorrq_u64(high, high_bit(p3)));
                    }
                }
                (block[pair as usize], block[pair as usize + 2]) = (low, high);
            }
            block
        }
    }

    // A lane has no shift of its own, so the bits of each position are read from a table, the low and the high word of
    // its column in one register. In a filter of 1.2 MB a lookup takes 10 ns instead of 16 with words, an insertion 12
    // instead of 18 (Node 20, without the hash).
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    unsafe fn registers(hash: u64) -> Self::Registers {
        use std::arch::wasm32::*;
        // SAFETY: a position is below 128, and each has 16 bytes of the table.
        let bits = |p: u64| unsafe { v128_load(POSITIONS.as_ptr().add(p as usize).cast()) };
        let (g, g2) = (hash.wrapping_mul(M1), hash.wrapping_mul(M2));
        let [a, b, c, d] = [0, 1, 2, 3].map(|j| {
            let p1 = (g >> (57 - 7 * j)) & 127;
            let mut column = bits(p1);
            if T >= 2 {
                let x2 = (g >> (29 - 7 * j)) & 127;
                let d2 = x2 | u64::from(x2 == 0);
                column = v128_or(column, bits(p1 ^ d2));
                if T >= 3 {
                    let e = 1 + ((g2 >> (57 - 7 * j)) & 127).min(125);
                    column = v128_or(column, bits(p1 ^ (e + u64::from(e >= d2))));
                }
            }
            column
        });
        [
            i64x2_shuffle::<0, 2>(a, b),
            i64x2_shuffle::<0, 2>(c, d),
            i64x2_shuffle::<1, 3>(a, b),
            i64x2_shuffle::<1, 3>(c, d),
        ]
    }

    #[cfg(not(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little"),
        all(target_arch = "wasm32", target_feature = "simd128")
    )))]
    #[inline(always)]
    unsafe fn registers(hash: u64) -> Self::Registers {
        Self::words(hash)
    }
}

/// The bit of each position of a column, in its low or in its high word.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
static POSITIONS: [[u64; 2]; 128] = {
    let (mut positions, mut p) = ([[0; 2]; 128], 0);
    while p < 128 {
        positions[p][p >> 6] = 1 << (p & 63);
        p += 1;
    }
    positions
};
