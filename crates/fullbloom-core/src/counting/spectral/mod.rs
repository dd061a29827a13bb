//! [`SpectralBloomFilter`]: how often each key was added, never underestimated.
//!
//! Cohen and Matias, "Spectral Bloom filters", 2003. The estimate is the smallest of a key's k counters, cells as in
//! [`crate::counting::spread`]. Three ways to add:
//!
//! * minimum selection: increments each counter (as a counting filter does);
//! * minimal increase: increments each counter that has the minimum, so that others stay closer to their own keys;
//! * recurring minimum: increments each, and counts a key separately from then on if only one of its counters has the
//!   minimum, which suggests an overestimate; its count starts at that value.
//!
//! The guarantee depends on where such keys are counted: a second filter with a marker for its keys misses occurrences
//! when the marker errs. Here these keys are exact, in a table of their 64-bit hashes ([`apart`]); a key that finds no
//! space in it stays with its counters.

pub mod apart;
pub mod shape;

use std::ops::Range;

use self::apart::Apart;
pub use self::shape::{Mode, Shape};
use super::spread::{self, Positions, Spread};
use crate::cells::{LINE_WORDS, Memory, PackedCells};
use crate::container::{Container, Header, Section, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::SPECTRAL;
use crate::sizing::Law;
use crate::structure::cell_stats::{CellCounts, CellStats, FULL, SET};
use crate::structure::declaration::{narrow, one_of, structure};
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::{Addable, Countable, Declared, Filter, Loadable, Positioned, Sections, Value};

structure! {
    /// Counts how often each key was added: counts may be too high, never too low.
    class SpectralBloomFilter;
    parameters {
        /// expected number of distinct keys.
        capacity: "int";
        /// rate of false positives, and a bound on the share of wrong counts, at capacity.
        fpr: "float" = 0.01;
        *;
        /// how keys are added. "minimal-increase" adds only to the least of a key's counters,
        /// "recurring-minimum" counts a key separately, exactly from then on, once its counters look like an
        /// overestimate; both halve the share of wrong counts. "minimum-selection" adds to every counter.
        mode: "str" = "minimal-increase";
        /// 8, 16, 32 or 64.
        counter_bits: "int" = 32;
    }
    /// In every mode, an added key is always found, and its count is never too low. Keys cannot be
    /// removed, because that would break this; CountingBloomFilter is minimum selection with removal.
    /// num_added is the number of additions, repeated keys included; the warning past capacity is based on
    /// distinct keys.
    ///
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated; add
    /// raises FilterFull, and changes nothing, when a counter would pass its maximum.
    /// Cost: 9.6 counters per key at 1 %; "recurring-minimum" 8 bytes more.
    /// Source: Cohen, Matias, SIGMOD 2003; share of wrong counts (1 - e^(-kn/m))^k by minimum selection.
    ///
    /// >>> from fullbloom import SpectralBloomFilter
    /// >>> f = SpectralBloomFilter(1000)
    /// >>> f.update(["a", "b", "a"])
    /// >>> f.count("a"), f.count_many(["b", "c"])
    /// (2, [1, 0])
    fields {
        /// m, the number of counters.
        pub num_counters: u64 = |f| f.shape.num_cells, NUM_CELLS merged;
        /// Bits of a counter.
        pub counter_bits: u32 = |f| f.shape.counter_bits, CELL_BITS merged;
        /// k, the number of counters of a key.
        pub num_hashes: u32 = |f| f.shape.num_hashes, NUM_HASHES merged;
        /// How keys are added.
        pub mode: Mode = |f| f.mode, MODE merged;
        /// Additions, repeated keys included.
        occurrences: u64 = |f| f.load.occurrences, OCCURRENCES;
        /// Keys that are counted separately ("recurring-minimum" only): O(capacity).
        pub num_apart: u64 = |f| f.apart.as_ref().map_or(0, Apart::len);
        /// Counters at their maximum: a count from these is a lower bound.
        pub num_saturated: u64 = |f| f.spread.packed.count_full(f.memory.words(), f.shape.num_cells);
        /// True when the counters are in a mapped file.
        pub mapped: bool = |f| f.memory.is_mapped();
    }
}

/// The sum of a count besides those of all counters: keys that are counted separately.
const APART: usize = 2;

/// An approximate multiset that counts how often each key was added, or slightly more.
pub struct SpectralBloomFilter {
    shape: Shape,
    mode: Mode,
    spread: Spread,
    memory: Memory,
    apart: Option<Apart>,
    hasher: KeyHasher,
    /// Counts distinct keys.
    load: Load,
}

impl SpectralBloomFilter {
    /// An empty filter for `capacity` distinct keys at rate `fpr`.
    pub fn construct(capacity: u64, fpr: f64, mode: &str, counter_bits: u64, hasher: KeyHasher) -> Result<Self> {
        let mode = one_of("mode", mode, Mode::NAMES)?;
        Self::new(Shape::for_capacity(narrow(counter_bits), capacity, fpr)?, mode, capacity, fpr, hasher)
    }

    /// Bytes of counters and of keys counted apart of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, mode: &str, counter_bits: u64) -> Result<u64> {
        let mode = one_of("mode", mode, Mode::NAMES)?;
        let shape = Shape::for_capacity(narrow(counter_bits), capacity, fpr)?;
        let lines = |words: u64| words.next_multiple_of(LINE_WORDS as u64);
        Ok((lines(shape.words()) + mode.words_apart(capacity).map_or(0, lines)) * 8)
    }

    /// An empty filter of `shape`.
    pub fn new(shape: Shape, mode: Mode, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let shape = shape.check()?;
        let memory = Memory::zeroed(shape.words())?;
        let apart = mode.words_apart(capacity).map(Memory::zeroed).transpose()?;
        Self::with_memory(shape, mode, load, hasher, memory, apart)
    }

    fn with_memory(
        shape: Shape,
        mode: Mode,
        load: Load,
        hasher: KeyHasher,
        memory: Memory,
        apart: Option<Memory>,
    ) -> Result<Self> {
        let packed =
            PackedCells::new(shape.counter_bits).ok_or_else(|| Error::parameter("counter_bits must be 1 to 64"))?;
        let spread = Spread { packed, num_cells: shape.num_cells, num_hashes: shape.num_hashes };
        let apart = apart.map(|memory| Apart { slots: Apart::slots_for(load.capacity), memory });
        Ok(SpectralBloomFilter { shape, mode, spread, memory, apart, hasher, load })
    }

    /// True if a counter may be at its maximum: none exceeds the number of additions.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.load.occurrences >= self.spread.packed.max()
    }

    fn words(&self) -> &[u64] {
        self.memory.words()
    }

    fn apart_words(&self) -> &[u64] {
        self.apart.as_ref().map_or(&[], |apart| apart.memory.words())
    }

    fn refuse(&self) -> Error {
        Error::Capacity(format!(
            "a counter of the key has reached its maximum, {}; build the filter with more counter_bits",
            self.spread.packed.max()
        ))
    }

    /// The least counter of the key's cells and how many are at it; and the largest.
    fn extremes(&self, cells: &Positions) -> (u64, usize, u64) {
        let (packed, words) = (self.spread.packed, self.memory.words());
        let (mut least, mut times, mut most) = (u64::MAX, 0, 0);
        for &cell in cells.all() {
            let value = packed.get(words, cell);
            most = most.max(value);
            if value < least {
                (least, times) = (value, 0);
            }
            times += usize::from(value == least);
        }
        (least, times, most)
    }
}

