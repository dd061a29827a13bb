//! [`DLeftCountingFilter`]: an exact multiset of fingerprints in d sub-tables of buckets.
//!
//! Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, "An improved construction for counting Bloom filters", 2006. A
//! new fingerprint goes to the least loaded of its d buckets, the leftmost of several. [`self::table`] derives
//! fingerprints and buckets from a hash; [`self::copies`] counts copies.
//!
//! The rate is that of fingerprints alone: D distinct ones among B R find an absent key with probability D / (B R), on
//! average 1 - (1 - 1/(B R))^n.

pub mod copies;
pub mod shape;
pub mod table;

use std::ops::Range;

use self::shape::Shape;
use self::table::Table;
use crate::cells::{LINE_WORDS, Memory};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::D_LEFT;
use crate::sizing::fingerprints;
use crate::structure::cell_stats::{CellCounts, CellStats, SET};
use crate::structure::declaration::{narrow, structure};
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::{Addable, Countable, Filter, Loadable, Mergeable, Removable, Sections};

structure! {
    /// A counting filter of fingerprints in d sub-tables: exact removal and counts, in two fifths of the
    /// space of a counting Bloom filter.
    class DLeftCountingFilter;
    parameters {
        /// expected number of distinct keys with up to 3 copies each; 4 to 12 copies take two cells, 13 to 39
        /// three, a million 13.
        capacity: "int";
        /// rate of false positives at capacity.
        fpr: "float" = 0.01;
        *;
        /// d, 2 to 8; a key has one bucket in each and goes to the least loaded.
        subtables: "int" = 4;
        /// w, 6 to 64, cells of a bucket; 8 is the published design, 12 packs tighter.
        cells: "int" = 12;
    }
    /// False negatives: never, unless a key is removed that was not added; if it is a false positive, the
    /// removal takes a copy from a key with the same fingerprint. count() is exact except for keys that share
    /// a fingerprint, whose counts add up: never too low.
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError; FilterFull when all buckets of a key
    /// are full, which changes nothing: remove keys and continue. Up to capacity, it did not occur in simulations
    /// with 3 or more sub-tables and at most 3 copies per key; with 2 sub-tables, it did for one key in 10^7.
    /// Cost: 16.8, 21.6 and 25.2 bits per key at 1, 0.1 and 0.01 %; d cache misses per key.
    /// Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, ESA 2006; rate 1 - (1 - 1/(B R))^n, about
    /// d * load * 2^-r.
    ///
    /// >>> from fullbloom import DLeftCountingFilter
    /// >>> stock = DLeftCountingFilter(1000)
    /// >>> stock.update(["apple", "apple", "pear"])
    /// >>> stock.remove("apple")
    /// >>> stock.count("apple"), "pear" in stock
    /// (1, True)
    fields {
        /// d, the number of candidate buckets of a key.
        pub subtables: u32 = |f| f.shape.subtables, SUBTABLES merged;
        /// w, the cells of a bucket.
        pub cells: u32 = |f| f.shape.cells, BUCKET_CELLS merged;
        /// B, the buckets of a sub-table.
        pub buckets: u64 = |f| f.shape.buckets, BUCKETS merged;
        /// r, the bits of a stored remainder; a cell has two more for its count.
        pub remainder_bits: u32 = |f| f.shape.remainder_bits, REMAINDER_BITS merged;
        /// True when the cells are in a mapped file.
        pub mapped: bool = |f| f.memory.is_mapped();
    }
}

/// A counting filter of fingerprints.
pub struct DLeftCountingFilter {
    shape: Shape,
    table: Table,
    memory: Memory,
    load: Load,
    hasher: KeyHasher,
}

impl DLeftCountingFilter {
    /// An empty filter for `capacity` distinct keys at rate `fpr`.
    pub fn construct(capacity: u64, fpr: f64, subtables: u64, cells: u64, hasher: KeyHasher) -> Result<Self> {
        Self::new(Shape::for_capacity(capacity, fpr, narrow(subtables), narrow(cells))?, capacity, fpr, hasher)
    }

    /// Bytes of cells of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, subtables: u64, cells: u64) -> Result<u64> {
        let shape = Shape::for_capacity(capacity, fpr, narrow(subtables), narrow(cells))?;
        Ok(shape.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }

    /// An empty filter of `shape`.
    pub fn new(shape: Shape, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let (load, shape) = (Load::new(capacity, fpr)?, shape.check()?);
        let table = Table::new(shape)?;
        Ok(DLeftCountingFilter { shape, table, memory: Memory::zeroed(shape.words())?, load, hasher })
    }

    /// Buckets by the number of cells in use, from 0 to w.
    pub fn bucket_loads(&self) -> Vec<u64> {
        self.table.loads(self.memory.words())
    }

    fn full(&self) -> Error {
        Error::Capacity(format!(
            "all {} buckets of the key are full: the filter holds {} keys, its capacity is {} (a key with more \
             than 3 copies takes several cells); remove keys, or build a larger filter; far below capacity only keys \
             that somebody chose share so many buckets: pass secret= where strangers choose keys",
            self.shape.subtables, self.load.added, self.load.capacity
        ))
    }
}

impl Filter for DLeftCountingFilter {
    memory_methods! { D_LEFT, 0, load; memory: COUNTED_FINGERPRINTS }

    /// Keys fetched ahead; each needs d buckets, and a core has 10 to 12 line-fill buffers.
    const AHEAD: usize = 6;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.table.fetch(self.memory.words(), hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.table.contains(self.memory.words(), self.table.fingerprint(hash))
    }

    load_answers!(added);

    /// Share of all fingerprints that are in.
    fn fpr_at(&self, items: f64) -> Option<f64> {
        Some(fingerprints::share_of(items, self.shape.fingerprints() as f64))
    }

    fn fpr(&self) -> f64 {
        fingerprints::share_of(self.load.added as f64, self.shape.fingerprints() as f64)
    }

    fn fill(&self) -> f64 {
        self.table.used_cells(self.memory.words()) as f64 / self.shape.num_cells() as f64
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![self.table.step()])
    }

    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        counts.add(SET, self.table.count_used_in(self.memory.words(), words));
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let fill = counts.get(SET) as f64 / self.shape.num_cells() as f64;
        CellStats { fill, fpr: self.fpr(), ..CellStats::default() }
    }

    fn fpr_by_count(&self) -> Option<f64> {
        Some(self.fpr())
    }
}

impl Addable for DLeftCountingFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.add_fingerprint(self.table.fingerprint(hash))
    }

    load_takes!(memory);

    clear_method!(memory);
}

impl Removable for DLeftCountingFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        self.remove_fingerprint(self.table.fingerprint(hash))
    }
}

impl Countable for DLeftCountingFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        self.count_fingerprint(self.table.fingerprint(hash))
    }

    fn add_times(&mut self, hash: u64, times: u64) -> Option<Result<()>> {
        let fingerprint = self.table.fingerprint(hash);
        let count = self.count_fingerprint(fingerprint);
        (count > 0).then(|| self.raise_to(fingerprint, count.saturating_add(times)))
    }

    fn remove_times(&mut self, hash: u64, times: u64) -> Option<Result<()>> {
        let fingerprint = self.table.fingerprint(hash);
        let count = self.count_fingerprint(fingerprint);
        Some(self.lower_to(fingerprint, count.saturating_sub(times)))
    }
}

impl Mergeable for DLeftCountingFilter {
    /// Inserts the other's fingerprints with their counts into a copy, which replaces this filter at the end.
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        self.memory.writable()?;
        let mut merged = self.try_clone()?;
        merged.take_in(other)?;
        *self = merged;
        Ok(())
    }
}

impl Loadable for DLeftCountingFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { subtables, cells, buckets, remainder_bits }, load) = Stored::with_load(header, 0)?;
        let shape = Shape { subtables, cells, remainder_bits, buckets }.check().map_err(Error::as_format)?;
        let memory = memory(kind::COUNTED_FINGERPRINTS, 0, shape.words())?;
        Ok(DLeftCountingFilter { shape, table: Table::new(shape)?, memory, load, hasher })
    }

    /// Every key occupies one cell or more, and no cell is occupied without a key.
    fn check_cells(&self) -> Result<()> {
        let (used, added) = (self.table.used_cells(self.memory.words()), self.load.added);
        if added > used || (added == 0) != (used == 0) {
            return Err(Error::format(format!(
                "the file says that it has {added} keys, in {used} cells; it is damaged"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
