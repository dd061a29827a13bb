//! [`VariableIncrementFilter`]: a counting filter whose keys add different amounts.
//!
//! Rottenstreich, Kanizo and Keslassy, "The variable-increment counting Bloom filter", 2014. Probe i
//! of a key adds an increment v_i from L to 2L - 1 to its cell, and removal takes it away again. A
//! cell of value s can hold v only if s = v or s >= v + L, because every sum of increments is at
//! least L. A cell at its maximum may stand for more: it accepts every probe and stays for ever.
//!
//! ```text
//! cell of probe i: scheme 1, `mcg`; a cell that an earlier probe of the key has taken is left out
//! y_i = h * M2^(i + 1) mod 2^64,    v_i = L + the top log2 L bits of y_i
//! ```

use crate::cells::{LINE_WORDS, Memory, Packed};
use crate::container::{Container, Header, Section, kind, tag};
use crate::counting::shape::{MAX_CELLS, MAX_HASHES, check_possible, impossible};
use crate::counting::spread::{self, Spread};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::VARIABLE_INCREMENT;
use crate::scheme::mcg::Mcg;
use crate::scheme::probes::Sequence;
use crate::sizing::classic::Classic;
use crate::sizing::counters::{all_accept, variable_accepts};
use crate::sizing::{Law, smallest};
use crate::structure::differences::Differences;
use crate::structure::load::{self, Load, load_answers, load_takes};
use crate::structure::{Addable, Estimating, Filter, Loadable, Mergeable, Removable, Sizable, Value};

/// The second multiplier of `columns`.
const M2: u64 = 0xaf25_1af3_b0f0_25b5;
/// L unless asked otherwise.
pub const INCREMENTS: u64 = 4;
/// Parameters in a file.
const PARAMS: usize = load::PARAMS + 5;

/// Cells, probes and increments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// L: increments are L to 2L - 1.
    pub increments: u64,
    /// w, bits of a counter.
    pub counter_bits: u32,
    /// m.
    pub num_cells: u64,
    /// k.
    pub num_hashes: u32,
}

impl Shape {
    /// Bits of a counter unless asked otherwise: a cell then holds 15 to 20 increments, while a full
    /// filter has one or two in a cell.
    pub fn default_bits(increments: u64) -> u32 {
        increments.checked_ilog2().unwrap_or(0) + 5
    }

    fn check_cells(increments: u64, counter_bits: u32) -> Result<()> {
        if !matches!(increments, 2 | 4 | 8) {
            return Err(Error::Parameter(format!("increments must be 2, 4 or 8, got {increments}")));
        }
        // With two increments in it a cell must be below its maximum, or the law would not hold.
        let least = increments.ilog2() + 2;
        if !(least..=16).contains(&counter_bits) {
            return Err(Error::Parameter(format!(
                "counter_bits must be between {least} and 16 with increments {increments}, got {counter_bits}"
            )));
        }
        Ok(())
    }

    /// The smallest shape with a rate of at most `fpr` at `capacity` keys.
    pub fn for_capacity(increments: u64, counter_bits: u32, capacity: u64, fpr: f64) -> Result<Self> {
        Self::check_cells(increments, counter_bits)?;
        check_possible(capacity, fpr, counter_bits)?;
        let mut best: Option<Shape> = None;
        for num_hashes in 1..=MAX_HASHES {
            let shape = |num_cells| Shape { increments, counter_bits, num_cells, num_hashes };
            let Some(found) = smallest(MAX_CELLS, fpr, |cells| shape(cells).fpr(capacity as f64)).map(shape) else {
                continue;
            };
            match best {
                // Space falls with k, then rises.
                Some(least) if found.num_cells > least.num_cells + least.num_cells / 4 + 8 => break,
                Some(least) if found.num_cells >= least.num_cells => {}
                _ => best = Some(found),
            }
        }
        best.ok_or_else(|| impossible(capacity, fpr))
    }

    /// Refuses what no constructor makes.
    pub fn check(self) -> Result<Self> {
        Self::check_cells(self.increments, self.counter_bits)?;
        if (1..=MAX_HASHES).contains(&self.num_hashes) && (1..=MAX_CELLS).contains(&self.num_cells) {
            return Ok(self);
        }
        Err(Error::Parameter(format!("{} counters, {} a key, are no filter", self.num_cells, self.num_hashes)))
    }

    /// Rate when `items` keys are in, once each.
    pub fn fpr(&self, items: f64) -> f64 {
        let cells = self.num_cells as f64;
        if items <= 0.0 {
            return 0.0;
        }
        all_accept(variable_accepts(items, cells, self.num_hashes, self.increments as f64), cells, self.num_hashes)
    }