impl Filter for SpectralBloomFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn hasher_mut(&mut self) -> &mut KeyHasher {
        &mut self.hasher
    }

    const AHEAD: usize = spread::AHEAD;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.spread.fetch(self.words(), hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.spread.least(self.words(), hash) > 0
    }

    load_answers!(occurrences);

    fn fpr_at(&self, items: f64) -> Option<f64> {
        Some(self.shape.law().fpr(items))
    }

    fn fpr(&self) -> f64 {
        self.shape.law().fpr_of_fill(self.fill())
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        let apart = self.apart.iter().map(|_| apart::SLOT_WORDS);
        Some(std::iter::once(self.spread.packed.step()).chain(apart).collect())
    }

    fn count_words(&self, section: usize, words: Range<usize>, counts: &mut CellCounts) {
        match (section, &self.apart) {
            (0, _) => spread::count(self.spread.packed, self.words(), words, self.shape.num_cells, counts),
            (_, Some(apart)) => counts.add(APART, apart.len_in(words)),
            _ => {}
        }
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let stats = CellStats::by_law(&self.shape.law(), counts.get(SET) as f64 / self.shape.num_cells as f64);
        let attributes = [("num_apart", APART), ("num_saturated", FULL)];
        attributes.into_iter().fold(stats, |stats, (name, at)| stats.with(name, Value::Number(counts.get(at))))
    }

    /// Keys that are counted separately may be anywhere.
    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        let cells = hashes.iter().flat_map(|&hash| Positioned::positions(self, hash));
        spread::visit_words(self.spread.packed, cells, |at| word(0, at));
        self.apart.is_none()
    }

    fn fill(&self) -> f64 {
        let set = self.spread.packed.count_set(self.words(), self.shape.num_cells);
        set as f64 / self.shape.num_cells as f64
    }

    fn nbytes(&self) -> u64 {
        let apart = self.apart.as_ref().map_or(0, |apart| apart.memory.len_bytes());
        (self.memory.len_bytes() + apart) as u64
    }

    /// From the share of counters that are not zero; infinite when all are.
    fn estimate_count(&self) -> Option<(f64, f64)> {
        Some(self.shape.law().estimate(self.fill()))
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(SPECTRAL, 0, &self.hasher);
        self.load.describe(&mut header, 0);
        self.describe(&mut header);
        let mut sections = vec![Section::of(kind::COUNTERS, &self.memory)];
        if let Some(apart) = &self.apart {
            sections.push(Section::of(kind::APART, &apart.memory));
        }
        Container { header, sections }
    }

    fn try_clone(&self) -> Result<Self> {
        let apart = match &self.apart {
            Some(apart) => Some(Apart { slots: apart.slots, memory: apart.memory.try_clone()? }),
            None => None,
        };
        Ok(SpectralBloomFilter { memory: self.memory.try_clone()?, apart, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.differences(other).check().is_ok()
            && self.words() == other.words()
            && self.apart_words() == other.apart_words()
    }
}

impl Addable for SpectralBloomFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let (packed, mode) = (self.spread.packed, self.mode);
        let cells = self.spread.positions(hash);
        let (least, _, most) = self.extremes(&cells);
        let rises = |value: u64| mode != Mode::MinimalIncrease || value == least;
        if (if mode == Mode::MinimalIncrease { least } else { most }) == packed.max() {
            // A read-only filter says so first.
            self.memory.writable()?;
            return Err(self.refuse());
        }
        let words = self.memory.writable()?;
        for &cell in cells.all() {
            let value = packed.get(words, cell);
            if rises(value) {
                packed.set(words, cell, value + 1);
            }
        }
        if self.apart.is_some() {
            let (now, times, _) = self.extremes(&cells);
            if let Some(apart) = &mut self.apart {
                apart.add(hash, now, times == 1, 1);
            }
        }
        self.load.came(1, u64::from(least == 0));
        Ok(least == 0)
    }

    load_takes!(full, memory);

    fn clear(&mut self) -> Result<()> {
        self.memory.writable()?.fill(0);
        if let Some(words) = self.apart.as_mut().and_then(|apart| apart.memory.words_mut()) {
            words.fill(0);
        }
        self.load.clear();
        Ok(())
    }
}

