//! Scheme 3, `parquet`: the split block of Parquet, Impala and Kudu, bit for bit.
//!
//! A block is 256 bits, eight 32-bit lanes; `block = ((h >> 32) * num_blocks) >> 32`, and lane `i`
//! has bit `(low32(h) * SALT[i] mod 2^32) >> 27` set (Apache Parquet format, BloomFilter.md; Apple,
//! "Split block Bloom filters", arXiv 2101.01719). Fed with XXH64 (seed 0) of a value's plain
//! encoding through the `*_hashed` methods, the payload is a Parquet filter's bitset.

use super::lines::{LineKernel, LineScheme};

/// The salts of the format's specification.
const SALT: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// Words of a block.
pub const BLOCK_WORDS: usize = 4;

/// The scheme.
pub struct Parquet;

impl LineScheme for Parquet {
    type Portable = Portable;
    #[cfg(target_arch = "x86_64")]
    type Vector = avx2::Avx2;
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    type Vector = neon::Neon;
    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
    type Vector = Portable;
}

/// Plain Rust.
#[derive(Clone, Copy)]
pub struct Portable;

#[inline(always)]
fn pattern(hash: u64) -> [u64; BLOCK_WORDS] {
    let bit = |salt: u32| (hash as u32).wrapping_mul(salt) >> 27;
    std::array::from_fn(|i| (1u64 << bit(SALT[2 * i])) | (1u64 << (32 + bit(SALT[2 * i + 1]))))
}

impl LineKernel for Portable {
    const WORDS: usize = BLOCK_WORDS;

    #[inline(always)]
    fn line(hash: u64, lines: u64) -> u64 {
        // More than 2^32 blocks (128 GiB) are refused at construction: the product cannot wrap.
        (hash >> 32).wrapping_mul(lines) >> 32
    }

    #[inline(always)]
    unsafe fn contains(line: *const u64, hash: u64) -> bool {
        let mut missing = 0;
        for (i, word) in pattern(hash).iter().enumerate() {
            // SAFETY: the caller gives a block of WORDS words.
            missing |= word.to_le() & !unsafe { *line.add(i) };
        }
        missing == 0
    }

    #[inline(always)]
    unsafe fn add(line: *mut u64, hash: u64) -> bool {
        let mut missing = 0;
        for (i, word) in pattern(hash).iter().enumerate() {
            // SAFETY: the caller gives a block of WORDS words that nobody else uses.
            let cell = unsafe { &mut *line.add(i) };
            missing |= word.to_le() & !*cell;
            *cell |= word.to_le();
        }
        missing != 0
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Portable, SALT};
    use crate::scheme::lines::LineKernel;
    use std::arch::x86_64::*;

    /// The eight lanes in one register.
    #[derive(Clone, Copy)]
    pub struct Avx2;

    /// # Safety
    /// AVX2 must be present.
    #[inline(always)]
    unsafe fn pattern(hash: u64) -> __m256i {
        // SAFETY: register arithmetic and one load of the salts; AVX2 by the caller's promise.
        unsafe {
            let salts = _mm256_loadu_si256(SALT.as_ptr().cast());
            let spread = _mm256_mullo_epi32(salts, _mm256_set1_epi32(hash as u32 as i32));
            _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(spread))
        }
    }

    impl LineKernel for Avx2 {
        const WORDS: usize = Portable::WORDS;

        #[inline(always)]
        fn line(hash: u64, lines: u64) -> u64 {
            Portable::line(hash, lines)
        }

        #[inline(always)]
        unsafe fn contains(line: *const u64, hash: u64) -> bool {
            // SAFETY: a block is 32 bytes, 32-byte aligned; AVX2 by the caller's promise.
            unsafe { _mm256_testc_si256(_mm256_load_si256(line.cast()), pattern(hash)) != 0 }
        }

        #[inline(always)]
        unsafe fn add(line: *mut u64, hash: u64) -> bool {
            // SAFETY: as in `contains`; nobody else uses the block.
            unsafe {
                let (block, bits) = (line.cast::<__m256i>(), pattern(hash));
                let old = _mm256_load_si256(block);
                _mm256_store_si256(block, _mm256_or_si256(old, bits));
                _mm256_testc_si256(old, bits) == 0
            }
        }
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon {
    use super::{Portable, SALT};
    use crate::scheme::lines::LineKernel;
    use std::arch::aarch64::*;

    /// Four lanes in each of two registers.
    #[derive(Clone, Copy)]
    pub struct Neon;

    /// # Safety
    /// `half` is 0 or 1; NEON is part of AArch64.
    #[inline(always)]
    unsafe fn pattern(hash: u64, half: usize) -> uint32x4_t {
        // SAFETY: four of the eight salts are read.
        unsafe {
            let salts = vld1q_u32(SALT.as_ptr().add(4 * half));
            let bits = vshrq_n_u32::<27>(vmulq_n_u32(salts, hash as u32));
            vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(bits))
        }
    }

    impl LineKernel for Neon {
        const WORDS: usize = Portable::WORDS;

        #[inline(always)]
        fn line(hash: u64, lines: u64) -> u64 {
            Portable::line(hash, lines)
        }

        #[inline(always)]
        unsafe fn contains(line: *const u64, hash: u64) -> bool {
            // SAFETY: a block is eight 32-bit lanes.
            unsafe {
                let block = line.cast::<u32>();
                let missing = vorrq_u32(
                    vbicq_u32(pattern(hash, 0), vld1q_u32(block)),
                    vbicq_u32(pattern(hash, 1), vld1q_u32(block.add(4))),
                );
                vmaxvq_u32(missing) == 0
            }
        }

        #[inline(always)]
        unsafe fn add(line: *mut u64, hash: u64) -> bool {
            // SAFETY: as in `contains`; nobody else uses the block.
            unsafe {
                let block = line.cast::<u32>();
                let mut missing = vdupq_n_u32(0);
                for half in 0..2 {
                    let (at, bits) = (block.add(4 * half), pattern(hash, half));
                    let old = vld1q_u32(at);
                    vst1q_u32(at, vorrq_u32(old, bits));
                    missing = vorrq_u32(missing, vbicq_u32(bits, old));
                }
                vmaxvq_u32(missing) != 0
            }
        }
    }
}
