//! [`Block`]: lookups of a block of integers by Spark's rule, from the hash to the results, in vectors of the machine.

use super::lanes::Lanes;
use super::rounds::{self, BLOCK, Rounds};
use crate::hash::murmur3_spark::murmur32_columns;
#[cfg(target_arch = "x86_64")]
use crate::isa::Isa;

/// What integers are looked up in.
pub(super) struct Block<'a> {
    pub(super) words: &'a [u64],
    pub(super) lanes: Lanes,
    pub(super) seed: u32,
    /// At most [`rounds::MOST`].
    pub(super) num_hashes: usize,
}

impl Block<'_> {
    /// Looks up integers, 8 little-endian bytes each, with memory for their positions; false, and no results, if the lanes
    /// do not hold their sums.
    pub(super) fn look_up(&self, keys: &[[u8; 8]; BLOCK], rounds: &mut Rounds<u32>, found: &mut [u8]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if Isa::current() == Isa::Avx2 {
            // SAFETY: the instruction set was detected.
            return unsafe { self.look_up_avx2(keys, rounds, found) };
        }
        self.look_up_here(keys, rounds, found)
    }

    /// # Safety
    /// AVX2 must be present.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn look_up_avx2(&self, keys: &[[u8; 8]; BLOCK], rounds: &mut Rounds<u32>, found: &mut [u8]) -> bool {
        self.look_up_here(keys, rounds, found)
    }

    /// In the instruction set of the caller.
    #[inline(always)]
    fn look_up_here(&self, keys: &[[u8; 8]; BLOCK], rounds: &mut Rounds<u32>, found: &mut [u8]) -> bool {
        let (mut first, mut second) = ([0; BLOCK], [0; BLOCK]);
        murmur32_columns(keys, self.seed, &mut first, &mut second);
        let is_placed = self.lanes.place(&first, &second, self.num_hashes, rounds);
        if is_placed {
            rounds::look_up(self.words, &rounds[..self.num_hashes], found);
        }
        is_placed
    }
}