impl Countable for SpectralBloomFilter {
    /// All counters of a key rise by one with each addition, or the least ones do until they meet the next.
    fn add_times(&mut self, hash: u64, times: u64) -> Option<Result<()>> {
        let (packed, mode) = (self.spread.packed, self.mode);
        let cells = self.spread.positions(hash);
        let (least, alone, most) = self.extremes(&cells);
        let top = if mode == Mode::MinimalIncrease { least } else { most };
        let fits = times.min(packed.max() - top);
        let words = match self.memory.writable() {
            Ok(words) => words,
            Err(error) => return Some(Err(error)),
        };
        for &cell in cells.all() {
            let value = packed.get(words, cell);
            let raised = if mode == Mode::MinimalIncrease { value.max(least + fits) } else { value + fits };
            packed.set(words, cell, raised);
        }
        if let Some(apart) = &mut self.apart {
            apart.add(hash, least + fits, alone == 1, fits);
        }
        self.load.came(fits, u64::from(least == 0 && fits > 0));
        Some(if fits < times { Err(self.refuse()) } else { Ok(()) })
    }

    /// The smallest counter, or the separate count if that is lower. Never below the truth.
    fn count_hash(&self, hash: u64) -> u64 {
        let least = self.spread.least(self.words(), hash);
        match &self.apart {
            Some(apart) if least > 0 => apart.count(hash).map_or(least, |count| count.min(least)),
            _ => least,
        }
    }
}

impl Positioned for SpectralBloomFilter {
    fn positions(&self, hash: u64) -> Vec<u64> {
        self.spread.positions(hash).all().to_vec()
    }
}

impl Loadable for SpectralBloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { num_counters, counter_bits, num_hashes, mode, occurrences }, mut load) =
            Stored::with_load(header, 0)?;
        load.occurrences = occurrences;
        let shape = Shape { counter_bits, num_cells: num_counters, num_hashes };
        let shape = shape.check().map_err(Error::as_format)?;
        let counters = memory(kind::COUNTERS, 0, shape.words())?;
        let apart = mode.words_apart(load.capacity).map(|words| memory(kind::APART, 0, words)).transpose()?;
        let filter = Self::with_memory(shape, mode, load, hasher, counters, apart).map_err(Error::as_format)?;
        if spread::has_bits_past(filter.spread.packed, filter.words(), shape.num_cells) {
            return Err(Error::format("the file has counters beyond its number of counters; it is damaged"));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
