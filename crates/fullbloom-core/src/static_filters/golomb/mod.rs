//! [`GolombSet`]: sorted hashes in Golomb-Rice codes of their gaps, in blocks that are decoded separately.
//!
//! Golomb, "Run-length encodings", 1966; Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters",
//! 2007. A hash h maps to the value h F >> 64 of F = capacity / fpr, and a key is found if its value is present. The
//! first bits of a value select one of the blocks of 128 keys; the rest is its place in the block. The bytes follow
//! from the set of values and the parameters, so that merging two sets gives the bytes of the set of all keys.
//!
//! * [`shape`]: the number of values, and the block of a hash; [`codes`]: the places of a block; [`offsets`]: where it
//!   begins, and [`Blocks`], all three; [`values`]: all values in order, and sets built from them.

pub mod codes;
pub mod offsets;
pub mod shape;
pub mod values;

use self::offsets::Blocks;
use self::offsets::Offsets;
use self::shape::Shape;
use self::values::Values;
use crate::cells::Memory;
use crate::cells::bits::is_zero_from;
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::key::KeyHasher;
use crate::registry::GOLOMB;
use crate::sizing::{check_fpr, golomb};
use crate::structure::declaration::structure;
use crate::structure::memories::memory_methods;
use crate::structure::records::RecordSet;
use crate::structure::{Declared, Filter, Job, Loadable, Mergeable, Sections};

structure! {
    /// A static approximate set, stored as a compressed sorted list: of any rate, and two of them can be merged.
    class GolombSet;
    parameters {
        /// rate of false positives at capacity, any down to 1e-15; 0.01 by default if bits is not given.
        fpr: "float | None" = None;
        *;
        /// the rate as 2**-bits, in place of fpr: 1 to 49.
        bits: "int | None" = None;
        /// most distinct keys, also after merging: sets that will be merged need the same. By default, the number of keys.
        capacity: "int | None" = None;
        /// P, the bits of a gap that are not in unary; by default the best for the rate, floor(log2(ln 2 / fpr)).
        rice_bits: "int | None" = None;
    }
    /// Never misses a key it was built from; nothing can be added or removed. Repeated keys count once, and so do keys that
    /// share a value: num_added counts values. The same keys in any order give the same bytes, with any number of threads
    /// and any memory; the union of two sets of one capacity has the bytes of the set of all their keys.
    ///
    /// Raises ParameterError, also for more keys than capacity, ParameterTypeError, FilterMemoryError; merge raises
    /// FilterFull. Cost: P + 1 + 1 / ((1 - fpr)^(-2^P) - 1) bits per key and 0.13 for the index of blocks: 8.2 at 1 %, where
    /// the bound of filters is 6.64 and that of sorted lists 8.09. A lookup decodes half a block, 64 codes on average; after
    /// a smaller hash of the same block it continues from there, so sort hashes for contains_hashed. Source:
    /// Golomb, IEEE Trans. Information Theory 12(3), 1966; Putze, Sanders, Singler, WEA 2007; parameters as in BIP 158.
    ///
    /// >>> from fullbloom import GolombSet
    /// >>> monday = GolombSet.build(["ada", "alan"], capacity=1000)
    /// >>> tuesday = GolombSet.build(["alan", "grace"], capacity=1000)
    /// >>> both = monday | tuesday
    /// >>> both == GolombSet.build(["grace", "alan", "ada"], capacity=1000)
    /// True
    /// >>> "grace" in both, "edsger" in both
    /// (True, False)
    fields {
        /// Most distinct keys.
        most: u64 = |f| f.capacity, CAPACITY merged;
        /// The requested rate.
        target_fpr: f64 = |f| f.target_fpr, FPR merged;
        /// Values of a block.
        block_range: u64 = |f| f.shape.range, BLOCK_RANGE merged;
        /// P, bits of a remainder.
        pub rice_bits: u32 = |f| f.shape.rice_bits, RICE_BITS merged;
        /// F, the number of values that a key may have.
        pub universe: u64 = |f| f.shape.universe();
        /// Number of values.
        count: u64 = |f| f.values, COUNT;
        /// Bits of all codes.
        pub code_bits: u64 = |f| f.offsets.bits, CODE_BITS;
        /// Bits of an offset.
        offset_bits: u32 = |f| f.offsets.width(), OFFSET_BITS;
        /// Number of blocks.
        pub num_blocks: u64 = |f| f.shape.blocks;
        /// True when the codes are in a mapped file.
        pub mapped: bool = |f| f.codes.is_mapped();
    }
}

/// Sorted values in blocks.
pub struct GolombSet {
    codes: Memory,
    starts: Memory,
    hasher: KeyHasher,
    shape: Shape,
    offsets: Offsets,
    capacity: u64,
    target_fpr: f64,
    values: u64,
}

