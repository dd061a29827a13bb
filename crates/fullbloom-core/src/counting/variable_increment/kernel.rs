//! [`Kernel`]: the cells of a key, and what it adds to each.
//!
//! ```text
//! cell of probe i: scheme 1, `mcg`; a cell that an earlier probe of the key has taken is left out
//! y_i = h * M2^(i + 1) mod 2^64,    v_i = L + the top log2 L bits of y_i
//! ```

use super::shape::Shape;
use crate::cells::PackedCells;
use crate::counting::shape::MAX_HASHES;
use crate::counting::spread::Spread;
use crate::scheme::mcg::Mcg;
use crate::scheme::probes::Sequence;

/// The second multiplier of `columns`.
const M2: u64 = 0xaf25_1af3_b0f0_25b5;

/// The loops over a key's cells.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    /// The cells.
    pub(in crate::counting) spread: Spread,
    /// L.
    increments: u64,
    /// 64 - log2 L.
    shift: u32,
}

impl Kernel {
    pub(super) fn new(shape: &Shape, packed: PackedCells) -> Self {
        let spread = Spread { packed, num_cells: shape.num_cells, num_hashes: shape.num_hashes };
        let shift = 64 - shape.increments.max(2).ilog2();
        Kernel { spread, increments: shape.increments, shift }
    }

    #[inline(always)]
    fn accepts(&self, value: u64, v: u64) -> bool {
        value == v || value >= v + self.increments || value == self.spread.packed.max()
    }

    /// Calls `visit` with each distinct cell of `hash` and its increment, until it returns false.
    #[inline(always)]
    fn each(&self, hash: u64, mut visit: impl FnMut(u64, u64) -> bool) -> bool {
        let mut taken = [0u64; MAX_HASHES as usize];
        let mut sequence = Mcg::start(hash, self.spread.num_cells);
        let (mut y, mut len) = (hash, 0);
        for _ in 0..self.spread.num_hashes.min(MAX_HASHES) {
            let cell = sequence.next();
            y = y.wrapping_mul(M2);
            if taken[..len].contains(&cell) {
                continue;
            }
            taken[len] = cell;
            len += 1;
            if !visit(cell, self.increments + (y >> self.shift)) {
                return false;
            }
        }
        true
    }

    #[inline(always)]
    pub(super) fn contains(&self, words: &[u64], hash: u64) -> bool {
        self.each(hash, |cell, v| self.accepts(self.spread.packed.get(words, cell), v))
    }

    /// Adds; true if a cell could not have contained the key.
    #[inline(always)]
    pub(super) fn add(&self, words: &mut [u64], hash: u64) -> bool {
        let packed = self.spread.packed;
        let mut new = false;
        self.each(hash, |cell, v| {
            let value = packed.get(words, cell);
            new |= !self.accepts(value, v);
            packed.set(words, cell, (value + v).min(packed.max()));
            true
        });
        new
    }

    /// Removes unless certainly absent: reports whether it did, and whether the key is absent now.
    #[inline(always)]
    pub(super) fn remove(&self, words: &mut [u64], hash: u64) -> (bool, bool) {
        if !self.contains(words, hash) {
            return (false, false);
        }
        let packed = self.spread.packed;
        let mut gone = false;
        self.each(hash, |cell, v| {
            let value = packed.get(words, cell);
            if value != packed.max() {
                packed.set(words, cell, value - v);
                gone |= !self.accepts(value - v, v);
            }
            true
        });
        (true, gone)
    }
}
