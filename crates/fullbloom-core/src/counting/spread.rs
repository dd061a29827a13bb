//! k cells anywhere: the distinct positions of a key.
//!
//! Position i is that of scheme 1, `mcg`; positions that repeat an earlier probe of the same key are left out, so that
//! a key changes a cell once when it is added and once when it is removed.

use std::convert::Infallible;
use std::ops::Range;

use super::shape::MAX_HASHES;
use crate::cells::PackedCells;
use crate::isa::prefetch;
use crate::scheme::ahead::{answer_ahead, change_ahead};
use crate::scheme::mcg::Mcg;
use crate::scheme::positions;
use crate::scheme::probes::Sequence;
use crate::structure::cell_stats::{CellCounts, FULL, SET};

/// Keys fetched ahead; each needs k lines, and a core has 10 to 12 line-fill buffers.
pub(super) const AHEAD: usize = 8;

/// Cells of one width, k of them a key.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The width.
    pub packed: PackedCells,
    /// m.
    pub num_cells: u64,
    /// k.
    pub num_hashes: u32,
}

/// The distinct positions of a key, in the order of their first probes.
pub struct Positions {
    at: [u64; MAX_HASHES as usize],
    len: usize,
}

impl Positions {
    /// The positions.
    #[inline(always)]
    pub fn all(&self) -> &[u64] {
        &self.at[..self.len]
    }
}

/// Counts the cells in a range of `words`: those that are not zero, and those at their maximum.
pub(super) fn count(packed: PackedCells, words: &[u64], range: Range<usize>, cells: u64, counts: &mut CellCounts) {
    let (cells, words) = (packed.cells_in(&range, cells), &words[range]);
    counts.add(SET, packed.count_set(words, cells));
    counts.add(FULL, packed.count_full(words, cells));
}

/// Calls `word` with each word that holds a part of one of these cells.
pub(super) fn visit_words(packed: PackedCells, cells: impl IntoIterator<Item = u64>, word: impl FnMut(usize)) {
    cells.into_iter().flat_map(|cell| packed.words_of(cell)).for_each(word);
}

impl Spread {
    /// The cells of `hash`.
    #[inline(always)]
    pub fn positions(&self, hash: u64) -> Positions {
        let mut positions = Positions { at: [0; MAX_HASHES as usize], len: 0 };
        let mut sequence = Mcg::start(hash, self.num_cells);
        for _ in 0..self.num_hashes.min(MAX_HASHES) {
            let position = sequence.next();
            if !positions.all().contains(&position) {
                positions.at[positions.len] = position;
                positions.len += 1;
            }
        }
        positions
    }

    /// Prefetches the lines of `hash`.
    #[inline(always)]
    pub fn fetch(&self, words: &[u64], hash: u64) {
        let mut sequence = Mcg::start(hash, self.num_cells);
        for _ in 0..self.num_hashes {
            let bit = sequence.next() * u64::from(self.packed.width());
            prefetch(words.as_ptr().wrapping_add((bit >> 6) as usize));
        }
    }

    /// Writes an answer for each of `hashes` into `out`, cells fetched ahead.
    #[inline(always)]
    pub fn answer<T>(&self, words: &[u64], hashes: &[u64], out: &mut [T], answer: impl Fn(u64) -> T) {
        answer_ahead(AHEAD, hashes, out, |hash| self.fetch(words, hash), answer);
    }

    /// Changes `words` for each of `hashes`, cells fetched ahead; `mask`, if given, records which changes returned
    /// true. Returns how many did.
    #[inline(always)]
    pub fn change(
        &self,
        words: &mut [u64],
        hashes: &[u64],
        mask: Option<&mut [u8]>,
        mut change: impl FnMut(&mut [u64], u64) -> bool,
    ) -> u64 {
        let mut count = 0;
        let fetch = |words: &[u64], hash| self.fetch(words, hash);
        let Ok(()) = change_ahead(AHEAD, words, hashes, mask, fetch, |words, hash| {
            let changed = change(words, hash);
            count += u64::from(changed);
            Ok::<bool, Infallible>(changed)
        });
        count
    }

    /// The least of the cells of `hash`, looking no further than a zero.
    #[inline(always)]
    pub fn least(&self, words: &[u64], hash: u64) -> u64 {
        let mut sequence = Mcg::start(hash, self.num_cells);
        let mut least = u64::MAX;
        for _ in 0..self.num_hashes {
            least = least.min(self.packed.get(words, sequence.next()));
            if least == 0 {
                break;
            }
        }
        least
    }

    /// Adds one to every cell that is not at its maximum; the least value before.
    #[inline(always)]
    pub fn add(&self, words: &mut [u64], hash: u64) -> u64 {
        let mut least = u64::MAX;
        for &cell in self.positions(hash).all() {
            let value = self.packed.get(words, cell);
            least = least.min(value);
            if value < self.packed.max() {
                self.packed.set(words, cell, value + 1);
            }
        }
        least
    }

    /// Decrements every cell that is not at its maximum, unless one is zero; returns the smallest value before, so 0 if
    /// nothing changed.
    #[inline(always)]
    pub fn remove(&self, words: &mut [u64], hash: u64) -> u64 {
        let least = self.least(words, hash);
        if least > 0 {
            for &cell in self.positions(hash).all() {
                let value = self.packed.get(words, cell);
                if value < self.packed.max() {
                    self.packed.set(words, cell, value - 1);
                }
            }
        }
        least
    }
}

