//! The table behind [`super::DLeftCountingFilter`]: cells found by fingerprint.
//!
//! The derivation below is a file format. With d sub-tables of B buckets of w cells and remainders
//! of r bits, R = 2^r:
//!
//! * fingerprint f = floor(hash * B R / 2^64), a number below B R, from the high bits of the hash;
//! * remainder q = f mod R, first bucket b = floor(f / R);
//! * bucket in sub-table i: (b + s_i(q)) mod B, with s_0 = 0 and, for i > 0,
//!   s_i(q) = floor(rotl((q + 1) (2i + 1) M1, 32) M2 B / 2^64), products mod 2^64.
//!
//! For a given remainder each sub-table only turns the ring of buckets, so (bucket, remainder) is a
//! *permutation* of f: a cell identifies its fingerprint, two fingerprints never share a
//! cell, and removing takes out what was put in. With independent buckets and remainders it would
//! not, and keys would vanish.
//!
//! Cell (i, bucket, j) is number (i B + bucket) w + j; its low r bits are the remainder, its high
//! 2 bits a digit: 0 for a free cell, else 1, 2 or 3.

use std::ops::Range;

use super::shape::Shape;
use crate::cells::PackedCells;
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::scheme::fastrange;

const M1: u64 = 0xd134_2543_de82_ef95;
const M2: u64 = 0xbf58_476d_1ce4_e5b9;
/// Largest digit.
pub(super) const TOP: u64 = 3;

/// Finds cells. Several cells form a 64-bit group, which is compared as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    shape: Shape,
    packed: PackedCells,
    /// B R.
    range: u64,
    /// Cells of a group.
    lanes: u32,
    /// A one at the bottom of every lane.
    ones: u64,
    /// The remainder's bits of every lane.
    low: u64,
    /// The bit above the remainder of every lane.
    flag: u64,
}

/// The bucket of a fingerprint with the fewest cells in use.
#[derive(Clone, Copy)]
pub(super) struct BucketChoice {
    /// Number of its first cell.
    first: u64,
    load: u32,
}

impl Table {
    /// Of a shape that was checked.
    pub(super) fn new(shape: Shape) -> Result<Self> {
        let width = shape.width();
        let packed = PackedCells::new(width).ok_or_else(|| Error::parameter("remainder_bits must be at most 60"))?;
        let lanes = (64 / width).min(shape.cells);
        let ones = (0..lanes).fold(0u64, |ones, lane| ones | 1 << (lane * width));
        let low = ones * ((1 << shape.remainder_bits) - 1);
        Ok(Table { shape, packed, range: shape.fingerprints(), lanes, ones, low, flag: ones << shape.remainder_bits })
    }

    /// The fingerprint of a hash.
    #[inline(always)]
    pub(super) fn fingerprint(&self, hash: u64) -> u64 {
        fastrange(hash, self.range)
    }

    #[inline(always)]
    fn remainder(&self, fingerprint: u64) -> u64 {
        fingerprint & ((1 << self.shape.remainder_bits) - 1)
    }

    /// By how many buckets sub-table `i` turns the ring for a remainder.
    #[inline(always)]
    fn turn(&self, remainder: u64, i: u32) -> u64 {
        if i == 0 {
            return 0;
        }
        let mixed = (remainder + 1).wrapping_mul(M1.wrapping_mul(2 * u64::from(i) + 1)).rotate_left(32);
        fastrange(mixed.wrapping_mul(M2), self.shape.buckets)
    }

    /// Number of the first cell of a fingerprint's bucket in sub-table `i`.
    #[inline(always)]
    fn bucket(&self, fingerprint: u64, i: u32) -> u64 {
        let turned = (fingerprint >> self.shape.remainder_bits) + self.turn(self.remainder(fingerprint), i);
        let bucket = if turned >= self.shape.buckets { turned - self.shape.buckets } else { turned };
        (u64::from(i) * self.shape.buckets + bucket) * u64::from(self.shape.cells)
    }

