//! [`CountingBloomFilter`]: a Bloom filter of counters, so that keys can be removed and counted.
//!
//! Fan, Cao, Almeida and Broder, "Summary cache", 2000. A key adds one to each of its counters and
//! takes one from each when it is removed. A counter that has reached its maximum may stand for more
//! and is never taken from again: it can only make the filter say yes too often.

use super::nibbles::Nibbles;
use super::shape::{Layout, Shape};
use super::spread::{self, AHEAD, Spread};
use crate::cells::{LINE_WORDS, Memory, Packed};
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::COUNTING;
use crate::structure::differences::Differences;
use crate::structure::load::{self, Load, load_answers, load_takes};
use crate::structure::{Addable, Countable, Estimating, Fact, Filter, Loadable, Mergeable, Removable, Sizable};

/// Bits of a counter unless asked otherwise: fewer than 1.4e-15 of them ever overflow.
pub const COUNTER_BITS: u32 = 4;
/// Parameters in a file.
const PARAMS: usize = load::PARAMS + 6;

#[derive(Clone, Copy)]
enum Kernel {
    Spread(Spread),
    Line(Nibbles),
}

/// An approximate multiset.
pub struct CountingBloomFilter {
    shape: Shape,
    packed: Packed,
    kernel: Kernel,
    memory: Memory,
    hasher: KeyHasher,
    /// Counts distinct keys: those that were new when added and those that were gone when removed.
    load: Load,
    /// Additions less removals.
    occurrences: u64,
}

impl CountingBloomFilter {
    /// An empty filter of `shape`.
    pub fn new(shape: Shape, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let shape = shape.check()?;
        Self::with_memory(shape, load, hasher, Memory::zeroed(shape.words())?)
    }

    /// A filter over existing memory, which must be as long as the checked shape asks.
    fn with_memory(shape: Shape, load: Load, hasher: KeyHasher, memory: Memory) -> Result<Self> {
        let packed = Packed::new(shape.counter_bits).ok_or_else(|| Error::parameter("counter_bits must be 1 to 64"))?;
        let kernel = match shape.layout {
            Layout::Classic => {
                Kernel::Spread(Spread { packed, num_cells: shape.num_cells, num_hashes: shape.num_hashes })
            }
            Layout::Blocked => Kernel::Line(Nibbles::new(shape.counter_bits, shape.num_hashes)),
        };
        Ok(CountingBloomFilter { shape, packed, kernel, memory, hasher, load, occurrences: 0 })
    }

    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.memory.words()
    }

    #[inline(always)]
    fn words_mut(&mut self) -> Result<&mut [u64]> {
        self.memory.words_mut().ok_or_else(Error::read_only)
    }

    /// Counters, probes, layout and threshold.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// True when the counters live in a file.
    pub fn is_mapped(&self) -> bool {
        self.memory.is_mapped()
    }

    /// Marks in `found` each hash that seems to have come `least` times or more; the slices are
    /// equally long. No counter tells more than its maximum, so beyond it the answer is that for the
    /// maximum.
    pub fn reach_hashes(&self, hashes: &[u64], least: u64, found: &mut [u8]) {
        let least = least.min(self.packed.max());
        match self.kernel {
            Kernel::Line(line) => line.reach_all(self.words(), hashes, least, found),
            Kernel::Spread(spread) => {
                (0..AHEAD).for_each(|i| spread.fetch_at(self.words(), hashes, i));
                for (i, (&hash, found)) in hashes.iter().zip(found).enumerate() {
                    spread.fetch_at(self.words(), hashes, i + AHEAD);
                    *found = u8::from(spread.least(self.words(), hash) >= least);
                }
            }
        }
    }

    /// True when `hash` seems to have come `least` times or more.
    #[inline(always)]
    pub fn reaches(&self, hash: u64, least: u64) -> bool {
        self.count_hash(hash) >= least.min(self.packed.max())
    }

    /// Rate at which a key never added seems to have come `least` times or more, at the present load
    /// and if no key came twice.
    pub fn fpr_at_least(&self, least: u64) -> f64 {
        let items = self.approx_count().0;
        if items.is_finite() { self.shape.fpr(items, least.min(self.packed.max())) } else { 1.0 }
    }

    /// Counters that are not zero.
    fn set_cells(&self) -> u64 {
        spread::count_set(self.packed, self.words(), self.shape.num_cells)
    }

    /// After counters came from elsewhere, the distinct keys are what the counters say.
    fn recount(&mut self, least: u64, most: u64) {
        let estimate = self.approx_count().0.round().min(u64::MAX as f64) as u64;
        self.load.added = estimate.clamp(least.min(most), most);
    }

    fn removed(&mut self, taken: u64, gone: u64) {
        self.occurrences = self.occurrences.saturating_sub(taken);
        self.load.added = self.load.added.saturating_sub(gone);
    }
}

