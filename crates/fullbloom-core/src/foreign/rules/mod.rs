//! Rules of other programs: from the bytes of a key to the positions of its bits.
//!
//! A rule is a hash, which gives a [`Digest`], and a walk, which gives positions from it. A walk's numbers are below
//! 2^63; the filter takes them modulo its number of bits.

mod bip158;
pub mod digests;
pub mod guava;
pub mod halves;
pub mod probes;
pub mod redisbloom;
mod seed;
pub mod spark;
pub mod split_block;
mod walk;
pub mod word;

pub use seed::Seed;
pub(super) use walk::Walk;
pub use walk::{Digest, Range};

use crate::isa::prefetch;
use digests::{Algorithm, Cut};
use halves::Sum;
use probes::Probe;

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
    /// Sums of the halves of FNV-1a: [`halves`].
    Halves(Sum),
    /// From a cryptographic digest: [`digests`].
    Digest(Algorithm, Cut),
    /// A hash a position: [`probes`].
    Probe(Probe),
    /// Both words of `RedisBloom`'s Bloom filter: [`redisbloom`]. Its filters have lookups of their own.
    RedisBloom,
    /// The word of `RedisBloom`'s cuckoo filter: [`redisbloom`]. Its filters have lookups of their own.
    RedisCuckoo,
    /// Fingerprints of words: [`word`]. Their filters have lookups of their own.
    Word,
    /// Fingerprints of the hashes of texts: [`word`]. Their filters have lookups of their own.
    HashedWord,
    /// The hash of an element of a block: [`bip158`]. Its filters have lookups of their own.
    Bip158,
}

impl Rule {
    /// True if its numbers are below the number of bits.
    pub const fn is_reduced(self) -> bool {
        matches!(self, Rule::Digest(_, Cut::Seeded) | Rule::Probe(_))
    }

    /// True if its filters have a seed for each hash.
    pub const fn has_seeds(self) -> bool {
        matches!(self, Rule::Probe(Probe::Pybloomfiltermmap3))
    }

    /// Digests of one key.
    #[inline]
    pub fn parts(self, num_hashes: u32) -> u32 {
        match self {
            Rule::Digest(_, cut) => digests::parts(cut, num_hashes),
            Rule::Probe(probe) => probe.parts(num_hashes),
            _ => 1,
        }
    }

    /// Positions that one digest gives.
    pub fn positions_per_part(self) -> u32 {
        match self {
            Rule::Digest(_, cut) => digests::positions_per_part(cut),
            _ => u32::MAX,
        }
    }

    /// The hash of a key's bytes: part number `part` of it.
    #[inline(always)]
    pub fn digest(self, seed: &Seed, range: Range, part: u32, bytes: &[u8]) -> Digest {
        match self {
            Rule::Spark32 | Rule::Spark64 => spark::digest(bytes, seed.number),
            Rule::Guava32 | Rule::Guava64 => guava::digest(bytes),
            Rule::SplitBlock | Rule::HashedWord => split_block::digest(bytes),
            Rule::Word => word::digest(bytes),
            Rule::Halves(sum) => halves::digest(bytes, sum, range.num_bits),
            Rule::Digest(algorithm, cut) => digests::digest(algorithm, cut, range, part, bytes),
            Rule::Probe(probe) => probe.digest(seed, range, part, bytes),
            Rule::Bip158 => bip158::digest(bytes, seed),
            Rule::RedisBloom => redisbloom::hash(bytes),
            Rule::RedisCuckoo => [redisbloom::cuckoo_hash(bytes), 0],
        }
    }

    /// The hashes of integers, 8 little-endian bytes each; the slices are equally long.
    pub fn digest_words(self, seed: &Seed, range: Range, words: &[[u8; 8]], out: &mut [Digest]) {
        match self {
            Rule::Spark32 | Rule::Spark64 => spark::digest_words(words, seed.number, out),
            Rule::Guava32 | Rule::Guava64 => each_word(words, out, guava::digest_word),
            Rule::SplitBlock => each_word(words, out, split_block::digest_word),
            Rule::Word | Rule::HashedWord => each_word(words, out, |word| [word, 0]),
            _ => words.iter().zip(out).for_each(|(word, out)| *out = self.digest(seed, range, 0, word)),
        }
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
