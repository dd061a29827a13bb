//! Positions from a cryptographic digest, as tutorials have it: two numbers of it, slices of it, or one digest a position.
//!
//! ```text
//! double   h1, h2 the first and the second 8 bytes, big-endian;  position i = (h1 + i h2) mod bits, which does not wrap
//! slices   position i = bytes 4i to 4i + 3, big-endian, mod bits
//! seeded   position i = the digest of "i:key" as one number, big-endian, mod bits
//! ```
//!
//! Positions that do not fit in one [`Digest`] take several, the *parts* of a key: a key is present if all parts are.

use md5::Md5;
use sha1::Sha1;
use sha2::Sha256;
use sha2::digest::Digest as Hash;

use super::walk::{Digest, Range, Walk};

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// 16 bytes.
    Md5,
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
}

/// What becomes of the digest: see the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Two numbers.
    Double,
    /// Words of 32 bits.
    Slices,
    /// One digest a position.
    Seeded,
}

/// Slices in a part, and positions.
const WORDS: u32 = 4;
const PAIR: u32 = 2;

impl Algorithm {
    /// Bytes of the digest.
    const fn len(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
        }
    }

    /// Slices that it has.
    pub const fn slices(self) -> u32 {
        self.len() as u32 / 4
    }

    /// The digest of `prefix` and `bytes`; zeros behind it.
    fn of(self, prefix: &[u8], bytes: &[u8]) -> [u8; 32] {
        fn run<H: Hash>(prefix: &[u8], bytes: &[u8], out: &mut [u8]) {
            let mut hash = H::new();
            hash.update(prefix);
            hash.update(bytes);
            out.copy_from_slice(&hash.finalize());
        }
        let mut out = [0; 32];
        let written = &mut out[..self.len()];
        match self {
            Algorithm::Md5 => run::<Md5>(prefix, bytes, written),
            Algorithm::Sha1 => run::<Sha1>(prefix, bytes, written),
            Algorithm::Sha256 => run::<Sha256>(prefix, bytes, written),
        }
        out
    }

    /// The digest of "number:bytes" as one number, modulo `num_bits`.
    fn seeded(self, number: u32, bytes: &[u8], num_bits: u64) -> u64 {
        let digest = self.of(format!("{number}:").as_bytes(), bytes);
        let rest = digest[..self.len()].chunks(4).fold(0u128, |rest, word| {
            (rest << 32 | u128::from(word.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte))))
                % u128::from(num_bits)
        });
        rest as u64
    }
}

/// Positions in one part of a key.
pub(super) fn positions_per_part(cut: Cut) -> u32 {
    match cut {
        Cut::Double => u32::MAX,
        Cut::Slices => WORDS,
        Cut::Seeded => PAIR,
    }
}

/// Digests that the positions of a key take.
pub(super) fn parts(cut: Cut, num_hashes: u32) -> u32 {
    num_hashes.div_ceil(positions_per_part(cut))
}

/// Part number `part` of a key.
pub(super) fn digest(algorithm: Algorithm, cut: Cut, range: Range, part: u32, bytes: &[u8]) -> Digest {
    let Range { num_bits, num_hashes } = range;
    match cut {
        Cut::Double => {
            let digest = algorithm.of(&[], bytes);
            let word = |at: usize| digest[at..at + 8].iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
            [word(0) % num_bits, word(8) % num_bits]
        }
        Cut::Slices => {
            let digest = algorithm.of(&[], bytes);
            // The last part repeats its positions.
            let count = WORDS.min(num_hashes - part * WORDS);
            let word = |i: u32| {
                let at = (part * WORDS + i % count) as usize * 4;
                digest[at..at + 4].iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte))
            };
            [word(0) | word(1) << 32, word(2) | word(3) << 32]
        }
        Cut::Seeded => {
            let first = part * PAIR;
            let position = algorithm.seeded(first, bytes, num_bits);
            let has_second = first + 1 < num_hashes;
            [position, if has_second { algorithm.seeded(first + 1, bytes, num_bits) } else { position }]
        }
    }
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

    const RANGE: Range = Range { num_bits: 1000, num_hashes: 7 };

    #[test]
    fn seeded_positions_are_those_of_the_digests_by_hand() {
        // printf '0:alice' | sha256sum and so on: numbers of 78 digits that end in 893, 821 and 380.
        let part = |part| digest(Algorithm::Sha256, Cut::Seeded, RANGE, part, b"alice");
        assert_eq!((part(0), part(1)[0]), ([893, 821], 380));
        assert_eq!(part(3)[0], part(3)[1]);
        assert_eq!(digest(Algorithm::Md5, Cut::Seeded, RANGE, 0, b"alice"), [105, 293]);
        assert_eq!(parts(Cut::Seeded, 7), 4);
    }

    #[test]
    fn slices_are_those_of_the_vector_of_abc() {
        let range = Range { num_bits: 1000, num_hashes: 6 };
        let walk = |part, count| {
            let mut walk = Words::start(digest(Algorithm::Sha256, Cut::Slices, range, part, b"abc"));
            (0..count).map(|_| walk.next()).collect::<Vec<_>>()
        };
        assert_eq!(walk(0, 5), [0xba78_16bf, 0x8f01_cfea, 0x4141_40de, 0x5dae_2223, 0xba78_16bf]);
        assert_eq!(walk(1, 4), [0xb003_61a3, 0x9617_7a9c, 0xb003_61a3, 0x9617_7a9c]);
        let [first, second] = digest(Algorithm::Sha256, Cut::Double, range, 0, b"abc");
        assert_eq!((first, second), (0xba78_16bf_8f01_cfea % 1000, 0x4141_40de_5dae_2223 % 1000));
    }
}
