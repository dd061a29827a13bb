//! Position i is the digest of "i:key" as one number, big-endian, mod bits.

use super::algorithm::{Algorithm, number};
use crate::foreign::rules::walk::{Digest, Range, Walk};

/// Positions in a part.
pub(super) const PAIR: u32 = 2;

/// Two positions; the last one of an odd number twice.
pub(super) fn digest(algorithm: Algorithm, range: Range, part: u32, bytes: &[u8]) -> Digest {
    let first = part * PAIR;
    let one = position(algorithm, range.num_bits, first, bytes);
    let has_second = first + 1 < range.num_hashes;
    [one, if has_second { position(algorithm, range.num_bits, first + 1, bytes) } else { one }]
}

/// The digest of "i:bytes" as one number, modulo the number of bits.
fn position(algorithm: Algorithm, num_bits: u64, i: u32, bytes: &[u8]) -> u64 {
    let digest = algorithm.of(format!("{i}:").as_bytes(), bytes);
    let rest = digest[..algorithm.len()]
        .chunks(4)
        .fold(0u128, |rest, word| (rest << 32 | u128::from(number(word))) % u128::from(num_bits));
    rest as u64
}

/// The positions of a part, one after the other, and again from the first on.
#[derive(Clone, Copy)]
pub(in crate::foreign) struct Pair([u64; 2]);

impl Walk for Pair {
    #[inline(always)]
    fn start(digest: Digest) -> Self {
        Pair(digest)
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0.swap(0, 1);
        self.0[1]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cut, parts};
    use super::*;

    const RANGE: Range = Range { num_bits: 1000, num_hashes: 7 };

    #[test]
    fn positions_are_those_of_the_digests_by_hand() {
        // printf '0:alice' | sha256sum and so on: numbers of 78 digits that end in 893, 821 and 380.
        let part = |part| digest(Algorithm::Sha256, RANGE, part, b"alice");
        assert_eq!((part(0), part(1)[0]), ([893, 821], 380));
        assert_eq!(part(3)[0], part(3)[1]);
        assert_eq!(digest(Algorithm::Md5, RANGE, 0, b"alice"), [105, 293]);
        assert_eq!(parts(Cut::Seeded, 7), 4);
    }
}
