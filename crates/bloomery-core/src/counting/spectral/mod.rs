//! [`SpectralFilter`]: how often each key came, never told too low.
//!
//! Cohen and Matias, "Spectral Bloom filters", 2003. The estimate is the least of a key's k counters,
//! cells as in [`crate::counting::spread`]. Three ways to add:
//!
//! * minimum selection: one to each counter (what a counting filter does);
//! * minimal increase: one to each counter that is at the least value, so that others stay closer to
//!   their own keys;
//! * recurring minimum: one to each, and a key whose least value stands in one counter only, which is
//!   how an overestimate looks, is counted apart from there on, starting at that value.
//!
//! Where a key is counted apart decides whether the promise holds: a second filter with a marker for
//! its keys denies occurrences when the marker errs. Here the keys apart are exact, in a table of
//! their 64-bit hashes ([`apart`]); a key that finds no room in it stays with its counters.

pub mod apart;

use self::apart::Apart;
use crate::cells::{LINE_WORDS, Memory, Packed};
use crate::container::{Container, Header, Section, kind, tag};
use crate::counting::shape::{MAX_CELLS, MAX_HASHES, check_possible, impossible};
use crate::counting::spread::{self, AHEAD, Positions, Spread};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::SPECTRAL;
use crate::scheme::ahead::change_ahead;
use crate::sizing::classic::Classic;
use crate::sizing::{Law, smallest};
use crate::structure::differences::Differences;
use crate::structure::load::{self, Load, load_answers, load_takes};
use crate::structure::{Addable, Countable, Estimating, Filter, Loadable, Sizable, Value};

/// Bits of a counter unless asked otherwise.
pub const COUNTER_BITS: u32 = 32;
/// Parameters in a file.
const PARAMS: usize = load::PARAMS + 5;

/// How a key is added. The number stands in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Mode {
    /// One to each counter.
    MinimumSelection = 1,
    /// One to the least counters.
    MinimalIncrease = 2,
    /// One to each; keys whose least counter stands alone are counted apart.
    RecurringMinimum = 3,
}

/// Every mode with its name, in order of number.
pub const MODES: [(Mode, &str); 3] = [
    (Mode::MinimumSelection, "minimum-selection"),
    (Mode::MinimalIncrease, "minimal-increase"),
    (Mode::RecurringMinimum, "recurring-minimum"),
];

impl Mode {
    /// The mode's public name.
    pub fn name(self) -> &'static str {
        MODES.iter().find(|(mode, _)| *mode == self).map_or("", |(_, name)| name)
    }

    /// Finds a mode by name.
    pub fn from_name(name: &str) -> Option<Self> {
        MODES.iter().find(|(_, n)| *n == name).map(|(mode, _)| *mode)
    }

    fn from_id(id: u64) -> Option<Self> {
        MODES.iter().find(|(mode, _)| *mode as u64 == id).map(|(mode, _)| *mode)
    }
}

/// Counters and probes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// w, bits of a counter.
    pub counter_bits: u32,
    /// m.
    pub num_cells: u64,
    /// k.
    pub num_hashes: u32,
}

impl Shape {
    fn check_bits(counter_bits: u32) -> Result<()> {
        if matches!(counter_bits, 8 | 16 | 32 | 64) {
            return Ok(());
        }
        Err(Error::Parameter(format!("counter_bits must be 8, 16, 32 or 64, got {counter_bits}")))
    }

    /// The smallest shape with a rate of at most `fpr` at `capacity` keys: that of a Bloom filter.
    pub fn for_capacity(counter_bits: u32, capacity: u64, fpr: f64) -> Result<Self> {
        Self::check_bits(counter_bits)?;
        check_possible(capacity, fpr, counter_bits)?;
        let k = (-fpr.log2()).floor().clamp(1.0, f64::from(MAX_HASHES - 1)) as u32;
        let sized = [k, k + 1].into_iter().filter_map(|num_hashes| {
            let law = |num_bits| Classic { num_bits, num_hashes }.safe_fpr(capacity as f64);
            smallest(MAX_CELLS, fpr, law).map(|num_cells| Shape { counter_bits, num_cells, num_hashes })
        });
        sized.min_by_key(|shape| shape.num_cells).ok_or_else(|| impossible(capacity, fpr))
    }

    fn check(self) -> Result<Self> {
        Self::check_bits(self.counter_bits)?;
        if (1..=MAX_HASHES).contains(&self.num_hashes) && (1..=MAX_CELLS).contains(&self.num_cells) {
            return Ok(self);
        }
        Err(Error::Parameter(format!("{} counters, {} a key, are no filter", self.num_cells, self.num_hashes)))
    }

    fn law(&self) -> Classic {
        Classic { num_bits: self.num_cells, num_hashes: self.num_hashes }
    }