impl Sizable for CountingBloomFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        Self::new(Shape::auto(COUNTER_BITS, 1, capacity, fpr)?, capacity, fpr, hasher)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        Ok(Shape::auto(COUNTER_BITS, 1, capacity, fpr)?.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }
}

impl Estimating for CountingBloomFilter {
    /// From the share of counters that are not zero; infinite when all are.
    fn approx_count(&self) -> (f64, f64) {
        let law = self.shape.law();
        let items = law.items(self.fill());
        (items, law.items_sd(items))
    }
}

impl Filter for CountingBloomFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.count_hash(hash) > 0
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.reach_hashes(hashes, 1, found);
    }

    load_answers!();

    /// Additions less removals, a repeated key as often as it came.
    fn num_added(&self) -> u64 {
        self.occurrences
    }

    /// At the threshold the filter was made for.
    fn fpr(&self) -> f64 {
        self.fpr_at_least(self.shape.threshold)
    }

    fn fill(&self) -> f64 {
        self.set_cells() as f64 / self.shape.num_cells as f64
    }

    fn nbytes(&self) -> u64 {
        self.memory.len_bytes() as u64
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        let (approx, sd) = self.approx_count();
        vec![
            ("capacity", Fact::Number(self.load.capacity)),
            ("target_fpr", Fact::Real(self.load.target_fpr)),
            ("num_added", Fact::Number(self.occurrences)),
            ("approx_count", Fact::Real(approx)),
            ("approx_count_sd", Fact::Real(sd)),
            ("fpr", Fact::Real(self.fpr())),
            ("fill", Fact::Real(self.fill())),
            ("num_counters", Fact::Number(self.shape.num_cells)),
            ("counter_bits", Fact::Number(u64::from(self.shape.counter_bits))),
            ("num_hashes", Fact::Number(u64::from(self.shape.num_hashes))),
            ("threshold", Fact::Number(self.shape.threshold)),
            ("layout", Fact::Text(self.shape.layout.name().into())),
            ("seed", Fact::Number(self.hasher.seed())),
            ("keyed", Fact::Flag(self.hasher.is_keyed())),
            ("mapped", Fact::Flag(self.memory.is_mapped())),
            ("nbytes", Fact::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(COUNTING, 0, &self.hasher);
        self.load.describe(&mut header, 0);
        header.set(tag::LAYOUT, 0, self.shape.layout as u64);
        header.set(tag::NUM_CELLS, 0, self.shape.num_cells);
        header.set(tag::CELL_BITS, 0, u64::from(self.shape.counter_bits));
        header.set(tag::NUM_HASHES, 0, u64::from(self.shape.num_hashes));
        header.set(tag::THRESHOLD, 0, self.shape.threshold);
        header.set(tag::OCCURRENCES, 0, self.occurrences);
        Container { header, sections: vec![Section { kind: kind::COUNTERS, index: 0, bytes: self.memory.bytes() }] }
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(CountingBloomFilter {
            shape: self.shape,
            packed: self.packed,
            kernel: self.kernel,
            memory: self.memory.try_clone()?,
            hasher: self.hasher,
            load: self.load,
            occurrences: self.occurrences,
        })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.check_compatible(other).is_ok() && self.words() == other.words()
    }
}

impl CountingBloomFilter {
    /// Adds one hash; `None` when the filter is read-only. A call of its own, with its answer in a
    /// register: inlined into the scalar entry points, eight kinds of line took all registers.
    #[inline(never)]
    fn bump(&mut self, hash: u64) -> Option<bool> {
        let words = self.memory.words_mut()?;
        let new = match self.kernel {
            Kernel::Spread(spread) => spread.add(words, hash) == 0,
            Kernel::Line(line) => line.add_one(words, hash),
        };
        self.load.count(new);
        self.occurrences = self.occurrences.saturating_add(1);
        Some(new)
    }
}

impl Addable for CountingBloomFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.bump(hash).map_or_else(|| self.words_mut().map(|_| false), Ok)
    }

    #[inline(always)]
    fn add_quietly(&mut self, hash: u64) -> Option<bool> {
        if self.load.is_roomy() { self.bump(hash) } else { None }
    }

    fn add_hashes(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        let kernel = self.kernel;
        let words = self.words_mut()?;
        let fresh = match kernel {
            Kernel::Line(line) => line.add_all(words, hashes, new),
            Kernel::Spread(spread) => {
                (0..AHEAD).for_each(|i| spread.fetch_at(words, hashes, i));
                let mut fresh = 0;
                for (i, &hash) in hashes.iter().enumerate() {
                    spread.fetch_at(words, hashes, i + AHEAD);
                    let is_new = spread.add(words, hash) == 0;
                    fresh += u64::from(is_new);
                    if let Some(new) = new.as_deref_mut() {
                        new[i] = u8::from(is_new);
                    }
                }
                fresh
            }
        };
        self.load.added = self.load.added.saturating_add(fresh);
        self.occurrences = self.occurrences.saturating_add(hashes.len() as u64);
        Ok(())
    }

    load_takes!(memory);

    fn clear(&mut self) -> Result<()> {
        self.words_mut()?.fill(0);
        self.load.clear();
        self.occurrences = 0;
        Ok(())
    }
}

