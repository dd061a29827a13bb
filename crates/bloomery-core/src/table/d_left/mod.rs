//! [`DLeftCountingFilter`]: an exact multiset of fingerprints in d sub-tables of buckets.
//!
//! Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, "An improved construction for counting
//! Bloom filters", 2006. A new fingerprint goes to the least loaded of its d buckets, the leftmost
//! of several. How fingerprints and buckets come from a hash: [`self::shape`].
//!
//! A cell counts to 3. Copies beyond that take further cells of the same fingerprint, whose digits
//! 1 to 3, least significant first in the order of sub-tables and cells, write the count in base 3
//! without a zero (3, 11, 12, 13, 21, ...). A cell is added only when all digits become 1, and taken
//! away only when all were 1, so where it stands does not matter. Counts are thus exact, a million
//! copies need 13 cells, and removing is always possible: nothing saturates.
//!
//! The rate is that of fingerprints alone: D distinct ones among B R admit an absent key with
//! probability D / (B R), in the mean 1 - (1 - 1/(B R))^n.

pub mod shape;

use self::shape::{Shape, TOP, Table};
use crate::cells::{LINE_WORDS, Memory};
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::D_LEFT;
use crate::scheme::ahead::{answer_ahead, try_ahead};
use crate::structure::differences::Differences;
use crate::structure::load::{self, Load, load_answers, load_takes};
use crate::structure::{Addable, Countable, Filter, Loadable, Mergeable, Removable, Sizable, Value};

/// Keys fetched ahead; each asks for d buckets, and a core has 10 to 12 line-fill buffers.
const AHEAD: usize = 6;
/// d and w unless others are asked for: 16.8 bits a key at 1 %.
pub const DEFAULT_SUBTABLES: u32 = 4;
/// See [`DEFAULT_SUBTABLES`].
pub const DEFAULT_CELLS: u32 = 12;

/// A counting filter of fingerprints.
pub struct DLeftCountingFilter {
    shape: Shape,
    table: Table,
    memory: Memory,
    load: Load,
    hasher: KeyHasher,
}

impl DLeftCountingFilter {
    /// An empty filter of `shape`.
    pub fn new(shape: Shape, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let (load, shape) = (Load::new(capacity, fpr)?, shape.check()?);
        let table = Table::new(shape)?;
        Ok(DLeftCountingFilter { shape, table, memory: Memory::zeroed(shape.words())?, load, hasher })
    }

    /// Sizes of the table.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Buckets by the number of cells in use, from 0 to w.
    pub fn bucket_loads(&self) -> Vec<u64> {
        self.table.loads(self.memory.words())
    }

    fn words_mut(&mut self) -> Result<&mut [u64]> {
        self.memory.words_mut().ok_or_else(Error::read_only)
    }

    fn full(&self) -> Error {
        Error::Capacity(format!(
            "all {} buckets of the key are full: the filter holds {} keys, its capacity is {} (a key with more \
             than 3 copies takes several cells); remove keys, or build a larger filter",
            self.shape.subtables, self.load.added, self.load.capacity
        ))
    }

    /// Cells of a fingerprint, least significant digit first.
    fn cells(&self, fingerprint: u64) -> Vec<u64> {
        let mut cells = Vec::new();
        self.table.each_cell(self.memory.words(), fingerprint, |cell| {
            cells.push(cell);
            true
        });
        cells
    }

    fn first_cell(&self, fingerprint: u64) -> Option<u64> {
        let mut first = None;
        self.table.each_cell(self.memory.words(), fingerprint, |cell| {
            first = Some(cell);
            false
        });
        first
    }

    /// One more copy of a fingerprint that is there.
    fn increment(&mut self, fingerprint: u64) -> Result<()> {
        let table = self.table;
        if let Some(cell) = self.first_cell(fingerprint) {
            let words = self.words_mut()?;
            let digit = table.digit(words, cell);
            if digit < TOP {
                table.set_digit(words, cell, digit + 1);
                return Ok(());
            }
        }
        let cells = self.cells(fingerprint);
        let words = self.words_mut()?;
        let carried = cells.iter().take_while(|&&cell| table.digit(words, cell) == TOP).count();
        if carried == cells.len() {
            let (room, _) = table.survey(words, fingerprint);
            if !table.place(words, room, fingerprint) {
                return Err(self.full());
            }
        }
        let words = self.words_mut()?;
        cells.iter().take(carried).for_each(|&cell| table.set_digit(words, cell, 1));
        if let Some(&cell) = cells.get(carried) {
            let digit = table.digit(words, cell);
            table.set_digit(words, cell, digit + 1);
        }
        Ok(())
    }