    /// The fingerprint of a used cell; `cell` must be in the table.
    pub(super) fn fingerprint_at(&self, words: &[u64], cell: u64) -> u64 {
        let remainder = self.remainder(self.packed.get(words, cell));
        let bucket = cell / u64::from(self.shape.cells);
        let (i, bucket) = (bucket / self.shape.buckets, bucket % self.shape.buckets);
        let turn = self.turn(remainder, i as u32);
        let first = if bucket >= turn { bucket - turn } else { bucket + self.shape.buckets - turn };
        first << self.shape.remainder_bits | remainder
    }

    /// Calls `visit` with the first cell of every group of a bucket, its bits, and the flags of its lanes, until it
    /// returns false.
    #[inline(always)]
    fn groups(&self, words: &[u64], first: u64, mut visit: impl FnMut(u64, u64, u64) -> bool) {
        let width = self.shape.width();
        let mut done = 0;
        while done < self.shape.cells {
            let lanes = self.lanes.min(self.shape.cells - done);
            let mask = u64::MAX >> (64 - lanes * width);
            let cell = first + u64::from(done);
            let bit = cell * u64::from(width);
            let (word, shift) = ((bit >> 6) as usize, (bit & 63) as u32);
            // Two shifts: one by 64 is not defined.
            let above = u64::from_le(words[word + 1]) << 1 << (63 - shift);
            let group = (u64::from_le(words[word]) >> shift | above) & mask;
            if !visit(cell, group, self.flag & mask) {
                return;
            }
            done += lanes;
        }
    }

    /// Flags of the lanes in use.
    #[inline(always)]
    fn count_used(group: u64, flags: u64) -> u64 {
        (group | group >> 1) & flags
    }

    /// Flags of the lanes in use whose remainder is the one in every lane of `wanted`.
    #[inline(always)]
    fn hits(&self, group: u64, flags: u64, wanted: u64) -> u64 {
        // Adding all ones carries into the flag's place exactly in lanes that differ.
        let differs = ((group ^ wanted) & self.low) + self.low;
        Self::count_used(group, flags) & !differs
    }

    #[inline(always)]
    fn lane(&self, flag: u64) -> u64 {
        u64::from((flag.trailing_zeros() - self.shape.remainder_bits) / self.shape.width())
    }

    /// Prefetches the lines of the buckets of `hash`.
    #[inline(always)]
    pub(super) fn fetch(&self, words: &[u64], hash: u64) {
        let fingerprint = self.fingerprint(hash);
        for i in 0..self.shape.subtables {
            let bit = self.bucket(fingerprint, i) * u64::from(self.shape.width());
            let last = bit + u64::from(self.shape.width() * self.shape.cells - 1);
            prefetch(words.as_ptr().wrapping_add((bit >> 6) as usize));
            prefetch(words.as_ptr().wrapping_add((last >> 6) as usize));
        }
    }

    /// True if a cell holds the fingerprint.
    #[inline(always)]
    pub(super) fn contains(&self, words: &[u64], fingerprint: u64) -> bool {
        let wanted = self.ones * self.remainder(fingerprint);
        let mut found = 0;
        for i in 0..self.shape.subtables {
            self.groups(words, self.bucket(fingerprint, i), |_, group, flags| {
                found |= self.hits(group, flags, wanted);
                true
            });
            if found != 0 {
                return true;
            }
        }
        false
    }

    /// The least loaded bucket, the leftmost of several, and whether a cell holds the fingerprint.
    #[inline(always)]
    pub(super) fn survey(&self, words: &[u64], fingerprint: u64) -> (BucketChoice, bool) {
        let wanted = self.ones * self.remainder(fingerprint);
        let (mut room, mut found) = (BucketChoice { first: 0, load: u32::MAX }, 0);
        for i in 0..self.shape.subtables {
            let first = self.bucket(fingerprint, i);
            let mut load = 0;
            self.groups(words, first, |_, group, flags| {
                load += Self::count_used(group, flags).count_ones();
                found |= self.hits(group, flags, wanted);
                true
            });
            if load < room.load {
                room = BucketChoice { first, load };
            }
        }
        (room, found != 0)
    }

