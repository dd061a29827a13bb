//! [`BaseHash`]: the function under the hash of a key, if it is not XXH3-64.
//!
//! ```text
//! w = first 64 bits of the function of the canonical bytes, seed 0; digests little-endian
//!     mix(w) for weak ones (`fnv1a`, whose upper bits a last byte hardly reaches) and 32 bits (`murmur3-32`)
//! hash = w if s = 0, else mix(w ^ s),     s = seed ^ domain * 0x9e3779b97f4a7c15
//! ```
//!
//! `mix` is the finalizer of SplitMix64, a bijection, so two hashes are equal only if their words are. The hash of a
//! text under seed 0 is therefore the one that other programs compute with the function, and a seed moves positions,
//! not collisions.

use md5::Md5;
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha256, digest};
use xxhash_rust::xxh64::Xxh64;

use crate::hash::fnv::Fnv1a;
use crate::hash::murmur3::{Murmur32, Murmur128};
use crate::hash::splitmix::mix;
use crate::hash::xxh3::xxh3_pieces;

/// The base hash of a key rule. Files contain the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum BaseHash {
    /// XXH3-64, the default.
    Xxh3 = 1,
    /// xxHash64.
    Xxh64 = 2,
    /// `MurmurHash3_x86_32`: distinguishes at most 2^32 keys.
    Murmur32 = 3,
    /// `MurmurHash3_x64_128`.
    Murmur128 = 4,
    /// FNV-1a of 64 bits.
    Fnv1a = 5,
    /// SHA-1.
    Sha1 = 6,
    /// MD5.
    Md5 = 7,
    /// SHA-256.
    Sha256 = 8,
}

/// The first 8 bytes of a digest, little-endian.
fn digest<D: Digest>(feed: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u64 {
    let mut state = D::new();
    feed(&mut |piece| digest::Digest::update(&mut state, piece));
    state.finalize().iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

impl BaseHash {
    /// Every one.
    pub const ALL: [BaseHash; 8] = [
        BaseHash::Xxh3,
        BaseHash::Xxh64,
        BaseHash::Murmur32,
        BaseHash::Murmur128,
        BaseHash::Fnv1a,
        BaseHash::Sha1,
        BaseHash::Md5,
        BaseHash::Sha256,
    ];

    /// The base hash with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| *hash as u64 == number)
    }

    /// Bits in which two keys can differ.
    pub fn bits(self) -> u32 {
        if self == BaseHash::Murmur32 { 32 } else { 64 }
    }

    /// The hash under seed `s` of bytes that `feed` hands on in pieces.
    pub(super) fn pieces(self, s: u64, feed: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u64 {
        if self == BaseHash::Xxh3 {
            return xxh3_pieces(s, feed);
        }
        let word = self.word(feed);
        if s == 0 { word } else { mix(word ^ s) }
    }

    /// [`BaseHash::pieces`] of contiguous bytes.
    #[inline(never)]
    pub(super) fn bytes(self, s: u64, bytes: &[u8]) -> u64 {
        self.pieces(s, |push| push(bytes))
    }

    fn word(self, feed: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u64 {
        match self {
            BaseHash::Xxh3 => xxh3_pieces(0, feed),
            BaseHash::Xxh64 => {
                let mut state = Xxh64::new(0);
                feed(&mut |piece| state.update(piece));
                state.digest()
            }
            BaseHash::Murmur32 => {
                let mut state = Murmur32::new();
                feed(&mut |piece| state.update(piece));
                mix(state.digest().into())
            }
            BaseHash::Murmur128 => {
                let mut state = Murmur128::new();
                feed(&mut |piece| state.update(piece));
                state.digest()
            }
            BaseHash::Fnv1a => {
                let mut state = Fnv1a::new();
                feed(&mut |piece| state.update(piece));
                mix(state.digest())
            }
            BaseHash::Sha1 => digest::<Sha1>(feed),
            BaseHash::Md5 => digest::<Md5>(feed),
            BaseHash::Sha256 => digest::<Sha256>(feed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors_hold() {
        let abc = |hash: BaseHash| hash.bytes(0, b"abc");
        assert_eq!(abc(BaseHash::Xxh64), 0x44bc_2cf5_ad77_0999);
        assert_eq!(abc(BaseHash::Sha1), 0xa999_3e36_4706_816au64.swap_bytes());
        assert_eq!(abc(BaseHash::Md5), 0x9001_5098_3cd2_4fb0u64.swap_bytes());
        assert_eq!(abc(BaseHash::Sha256), 0xba78_16bf_8f01_cfeau64.swap_bytes());
        assert_eq!(abc(BaseHash::Fnv1a), mix(0xe71f_a219_0541_574b));
        assert_eq!(abc(BaseHash::Murmur32), mix(0xb3dd_93fa));
        assert_eq!(BaseHash::Sha256.bytes(5, b"abc"), mix(0xba78_16bf_8f01_cfeau64.swap_bytes() ^ 5));
    }
}
