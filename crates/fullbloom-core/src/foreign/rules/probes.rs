//! Rules whose positions come from a hash each, or from pieces of a digest that no sum yields. The positions of a key fill
//! [`Digest`]s two by two, already below the number of bits.
//!
//! ```text
//! BIP 37         murmur3_x86_32(key, i 0xfba4c795 + tweak) mod bits
//! logs bloom     b the pair i of bytes of keccak256(key), big-endian, mod 2048; bit b of one big-endian number
//! pyprobables    FNV-1a of 64 bits, which begins at its basis + 31 i, mod bits; of a text its characters, not its bytes
//! pybloom-live   slice i, of bits / k bits: piece i of the digests H(H(j) key), j = 0, 1, ..., mod bits / k
//! rbloom         s = hash(key); s = s a + 1 mod 2^128, bits 32 to 95 of s mod bits
//! pybloomfiltermmap3   both words of murmur3_x64_128(key, seed i), one xor the other, mod bits
//! fastbloom-rs   (xxh3(key, 0) mod bits + i (xxh3(key, 32) mod bits)) mod bits
//! ```

use sha1::Sha1;
use sha2::digest::Digest as Hash;
use sha2::{Sha256, Sha384, Sha512};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed, xxh3_128};

use super::seed::Seed;
use super::walk::{Digest, Range};
use crate::hash::fnv::Fnv1a;
use crate::hash::keccak::keccak256_prefix;
use crate::hash::murmur3::{murmur32, murmur128_seeded};

/// A rule of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Of Bitcoin.
    Bip37,
    /// Of Ethereum.
    LogsBloom,
    /// Of pyprobables, of texts by their characters.
    FnvCharacters,
    /// Of pyprobables, of bytes.
    FnvBytes,
    /// Of pybloom-live.
    Slices,
    /// Of pybloomfiltermmap3.
    Murmurs,
    /// Of rbloom, from the hash that a function of its caller returned.
    Lcg,
    /// Of fastbloom-rs.
    Xxh3,
}

/// Positions in a digest.
const PAIR: u32 = 2;

const LCG_FACTOR: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;
const BIP37_STEP: u32 = 0xfba4_c795;
/// The only number of hashes of a logs bloom.
const LOGS_HASHES: u32 = 3;

impl Probe {
    /// Digests of one key.
    pub(super) fn parts(self, num_hashes: u32) -> u32 {
        match self {
            // Start and step.
            Probe::Xxh3 => 1,
            _ => num_hashes.div_ceil(PAIR),
        }
    }

    /// The only number of hashes, where a rule has one.
    pub fn fixed_hashes(self) -> Option<u32> {
        (self == Probe::LogsBloom).then_some(LOGS_HASHES)
    }

    /// Digest number `part` of a key.
    #[inline(never)]
    pub(super) fn digest(self, seed: &Seed, range: Range, part: u32, bytes: &[u8]) -> Digest {
        let mut digest = [0; 2];
        let first = part * PAIR;
        self.each(seed, range, bytes, first, &mut |i, position| digest[(i - first) as usize % 2] = position);
        // The last digest of an odd number of positions repeats its position.
        if self != Probe::Xxh3 && first + 1 >= range.num_hashes {
            digest[1] = digest[0];
        }
        digest
    }

    /// Calls `take` with the positions `first` and `first + 1`, as far as the filter has them.
    fn each(self, seed: &Seed, range: Range, bytes: &[u8], first: u32, take: &mut dyn FnMut(u32, u64)) {
        let Range { num_bits, num_hashes } = range;
        let numbers = first..num_hashes.min(first + PAIR);
        match self {
            Probe::Bip37 => numbers.for_each(|i| {
                let hash = murmur32(bytes, i.wrapping_mul(BIP37_STEP).wrapping_add(seed.number));
                take(i, u64::from(hash) % num_bits);
            }),
            Probe::LogsBloom => {
                let hash = keccak256_prefix(bytes);
                numbers.for_each(|i| {
                    let at = 2 * i as usize;
                    let bit = u64::from(u16::from_be_bytes([hash[at], hash[at + 1]]));
                    // The number is stored with its last byte first in memory: byte 255 - b / 8.
                    take(i, (bit % num_bits) ^ 0x7f8);
                });
            }
            Probe::FnvCharacters => match str::from_utf8(bytes) {
                Ok(text) if !text.is_ascii() => numbers.for_each(|i| {
                    take(i, Fnv1a::after(31 * u64::from(i)).of_units(text.chars().map(u64::from)) % num_bits);
                }),
                _ => Probe::FnvBytes.each(seed, range, bytes, first, take),
            },
            Probe::FnvBytes => numbers.for_each(|i| {
                take(i, Fnv1a::after(31 * u64::from(i)).of_units(bytes.iter().copied().map(u64::from)) % num_bits);
            }),
            Probe::Slices => {
                let slice = num_bits / u64::from(num_hashes);
                let pieces = Pieces::of(slice, num_hashes);
                numbers.for_each(|i| take(i, u64::from(i) * slice + pieces.number(bytes, i) % slice));
            }
            Probe::Murmurs => numbers.for_each(|i| {
                let [first, second] = murmur128_seeded(bytes, seed.each[i as usize % Seed::MOST]);
                take(i, (first ^ second) % num_bits);
            }),
            Probe::Lcg => {
                let mut state = wide(bytes);
                for i in 0..numbers.end {
                    state = state.wrapping_mul(LCG_FACTOR).wrapping_add(1);
                    if i >= first {
                        take(i, (state >> 32) as u64 % num_bits);
                    }
                }
            }
            Probe::Xxh3 => [0, 32].into_iter().zip(0..).for_each(|(seed, i)| {
                take(i, xxh3_64_with_seed(bytes, seed) % num_bits);
            }),
        }
    }
}

