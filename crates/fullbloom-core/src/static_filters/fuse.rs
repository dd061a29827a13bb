//! [`BinaryFuseFilter`]: fingerprints as the xor of three or four cells that lie in neighbouring segments.
//!
//! Graf and Lemire, "Binary fuse filters: fast and smaller than xor filters", 2022. The cells of a shard are segments of
//! 2^s cells; a key has a random cell in each of K segments that follow each other:
//!
//! ```text
//! first = fastrange(h, span)          span = segments that a key may begin in, times 2^s
//! cell i = first + i 2^s, its last s bits xored with bits of h    i = 0 .. K-1, none for i = 0
//! fingerprint = h xor (h >> 32), its last w bits = xor of the K cells
//! ```
//!
//! The key's neighbours lie near: chains of keys that are alone begin at both ends of the shard and run through it like
//! a fuse, which solves at 1.125 cells per key (K = 3) and 1.075 (K = 4), against 1.23 of cells anywhere.

use super::fingerprints::{Facts, Precision, fingerprint_filter};
use super::peel::Geometry;
use super::shards::Shape;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::BINARY_FUSE;
use crate::scheme::fastrange;
use crate::sizing::peeled::{self, MOST_SEGMENT_BITS};
use crate::structure::Job;
use crate::structure::declaration::structure;
use crate::structure::records::RecordSet;

structure! {
    /// A static approximate set: built from all keys at once, the smallest filter for its speed.
    class BinaryFuseFilter;
    parameters {
        /// rate of false positives, rounded down to a power of two; 0.01 by default if bits is not given.
        fpr: "float | None" = None;
        *;
        /// bits of a fingerprint in place of fpr, 1 to 32: the rate is 2**-bits.
        bits: "int | None" = None;
        /// cells of a key: 3 is faster, 4 is 4 % smaller.
        arity: "int" = 3;
    }
    /// Never misses a key it was built from; nothing can be added or removed. Repeated keys count once. The same keys in
    /// any order give the same bytes, with any number of threads and any memory.
    ///
    /// Cost: 1.13 bits (arity 3) or 1.08 (arity 4) for each bit of a fingerprint and key, more below a million keys; about
    /// 35 ns per key to build, three or four cache lines per lookup. Raises ParameterError, ParameterTypeError,
    /// FilterMemoryError. Source: Graf, Lemire, ACM JEA 27, 2022; rate 2**-bits.
    ///
    /// >>> from fullbloom import BinaryFuseFilter
    /// >>> leaked = BinaryFuseFilter.build(["123456", "qwerty", "letmein"], fpr=1e-6)
    /// >>> "qwerty" in leaked, "correct horse" in leaked
    /// (True, False)
    /// >>> leaked.fingerprint_bits
    /// 20
    fields {
        /// Bits of a fingerprint.
        pub fingerprint_bits: u32 = |f| f.facts.width, FINGERPRINT_BITS;
        /// Cells of a key, 3 or 4.
        pub arity: u32 = |f| f.facts.arity, ARITY;
        /// Shards, as their binary logarithm.
        shard_bits: u32 = |f| f.facts.bits, SHARD_BITS;
        /// Number of distinct keys.
        keys: u64 = |f| f.facts.keys, COUNT;
        /// The requested rate.
        target_fpr: f64 = |f| f.facts.target_fpr, FPR;
        /// Number of cells.
        pub num_cells: u64 = |f| f.facts.cells;
        /// True when the cells are in a mapped file.
        pub mapped: bool = |f| f.cells.is_mapped();
    }
}

/// Segments of 2^bits cells; a key may begin in the first `span` cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuse<const K: usize> {
    span: u64,
    bits: u32,
}

impl<const K: usize> Geometry<K> for Fuse<K> {
    fn cells(self) -> u64 {
        self.span + ((K as u64 - 1) << self.bits)
    }

    #[inline(always)]
    fn places(self, hash: u64) -> [u64; K] {
        let (first, mask) = (fastrange(hash, self.span), (1u64 << self.bits) - 1);
        // The bits below those that selected the first cell: 18 each for two, 13 each for three.
        let step = if K == 3 { 18 } else { 13 };
        std::array::from_fn(|i| match i {
            0 => first,
            _ => (first + ((i as u64) << self.bits)) ^ ((hash >> (step * (i as u32 - 1))) & mask),
        })
    }
}

impl<const K: usize> Shape<K> for Fuse<K> {
    fn for_keys(keys: u64) -> Self {
        let (bits, begins) = peeled::segments(keys, K as u32);
        Fuse { span: begins << bits, bits }
    }

    fn words(self) -> [u64; 2] {
        [self.span, self.bits.into()]
    }

    fn from_words([span, bits]: [u64; 2]) -> Option<Self> {
        let sound = (2..=MOST_SEGMENT_BITS.into()).contains(&bits)
            && (1 << bits..1 << 40).contains(&span)
            && span.trailing_zeros() >= bits as u32;
        sound.then(|| Self::of([span, bits]))
    }

    #[inline(always)]
    fn of([span, bits]: [u64; 2]) -> Self {
        Fuse { span, bits: bits as u32 }
    }
}

fingerprint_filter! { BinaryFuseFilter, BINARY_FUSE, arity;
    3 => 3, Fuse<3>;
    4 => 4, Fuse<4>;
}

impl Stored {
    fn facts(&self) -> Facts {
        let Stored { fingerprint_bits: width, arity, shard_bits: bits, keys, target_fpr } = *self;
        Facts { width, arity, bits, keys, cells: 0, target_fpr }
    }
}

impl BinaryFuseFilter {
    /// The filter of `keys`.
    pub fn build(
        keys: &RecordSet<1>,
        fpr: Option<f64>,
        bits: Option<u64>,
        arity: u64,
        hasher: KeyHasher,
        job: &Job<'_>,
    ) -> Result<Self> {
        let precision = Precision::of(fpr, bits)?;
        Self::construct(keys, precision, Self::arity_of(arity)?, hasher, job)
    }

    /// Bytes of cells of a filter for `capacity` keys.
    pub fn cell_bytes(capacity: u64, fpr: Option<f64>, bits: Option<u64>, arity: u64) -> Result<u64> {
        Self::bytes(capacity, Precision::of(fpr, bits)?, Self::arity_of(arity)?)
    }

    fn arity_of(arity: u64) -> Result<u32> {
        match arity {
            3 | 4 => Ok(arity as u32),
            _ => Err(Error::Parameter(format!("arity must be 3 or 4, got {arity}"))),
        }
    }
}
