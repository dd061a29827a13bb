//! Rules of other programs: from the bytes of a key to the positions of its bits.
//!
//! A rule is a hash, which gives a [`Digest`], and a walk, which gives positions from it. A walk's numbers are below
//! 2^63; the filter takes them modulo its number of bits.

pub mod guava;
pub mod spark;
pub mod split_block;
mod walk;
pub mod word;

pub use walk::Digest;
pub(super) use walk::Walk;

use super::key_type::KeyType;
use crate::isa::prefetch;
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
    /// Fingerprints of words: [`word`]. Their filters have lookups of their own.
    Word,
    /// Fingerprints of the hashes of texts: [`word`]. Their filters have lookups of their own.
    HashedWord,
}

impl Rule {
    /// The hash of a key's bytes.
    #[inline(always)]
    pub fn digest(self, seed: u32, bytes: &[u8]) -> Digest {
        match self {
            Rule::Spark32 | Rule::Spark64 => spark::digest(bytes, seed),
            Rule::Guava32 | Rule::Guava64 => guava::digest(bytes),
            Rule::SplitBlock | Rule::HashedWord => split_block::digest(bytes),
            Rule::Word => word::digest(bytes),
        }
    }

    /// The hashes of integers, 8 little-endian bytes each; the slices are equally long.
    pub fn digest_words(self, seed: u32, words: &[[u8; 8]], out: &mut [Digest]) {
        match self {
            Rule::Spark32 | Rule::Spark64 => spark::digest_words(words, seed, out),
            Rule::Guava32 | Rule::Guava64 => each_word(words, out, guava::digest_word),
            Rule::SplitBlock => each_word(words, out, split_block::digest_word),
            Rule::Word | Rule::HashedWord => each_word(words, out, |word| [word, 0]),
        }
    }

    /// The hash of a key of `of`; `None` if it is of another type.
    #[inline(always)]
    pub fn digest_key(self, seed: u32, of: KeyType, domain: Domain, bytes: &[u8]) -> Option<Digest> {
        of.feed(domain, bytes, |bytes| self.digest(seed, bytes))
    }
}

/// How far ahead words are fetched: batches hash a few KiB at a time, and the hardware's own prefetcher starts over
/// each time.
const AHEAD_BYTES: usize = 2048;

/// Fills `out` with the digests of `words`.
#[inline(always)]
fn each_word(words: &[[u8; 8]], out: &mut [Digest], digest: impl Fn(u64) -> Digest) {
    for (words, out) in words.chunks(8).zip(out.chunks_mut(8)) {
        prefetch(words.as_ptr().wrapping_byte_add(AHEAD_BYTES).cast());
        for (word, out) in words.iter().zip(out) {
            *out = digest(u64::from_le_bytes(*word));
        }
    }
}
