//! Scheme 7, `sliced`: one wide hash, cut into pieces.
//!
//! The wide hash is `W_0 W_1 ...`, `W_j = XXH3-64(h as 8 bytes, seed j)`. Up to 2^24 positions a word is cut in two,
//! its lower half first: position i = `slice * range >> 32`. 32 bits leave no position more than 1/256 above the
//! mean there; beyond, a slice is a whole word, and the scheme is `seeded`.

use super::probes::Sequence;
use super::range::fastrange;
use crate::hash::xxh3::{fold_seed, xxh3_u64};

/// Most positions for which half of a word is enough.
const NARROW: u64 = 1 << 24;

/// The sequence.
#[derive(Clone, Copy, Debug)]
pub struct Sliced {
    hash: u64,
    word: u64,
    /// Slices begun.
    slice: u64,
    range: u64,
}

impl Sequence for Sliced {
    #[inline(always)]
    fn start(hash: u64, range: u64) -> Self {
        Sliced { hash, word: 0, slice: 0, range }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let slice = self.slice;
        self.slice += 1;
        if self.range > NARROW {
            return fastrange(xxh3_u64(self.hash, fold_seed(slice)), self.range);
        }
        if slice.is_multiple_of(2) {
            self.word = xxh3_u64(self.hash, fold_seed(slice / 2));
        }
        let piece = self.word & 0xffff_ffff;
        self.word >>= 32;
        (piece * self.range) >> 32
    }
}