/// Adds `other` to `words` cell by cell, stopping at the maximum.
pub fn add_saturating(packed: PackedCells, words: &mut [u64], other: &[u64], cells: u64) {
    let (width, max) = (packed.width(), packed.max());
    if !width.is_power_of_two() || width == 64 {
        for i in 0..cells {
            let sum = packed.get(words, i).saturating_add(packed.get(other, i)).min(max);
            packed.set(words, i, sum);
        }
        return;
    }
    // Adding without the top bit of each cell cannot carry into the next; the top bit and its carry are computed
    // separately, and a carry becomes all ones.
    let top = (u64::MAX / max) << (width - 1);
    for (a, &b) in words.iter_mut().zip(other) {
        let (x, y) = (u64::from_le(*a), u64::from_le(b));
        let sum = ((x & !top) + (y & !top)) ^ ((x ^ y) & top);
        let carry = ((x & y) | ((x | y) & !sum)) & top;
        *a = (sum | ((carry >> (width - 1)) * max)).to_le();
    }
}

/// True if no cell of this width spans two words.
fn is_aligned(packed: PackedCells) -> bool {
    packed.width().is_power_of_two()
}

/// The mask of cell `i` of a word.
fn masks(packed: PackedCells) -> impl Iterator<Item = u64> {
    (0..64 / packed.width()).map(move |i| packed.max() << (i * packed.width()))
}

/// Number of cells that are not zero in at least one of the two.
pub fn count_union(packed: PackedCells, words: &[u64], other: &[u64], cells: u64) -> u64 {
    if is_aligned(packed) {
        return words.iter().zip(other).map(|(&a, &b)| packed.count_set(&[a | b], 1)).sum();
    }
    (0..cells).map(|i| u64::from(packed.get(words, i) | packed.get(other, i) != 0)).sum()
}

/// Lowers the cells of `words` to those of `other` if these are lower; true if none was.
pub fn keep_least(packed: PackedCells, words: &mut [u64], other: &[u64], cells: u64) -> bool {
    let mut same = true;
    if is_aligned(packed) {
        for (a, &b) in words.iter_mut().zip(other) {
            let (x, y) = (u64::from_le(*a), u64::from_le(b));
            let least = masks(packed).fold(0, |least, mask| least | (x & mask).min(y & mask));
            same &= least == x;
            *a = least.to_le();
        }
        return same;
    }
    for i in 0..cells {
        let (x, y) = (packed.get(words, i), packed.get(other, i));
        if y < x {
            packed.set(words, i, y);
            same = false;
        }
    }
    same
}

/// True if no cell of `words` exceeds that of `other`.
pub fn is_at_most(packed: PackedCells, words: &[u64], other: &[u64], cells: u64) -> bool {
    if is_aligned(packed) {
        return words.iter().zip(other).all(|(&a, &b)| {
            let (x, y) = (u64::from_le(a), u64::from_le(b));
            masks(packed).all(|mask| x & mask <= y & mask)
        });
    }
    (0..cells).all(|i| packed.get(words, i) <= packed.get(other, i))
}

/// True if a bit after the last of `cells` cells is set.
pub fn has_bits_past(packed: PackedCells, words: &[u64], cells: u64) -> bool {
    positions::has_bits_past(words, cells * u64::from(packed.width()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_counts_agree_with_single_cells() {
        for width in [2, 3, 4, 8, 16, 32, 64] {
            let packed = PackedCells::new(width).unwrap();
            let cells = 100;
            let words = packed.words(cells).unwrap() as usize;
            let (mut a, mut b) = (vec![0u64; words], vec![0u64; words]);
            let mut x = 5u64;
            for i in 0..cells {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                packed.set(&mut a, i, ((x >> 40) * ((x >> 30) & 1)) & packed.max());
                packed.set(&mut b, i, ((x >> 20) * ((x >> 31) & 1)) & packed.max());
            }
            let sums: Vec<u64> =
                (0..cells).map(|i| packed.get(&a, i).saturating_add(packed.get(&b, i)).min(packed.max())).collect();
            let two = |f: fn(u64, u64) -> u64| -> Vec<u64> {
                (0..cells).map(|i| f(packed.get(&a, i), packed.get(&b, i))).collect()
            };
            let (least, either) = (two(u64::min), two(|x, y| u64::from(x | y != 0)));
            let mut kept = a.clone();
            assert_eq!(keep_least(packed, &mut kept, &b, cells), kept == a);
            assert!((0..cells).all(|i| packed.get(&kept, i) == least[i as usize]), "width {width}");
            assert!(is_at_most(packed, &kept, &a, cells) && is_at_most(packed, &kept, &b, cells));
            assert_eq!(is_at_most(packed, &a, &kept, cells), kept == a);
            assert_eq!(count_union(packed, &a, &b, cells), either.iter().sum::<u64>());
            add_saturating(packed, &mut a, &b, cells);
            assert!((0..cells).all(|i| packed.get(&a, i) == sums[i as usize]), "width {width}");
            assert_eq!(packed.count_set(&a, cells), sums.iter().filter(|&&v| v > 0).count() as u64);
        }
    }

    #[test]
    fn a_key_has_each_cell_once() {
        let spread = Spread { packed: PackedCells::new(4).unwrap(), num_cells: 5, num_hashes: 20 };
        let positions = spread.positions(0x1234_5678_9abc_def1);
        let mut sorted = positions.all().to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), positions.all().len());
    }
}
