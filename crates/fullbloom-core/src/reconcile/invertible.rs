//! [`InvertibleBloomFilter`]: a table whose keys can be listed, even those of a difference of two tables.
//!
//! Goodrich and Mitzenmacher, "Invertible Bloom lookup tables", 2011; Eppstein et al., "What's the difference?", 2011.
//! Four sub-tables of cells; a key is in one cell of each. Two tables subtracted hold the difference of their sets,
//! whatever they have in common, and [`peel`](super::peel) lists it. A cell is two words: see [`Cell::to_words`].

use std::ops::Range;

use super::cell::{Cell, check};
use super::peel::{DecodedKeys, PROBES, peel, places};
use crate::cells::allocation::reserve;
use crate::cells::{LINE_WORDS, Memory};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::key::KeyHasher;
use crate::registry::INVERTIBLE;
use crate::sizing::{check_reachable, check_sized, invertible as sizing};
use crate::structure::declaration::structure;
use crate::structure::load::{Load, load_answers};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::traits::write_methods;
use crate::structure::{Addable, CellCounts, CellStats, Filter, Loadable, Mergeable, Positioned, Removable, Sections};

structure! {
    /// A table of sums of keys: the difference of two tables lists the keys in which their sets differ.
    class InvertibleBloomFilter;
    parameters {
        /// keys, or differences of two tables, that decode lists completely in 999 of 1000 tables.
        capacity: "int";
        /// rate of false positives of `in` at capacity keys; more cells than decoding needs below 0.3.
        fpr: "float" = 0.5;
    }
    /// Holds any number of keys, each of which may be added once: the capacity bounds only what decode() lists. In a - b,
    /// the keys of both cancel out. A key that was added twice makes decode() incomplete, and so do more keys than the
    /// capacity; the keys that it lists are still right.
    ///
    /// False negatives: only after a key is removed that was not added, or in a difference. Never warns of its capacity. Raises
    /// ParameterError, ParameterTypeError, FilterMemoryError. Cost: 16 bytes per cell, 1.3 cells per key of the capacity and
    /// some more if that is small; four cache lines per key. Source: Goodrich, Mitzenmacher, Invertible Bloom lookup
    /// tables, Allerton 2011; Eppstein, Goodrich, Uyeda, Varghese, SIGCOMM 2011.
    ///
    /// >>> from fullbloom import InvertibleBloomFilter
    /// >>> mine, theirs = InvertibleBloomFilter(100), InvertibleBloomFilter(100)
    /// >>> mine.update(range(5000)), theirs.update(range(2, 5001))
    /// (None, None)
    /// >>> decoded = (mine - theirs).decode(numbers=True)
    /// >>> decoded.mine, decoded.theirs, decoded.complete
    /// ([0, 1], [5000], True)
    fields {
        /// Cells of each of the four sub-tables.
        each: u64 = |f| f.each, TABLE_CELLS merged;
        /// Number of cells.
        pub num_cells: u64 = |f| f.each * PROBES as u64;
        /// Cells of a key.
        pub num_hashes: u32 = |_| PROBES as u32;
        /// True when the cells are in a mapped file.
        pub mapped: bool = |f| f.sums.is_mapped();
    }
}

/// A table whose keys can be listed.
pub struct InvertibleBloomFilter {
    each: u64,
    load: Load,
    sums: Memory,
    hasher: KeyHasher,
}

/// Words of a table.
fn words(each: u64) -> u64 {
    each.saturating_mul(2 * PROBES as u64)
}

/// Cells of a sub-table.
fn size_for(capacity: u64, fpr: f64) -> Result<u64> {
    check_sized(capacity, fpr)?;
    check_reachable(capacity, fpr)?;
    sizing::cells(capacity, fpr)
}

#[inline(always)]
fn get(words: &[u64], at: usize) -> Cell {
    Cell::from_words([words[2 * at], words[2 * at + 1]])
}

/// Words of a cell.
const CELL_WORDS: usize = 2;

#[inline(always)]
fn set(words: &mut [u64], at: usize, cell: Cell) {
    [words[2 * at], words[2 * at + 1]] = cell.to_words();
}

impl InvertibleBloomFilter {
    /// An empty table.
    pub fn construct(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let each = size_for(capacity, fpr)?;
        Ok(InvertibleBloomFilter { each, load: Load::new(capacity, fpr)?, sums: Memory::zeroed(words(each))?, hasher })
    }

    /// Bytes of such a table.
    pub fn cell_bytes(capacity: u64, fpr: f64) -> Result<u64> {
        Ok(words(size_for(capacity, fpr)?).next_multiple_of(LINE_WORDS as u64).saturating_mul(8))
    }

