//! [`PackedCells`]: cells of w bits, side by side in words, LSB first; a cell may straddle two words.

use std::ops::{Range, RangeInclusive};

/// The width of a run of cells. The cells themselves are words of a [`super::Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedCells {
    width: u32,
}

impl PackedCells {
    /// Cells of `width` bits, 1 to 64.
    pub fn new(width: u32) -> Option<Self> {
        (1..=64).contains(&width).then_some(PackedCells { width })
    }

    /// Bits of a cell.
    pub fn width(self) -> u32 {
        self.width
    }

    /// Largest value of a cell.
    #[inline(always)]
    pub fn max(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// Words that `cells` cells need; `None` beyond what a machine can address.
    pub fn words(self, cells: u64) -> Option<u64> {
        cells.checked_mul(u64::from(self.width)).map(|bits| bits.div_ceil(64))
    }

    /// Word and shift of cell `i`.
    #[inline(always)]
    fn place(self, i: u64) -> (usize, u32) {
        let bit = i * u64::from(self.width);
        ((bit >> 6) as usize, (bit & 63) as u32)
    }

    /// The value of cell `i`, which must lie in `words`.
    #[inline(always)]
    pub fn get(self, words: &[u64], i: u64) -> u64 {
        let (word, shift) = self.place(i);
        let low = u64::from_le(words[word]) >> shift;
        if shift + self.width <= 64 {
            return low & self.max();
        }
        (low | u64::from_le(words[word + 1]) << (64 - shift)) & self.max()
    }

    /// Sets cell `i`, which must lie in `words`, to `value`, which must not exceed [`PackedCells::max`].
    #[inline(always)]
    pub fn set(self, words: &mut [u64], i: u64, value: u64) {
        debug_assert!(value <= self.max());
        let (word, shift) = self.place(i);
        let old = u64::from_le(words[word]);
        words[word] = ((old & !(self.max() << shift)) | value << shift).to_le();
        if shift + self.width > 64 {
            let done = 64 - shift;
            let old = u64::from_le(words[word + 1]);
            words[word + 1] = ((old & !(self.max() >> done)) | value >> done).to_le();
        }
    }

    /// The number of words to whose multiples a run of words must extend to begin and end between two cells.
    pub fn step(self) -> usize {
        (self.width >> self.width.trailing_zeros().min(6)) as usize
    }

    /// How many of `cells` cells are in these words, which begin at a multiple of [`PackedCells::step`].
    pub fn cells_in(self, words: &Range<usize>, cells: u64) -> u64 {
        let width = u64::from(self.width);
        let before = words.start as u64 * 64 / width;
        (words.len() as u64 * 64 / width).min(cells.saturating_sub(before))
    }

    /// The words that hold a part of cell `i`.
    pub fn words_of(self, i: u64) -> RangeInclusive<usize> {
        let (first, last) = (i * u64::from(self.width), (i + 1) * u64::from(self.width) - 1);
        (first >> 6) as usize..=(last >> 6) as usize
    }

    /// Number of cells that are not zero, among the first `cells` of `words`.
    pub fn count_set(self, words: &[u64], cells: u64) -> u64 {
        let width = self.width();
        if !width.is_power_of_two() {
            return (0..cells).map(|i| u64::from(self.get(words, i) != 0)).sum();
        }
        // Every bit of a cell folded into its lowest; whole words, since padding is zero.
        let lowest = u64::MAX / self.max();
        let set = |&word: &u64| {
            let mut folded = u64::from_le(word);
            let mut step = width / 2;
            while step > 0 {
                folded |= folded >> step;
                step /= 2;
            }
            u64::from((folded & lowest).count_ones())
        };
        words.iter().map(set).sum()
    }

    /// Number of cells at [`PackedCells::max`], among the first `cells` of `words`.
    pub fn count_full(self, words: &[u64], cells: u64) -> u64 {
        let width = self.width();
        if !width.is_power_of_two() {
            return (0..cells).map(|i| u64::from(self.get(words, i) == self.max())).sum();
        }
        // As above; padding is zero, and so not full.
        let lowest = u64::MAX / self.max();
        let full = |&word: &u64| {
            let mut folded = u64::from_le(word);
            let mut step = width / 2;
            while step > 0 {
                folded &= folded >> step;
                step /= 2;
            }
            u64::from((folded & lowest).count_ones())
        };
        words.iter().map(full).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_width_keep_their_values_and_leave_their_neighbours() {
        for width in 1..=64 {
            let packed = PackedCells::new(width).unwrap();
            let cells = 200;
            let mut words = vec![0u64; packed.words(cells).unwrap() as usize];
            let mut model = vec![0u64; cells as usize];
            let mut x = 7u64;
            for _ in 0..2000 {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let (i, value) = ((x >> 33) % cells, x.rotate_left(17) & packed.max());
                packed.set(&mut words, i, value);
                model[i as usize] = value;
            }
            assert!((0..cells).all(|i| packed.get(&words, i) == model[i as usize]), "width {width}");
            (0..20).for_each(|i| packed.set(&mut words, i * 7, packed.max()));
            let full = (0..cells).filter(|&i| packed.get(&words, i) == packed.max()).count() as u64;
            assert_eq!(packed.count_full(&words, cells), full, "width {width}");
            let all = (packed.count_set(&words, cells), full);
            for slice in [packed.step(), 3 * packed.step()] {
                let slices = (0..words.len()).step_by(slice).map(|at| at..words.len().min(at + slice));
                let sum = slices.fold((0, 0), |(set, full), range| {
                    let (cells, words) = (packed.cells_in(&range, cells), &words[range]);
                    (set + packed.count_set(words, cells), full + packed.count_full(words, cells))
                });
                assert_eq!(sum, all, "width {width}");
            }
        }
    }
}