/// Rate and parameter of a set.
#[derive(Clone, Copy)]
struct Precision {
    fpr: f64,
    rice_bits: u32,
}

/// 2^-49 is the last above the least rate.
const MOST_BITS: u64 = 49;

impl Precision {
    /// From the caller's arguments: a rate or bits, else 1 %.
    fn of(fpr: Option<f64>, bits: Option<u64>, rice_bits: Option<u64>) -> Result<Self> {
        let fpr = match (fpr, bits) {
            (Some(fpr), Some(bits)) => {
                return Err(Error::Parameter(format!("give fpr or bits, not both, got fpr={fpr} and bits={bits}")));
            }
            (None, Some(bits)) if (1..=MOST_BITS).contains(&bits) => 0.5f64.powi(bits as i32),
            (None, Some(bits)) => {
                return Err(Error::Parameter(format!("bits must be between 1 and {MOST_BITS}, got {bits}")));
            }
            (fpr, None) => check_fpr(fpr.unwrap_or(0.01))?,
        };
        Ok(Precision { fpr, rice_bits: golomb::checked_rice_bits(fpr, rice_bits)? })
    }

    fn shape(self, capacity: u64) -> Result<Shape> {
        Ok(Shape::of(capacity, golomb::universe(capacity, self.fpr)?, self.rice_bits))
    }
}

impl GolombSet {
    /// The set of `keys`.
    pub fn build(
        keys: &RecordSet<1>,
        fpr: Option<f64>,
        bits: Option<u64>,
        capacity: Option<u64>,
        rice_bits: Option<u64>,
        hasher: KeyHasher,
        job: &Job<'_>,
    ) -> Result<Self> {
        let (precision, keys) = (Precision::of(fpr, bits, rice_bits)?, &*keys.sort(job)?);
        let capacity = capacity.unwrap_or(keys.len());
        let set = values::of_keys(keys, precision.shape(capacity)?, precision.fpr, job)?;
        if set.values > capacity {
            return Err(Error::Parameter(format!(
                "capacity must be at least the number of distinct keys, {}, got {capacity}",
                set.values
            )));
        }
        Self::of(set, precision.shape(capacity)?, (capacity, precision.fpr), hasher)
    }

    /// Of values in codes.
    fn of(parts: codes::Encoded, shape: Shape, (capacity, target_fpr): (u64, f64), hasher: KeyHasher) -> Result<Self> {
        let (offsets, starts) = Offsets::fit(&parts.starts)?;
        let mut codes = Memory::zeroed(Self::code_words(offsets.bits))?;
        for (word, code) in codes.writable()?.iter_mut().zip(&parts.words) {
            *word = code.to_le();
        }
        Ok(GolombSet { codes, starts, hasher, shape, offsets, capacity, target_fpr, values: parts.values })
    }

    /// Words of codes: one more, as a remainder is read together with the next word.
    fn code_words(bits: u64) -> u64 {
        bits.div_ceil(64) + 1
    }

    /// Bytes of codes and offsets of a set of `capacity` keys.
    pub fn cell_bytes(
        keys: u64,
        fpr: Option<f64>,
        bits: Option<u64>,
        capacity: Option<u64>,
        rice_bits: Option<u64>,
    ) -> Result<u64> {
        let precision = Precision::of(fpr, bits, rice_bits)?;
        let capacity = capacity.unwrap_or(keys);
        let shape = precision.shape(capacity)?;
        let codes = keys as f64 * golomb::bits_per_key(precision.fpr, precision.rice_bits);
        // Offsets deviate from their line as a random walk of n steps that ends where it began: over 1.25 sqrt(n) of
        // them.
        let strays = 1.25 * (keys as f64).sqrt() * (f64::from(precision.rice_bits) + 2.5);
        let width = strays.log2().ceil().clamp(1.0, 64.0);
        let lines = |bits: f64| ((bits / 64.0) as u64 + 2).next_multiple_of(8).saturating_mul(8);
        Ok(lines(codes).saturating_add(lines(width * (shape.blocks as f64 + 1.0))))
    }

    /// The view for lookups.
    #[inline(always)]
    fn blocks(&self) -> Blocks<'_> {
        let (codes, starts) = (self.codes.bytes(), self.starts.words());
        Blocks { shape: self.shape, offsets: self.offsets, starts, codes }
    }

    /// At most `most` values from `first` on, ascending, appended to `out`; only their blocks are read.
    pub fn values_from(&self, first: u64, most: usize, out: &mut Vec<u64>) {
        let value = |(block, place): (u64, u64)| (block * self.shape.range).wrapping_add(place);
        out.extend(Values::from(self.blocks(), first).take(most).map(value));
    }
}