    /// The law of the occupied cells.
    fn occupancy(&self) -> Classic {
        Classic { num_bits: self.num_cells, num_hashes: self.num_hashes }
    }

    /// 64-bit words in use.
    pub fn words(&self) -> u64 {
        (self.num_cells * u64::from(self.counter_bits)).div_ceil(64)
    }
}

/// The loops over a key's cells.
#[derive(Clone, Copy)]
struct Kernel {
    spread: Spread,
    /// L.
    increments: u64,
    /// 64 - log2 L.
    shift: u32,
}

impl Kernel {
    fn new(shape: &Shape, packed: Packed) -> Self {
        let spread = Spread { packed, num_cells: shape.num_cells, num_hashes: shape.num_hashes };
        let shift = 64 - shape.increments.max(2).ilog2();
        Kernel { spread, increments: shape.increments, shift }
    }

    #[inline(always)]
    fn accepts(&self, value: u64, v: u64) -> bool {
        value == v || value >= v + self.increments || value == self.spread.packed.max()
    }

    /// Runs `visit` on each distinct cell of `hash` with its increment, until it answers false.
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
    fn contains(&self, words: &[u64], hash: u64) -> bool {
        self.each(hash, |cell, v| self.accepts(self.spread.packed.get(words, cell), v))
    }