    /// Puts the fingerprint with digit 1 into the first free cell of `room`; false if it is full.
    #[inline(always)]
    pub(super) fn place(&self, words: &mut [u64], room: BucketChoice, fingerprint: u64) -> bool {
        let mut free = None;
        self.groups(words, room.first, |cell, group, flags| {
            let unused = flags & !Self::count_used(group, flags);
            free = (unused != 0).then(|| cell + self.lane(unused));
            free.is_none()
        });
        if let Some(cell) = free {
            self.packed.set(words, cell, 1 << self.shape.remainder_bits | self.remainder(fingerprint));
        }
        free.is_some()
    }

    /// Calls `visit` with every cell of the fingerprint, left to right, until it returns false.
    pub(super) fn each_cell(&self, words: &[u64], fingerprint: u64, mut visit: impl FnMut(u64) -> bool) {
        let wanted = self.ones * self.remainder(fingerprint);
        let mut going = true;
        for i in 0..self.shape.subtables {
            self.groups(words, self.bucket(fingerprint, i), |cell, group, flags| {
                let mut hits = self.hits(group, flags, wanted);
                while going && hits != 0 {
                    going = visit(cell + self.lane(hits));
                    hits &= hits - 1;
                }
                going
            });
            if !going {
                return;
            }
        }
    }

    /// Digit of a cell.
    #[inline(always)]
    pub(super) fn digit(&self, words: &[u64], cell: u64) -> u64 {
        self.packed.get(words, cell) >> self.shape.remainder_bits
    }

    /// Sets the digit of a used cell; 0 frees it.
    #[inline(always)]
    pub(super) fn set_digit(&self, words: &mut [u64], cell: u64, digit: u64) {
        let remainder = self.remainder(self.packed.get(words, cell));
        let value = if digit == 0 { 0 } else { digit << self.shape.remainder_bits | remainder };
        self.packed.set(words, cell, value);
    }

    /// Cells in use.
    pub(super) fn used_cells(&self, words: &[u64]) -> u64 {
        self.count_used_in(words, 0..words.len())
    }

    /// The number of words to whose multiples a range must extend to begin and end between two buckets.
    pub(super) fn step(&self) -> usize {
        let bits = self.bucket_bits();
        (bits >> bits.trailing_zeros().min(6)) as usize
    }

    /// Cells in use in these words.
    pub(super) fn count_used_in(&self, words: &[u64], range: Range<usize>) -> u64 {
        let [first, end] = [range.start, range.end].map(|word| word as u64 * 64 / self.bucket_bits());
        let mut used = 0;
        for bucket in first..end.min(self.shape.buckets * u64::from(self.shape.subtables)) {
            self.groups(words, bucket * u64::from(self.shape.cells), |_, group, flags| {
                used += u64::from(Self::count_used(group, flags).count_ones());
                true
            });
        }
        used
    }

    fn bucket_bits(&self) -> u64 {
        u64::from(self.shape.cells * self.shape.width())
    }

    /// Buckets by the number of cells in use, from 0 to w.
    pub(super) fn loads(&self, words: &[u64]) -> Vec<u64> {
        let mut loads = vec![0; self.shape.cells as usize + 1];
        for bucket in 0..self.shape.buckets * u64::from(self.shape.subtables) {
            let mut load = 0;
            self.groups(words, bucket * u64::from(self.shape.cells), |_, group, flags| {
                load += Self::count_used(group, flags).count_ones() as usize;
                true
            });
            loads[load] += 1;
        }
        loads
    }
}