    /// Adds a key `times`, 1 or -1.
    #[inline(always)]
    fn put(&mut self, hash: u64, times: i64) -> Result<()> {
        let places = places(hash, self.each);
        let words = self.sums.writable()?;
        for at in places {
            let mut cell = get(words, at);
            cell.put(hash, check(hash), times);
            set(words, at, cell);
        }
        Ok(())
    }

    /// Adds all of another table `times`, 1 or -1.
    fn join(&mut self, other: &Self, times: i64) -> Result<()> {
        self.check_compatible(other)?;
        let all = 0..self.each as usize * PROBES;
        let words = self.sums.writable()?;
        for at in all {
            let mut cell = get(words, at);
            cell.join(get(other.sums.words(), at), times);
            set(words, at, cell);
        }
        Ok(())
    }

    /// Removes the keys of `other`, even those that are absent: the table then holds a difference, and its number of
    /// keys is the difference of the two numbers.
    pub fn subtract(&mut self, other: &Self) -> Result<()> {
        self.join(other, -1)?;
        self.load.added = self.load.added.abs_diff(other.load.added);
        Ok(())
    }

    /// The keys, by sign. Takes O(cells), and as much memory again; terminates for any cells.
    pub fn decode(&self) -> Result<DecodedKeys> {
        let mut cells = Vec::new();
        reserve(&mut cells, self.each as usize * PROBES)?;
        cells.extend((0..self.each as usize * PROBES).map(|at| get(self.sums.words(), at)));
        Ok(peel(&mut cells))
    }

    /// Share of the cells of each sub-table for which `test` is true.
    fn shares(&self, test: impl Fn(Cell) -> bool) -> [f64; PROBES] {
        let each = self.each as usize;
        std::array::from_fn(|table| {
            let all = table * each..(table + 1) * each;
            all.filter(|&at| test(get(self.sums.words(), at))).count() as f64 / each as f64
        })
    }
}

impl Filter for InvertibleBloomFilter {
    memory_methods! { INVERTIBLE, 0, load; sums: SUMS }
    load_answers!(added);

    /// Keys fetched ahead, each four lines of the 10 to 12 that a core can fetch at a time.
    const AHEAD: usize = 4;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        for at in places(hash, self.each) {
            prefetch(self.sums.words().as_ptr().wrapping_add(2 * at));
        }
    }

    /// A cell rules a key out when it is empty or holds another key alone.
    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        let words = self.sums.words();
        places(hash, self.each).into_iter().all(|at| {
            let cell = get(words, at);
            !cell.is_empty() && (cell.key == hash || !cell.is_pure())
        })
    }

    /// Of the cells as they are: also of a difference.
    fn fpr(&self) -> f64 {
        self.shares(|cell| !cell.is_empty() && !cell.is_pure()).iter().product()
    }

    fn fill(&self) -> f64 {
        self.shares(|cell| !cell.is_empty()).iter().sum::<f64>() / PROBES as f64
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![CELL_WORDS])
    }

    /// For each sub-table, cells that are not empty, and those that hold several keys.
    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        let each = self.each as usize;
        let cells = words.start / CELL_WORDS..(words.end / CELL_WORDS).min(each * PROBES);
        for at in cells {
            let cell = get(self.sums.words(), at);
            if !cell.is_empty() {
                counts.add(at / each, 1);
                counts.add(PROBES + at / each, u64::from(!cell.is_pure()));
            }
        }
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let share = |at| counts.get(at) as f64 / self.each as f64;
        CellStats {
            fill: (0..PROBES).map(share).sum::<f64>() / PROBES as f64,
            fpr: (PROBES..2 * PROBES).map(share).product(),
            ..CellStats::default()
        }
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        let cells = hashes.iter().flat_map(|&hash| places(hash, self.each));
        cells.flat_map(|at| CELL_WORDS * at..CELL_WORDS * (at + 1)).for_each(|at| word(0, at));
        true
    }
}

impl Addable for InvertibleBloomFilter {
    #[inline]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let new = !self.contains_hash(hash);
        self.put(hash, 1)?;
        self.load.count(true);
        Ok(new)
    }

    write_methods!(sums);
    clear_method!(sums);
}

impl Removable for InvertibleBloomFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        self.check_writable()?;
        let there = self.contains_hash(hash);
        if there {
            self.put(hash, -1)?;
            self.load.uncount(true);
        }
        Ok(there)
    }
}