/// Keys fetched before the first of them is looked up: three lines each.
const AHEAD: usize = 16;

/// Bits of a cache line.
const LINE_BITS: u64 = 512;

impl Filter for GolombSet {
    memory_methods! { GOLOMB, 0; codes: CODES, starts: OFFSETS }

    fn contains_hash(&self, hash: u64) -> bool {
        let (block, place) = self.shape.place(hash);
        self.blocks().block(block).find(place)
    }

    /// Hashes that rise within a block are found in one go over it.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        let blocks = self.blocks();
        let (mut read, mut last) = (blocks.block(0), (0, 0));
        for (hashes, found) in hashes.chunks(AHEAD).zip(found.chunks_mut(AHEAD)) {
            let mut places = [(0, 0); AHEAD];
            for (&hash, place) in hashes.iter().zip(&mut places) {
                *place = self.shape.place(hash);
                blocks.offsets.fetch(blocks.starts, place.0);
            }
            let mut spans = [[0; 2]; AHEAD];
            for ((block, _), span) in places.iter().zip(&mut spans).take(hashes.len()) {
                *span = blocks.span(*block);
                let [start, end] = span.map(|bit| bit / LINE_BITS);
                for line in (start..=end).take(4) {
                    prefetch(blocks.codes.as_ptr().wrapping_add(64 * line as usize).cast());
                }
            }
            for (((block, place), span), found) in places.into_iter().zip(spans).zip(found) {
                if block != last.0 || place < last.1 {
                    read = blocks.read(span);
                }
                last = (block, place);
                *found = u8::from(read.find(place));
            }
        }
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    fn num_added(&self) -> u64 {
        self.values
    }

    /// Share of all values that are there: exact.
    fn fpr(&self) -> f64 {
        (self.values as f64 / self.shape.universe() as f64).min(1.0)
    }

    fn fill(&self) -> f64 {
        self.values as f64 / self.capacity.max(1) as f64
    }
}

impl GolombSet {
    /// Keeps only the values that `other` has, too. After an error nothing has changed.
    pub fn intersect(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        if self.codes.is_read_only() {
            return Err(Error::read_only());
        }
        let parts = values::intersect(self.blocks(), other.blocks())?;
        *self = Self::of(parts, self.shape, (self.capacity, self.target_fpr), self.hasher)?;
        Ok(())
    }

    /// How many values both have, without making the set of them.
    pub fn intersection_count(&self, other: &Self) -> Result<u64> {
        self.check_compatible(other)?;
        Ok(values::count_common(self.blocks(), other.blocks()))
    }
}

impl Mergeable for GolombSet {
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        if self.codes.is_read_only() {
            return Err(Error::read_only());
        }
        let parts = values::unite(self.blocks(), other.blocks())?;
        if parts.values > self.capacity {
            return Err(Error::Capacity(format!(
                "both sets have {} values, capacity is {}; build both with a larger capacity",
                parts.values, self.capacity
            )));
        }
        *self = Self::of(parts, self.shape, (self.capacity, self.target_fpr), self.hasher)?;
        Ok(())
    }
}

impl Loadable for GolombSet {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        Self::check_header(header, 0, 0)?;
        let stored = Stored::read(header)?;
        let (capacity, values) = (stored.most, stored.count);
        let shape = Shape::from_numbers(capacity, stored.block_range, stored.rice_bits)?;
        let offsets = Offsets::of(stored.code_bits, shape.blocks, stored.offset_bits)?;
        let target_fpr = check_fpr(stored.target_fpr).map_err(Error::as_format)?;
        if values > capacity || values > offsets.bits {
            return Err(Error::Format(format!(
                "the file has {values} values, of {capacity} at most, in {} bits; it is damaged",
                offsets.bits
            )));
        }
        let codes = memory(kind::CODES, 0, Self::code_words(offsets.bits))?;
        let starts = memory(kind::OFFSETS, 0, offsets.words(shape.blocks))?;
        Ok(GolombSet { codes, starts, hasher, shape, offsets, capacity, target_fpr, values })
    }

    /// Codes that leave their blocks, or have another form than the encoder's, would answer differently in batches and
    /// merge to other bytes.
    fn check_cells(&self) -> Result<()> {
        let blocks = self.blocks();
        if values::count_values(blocks) == Some(self.values)
            && is_zero_from(self.codes.words(), self.offsets.bits)
            && blocks.offsets.are_sound(blocks.starts, self.shape.blocks)
        {
            return Ok(());
        }
        Err(Error::format("the codes of the file are not those of a set of sorted values; it is damaged"))
    }
}

#[cfg(test)]
mod tests;
