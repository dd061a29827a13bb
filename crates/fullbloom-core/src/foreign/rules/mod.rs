//! Rules of other programs: from the bytes of a key to the positions of its bits.
//!
//! A rule is a hash, which gives a [`Digest`], and a walk, which gives positions from it. A walk's numbers are below
//! 2^63; the filter takes them modulo its number of bits.

pub mod guava;
pub mod spark;
pub mod split_block;
mod walk;

pub use walk::Digest;
pub(super) use walk::Walk;

use super::key_type::KeyType;
use crate::key::Domain;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Sums of two 32-bit hashes in 32 bits: [`spark`].
    Spark32,
    /// Sums of two 32-bit hashes in 64 bits: [`spark`].
    Spark64,
    /// Sums of the halves of a 64-bit hash, in 32 bits: [`guava`].
    Guava32,
    /// Sums of the halves of a 128-bit hash, in 64 bits: [`guava`].
    Guava64,
    /// Eight bits of one block: [`split_block`].
    SplitBlock,
}

impl Rule {
    /// The hash of a key's bytes.
    #[inline(always)]
    pub fn digest(self, seed: u32, bytes: &[u8]) -> Digest {
        match self {
            Rule::Spark32 | Rule::Spark64 => spark::digest(bytes, seed),
            Rule::Guava32 | Rule::Guava64 => guava::digest(bytes),
            Rule::SplitBlock => split_block::digest(bytes),
        }
    }

    /// The hashes of integers, 8 little-endian bytes each.
    pub fn digest_words(self, seed: u32, words: &[[u8; 8]], out: &mut [Digest]) {
        match self {
            Rule::Spark32 | Rule::Spark64 => {
                words
                    .iter()
                    .zip(out)
                    .for_each(|(word, out)| *out = spark::digest_word(u64::from_le_bytes(*word), seed));
            }
            Rule::Guava32 | Rule::Guava64 => {
                words.iter().zip(out).for_each(|(word, out)| *out = guava::digest(word));
            }
            Rule::SplitBlock => words.iter().zip(out).for_each(|(word, out)| *out = split_block::digest(word)),
        }
    }

    /// The hash of a key of `of`; `None` if it is of another type.
    #[inline(always)]
    pub fn digest_key(self, seed: u32, of: KeyType, domain: Domain, bytes: &[u8]) -> Option<Digest> {
        of.feed(domain, bytes, |bytes| self.digest(seed, bytes))
    }
}
