//! [`CountingBloomFilter`]: a Bloom filter of counters, so that keys can be removed and counted.
//!
//! Fan, Cao, Almeida and Broder, "Summary cache", 2000. Adding a key increments each of its counters, and removing it
//! decrements them. A counter at its maximum may represent more and is never decremented: it can only cause false
//! positives.

use std::ops::Range;

use super::nibbles::Nibbles;
use super::shape::{Layout, Shape};
use super::spread::{self, Spread};
use crate::cells::{LINE_WORDS, Memory, PackedCells};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::COUNTING;
use crate::sizing::Law;
use crate::sizing::whole::distinct_among;
use crate::structure::cell_stats::{CellCounts, CellStats, FULL, SET};
use crate::structure::declaration::{narrow, structure};
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::{Addable, Countable, Filter, Loadable, Mergeable, Positioned, Removable, Sections, Value};

structure! {
    /// A Bloom filter of counters: keys can be removed, and counted.
    class CountingBloomFilter;
    parameters {
        /// expected number of distinct keys.
        capacity: "int";
        /// rate of false positives at capacity.
        fpr: "float" = 0.01;
        *;
        /// 2, 3, 4, 8 or 16; a counter that reaches its maximum stays there permanently, so that count() is a
        /// lower bound from then on.
        counter_bits: "int" = 4;
        /// the occurrences that matter, 1 for plain membership; size and number of probes are chosen so that
        /// contains(key, at_least=threshold) is True for at most fpr of the keys never added, and fpr()
        /// returns that rate.
        threshold: "int" = 1;
        /// "blocked" (one cache line per key; not for 3 bits), "classic" (least space), or "auto": blocked while it
        /// costs at most 1.6 times the space of classic.
        layout: "str" = "auto";
    }
    /// A key that was added more often than removed is always found, as long as only keys were removed that
    /// had been added: removing a false positive decrements the counters of other keys.
    /// num_added is the number of additions minus removals, repeated keys included; the warning past
    /// capacity is based on distinct keys. merge() adds the counters of another filter.
    ///
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated;
    /// remove() raises KeyError for a key that was certainly never added, and changes nothing.
    /// Cost: 38.3 bits per key at 1 % (classic, four times a BloomFilter), 45.7 blocked.
    /// Source: Fan, Cao, Almeida, Broder, IEEE/ACM ToN 8(3), 2000; rate (1 - (1 - 1/m)^(kn))^k, with a
    /// threshold t P(Bin(kn, 1/m) >= t)^k; P(any of m counters of 4 bits overflows) <= 1.37e-15 m.
    ///
    /// >>> from fullbloom import CountingBloomFilter
    /// >>> f = CountingBloomFilter(1000)
    /// >>> f.update(["a", "b", "a"])
    /// >>> f.count("a"), f.contains("a", at_least=2), f.contains("b", at_least=2)
    /// (2, True, False)
    /// >>> f.remove("b")
    /// >>> "b" in f
    /// False
    fields {
        /// The layout's name.
        pub layout: Layout = |f| f.shape.layout, LAYOUT merged;
        /// m, the number of counters.
        pub num_counters: u64 = |f| f.shape.num_cells, NUM_CELLS merged;
        /// Bits of a counter.
        pub counter_bits: u32 = |f| f.shape.counter_bits, CELL_BITS merged;
        /// k, the number of counters of a key.
        pub num_hashes: u32 = |f| f.shape.num_hashes, NUM_HASHES merged;
        /// Occurrences for which the rate was requested.
        pub threshold: u64 = |f| f.shape.threshold, THRESHOLD;
        /// Additions minus removals, repeated keys included.
        occurrences: u64 = |f| f.load.occurrences, OCCURRENCES;
        /// Counters at their maximum, which stay there: a key that has only such counters can never be removed.
        pub num_saturated: u64 = |f| f.packed.count_full(f.words(), f.shape.num_cells);
        /// True when the counters are in a mapped file.
        pub mapped: bool = |f| f.memory.is_mapped();
    }
}

#[derive(Clone, Copy)]
enum Kernel {
    Spread(Spread),
    Line(Nibbles),
}

/// An approximate multiset.
pub struct CountingBloomFilter {
    pub(super) shape: Shape,
    pub(super) packed: PackedCells,
    kernel: Kernel,
    pub(super) memory: Memory,
    hasher: KeyHasher,
    /// Counts distinct keys: those that were new when added, less those that were absent after a removal.
    pub(super) load: Load,
}

impl CountingBloomFilter {
    /// An empty filter for `capacity` distinct keys at rate `fpr`.
    pub fn construct(
        capacity: u64,
        fpr: f64,
        counter_bits: u64,
        threshold: u64,
        layout: &str,
        hasher: KeyHasher,
    ) -> Result<Self> {
        Self::new(Shape::from_name(layout, counter_bits, threshold, capacity, fpr)?, capacity, fpr, hasher)
    }

    /// Bytes of counters of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, counter_bits: u64, threshold: u64, layout: &str) -> Result<u64> {
        let shape = Shape::from_name(layout, counter_bits, threshold, capacity, fpr)?;
        Ok(shape.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }

