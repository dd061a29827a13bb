//! [`VariableIncrementFilter`]: a counting filter whose keys add different amounts.
//!
//! Rottenstreich, Kanizo and Keslassy, "The variable-increment counting Bloom filter", 2014. Probe i of a key adds an
//! increment v_i from L to 2L - 1 to its cell, and removal subtracts it. A cell of value s can contain v only if s = v
//! or s >= v + L, because every sum of increments is at least L. A cell at its maximum may represent more: it accepts
//! every probe and never changes again.

pub mod kernel;
pub mod shape;

use std::ops::Range;

use self::kernel::Kernel;
pub use self::shape::Shape;
use super::spread;
use crate::cells::{LINE_WORDS, Memory, PackedCells};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::VARIABLE_INCREMENT;
use crate::sizing::Law;
use crate::sizing::whole::new_among;
use crate::structure::cell_stats::{CellCounts, CellStats, FULL, SET};
use crate::structure::declaration::{narrow, structure};
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::{Addable, Filter, Loadable, Mergeable, Positioned, Removable, Sections, Value};

structure! {
    /// A counting filter whose keys add different amounts to their counters: keys can be removed, in
    /// less space than CountingBloomFilter needs at low rates.
    class VariableIncrementFilter;
    parameters {
        /// expected number of distinct keys.
        capacity: "int";
        /// rate of false positives at capacity.
        fpr: "float" = 0.01;
        *;
        /// L = 2, 4 or 8; each probe of a key adds an amount from L to 2L - 1, and a counter that cannot be a
        /// sum that includes that amount shows that the key is absent.
        increments: "int" = 4;
        /// width of a counter, at most 16 and at least 2 + log2 L; by default 5 + log2 L. A counter that
        /// reaches its maximum accepts every key and stays there permanently.
        counter_bits: "int | None" = None;
    }
    /// A key that was added more often than removed is always found, as long as only keys were removed that
    /// had been added: removing a false positive decrements the counters of other keys.
    /// num_added is the number of additions minus removals, repeated keys included; the warning past
    /// capacity is based on distinct keys. merge() adds the counters of another filter.
    ///
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated;
    /// remove() raises KeyError for a key that was certainly never added, and changes nothing.
    /// Cost: 28.8 bits per key at 1 %, 43.2 at 0.1 % (CountingBloomFilter, classic: 38.3 and 57.5); k cache lines.
    /// Source: Rottenstreich, Kanizo, Keslassy, IEEE/ACM ToN 22(4), 2014; rate (1 - B(0) - (L-1)/L B(1)
    /// - (L^2-1)/(6 L^2) B(2))^k, B(i) the probability that i of kn throws over m cells fall into one.
    ///
    /// >>> from fullbloom import VariableIncrementFilter
    /// >>> f = VariableIncrementFilter(1000, 0.001)
    /// >>> f.update(["a", "b"])
    /// >>> f.remove("b")
    /// >>> "a" in f, "b" in f
    /// (True, False)
    fields {
        /// m, the number of counters.
        pub num_counters: u64 = |f| f.shape.num_cells, NUM_CELLS merged;
        /// Bits of a counter.
        pub counter_bits: u32 = |f| f.shape.counter_bits, CELL_BITS merged;
        /// k, the number of counters of a key.
        pub num_hashes: u32 = |f| f.shape.num_hashes, NUM_HASHES merged;
        /// L: increments are L to 2L - 1.
        pub increments: u64 = |f| f.shape.increments, INCREMENTS merged;
        /// Additions minus removals, repeated keys included.
        occurrences: u64 = |f| f.load.occurrences, OCCURRENCES;
        /// Counters at their maximum, which stay there permanently.
        pub num_saturated: u64 = |f| f.kernel.spread.packed.count_full(f.words(), f.shape.num_cells);
        /// True when the counters are in a mapped file.
        pub mapped: bool = |f| f.memory.is_mapped();
    }
}

/// An approximate set that supports removal, in less space than counters of one would need.
pub struct VariableIncrementFilter {
    shape: Shape,
    kernel: Kernel,
    memory: Memory,
    hasher: KeyHasher,
    /// Counts distinct keys, as far as cells show them.
    load: Load,
}

impl VariableIncrementFilter {
    /// An empty filter for `capacity` distinct keys at rate `fpr`.
    pub fn construct(
        capacity: u64,
        fpr: f64,
        increments: u64,
        counter_bits: Option<u64>,
        hasher: KeyHasher,
    ) -> Result<Self> {
        Self::new(Shape::for_capacity(increments, counter_bits.map(narrow), capacity, fpr)?, capacity, fpr, hasher)
    }

    /// Bytes of counters of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, increments: u64, counter_bits: Option<u64>) -> Result<u64> {
        let shape = Shape::for_capacity(increments, counter_bits.map(narrow), capacity, fpr)?;
        Ok(shape.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }

    /// An empty filter of `shape`.
    pub fn new(shape: Shape, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let shape = shape.check()?;
        Self::with_memory(shape, load, hasher, Memory::zeroed(shape.words())?)
    }