    /// 64-bit words in use.
    pub fn words(&self) -> u64 {
        (self.num_cells * u64::from(self.counter_bits)).div_ceil(64)
    }
}

/// An approximate multiset that tells how often each key came, or a little more.
pub struct SpectralFilter {
    shape: Shape,
    mode: Mode,
    spread: Spread,
    memory: Memory,
    apart: Option<Apart>,
    hasher: KeyHasher,
    /// Counts distinct keys.
    load: Load,
    /// Additions.
    occurrences: u64,
}

impl SpectralFilter {
    /// An empty filter of `shape`.
    pub fn new(shape: Shape, mode: Mode, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let shape = shape.check()?;
        let memory = Memory::zeroed(shape.words())?;
        let apart = match mode {
            Mode::RecurringMinimum => Some(Memory::zeroed(Apart::words_for(capacity))?),
            _ => None,
        };
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
        let packed = Packed::new(shape.counter_bits).ok_or_else(|| Error::parameter("counter_bits must be 1 to 64"))?;
        let spread = Spread { packed, num_cells: shape.num_cells, num_hashes: shape.num_hashes };
        let apart = apart.map(|memory| Apart { slots: Apart::slots_for(load.capacity), memory });
        Ok(SpectralFilter { shape, mode, spread, memory, apart, hasher, load, occurrences: 0 })
    }

    /// True when a counter may be at its maximum: none is above the number of additions.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.occurrences >= self.spread.packed.max()
    }

    fn words(&self) -> &[u64] {
        self.memory.words()
    }

    fn words_mut(&mut self) -> Result<&mut [u64]> {
        self.memory.words_mut().ok_or_else(Error::read_only)
    }

    fn apart_words(&self) -> &[u64] {
        self.apart.as_ref().map_or(&[], |apart| apart.memory.words())
    }

    /// Counters and probes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How keys are added.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Keys that are counted apart.
    pub fn num_apart(&self) -> u64 {
        self.apart.as_ref().map_or(0, Apart::len)
    }

    /// True when the counters live in a file.
    pub fn is_mapped(&self) -> bool {
        self.memory.is_mapped()
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

impl Sizable for SpectralFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let shape = Shape::for_capacity(COUNTER_BITS, capacity, fpr)?;
        Self::new(shape, Mode::MinimalIncrease, capacity, fpr, hasher)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        let shape = Shape::for_capacity(COUNTER_BITS, capacity, fpr)?;
        Ok(shape.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }
}

impl Estimating for SpectralFilter {
    /// From the share of counters that are not zero; infinite when all are.
    fn approx_count(&self) -> (f64, f64) {
        let law = self.shape.law();
        let items = law.items(self.fill());
        (items, law.items_sd(items))
    }
}

