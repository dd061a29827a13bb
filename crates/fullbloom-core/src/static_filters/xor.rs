//! [`XorFilter`]: fingerprints as the xor of three cells anywhere in three segments.
//!
//! Graf and Lemire, "Xor filters: faster and smaller than Bloom and cuckoo filters", 2020. Cell i of a key lies in segment i
//! of L cells: i L + fastrange(h rotated left by 21 i, L); the fingerprint h xor (h >> 32), its last w bits, is the xor of
//! the three. L = ceil((1.23 n + 32) / 3).

use super::fingerprints::{Facts, Precision, fingerprint_filter};
use super::peel::Geometry;
use super::shards::Shape;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::XOR;
use crate::scheme::fastrange;
use crate::sizing::peeled;
use crate::structure::Job;
use crate::structure::declaration::structure;
use crate::structure::records::RecordSet;

structure! {
    /// A static approximate set of three cells per key: the predecessor of BinaryFuseFilter, which is smaller and faster.
    class XorFilter;
    parameters {
        /// rate of false positives, rounded down to a power of two; 0.01 by default if bits is not given.
        fpr: "float | None" = None;
        *;
        /// bits of a fingerprint in place of fpr, 1 to 32: the rate is 2**-bits.
        bits: "int | None" = None;
    }
    /// Never misses a key it was built from; nothing can be added or removed. Repeated keys count once. The same keys in
    /// any order give the same bytes, with any number of threads and any memory.
    ///
    /// Cost: 1.23 bits for each bit of a fingerprint and key; about 60 ns per key to build, three cache lines per lookup.
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError. Source: Graf, Lemire, ACM JEA 25, 2020; rate 2**-bits.
    ///
    /// >>> from fullbloom import XorFilter
    /// >>> tags = XorFilter.build(["a", "b", "c"], bits=16)
    /// >>> "b" in tags, tags.fpr() == 2**-16
    /// (True, True)
    fields {
        /// Bits of a fingerprint.
        pub fingerprint_bits: u32 = |f| f.facts.width, FINGERPRINT_BITS;
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

/// Three segments of this many cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thirds {
    cells: u64,
}

impl Geometry<3> for Thirds {
    fn cells(self) -> u64 {
        3 * self.cells
    }

    #[inline(always)]
    fn places(self, hash: u64) -> [u64; 3] {
        std::array::from_fn(|i| i as u64 * self.cells + fastrange(hash.rotate_left(21 * i as u32), self.cells))
    }
}

impl Shape<3> for Thirds {
    fn for_keys(keys: u64) -> Self {
        Thirds { cells: peeled::third(keys) }
    }

    fn words(self) -> [u64; 2] {
        [self.cells, 0]
    }

    fn from_words([cells, other]: [u64; 2]) -> Option<Self> {
        ((1..1 << 40).contains(&cells) && other == 0).then_some(Thirds { cells })
    }

    #[inline(always)]
    fn of([cells, _]: [u64; 2]) -> Self {
        Thirds { cells }
    }
}

fingerprint_filter! { XorFilter, XOR, arity;
    3 => 3, Thirds;
}

impl Stored {
    fn facts(&self) -> Facts {
        let Stored { fingerprint_bits: width, shard_bits: bits, keys, target_fpr } = *self;
        Facts { width, arity: 3, bits, keys, cells: 0, target_fpr }
    }
}

impl XorFilter {
    /// The filter of `keys`.
    pub fn build(
        keys: &RecordSet<1>,
        fpr: Option<f64>,
        bits: Option<u64>,
        hasher: KeyHasher,
        job: &Job<'_>,
    ) -> Result<Self> {
        Self::construct(keys, Precision::of(fpr, bits)?, 3, hasher, job)
    }

    /// Bytes of cells of a filter for `capacity` keys.
    pub fn cell_bytes(capacity: u64, fpr: Option<f64>, bits: Option<u64>) -> Result<u64> {
        Self::bytes(capacity, Precision::of(fpr, bits)?, 3)
    }
}