    fn add_fingerprint(&mut self, fingerprint: u64) -> Result<bool> {
        let table = self.table;
        let words = self.words_mut()?;
        let (room, found) = table.survey(words, fingerprint);
        if found {
            return self.increment(fingerprint).map(|()| false);
        }
        if !table.place(words, room, fingerprint) {
            return Err(self.full());
        }
        self.load.count(true);
        Ok(true)
    }

    fn remove_fingerprint(&mut self, fingerprint: u64) -> Result<bool> {
        let table = self.table;
        let first = self.first_cell(fingerprint);
        let words = self.words_mut()?;
        let Some(first) = first else { return Ok(false) };
        let digit = table.digit(words, first);
        if digit > 1 {
            table.set_digit(words, first, digit - 1);
            return Ok(true);
        }
        let cells = self.cells(fingerprint);
        let words = self.words_mut()?;
        let borrowed = cells.iter().take_while(|&&cell| table.digit(words, cell) == 1).count();
        cells.iter().take(borrowed).for_each(|&cell| table.set_digit(words, cell, TOP));
        match (cells.get(borrowed), cells.last()) {
            (Some(&cell), _) => {
                let digit = table.digit(words, cell);
                table.set_digit(words, cell, digit - 1);
            }
            (None, Some(&last)) => table.set_digit(words, last, 0),
            (None, None) => {}
        }
        if cells.len() == 1 {
            self.load.added = self.load.added.saturating_sub(1);
        }
        Ok(true)
    }

    fn count_fingerprint(&self, fingerprint: u64) -> u64 {
        let words = self.memory.words();
        let (mut count, mut weight) = (0u64, 1u64);
        self.table.each_cell(words, fingerprint, |cell| {
            count = count.saturating_add(self.table.digit(words, cell).saturating_mul(weight));
            weight = weight.saturating_mul(3);
            true
        });
        count
    }

    /// Sets the count of a fingerprint that has fewer copies now; on an error cells may have been added.
    fn raise_to(&mut self, fingerprint: u64, count: u64) -> Result<()> {
        let mut digits = Vec::new();
        let mut rest = count;
        while rest > 0 {
            let digit = (rest - 1) % TOP + 1;
            digits.push(digit);
            rest = (rest - digit) / TOP;
        }
        let table = self.table;
        let have = self.cells(fingerprint).len();
        for _ in have..digits.len() {
            let words = self.words_mut()?;
            let (room, _) = table.survey(words, fingerprint);
            if !table.place(words, room, fingerprint) {
                return Err(self.full());
            }
        }
        let cells = self.cells(fingerprint);
        let words = self.words_mut()?;
        cells.iter().zip(digits).for_each(|(&cell, digit)| table.set_digit(words, cell, digit));
        self.load.count(have == 0 && count > 0);
        Ok(())
    }

    /// Adds all fingerprints of `other`; on an error some are in.
    fn take_in(&mut self, other: &Self) -> Result<()> {
        let words = other.memory.words();
        for cell in 0..other.shape.num_cells() {
            if other.table.digit(words, cell) == 0 {
                continue;
            }
            let fingerprint = other.table.fingerprint_at(words, cell);
            // Once a fingerprint, at its first cell.
            if other.first_cell(fingerprint) == Some(cell) {
                let more = other.count_fingerprint(fingerprint);
                let count = self.count_fingerprint(fingerprint).saturating_add(more);
                self.raise_to(fingerprint, count)?;
            }
        }
        Ok(())
    }

    /// Calls `work` for every hash in order, its buckets fetched ahead.
    #[inline(always)]
    fn in_order<T>(
        &mut self,
        hashes: &[u64],
        work: impl Fn(&mut Self, u64) -> Result<T>,
        mut tell: impl FnMut(usize, T),
    ) -> Result<()> {
        let table = self.table;
        let fetch = |filter: &Self, _, hash| table.fetch(filter.memory.words(), hash);
        try_ahead(AHEAD, self, hashes, fetch, |filter, i, hash| {
            tell(i, work(filter, table.fingerprint(hash))?);
            Ok(())
        })
    }

    /// Calls `look` for every hash in order, its buckets fetched ahead.
    #[inline(always)]
    fn look_at<T>(&self, hashes: &[u64], out: &mut [T], look: impl Fn(u64) -> T) {
        let words = self.memory.words();
        let fetch = |hash| self.table.fetch(words, hash);
        answer_ahead(AHEAD, hashes, out, fetch, |hash| look(self.table.fingerprint(hash)));
    }
}

impl Sizable for DLeftCountingFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let shape = Shape::for_capacity(capacity, fpr, DEFAULT_SUBTABLES, DEFAULT_CELLS)?;
        Self::new(shape, capacity, fpr, hasher)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        let shape = Shape::for_capacity(capacity, fpr, DEFAULT_SUBTABLES, DEFAULT_CELLS)?;
        Ok(shape.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }
}