impl Filter for SpectralFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.spread.least(self.words(), hash) > 0
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.spread.answer(self.words(), hashes, found, |hash| u8::from(self.contains_hash(hash)));
    }

    load_answers!();

    /// Additions, a repeated key as often as it came.
    fn num_added(&self) -> u64 {
        self.occurrences
    }

    fn fpr(&self) -> f64 {
        let items = self.approx_count().0;
        if items.is_finite() { self.shape.law().fpr(items) } else { 1.0 }
    }

    fn fill(&self) -> f64 {
        let set = spread::count_set(self.spread.packed, self.words(), self.shape.num_cells);
        set as f64 / self.shape.num_cells as f64
    }

    fn nbytes(&self) -> u64 {
        let apart = self.apart.as_ref().map_or(0, |apart| apart.memory.len_bytes());
        (self.memory.len_bytes() + apart) as u64
    }

    fn estimated(&self) -> Option<(f64, f64)> {
        Some(self.approx_count())
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let (approx, sd) = self.approx_count();
        vec![
            ("capacity", Value::Number(self.load.capacity)),
            ("target_fpr", Value::Real(self.load.target_fpr)),
            ("num_added", Value::Number(self.occurrences)),
            ("approx_count", Value::Real(approx)),
            ("approx_count_sd", Value::Real(sd)),
            ("fpr", Value::Real(self.fpr())),
            ("fill", Value::Real(self.fill())),
            ("num_counters", Value::Number(self.shape.num_cells)),
            ("counter_bits", Value::Number(u64::from(self.shape.counter_bits))),
            ("num_hashes", Value::Number(u64::from(self.shape.num_hashes))),
            ("mode", Value::Text(self.mode.name().into())),
            ("num_apart", Value::Number(self.num_apart())),
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("mapped", Value::Flag(self.memory.is_mapped())),
            ("nbytes", Value::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(SPECTRAL, 0, &self.hasher);
        self.load.describe(&mut header, 0);
        header.set(tag::NUM_CELLS, 0, self.shape.num_cells);
        header.set(tag::CELL_BITS, 0, u64::from(self.shape.counter_bits));
        header.set(tag::NUM_HASHES, 0, u64::from(self.shape.num_hashes));
        header.set(tag::MODE, 0, self.mode as u64);
        header.set(tag::OCCURRENCES, 0, self.occurrences);
        let mut sections = vec![Section { kind: kind::COUNTERS, index: 0, bytes: self.memory.bytes() }];
        if let Some(apart) = &self.apart {
            sections.push(Section { kind: kind::APART, index: 0, bytes: apart.memory.bytes() });
        }
        Container { header, sections }
    }

    fn try_clone(&self) -> Result<Self> {
        let apart = match &self.apart {
            Some(apart) => Some(Apart { slots: apart.slots, memory: apart.memory.try_clone()? }),
            None => None,
        };
        Ok(SpectralFilter {
            shape: self.shape,
            mode: self.mode,
            spread: self.spread,
            memory: self.memory.try_clone()?,
            apart,
            hasher: self.hasher,
            load: self.load,
            occurrences: self.occurrences,
        })
    }

    fn same_as(&self, other: &Self) -> bool {
        let alike = Differences::of(&self.hasher, &other.hasher).check().is_ok();
        alike
            && (self.shape, self.mode) == (other.shape, other.mode)
            && self.words() == other.words()
            && self.apart_words() == other.apart_words()
    }
}

impl Addable for SpectralFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let (packed, mode) = (self.spread.packed, self.mode);
        let cells = self.spread.positions(hash);
        let (least, _, most) = self.extremes(&cells);
        let rises = |value: u64| mode != Mode::MinimalIncrease || value == least;
        if (if mode == Mode::MinimalIncrease { least } else { most }) == packed.max() {
            // A read-only filter says so first.
            self.words_mut()?;
            return Err(self.refuse());
        }
        let words = self.words_mut()?;
        for &cell in cells.all() {
            let value = packed.get(words, cell);
            if rises(value) {
                packed.set(words, cell, value + 1);
            }
        }
        if self.apart.is_some() {
            let (now, times, _) = self.extremes(&cells);
            if let Some(apart) = &mut self.apart {
                apart.add(hash, now, times == 1);
            }
        }
        self.load.count(least == 0);
        self.occurrences = self.occurrences.saturating_add(1);
        Ok(least == 0)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        let fetch = |filter: &Self, hash| filter.spread.fetch(filter.words(), hash);
        change_ahead(AHEAD, self, hashes, new, fetch, Self::add_hash)
    }

    load_takes!(full, memory);

    fn clear(&mut self) -> Result<()> {
        self.words_mut()?.fill(0);
        if let Some(words) = self.apart.as_mut().and_then(|apart| apart.memory.words_mut()) {
            words.fill(0);
        }
        self.load.clear();
        self.occurrences = 0;
        Ok(())
    }
}

impl Countable for SpectralFilter {
    /// The least counter, or the count apart where that is lower. Never below the truth.
    fn count_hash(&self, hash: u64) -> u64 {
        let least = self.spread.least(self.words(), hash);
        match &self.apart {
            Some(apart) if least > 0 => apart.count(hash).map_or(least, |count| count.min(least)),
            _ => least,
        }
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        self.spread.answer(self.words(), hashes, counts, |hash| self.count_hash(hash));
    }
}

impl Loadable for SpectralFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        if header.params.len() != PARAMS || header.scheme != 0 {
            return Err(Error::format("the file holds parameters that no SpectralFilter has; it is damaged"));
        }
        let small = |tag| header.get(tag, 0).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let shape = Shape {
            counter_bits: small(tag::CELL_BITS)?,
            num_cells: header.get(tag::NUM_CELLS, 0)?,
            num_hashes: small(tag::NUM_HASHES)?,
        };
        let shape = shape.check().map_err(Error::as_format)?;
        let mode = Mode::from_id(header.get(tag::MODE, 0)?);
        let mode = mode.ok_or_else(|| Error::format("the file names an unknown mode; use a newer release"))?;
        let load = Load::restore(header, 0)?;
        let counters = memory(kind::COUNTERS, 0, shape.words())?;
        let apart = match mode {
            Mode::RecurringMinimum => Some(memory(kind::APART, 0, Apart::words_for(load.capacity))?),
            _ => None,
        };
        let mut filter = Self::with_memory(shape, mode, load, hasher, counters, apart).map_err(Error::as_format)?;
        if spread::has_bits_past(filter.spread.packed, filter.words(), shape.num_cells) {
            return Err(Error::format("the file has counters beyond its number of counters; it is damaged"));
        }
        filter.occurrences = header.get(tag::OCCURRENCES, 0)?;
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
