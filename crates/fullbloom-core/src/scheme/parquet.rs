//! Scheme 3, `parquet`: the split block of Parquet, Impala and Kudu, bit for bit.
//!
//! A block is 256 bits, eight 32-bit lanes; `block = ((h >> 32) * num_blocks) >> 32`, and lane `i`
//! has bit `(low32(h) * SALT[i] mod 2^32) >> 27` set (Apache Parquet format, BloomFilter.md; Apple,
//! "Split block Bloom filters", arXiv 2101.01719). Fed with XXH64 (seed 0) of a value's plain
//! encoding through the `*_hashed` methods, the payload is a Parquet filter's bitset.

use super::block::{Widest, widest};
use super::pattern::LineScheme;

/// The salts of the format's specification.
const SALT: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// Words of a block.
pub const BLOCK_WORDS: usize = 4;

/// The scheme.
#[derive(Clone, Copy, Debug)]
pub struct Parquet;

impl LineScheme for Parquet {
    type Words = [u64; BLOCK_WORDS];
    type Registers = [Widest; widest(BLOCK_WORDS)];

    #[inline(always)]
    fn line(hash: u64, lines: u64) -> u64 {
        // More than 2^32 blocks (128 GiB) are refused at construction: the product cannot wrap.
        (hash >> 32).wrapping_mul(lines) >> 32
    }

    #[inline(always)]
    fn words(hash: u64) -> Self::Words {
        let bit = |salt: u32| (hash as u32).wrapping_mul(salt) >> 27;
        let word = |i: usize| (1u64 << bit(SALT[2 * i])) | (1u64 << (32 + bit(SALT[2 * i + 1])));
        std::array::from_fn(|i| word(i).to_le())
    }

    // The eight lanes in one register.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn registers(hash: u64) -> Self::Registers {
        use std::arch::x86_64::*;
        // SAFETY: register arithmetic and one load of the salts; AVX2 by the caller's promise.
        unsafe {
            let salts = _mm256_loadu_si256(SALT.as_ptr().cast());
            let spread = _mm256_mullo_epi32(salts, _mm256_set1_epi32(hash as u32 as i32));
            [_mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(spread))]
        }
    }

    // Four lanes in each of two registers.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    #[inline(always)]
    unsafe fn registers(hash: u64) -> Self::Registers {
        use std::arch::aarch64::*;
        // SAFETY: register arithmetic and two loads of four salts each.
        unsafe {
            let mut block = [vdupq_n_u64(0); 2];
            for (i, register) in block.iter_mut().enumerate() {
                let salts = vld1q_u32(SALT.as_ptr().add(4 * i));
                let bits = vshrq_n_u32::<27>(vmulq_n_u32(salts, hash as u32));
                *register = vreinterpretq_u64_u32(vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(bits)));
            }
            block
        }
    }

    // A lane has no shift of its own, so words are put into registers.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    unsafe fn registers(hash: u64) -> Self::Registers {
        use std::arch::wasm32::u64x2;
        let [a, b, c, d] = Self::words(hash);
        [u64x2(a, b), u64x2(c, d)]
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