impl Positioned for InvertibleBloomFilter {
    fn positions(&self, hash: u64) -> Vec<u64> {
        places(hash, self.each).map(|at| at as u64).into()
    }
}

impl Mergeable for InvertibleBloomFilter {
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.join(other, 1)?;
        self.load.added = self.load.added.saturating_add(other.load.added);
        Ok(())
    }
}

impl Loadable for InvertibleBloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { each }, load) = Stored::with_load(header, 0)?;
        if !(2..1 << 48).contains(&each) {
            return Err(Error::Format(format!("the file says that a sub-table has {each} cells; it is damaged")));
        }
        Ok(InvertibleBloomFilter { each, load, sums: memory(kind::SUMS, 0, words(each))?, hasher })
    }

    /// Every key is in one cell of each sub-table, so that these have equal sums; those of an empty table are zero.
    fn check_cells(&self) -> Result<()> {
        let sums: [Cell; PROBES] = std::array::from_fn(|table| {
            let mut sum = Cell::default();
            for at in table * self.each as usize..(table + 1) * self.each as usize {
                sum.join(get(self.sums.words(), at), 1);
            }
            // Counts as in a file: modulo 2^32.
            Cell { count: i64::from(sum.count as u32), ..sum }
        });
        if sums.iter().any(|sum| *sum != sums[0]) {
            return Err(Error::format("the sub-tables of the file hold different keys; it is damaged"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::{hash, reload};

    fn table(capacity: u64) -> InvertibleBloomFilter {
        InvertibleBloomFilter::construct(capacity, 0.5, KeyHasher::seeded(0)).unwrap()
    }

    #[test]
    fn a_difference_lists_its_keys_by_side() {
        for (capacity, common, mine, theirs) in
            [(1u64, 1000u64, 1u64, 0u64), (20, 10_000, 7, 13), (3000, 100, 1500, 1500)]
        {
            let (mut a, mut b) = (table(capacity), table(capacity));
            (0..common + mine).for_each(|i| assert!(a.add_hash(hash(i)).is_ok()));
            (0..common).chain(1 << 40..(1 << 40) + theirs).for_each(|i| assert!(b.add_hash(hash(i)).is_ok()));
            a.subtract(&b).unwrap();
            let decoded = reload(&a).decode().unwrap();
            let sorted = |range: std::ops::Range<u64>| {
                let mut all: Vec<u64> = range.map(hash).collect();
                all.sort_unstable();
                all
            };
            assert!(decoded.complete);
            assert_eq!(decoded.mine, sorted(common..common + mine));
            assert_eq!(decoded.theirs, sorted(1 << 40..(1 << 40) + theirs));
        }
    }

    #[test]
    fn undecodable_tables_say_so_and_terminate() {
        let mut twice = table(10);
        (0..2).for_each(|_| assert!(twice.add_hash(7).is_ok()));
        assert_eq!(twice.decode().unwrap(), DecodedKeys::default());
        assert!(twice.contains_hash(7));
        let mut full = table(10);
        (0..1000).for_each(|i| assert!(full.add_hash(hash(i)).is_ok()));
        assert!(!full.decode().unwrap().complete && full.fpr() > 0.5);
        // Cells of nonsense, some with checks that hold.
        for seed in 0..200 {
            let mut cells: Vec<Cell> = (0..64)
                .map(|i| {
                    let key = hash(seed * 64 + i);
                    let sound = if key.is_multiple_of(3) { 0 } else { check(key) };
                    Cell { count: (key >> 62) as i64 - 1, key, check: sound }
                })
                .collect();
            let decoded = peel(&mut cells);
            assert!(!decoded.complete && decoded.mine.len() + decoded.theirs.len() <= 64);
        }
        assert!(peel(&mut []).complete);
    }

    #[test]
    fn one_table_in_a_thousand_is_not_decoded_at_capacity() {
        for (capacity, trials) in [(2u64, 20_000u64), (20, 10_000), (200, 2000), (2000, 300)] {
            let each = sizing::cells(capacity, 0.5).unwrap();
            let mut failed = 0;
            for trial in 0..trials {
                let mut cells = vec![Cell::default(); each as usize * PROBES];
                for i in 0..capacity {
                    let key = hash(trial * capacity + i);
                    places(key, each).into_iter().for_each(|at| cells[at].put(key, check(key), 1));
                }
                failed += u64::from(!peel(&mut cells).complete);
            }
            let mean = trials as f64 / 1000.0;
            assert!((failed as f64) < mean + 4.5 * mean.sqrt() + 2.0, "{capacity}: {failed} of {trials}");
        }
    }
}