    fn with_memory(shape: Shape, load: Load, hasher: KeyHasher, memory: Memory) -> Result<Self> {
        let packed =
            PackedCells::new(shape.counter_bits).ok_or_else(|| Error::parameter("counter_bits must be 1 to 64"))?;
        let kernel = Kernel::new(&shape, packed);
        Ok(VariableIncrementFilter { shape, kernel, memory, hasher, load })
    }

    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.memory.words()
    }

    fn rate_of_fill(&self, fill: f64) -> f64 {
        let items = self.shape.occupancy().items(fill);
        if items.is_finite() { self.shape.fpr(items) } else { 1.0 }
    }
}

impl Filter for VariableIncrementFilter {
    memory_methods! { VARIABLE_INCREMENT, 0, load; memory: COUNTERS }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.kernel.contains(self.words(), hash)
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        let (kernel, words) = (self.kernel, self.words());
        kernel.spread.answer(words, hashes, found, |hash| u8::from(kernel.contains(words, hash)));
    }

    load_answers!(occurrences);

    fn fpr_at(&self, items: f64) -> Option<f64> {
        Some(self.shape.fpr(items))
    }

    fn fpr(&self) -> f64 {
        self.rate_of_fill(self.fill())
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![self.kernel.spread.packed.step()])
    }

    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        spread::count(self.kernel.spread.packed, self.words(), words, self.shape.num_cells, counts);
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let fill = counts.get(SET) as f64 / self.shape.num_cells as f64;
        let estimated = Some(self.shape.occupancy().estimate(fill));
        let stats = CellStats { fill, fpr: self.rate_of_fill(fill), estimated, ..CellStats::default() };
        stats.with("num_saturated", Value::Number(counts.get(FULL)))
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        let positions = hashes.iter().flat_map(|&hash| Positioned::positions(self, hash));
        spread::visit_words(self.kernel.spread.packed, positions, |at| word(0, at));
        true
    }

    fn fill(&self) -> f64 {
        let set = self.kernel.spread.packed.count_set(self.words(), self.shape.num_cells);
        set as f64 / self.shape.num_cells as f64
    }

    /// From the share of cells that are not zero; infinite when all are.
    fn estimate_count(&self) -> Option<(f64, f64)> {
        Some(self.shape.occupancy().estimate(self.fill()))
    }
}

impl Addable for VariableIncrementFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let kernel = self.kernel;
        let new = kernel.add(self.memory.writable()?, hash);
        self.load.came(1, u64::from(new));
        Ok(new)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        let kernel = self.kernel;
        let words = self.memory.writable()?;
        let fresh = kernel.spread.change(words, hashes, new, |words, hash| kernel.add(words, hash));
        self.load.came(hashes.len() as u64, fresh);
        Ok(())
    }

    load_takes!(memory);

    clear_method!(memory);
}

impl Removable for VariableIncrementFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        let kernel = self.kernel;
        let (taken, gone) = kernel.remove(self.memory.writable()?, hash);
        self.load.went(u64::from(taken), u64::from(gone));
        Ok(taken)
    }

    fn remove_hashes(&mut self, hashes: &[u64], removed: Option<&mut [u8]>) -> Result<()> {
        let kernel = self.kernel;
        let words = self.memory.writable()?;
        let mut all_gone = 0;
        let all_taken = kernel.spread.change(words, hashes, removed, |words, hash| {
            let (taken, gone) = kernel.remove(words, hash);
            all_gone += u64::from(gone);
            taken
        });
        self.load.went(all_taken, all_gone);
        Ok(())
    }
}

impl Mergeable for VariableIncrementFilter {
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        let (packed, cells) = (self.kernel.spread.packed, self.shape.num_cells);
        spread::add_saturating(packed, self.memory.writable()?, other.words(), cells);
        let items = self.shape.occupancy().items(self.fill());
        self.load.join(&other.load, new_among(items, |items| self.shape.fpr(items)));
        Ok(())
    }
}

impl Positioned for VariableIncrementFilter {
    fn positions(&self, hash: u64) -> Vec<u64> {
        self.kernel.spread.positions(hash).all().to_vec()
    }
}

impl Loadable for VariableIncrementFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { num_counters, counter_bits, num_hashes, increments, occurrences }, mut load) =
            Stored::with_load(header, 0)?;
        load.occurrences = occurrences;
        let shape = Shape { increments, counter_bits, num_cells: num_counters, num_hashes };
        let shape = shape.check().map_err(Error::as_format)?;
        let memory = memory(kind::COUNTERS, 0, shape.words())?;
        let filter = Self::with_memory(shape, load, hasher, memory).map_err(Error::as_format)?;
        if spread::has_bits_past(filter.kernel.spread.packed, filter.words(), shape.num_cells) {
            return Err(Error::format("the file has counters beyond its number of counters; it is damaged"));
        }
        Ok(filter)
    }

    /// Sums of increments are 0 or L and more. Below L, a counter would deny keys that are added to it.
    fn check_cells(&self) -> Result<()> {
        let (packed, words) = (self.kernel.spread.packed, self.words());
        let below = |&cell: &u64| (1..self.shape.increments).contains(&packed.get(words, cell));
        match (0..self.shape.num_cells).find(below) {
            None => Ok(()),
            Some(cell) => Err(Error::format(format!(
                "counter {cell} of the file is {}, which is not a sum of increments of at least {}; it is damaged",
                packed.get(words, cell),
                self.shape.increments
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