    /// Adds; true when a cell could not have held the key.
    #[inline(always)]
    fn add(&self, words: &mut [u64], hash: u64) -> bool {
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

    /// Removes unless certainly absent: tells whether, and whether the key is absent now.
    #[inline(always)]
    fn remove(&self, words: &mut [u64], hash: u64) -> (bool, bool) {
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

/// An approximate set whose keys can be removed, in less space than counters of one would need.
pub struct VariableIncrementFilter {
    shape: Shape,
    kernel: Kernel,
    memory: Memory,
    hasher: KeyHasher,
    /// Counts distinct keys, as far as can be told.
    load: Load,
    /// Additions less removals.
    occurrences: u64,
}

impl VariableIncrementFilter {
    /// An empty filter of `shape`.
    pub fn new(shape: Shape, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let shape = shape.check()?;
        Self::with_memory(shape, load, hasher, Memory::zeroed(shape.words())?)
    }

    fn with_memory(shape: Shape, load: Load, hasher: KeyHasher, memory: Memory) -> Result<Self> {
        let packed = Packed::new(shape.counter_bits).ok_or_else(|| Error::parameter("counter_bits must be 1 to 64"))?;
        let kernel = Kernel::new(&shape, packed);
        Ok(VariableIncrementFilter { shape, kernel, memory, hasher, load, occurrences: 0 })
    }

    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.memory.words()
    }

    #[inline(always)]
    fn words_mut(&mut self) -> Result<&mut [u64]> {
        self.memory.words_mut().ok_or_else(Error::read_only)
    }

    /// Counters, probes and increments.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// True when the counters live in a file.
    pub fn is_mapped(&self) -> bool {
        self.memory.is_mapped()
    }

    fn removed(&mut self, taken: u64, gone: u64) {
        self.occurrences = self.occurrences.saturating_sub(taken);
        self.load.added = self.load.added.saturating_sub(gone);
    }
}

impl Sizable for VariableIncrementFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let shape = Shape::for_capacity(INCREMENTS, Shape::default_bits(INCREMENTS), capacity, fpr)?;
        Self::new(shape, capacity, fpr, hasher)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        let shape = Shape::for_capacity(INCREMENTS, Shape::default_bits(INCREMENTS), capacity, fpr)?;
        Ok(shape.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }
}

impl Estimating for VariableIncrementFilter {
    /// From the share of cells that are not zero; infinite when all are.
    fn approx_count(&self) -> (f64, f64) {
        let law = self.shape.occupancy();
        let items = law.items(self.fill());
        (items, law.items_sd(items))
    }
}

impl Filter for VariableIncrementFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.kernel.contains(self.words(), hash)
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        let (kernel, words) = (self.kernel, self.words());
        kernel.spread.answer(words, hashes, found, |hash| u8::from(kernel.contains(words, hash)));
    }

    load_answers!();

    /// Additions less removals, a repeated key as often as it came.
    fn num_added(&self) -> u64 {
        self.occurrences
    }

    fn fpr(&self) -> f64 {
        let items = self.approx_count().0;
        if items.is_finite() { self.shape.fpr(items) } else { 1.0 }
    }

    fn fill(&self) -> f64 {
        let set = spread::count_set(self.kernel.spread.packed, self.words(), self.shape.num_cells);
        set as f64 / self.shape.num_cells as f64
    }

    fn nbytes(&self) -> u64 {
        self.memory.len_bytes() as u64
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
            ("increments", Value::Number(self.shape.increments)),
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("mapped", Value::Flag(self.memory.is_mapped())),
            ("nbytes", Value::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(VARIABLE_INCREMENT, 0, &self.hasher);
        self.load.describe(&mut header, 0);
        header.set(tag::NUM_CELLS, 0, self.shape.num_cells);
        header.set(tag::CELL_BITS, 0, u64::from(self.shape.counter_bits));
        header.set(tag::NUM_HASHES, 0, u64::from(self.shape.num_hashes));
        header.set(tag::INCREMENTS, 0, self.shape.increments);
        header.set(tag::OCCURRENCES, 0, self.occurrences);
        Container { header, sections: vec![Section { kind: kind::COUNTERS, index: 0, bytes: self.memory.bytes() }] }
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(VariableIncrementFilter {
            shape: self.shape,
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

impl Addable for VariableIncrementFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let kernel = self.kernel;
        let new = kernel.add(self.words_mut()?, hash);
        self.load.count(new);
        self.occurrences = self.occurrences.saturating_add(1);
        Ok(new)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        let kernel = self.kernel;
        let words = self.words_mut()?;
        let mut fresh = 0;
        kernel.spread.change(words, hashes, new, |words, hash| {
            let is_new = kernel.add(words, hash);
            fresh += u64::from(is_new);
            is_new
        });
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

impl Removable for VariableIncrementFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        let kernel = self.kernel;
        let (taken, gone) = kernel.remove(self.words_mut()?, hash);
        self.removed(u64::from(taken), u64::from(gone));
        Ok(taken)
    }

    fn remove_hashes(&mut self, hashes: &[u64], removed: Option<&mut [u8]>) -> Result<()> {
        let kernel = self.kernel;
        let words = self.words_mut()?;
        let (mut all_taken, mut all_gone) = (0, 0);
        kernel.spread.change(words, hashes, removed, |words, hash| {
            let (taken, gone) = kernel.remove(words, hash);
            all_taken += u64::from(taken);
            all_gone += u64::from(gone);
            taken
        });
        self.removed(all_taken, all_gone);
        Ok(())
    }
}

impl Mergeable for VariableIncrementFilter {
    fn check_compatible(&self, other: &Self) -> Result<()> {
        let (a, b) = (&self.shape, &other.shape);
        Differences::of(&self.hasher, &other.hasher)
            .field("num_counters", a.num_cells, b.num_cells)
            .field("counter_bits", a.counter_bits, b.counter_bits)
            .field("num_hashes", a.num_hashes, b.num_hashes)
            .field("increments", a.increments, b.increments)
            .check()
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        let (packed, cells) = (self.kernel.spread.packed, self.shape.num_cells);
        spread::add_saturating(packed, self.words_mut()?, other.words(), cells);
        let (a, b) = (self.load.added, other.load.added);
        let estimate = self.approx_count().0.round().min(u64::MAX as f64) as u64;
        self.load.added = estimate.clamp(a.max(b), a.saturating_add(b));
        self.occurrences = self.occurrences.saturating_add(other.occurrences);
        Ok(())
    }
}

impl Loadable for VariableIncrementFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        if header.params.len() != PARAMS || header.scheme != 0 {
            return Err(Error::format("the file holds parameters that no VariableIncrementFilter has; it is damaged"));
        }
        let small = |tag| header.get(tag, 0).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let shape = Shape {
            increments: header.get(tag::INCREMENTS, 0)?,
            counter_bits: small(tag::CELL_BITS)?,
            num_cells: header.get(tag::NUM_CELLS, 0)?,
            num_hashes: small(tag::NUM_HASHES)?,
        };
        let shape = shape.check().map_err(Error::as_format)?;
        let load = Load::restore(header, 0)?;
        let memory = memory(kind::COUNTERS, 0, shape.words())?;
        let mut filter = Self::with_memory(shape, load, hasher, memory).map_err(Error::as_format)?;
        if spread::has_bits_past(filter.kernel.spread.packed, filter.words(), shape.num_cells) {
            return Err(Error::format("the file has counters beyond its number of counters; it is damaged"));
        }
        filter.occurrences = header.get(tag::OCCURRENCES, 0)?;
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