impl Filter for DLeftCountingFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.table.contains(self.memory.words(), self.table.fingerprint(hash))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        let words = self.memory.words();
        self.look_at(hashes, found, |fingerprint| u8::from(self.table.contains(words, fingerprint)));
    }

    load_answers!(added);

    /// Share of all fingerprints that are in.
    fn fpr(&self) -> f64 {
        (self.load.added as f64 / self.shape.fingerprints() as f64).min(1.0)
    }

    fn fill(&self) -> f64 {
        self.table.used_cells(self.memory.words()) as f64 / self.shape.num_cells() as f64
    }

    fn nbytes(&self) -> u64 {
        self.memory.len_bytes() as u64
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("capacity", Value::Number(self.load.capacity)),
            ("target_fpr", Value::Real(self.load.target_fpr)),
            ("num_added", Value::Number(self.load.added)),
            ("fpr", Value::Real(self.fpr())),
            ("fill", Value::Real(self.fill())),
            ("subtables", Value::Number(u64::from(self.shape.subtables))),
            ("cells", Value::Number(u64::from(self.shape.cells))),
            ("buckets", Value::Number(self.shape.buckets)),
            ("remainder_bits", Value::Number(u64::from(self.shape.remainder_bits))),
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("mapped", Value::Flag(self.memory.is_mapped())),
            ("nbytes", Value::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(D_LEFT, 0, &self.hasher);
        self.load.describe(&mut header, 0);
        header.set(tag::SUBTABLES, 0, u64::from(self.shape.subtables));
        header.set(tag::BUCKET_CELLS, 0, u64::from(self.shape.cells));
        header.set(tag::BUCKETS, 0, self.shape.buckets);
        header.set(tag::REMAINDER_BITS, 0, u64::from(self.shape.remainder_bits));
        let section = Section { kind: kind::COUNTED_FINGERPRINTS, index: 0, bytes: self.memory.bytes() };
        Container { header, sections: vec![section] }
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(DLeftCountingFilter { memory: self.memory.try_clone()?, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.check_compatible(other).is_ok() && self.memory.words() == other.memory.words()
    }
}

impl Addable for DLeftCountingFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.add_fingerprint(self.table.fingerprint(hash))
    }

    fn add_hashes(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        self.in_order(hashes, Self::add_fingerprint, |i, fresh| {
            if let Some(new) = new.as_deref_mut() {
                new[i] = u8::from(fresh);
            }
        })
    }

    load_takes!(memory);

    fn clear(&mut self) -> Result<()> {
        self.words_mut()?.fill(0);
        self.load.clear();
        Ok(())
    }
}

impl Removable for DLeftCountingFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        self.remove_fingerprint(self.table.fingerprint(hash))
    }

    fn remove_hashes(&mut self, hashes: &[u64], mut removed: Option<&mut [u8]>) -> Result<()> {
        self.in_order(hashes, Self::remove_fingerprint, |i, was_there| {
            if let Some(removed) = removed.as_deref_mut() {
                removed[i] = u8::from(was_there);
            }
        })
    }
}

impl Countable for DLeftCountingFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        self.count_fingerprint(self.table.fingerprint(hash))
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        self.look_at(hashes, counts, |fingerprint| self.count_fingerprint(fingerprint));
    }
}

impl Mergeable for DLeftCountingFilter {
    fn check_compatible(&self, other: &Self) -> Result<()> {
        let (a, b) = (self.shape, other.shape);
        Differences::of(&self.hasher, &other.hasher)
            .field("subtables", a.subtables, b.subtables)
            .field("cells", a.cells, b.cells)
            .field("buckets", a.buckets, b.buckets)
            .field("remainder_bits", a.remainder_bits, b.remainder_bits)
            .check()
    }

    /// Re-inserts the other's fingerprints with their counts, into a copy that takes over at the end.
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        self.words_mut()?;
        let mut merged = self.try_clone()?;
        merged.take_in(other)?;
        *self = merged;
        Ok(())
    }
}

/// Parameters besides those of [`Load`].
const PARAMS: usize = 4;

impl Loadable for DLeftCountingFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        let small = |tag| header.get(tag, 0).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let shape = Shape {
            subtables: small(tag::SUBTABLES)?,
            cells: small(tag::BUCKET_CELLS)?,
            remainder_bits: small(tag::REMAINDER_BITS)?,
            buckets: header.get(tag::BUCKETS, 0)?,
        };
        let shape = shape.check().map_err(Error::as_format)?;
        let load = Load::restore(header, 0)?;
        if header.params.len() != load::PARAMS + PARAMS || header.scheme != 0 {
            return Err(Error::format("the file holds parameters that no DLeftCountingFilter has; it is damaged"));
        }
        let memory = memory(kind::COUNTED_FINGERPRINTS, 0, shape.words())?;
        Ok(DLeftCountingFilter { shape, table: Table::new(shape)?, memory, load, hasher })
    }
}

#[cfg(test)]
mod tests;
