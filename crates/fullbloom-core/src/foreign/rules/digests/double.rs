//! Position i is `(h1 + i h2) mod bits`, where h1 and h2 are the first and the second 8 bytes, big-endian, and the sum does not
//! wrap.

use super::algorithm::{Algorithm, number};
use crate::foreign::rules::walk::{Digest, Range};

/// Both numbers, below the number of bits.
pub(super) fn digest(algorithm: Algorithm, range: Range, bytes: &[u8]) -> Digest {
    let digest = algorithm.of(&[], bytes);
    [number(&digest[..8]) % range.num_bits, number(&digest[8..16]) % range.num_bits]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_vector_of_abc() {
        let range = Range { num_bits: 1000, num_hashes: 6 };
        let [first, second] = digest(Algorithm::Sha256, range, b"abc");
        assert_eq!((first, second), (0xba78_16bf_8f01_cfea % 1000, 0x4141_40de_5dae_2223 % 1000));
    }
}