/// The 128-bit number in at most 16 bytes of two's complement.
fn wide(bytes: &[u8]) -> u128 {
    let filling = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
    let mut number = [filling; 16];
    let len = bytes.len().min(16);
    number[..len].copy_from_slice(&bytes[..len]);
    u128::from_le_bytes(number)
}

/// How pybloom-live cuts digests into numbers.
struct Pieces {
    algorithm: Algorithm,
    /// Bytes of a number.
    width: usize,
    /// Numbers in a digest.
    count: u32,
}

#[derive(Clone, Copy)]
enum Algorithm {
    Xxh128,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    /// Bytes of a digest.
    fn len(self) -> usize {
        match self {
            Algorithm::Xxh128 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
            Algorithm::Sha384 => 48,
            Algorithm::Sha512 => 64,
        }
    }
}

impl Pieces {
    fn of(slice: u64, num_hashes: u32) -> Self {
        let width = match slice {
            0..0x8000 => 2,
            0x8000..0x8000_0000 => 4,
            _ => 8,
        };
        let algorithm = match u64::from(num_hashes) * width * 8 {
            0..=128 => Algorithm::Xxh128,
            129..=160 => Algorithm::Sha1,
            161..=256 => Algorithm::Sha256,
            257..=384 => Algorithm::Sha384,
            _ => Algorithm::Sha512,
        };
        Pieces { algorithm, width: width as usize, count: algorithm.len() as u32 / width as u32 }
    }

    /// Number `i` of a key.
    fn number(&self, bytes: &[u8], i: u32) -> u64 {
        let salt = self.digest(&[&(i / self.count).to_le_bytes()]);
        let digest = self.digest(&[&salt[..self.algorithm.len()], bytes]);
        let at = (i % self.count) as usize * self.width;
        let piece = &digest[at..at + self.width];
        piece.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// The digest of all `parts`, one behind the other; zeros behind it.
    fn digest(&self, parts: &[&[u8]]) -> [u8; 64] {
        fn run<H: Hash>(parts: &[&[u8]], out: &mut [u8; 64]) {
            let mut hash = H::new();
            parts.iter().for_each(|part| hash.update(part));
            let digest = hash.finalize();
            out[..digest.len()].copy_from_slice(&digest);
        }
        let mut out = [0; 64];
        match self.algorithm {
            Algorithm::Xxh128 => {
                let hash = match parts {
                    [only] => xxh3_128(only),
                    _ => {
                        let mut state = Xxh3::new();
                        parts.iter().for_each(|part| state.update(part));
                        state.digest128()
                    }
                };
                out[..16].copy_from_slice(&hash.to_be_bytes());
            }
            Algorithm::Sha1 => run::<Sha1>(parts, &mut out),
            Algorithm::Sha256 => run::<Sha256>(parts, &mut out),
            Algorithm::Sha384 => run::<Sha384>(parts, &mut out),
            Algorithm::Sha512 => run::<Sha512>(parts, &mut out),
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_ethereum_are_those_of_its_vector() {
        // keccak256("test") begins with 9c22 ff5f 21f0.
        let range = Range { num_bits: 2048, num_hashes: 3 };
        let bits = [0x9c22u64, 0xff5f, 0x21f0].map(|pair| (pair % 2048) ^ 0x7f8);
        assert_eq!(Probe::LogsBloom.digest(&Seed::NONE, range, 0, b"test"), [bits[0], bits[1]]);
        assert_eq!(Probe::LogsBloom.digest(&Seed::NONE, range, 1, b"test"), [bits[2], bits[2]]);
    }

    #[test]
    fn numbers_of_any_width_keep_their_sign() {
        assert_eq!(wide(&(-3i64).to_le_bytes()), -3i128 as u128);
        assert_eq!(wide(&i128::MIN.to_le_bytes()), i128::MIN as u128);
        assert_eq!(wide(&[0xff, 0]), 255);
    }
}
