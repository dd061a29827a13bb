//! Scheme 6, `seeded`: k hashes of the key's hash, under seeds 0 to k - 1.
//!
//! Position i = `fastrange(XXH3-64(h as 8 bytes, seed i), range)`: the k independent functions of a textbook.

use super::probes::Sequence;
use super::range::fastrange;
use crate::hash::xxh3::{fold_seed, xxh3_u64};

/// The sequence.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    hash: u64,
    seed: u64,
    range: u64,
}

impl Sequence for Seeded {
    #[inline(always)]
    fn start(hash: u64, range: u64) -> Self {
        Seeded { hash, seed: 0, range }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        let position = fastrange(xxh3_u64(self.hash, fold_seed(self.seed)), self.range);
        self.seed += 1;
        position
    }
}