    /// An empty filter of `num_counters` counters (rounded up to a multiple that the layout needs), `num_hashes` a key.
    /// The default capacity is the number of keys that set half of its counters, the optimum.
    pub fn with_shape(
        num_counters: u64,
        num_hashes: u64,
        capacity: Option<u64>,
        (counter_bits, threshold): (u64, u64),
        layout: &str,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let shape = Shape::explicit(layout, narrow(counter_bits), threshold, num_counters, narrow(num_hashes))?;
        let capacity = capacity.unwrap_or_else(|| (shape.law().items(0.5).round() as u64).max(1));
        let fpr = shape.fpr(capacity as f64, threshold).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
        Self::new(shape, capacity, fpr, hasher)
    }

    /// An empty filter of `shape`.
    pub fn new(shape: Shape, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let shape = shape.check()?;
        Self::with_memory(shape, load, hasher, Memory::zeroed(shape.words())?)
    }

    /// A filter over existing memory of the length that the checked shape needs.
    fn with_memory(shape: Shape, load: Load, hasher: KeyHasher, memory: Memory) -> Result<Self> {
        let packed =
            PackedCells::new(shape.counter_bits).ok_or_else(|| Error::parameter("counter_bits must be 1 to 64"))?;
        let kernel = match shape.layout {
            Layout::Classic => {
                Kernel::Spread(Spread { packed, num_cells: shape.num_cells, num_hashes: shape.num_hashes })
            }
            Layout::Blocked => Kernel::Line(Nibbles::new(shape.counter_bits, shape.num_hashes)),
        };
        Ok(CountingBloomFilter { shape, packed, kernel, memory, hasher, load })
    }

    #[inline(always)]
    pub(super) fn words(&self) -> &[u64] {
        self.memory.words()
    }

    /// All counters, in order.
    #[cfg(test)]
    pub(crate) fn cells(&self) -> &[u64] {
        self.words()
    }

    /// Counters, probes, layout and threshold.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Marks in `found` each hash that was apparently added `least` times or more; the slices are equally long. A
    /// counter shows at most its maximum, so a larger `least` is answered as the maximum.
    pub fn reach_hashes(&self, hashes: &[u64], least: u64, found: &mut [u8]) {
        let least = least.min(self.packed.max());
        match self.kernel {
            Kernel::Line(line) => line.reach_all(self.words(), hashes, least, found),
            Kernel::Spread(spread) => {
                let words = self.words();
                spread.answer(words, hashes, found, |hash| u8::from(spread.least(words, hash) >= least));
            }
        }
    }

    /// True if `hash` was apparently added `least` times or more.
    #[inline(always)]
    pub fn reaches(&self, hash: u64, least: u64) -> bool {
        self.count_hash(hash) >= least.min(self.packed.max())
    }

    /// Rate at which a key never added seems to have been added `least` times or more, at the present load if no key
    /// was added twice.
    pub fn fpr_at_least(&self, least: u64) -> f64 {
        self.rate_of_fill(self.fill(), least)
    }

    fn rate_of_fill(&self, fill: f64, least: u64) -> f64 {
        let items = self.shape.law().items(fill);
        if items.is_finite() { self.shape.fpr(items, least.min(self.packed.max())) } else { 1.0 }
    }

    /// Counters that are not zero.
    fn set_cells(&self) -> u64 {
        self.packed.count_set(self.words(), self.shape.num_cells)
    }
}

impl Filter for CountingBloomFilter {
    memory_methods! { COUNTING, 0, load; memory: COUNTERS }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.count_hash(hash) > 0
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.reach_hashes(hashes, 1, found);
    }

    load_answers!(occurrences);

    /// At the threshold that the filter was sized for.
    fn fpr(&self) -> f64 {
        self.fpr_at_least(self.shape.threshold)
    }

    fn fpr_at(&self, items: f64) -> Option<f64> {
        Some(self.shape.fpr(items, self.shape.threshold))
    }

    fn occupancy(&self) -> Option<(Box<dyn Law>, f64)> {
        Some((self.shape.law(), self.fill()))
    }

    fn fpr_by_count(&self) -> Option<f64> {
        let items = distinct_among(self.load.added as f64, |items| self.shape.fpr(items, 1));
        let least = self.shape.threshold.min(self.packed.max());
        Some(if items.is_finite() { self.shape.fpr(items, least) } else { 1.0 })
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![self.packed.step()])
    }

    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        spread::count(self.packed, self.words(), words, self.shape.num_cells, counts);
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let fill = counts.get(SET) as f64 / self.shape.num_cells as f64;
        let stats = CellStats {
            fill,
            fpr: self.rate_of_fill(fill, self.shape.threshold),
            estimated: Some(self.shape.law().estimate(fill)),
            ..CellStats::default()
        };
        stats.with("num_saturated", Value::Number(counts.get(FULL)))
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        let positions = hashes.iter().flat_map(|&hash| Positioned::positions(self, hash));
        spread::visit_words(self.packed, positions, |at| word(0, at));
        true
    }

    fn fill(&self) -> f64 {
        self.set_cells() as f64 / self.shape.num_cells as f64
    }

    /// From the share of counters that are not zero; infinite when all are.
    fn estimate_count(&self) -> Option<(f64, f64)> {
        Some(self.shape.law().estimate(self.fill()))
    }
}

