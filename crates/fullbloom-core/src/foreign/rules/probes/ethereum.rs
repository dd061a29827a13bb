//! Ethereum's logs bloom: b the pair i of bytes of `keccak256(key)`, big-endian, mod 2048; bit b of one big-endian number.

use super::key::Key;
use crate::hash::keccak::keccak256_prefix;

/// The only number of hashes.
pub(super) const NUM_HASHES: u32 = 3;

/// The positions of a key.
pub(super) fn positions(key: Key<'_>) -> impl Fn(u32) -> u64 {
    let hash = keccak256_prefix(key.bytes);
    move |i| {
        let at = 2 * i as usize;
        let bit = u64::from(u16::from_be_bytes([hash[at], hash[at + 1]]));
        // The number is stored with its last byte first in memory: byte 255 - b / 8.
        (bit % key.range.num_bits) ^ 0x7f8
    }
}

#[cfg(test)]
mod tests {
    use super::super::Probe;
    use crate::foreign::rules::{Range, Seed};

    #[test]
    fn positions_are_those_of_the_vector() {
        // keccak256("test") begins with 9c22 ff5f 21f0.
        let range = Range { num_bits: 2048, num_hashes: 3 };
        let bits = [0x9c22u64, 0xff5f, 0x21f0].map(|pair| (pair % 2048) ^ 0x7f8);
        assert_eq!(Probe::Ethereum.digest(&Seed::NONE, range, 0, b"test"), [bits[0], bits[1]]);
        assert_eq!(Probe::Ethereum.digest(&Seed::NONE, range, 1, b"test"), [bits[2], bits[2]]);
    }
}
