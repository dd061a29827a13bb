//! Apache Spark's rules: sums of two Murmur3 hashes of 32 bits, modulo the number of bits.
//!
//! ```text
//! h1 = murmur3_spark(key, seed), h2 = murmur3_spark(key, h1)
//! version 1: c_i = h1 + i h2 in 32 bits,                i = 1..k, seed 0
//! version 2: c_i = h1 (2^31 - 1) + i h2 in 64 bits,     i = 1..k
//! position = (c_i if c_i >= 0 else not c_i) mod bits
//! ```

use super::walk::{Digest, Walk};
use crate::hash::murmur3_spark::{murmur32_pairs, murmur32_spark, murmur32_word};

/// h1 and h2.
#[inline(always)]
pub(super) fn digest(bytes: &[u8], seed: u32) -> Digest {
    if let Ok(word) = bytes.try_into() {
        return digest_word(u64::from_le_bytes(word), seed);
    }
    let first = murmur32_spark(bytes, seed);
    [first.into(), murmur32_spark(bytes, first).into()]
}

/// [`digest`] of each word.
pub(super) fn digest_words(words: &[[u8; 8]], seed: u32, out: &mut [Digest]) {
    murmur32_pairs(words, seed, out);
}

/// [`digest`] of 8 bytes.
#[inline(always)]
fn digest_word(word: u64, seed: u32) -> Digest {
    let first = murmur32_word(word, seed);
    [first.into(), murmur32_word(word, first).into()]
}

/// Version 1, and Guava's older strategy.
#[derive(Clone, Copy)]
pub(in crate::foreign) struct Sums32 {
    sum: i32,
    step: i32,
}

impl Walk for Sums32 {
    #[inline(always)]
    fn start([first, second]: Digest) -> Self {
        Sums32 { sum: first as i32, step: second as i32 }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.sum = self.sum.wrapping_add(self.step);
        // Complements a negative sum.
        (self.sum ^ (self.sum >> 31)) as u64
    }
}

/// Version 2.
#[derive(Clone, Copy)]
pub(in crate::foreign) struct Sums64 {
    sum: i64,
    step: i64,
}

impl Walk for Sums64 {
    #[inline(always)]
    fn start([first, second]: Digest) -> Self {
        Sums64 { sum: i64::from(first as i32) * i64::from(i32::MAX), step: (second as i32).into() }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.sum = self.sum.wrapping_add(self.step);
        (self.sum ^ (self.sum >> 63)) as u64
    }
}
