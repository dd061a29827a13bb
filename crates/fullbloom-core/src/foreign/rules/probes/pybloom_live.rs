//! pybloom-live: slice i, of bits / k bits: piece i of the digests H(H(j) key), j = 0, 1, ..., mod bits / k.

use sha1::Sha1;
use sha2::digest::Digest as Hash;
use sha2::{Sha256, Sha384, Sha512};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::key::Key;

/// The positions of a key.
pub(super) fn positions(key: Key<'_>) -> impl Fn(u32) -> u64 {
    let slice = key.range.num_bits / u64::from(key.range.num_hashes);
    let pieces = Pieces::of(slice, key.range.num_hashes);
    move |i| u64::from(i) * slice + pieces.number(key.bytes, i) % slice
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
