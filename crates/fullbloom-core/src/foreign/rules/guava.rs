//! Guava's rules over `MurmurHash3_x64_128` with seed 0.
//!
//! ```text
//! MURMUR128_MITZ_64: c_i = h1 + i h2 mod 2^64,  i = 0..k-1;  position = (c_i mod 2^63) mod bits
//! MURMUR128_MITZ_32: h1 and h2 the low and the high half of the first word; as Spark's version 1
//! ```

use super::walk::{Digest, Walk};
use crate::hash::murmur3::{murmur128, murmur128_word};

/// Both words.
#[inline(always)]
pub(super) fn digest(bytes: &[u8]) -> Digest {
    murmur128(bytes)
}

/// [`digest`] of 8 bytes.
#[inline(always)]
pub(super) fn digest_word(word: u64) -> Digest {
    murmur128_word(word)
}

/// The halves of the first word, as [`Sums32`](super::spark::Sums32) takes them.
#[derive(Clone, Copy)]
pub(in crate::foreign) struct Halves(super::spark::Sums32);

impl Walk for Halves {
    #[inline(always)]
    fn start([word, _]: Digest) -> Self {
        Halves(Walk::start([word & 0xffff_ffff, word >> 32]))
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0.next()
    }
}

/// The sums in 64 bits.
#[derive(Clone, Copy)]
pub(in crate::foreign) struct Sums {
    sum: u64,
    step: u64,
}

impl Walk for Sums {
    #[inline(always)]
    fn start([sum, step]: Digest) -> Self {
        Sums { sum, step }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let number = self.sum & (u64::MAX >> 1);
        self.sum = self.sum.wrapping_add(self.step);
        number
    }
}