impl CountingBloomFilter {
    /// Adds one hash; `None` if the filter is read-only. A separate call, with its answer in a register: inlined into
    /// the scalar entry points, eight kinds of line took all registers.
    #[inline(never)]
    fn bump(&mut self, hash: u64) -> Option<bool> {
        let words = self.memory.words_mut()?;
        let new = match self.kernel {
            Kernel::Spread(spread) => spread.add(words, hash) == 0,
            Kernel::Line(line) => line.add_one(words, hash),
        };
        self.load.came(1, u64::from(new));
        Some(new)
    }
}

impl Addable for CountingBloomFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.bump(hash).map_or_else(|| self.memory.writable().map(|_| false), Ok)
    }

    #[inline(always)]
    fn add_quietly(&mut self, hash: u64) -> Option<bool> {
        if self.load.is_roomy() { self.bump(hash) } else { None }
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        let kernel = self.kernel;
        let words = self.memory.writable()?;
        let fresh = match kernel {
            Kernel::Line(line) => line.add_all(words, hashes, new),
            Kernel::Spread(spread) => spread.change(words, hashes, new, |words, hash| spread.add(words, hash) == 0),
        };
        self.load.came(hashes.len() as u64, fresh);
        Ok(())
    }

    load_takes!(memory);

    clear_method!(memory);
}

impl Removable for CountingBloomFilter {
    #[inline(never)]
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        let kernel = self.kernel;
        let words = self.memory.writable()?;
        let (taken, gone) = match kernel {
            Kernel::Line(line) => line.remove_one(words, hash),
            Kernel::Spread(spread) => {
                let least = spread.remove(words, hash);
                (least > 0, least == 1)
            }
        };
        self.load.went(u64::from(taken), u64::from(gone));
        Ok(taken)
    }

    fn remove_hashes(&mut self, hashes: &[u64], removed: Option<&mut [u8]>) -> Result<()> {
        let kernel = self.kernel;
        let words = self.memory.writable()?;
        let (taken, gone) = match kernel {
            Kernel::Line(line) => line.remove_all(words, hashes, removed),
            Kernel::Spread(spread) => {
                let mut gone = 0;
                let taken = spread.change(words, hashes, removed, |words, hash| {
                    let least = spread.remove(words, hash);
                    gone += u64::from(least == 1);
                    least > 0
                });
                (taken, gone)
            }
        };
        self.load.went(taken, gone);
        Ok(())
    }
}

impl Positioned for CountingBloomFilter {
    fn positions(&self, hash: u64) -> Vec<u64> {
        match self.kernel {
            Kernel::Spread(spread) => spread.positions(hash).all().to_vec(),
            Kernel::Line(line) => line.positions(self.shape.num_cells, hash),
        }
    }
}

impl Countable for CountingBloomFilter {
    fn most_counted(&self) -> u64 {
        self.packed.max()
    }

    fn note_surplus(&mut self, times: u64, added: bool) -> bool {
        if added {
            self.load.came(times, 0)
        } else {
            self.load.went(times, 0)
        }
        true
    }

    /// The smallest counter of the key. At the maximum of the counters it means "that many or more".
    #[inline(always)]
    fn count_hash(&self, hash: u64) -> u64 {
        match self.kernel {
            Kernel::Spread(spread) => spread.least(self.words(), hash),
            Kernel::Line(line) => line.count_one(self.words(), hash),
        }
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        match self.kernel {
            Kernel::Line(line) => line.count_all(self.words(), hashes, counts),
            Kernel::Spread(spread) => {
                let words = self.words();
                spread.answer(words, hashes, counts, |hash| spread.least(words, hash));
            }
        }
    }
}

impl Mergeable for CountingBloomFilter {
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        let (packed, cells) = (self.packed, self.shape.num_cells);
        spread::add_saturating(packed, self.memory.writable()?, other.words(), cells);
        self.load.join(&other.load, self.shape.law().new_of_fill(self.fill()));
        Ok(())
    }
}

impl Loadable for CountingBloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { layout, num_counters, counter_bits, num_hashes, threshold, occurrences }, mut load) =
            Stored::with_load(header, 0)?;
        load.occurrences = occurrences;
        let shape = Shape { layout, counter_bits, num_cells: num_counters, num_hashes, threshold };
        let shape = shape.check().map_err(Error::as_format)?;
        let memory = memory(kind::COUNTERS, 0, shape.words())?;
        let filter = Self::with_memory(shape, load, hasher, memory).map_err(Error::as_format)?;
        if spread::has_bits_past(filter.packed, filter.words(), shape.num_cells) {
            return Err(Error::format("the file has counters beyond its number of counters; it is damaged"));
        }
        Ok(filter)
    }
}