impl Removable for CountingBloomFilter {
    #[inline(never)]
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        let kernel = self.kernel;
        let words = self.words_mut()?;
        let (taken, gone) = match kernel {
            Kernel::Line(line) => line.remove_one(words, hash),
            Kernel::Spread(spread) => {
                let least = spread.remove(words, hash);
                (least > 0, least == 1)
            }
        };
        self.removed(u64::from(taken), u64::from(gone));
        Ok(taken)
    }

    fn remove_hashes(&mut self, hashes: &[u64], mut removed: Option<&mut [u8]>) -> Result<()> {
        let kernel = self.kernel;
        let words = self.words_mut()?;
        let (taken, gone) = match kernel {
            Kernel::Line(line) => line.remove_all(words, hashes, removed),
            Kernel::Spread(spread) => {
                (0..AHEAD).for_each(|i| spread.fetch_at(words, hashes, i));
                let (mut taken, mut gone) = (0, 0);
                for (i, &hash) in hashes.iter().enumerate() {
                    spread.fetch_at(words, hashes, i + AHEAD);
                    let least = spread.remove(words, hash);
                    taken += u64::from(least > 0);
                    gone += u64::from(least == 1);
                    if let Some(removed) = removed.as_deref_mut() {
                        removed[i] = u8::from(least > 0);
                    }
                }
                (taken, gone)
            }
        };
        self.removed(taken, gone);
        Ok(())
    }
}

impl Countable for CountingBloomFilter {
    /// The least of the key's counters. At the counters' maximum it says "so many or more".
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
                (0..AHEAD).for_each(|i| spread.fetch_at(self.words(), hashes, i));
                for (i, (&hash, count)) in hashes.iter().zip(counts).enumerate() {
                    spread.fetch_at(self.words(), hashes, i + AHEAD);
                    *count = spread.least(self.words(), hash);
                }
            }
        }
    }
}

impl Mergeable for CountingBloomFilter {
    fn check_compatible(&self, other: &Self) -> Result<()> {
        let (a, b) = (&self.shape, &other.shape);
        Differences::of(&self.hasher, &other.hasher)
            .field("layout", a.layout.name(), b.layout.name())
            .field("num_counters", a.num_cells, b.num_cells)
            .field("counter_bits", a.counter_bits, b.counter_bits)
            .field("num_hashes", a.num_hashes, b.num_hashes)
            .check()
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        let (packed, cells) = (self.packed, self.shape.num_cells);
        spread::add_saturating(packed, self.words_mut()?, other.words(), cells);
        let (a, b) = (self.load.added, other.load.added);
        self.recount(a.max(b), a.saturating_add(b));
        self.occurrences = self.occurrences.saturating_add(other.occurrences);
        Ok(())
    }
}

impl Loadable for CountingBloomFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        if header.params.len() != PARAMS || header.scheme != 0 {
            return Err(Error::format("the file holds parameters that no CountingBloomFilter has; it is damaged"));
        }
        let layout = Layout::from_id(header.get(tag::LAYOUT, 0)?);
        let layout = layout.ok_or_else(|| Error::format("the file names an unknown layout; use a newer release"))?;
        let small = |tag| header.get(tag, 0).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let shape = Shape {
            layout,
            counter_bits: small(tag::CELL_BITS)?,
            num_cells: header.get(tag::NUM_CELLS, 0)?,
            num_hashes: small(tag::NUM_HASHES)?,
            threshold: header.get(tag::THRESHOLD, 0)?,
        };
        let shape = shape.check().map_err(Error::as_format)?;
        let load = Load::restore(header, 0)?;
        let memory = memory(kind::COUNTERS, 0, shape.words())?;
        let mut filter = Self::with_memory(shape, load, hasher, memory).map_err(Error::as_format)?;
        if spread::has_bits_past(filter.packed, filter.words(), shape.num_cells) {
            return Err(Error::format("the file has counters beyond its number of counters; it is damaged"));
        }
        filter.occurrences = header.get(tag::OCCURRENCES, 0)?;
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
