//! Position i is the bytes 4i to 4i + 3, big-endian, mod bits.

use super::algorithm::{Algorithm, number};
use crate::foreign::rules::walk::{Digest, Range, Walk};

/// Slices in a part.
pub(super) const WORDS: u32 = 4;

/// Four slices.
pub(super) fn digest(algorithm: Algorithm, range: Range, part: u32, bytes: &[u8]) -> Digest {
    let digest = algorithm.of(&[], bytes);
    // The last part repeats its positions.
    let count = WORDS.min(range.num_hashes - part * WORDS);
    let word = |i: u32| {
        let at = (part * WORDS + i % count) as usize * 4;
        number(&digest[at..at + 4])
    };
    [word(0) | word(1) << 32, word(2) | word(3) << 32]
}

/// The slices of a part, one after the other, and again from the first on.
#[derive(Clone, Copy)]
pub(in crate::foreign) struct Words(u128);

impl Walk for Words {
    #[inline(always)]
    fn start([low, high]: Digest) -> Self {
        Words(u128::from(low) | u128::from(high) << 64)
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let word = self.0 as u32;
        self.0 = self.0.rotate_right(32);
        word.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_the_vector_of_abc() {
        let range = Range { num_bits: 1000, num_hashes: 6 };
        let walk = |part, count| {
            let mut walk = Words::start(digest(Algorithm::Sha256, range, part, b"abc"));
            (0..count).map(|_| walk.next()).collect::<Vec<_>>()
        };
        assert_eq!(walk(0, 5), [0xba78_16bf, 0x8f01_cfea, 0x4141_40de, 0x5dae_2223, 0xba78_16bf]);
        assert_eq!(walk(1, 4), [0xb003_61a3, 0x9617_7a9c, 0xb003_61a3, 0x9617_7a9c]);
    }
}
