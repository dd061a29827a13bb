//! [`DeletableBloomFilter`]: a Bloom filter that remembers in which regions keys have met.
//!
//! Rothenberg, Macapuna, Verdi and Magalhaes, "The deletable Bloom filter", 2010. The m bits form r regions of equal
//! size. A key that finds one of its bits set flags the region of that bit; a bit in a region without a flag belongs to
//! one key alone and may be cleared. Flags are never cleared, so deletability only falls.
//!
//! Positions are those of scheme `mcg`: floor(x_i m / 2^64). As m is a multiple of r, the region of position i is
//! floor(x_i r / 2^64).

pub mod regions;

pub use self::regions::Regions;
use std::ops::Range;

use crate::cells::{LINE_WORDS, Memory, bits};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::DELETABLE;
use crate::scheme::Scheme;
use crate::scheme::mcg::Mcg;
use crate::scheme::positions::{Positions, has_bits_past};
use crate::scheme::probes::Sequence;
use crate::sizing::Law;
use crate::structure::cell_stats::{CellCounts, CellStats, SET};
use crate::structure::declaration::structure;
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::{Addable, Filter, Loadable, Mergeable, Positioned, Removable, Sections, Value};

structure! {
    /// A Bloom filter from which most keys can be removed: one bit per region records where keys collided.
    class DeletableBloomFilter;
    parameters {
        /// expected number of distinct keys.
        capacity: "int";
        /// rate of false positives at capacity.
        fpr: "float" = 0.01;
        *;
        /// how many equal parts the bits form, from 1 to num_bits; a bit is cleared only if no two keys ever
        /// collided in its region. With more regions, more keys can be removed: by default one region per 4 bits,
        /// with which 90 % of the keys can be removed at capacity.
        regions: "int | None" = None;
    }
    /// False negatives: never, unless a key is removed that was not added. remove() raises KeyError, and discard()
    /// returns False, for a key that cannot be removed or is absent. Flags are permanent, so the share of removable keys
    /// only falls; adding a key again flags all its regions, and it can no longer be removed.
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError. Cost: BloomFilter's classic layout
    /// and a bit per region, 12.0, 18.0 and 24.0 bits per key at 1, 0.1 and 0.01 %.
    /// Source: Rothenberg, Macapuna, Verdi, Magalhaes, IEEE Communications Letters 14(6), 2010; the share
    /// that can be removed: fullbloom.theory.deletability (the published form is too high).
    ///
    /// >>> from fullbloom import DeletableBloomFilter
    /// >>> open_orders = DeletableBloomFilter(1000)
    /// >>> open_orders.update(["a-17", "b-4"])
    /// >>> open_orders.discard("a-17"), open_orders.discard("c-9")
    /// (True, False)
    /// >>> "a-17" in open_orders, "b-4" in open_orders
    /// (False, True)
    fields {
        /// m.
        pub num_bits: u64 = |f| f.regions.positions.num_bits, NUM_BITS merged;
        /// k.
        pub num_hashes: u32 = |f| f.regions.positions.num_hashes, NUM_HASHES merged;
        /// Estimated share of the keys that can be removed now, from the cells: O(nbytes).
        pub deletability: f64 = |f| {
            f.regions.deletability_of(f.regions.free_in(f.words(), f.flags.words(), 0..f.words().len()), f.fill())
        };
        /// Number of regions.
        pub regions: u64 = |f| f.regions.count, REGIONS merged;
        /// Share of the regions in which keys collided: O(regions).
        pub collided: f64 = |f| bits::count_ones(f.flags.words()) as f64 / f.regions.count as f64;
        /// True when the bits are in a mapped file.
        pub mapped: bool = |f| f.bits.is_mapped();
    }
}

/// A Bloom filter from which most keys can be deleted.
pub struct DeletableBloomFilter {
    regions: Regions,
    bits: Memory,
    flags: Memory,
    load: Load,
    hasher: KeyHasher,
}

impl DeletableBloomFilter {
    /// An empty filter for `capacity` distinct keys at rate `fpr`.
    pub fn construct(capacity: u64, fpr: f64, regions: Option<u64>, hasher: KeyHasher) -> Result<Self> {
        Self::new(Regions::new(Positions::for_capacity(capacity, fpr)?, regions)?, capacity, fpr, hasher)
    }

    /// Bytes of bits and flags of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, regions: Option<u64>) -> Result<u64> {
        let regions = Regions::new(Positions::for_capacity(capacity, fpr)?, regions)?;
        let lines = |words: u64| words.next_multiple_of(LINE_WORDS as u64);
        Ok((lines(regions.positions.words()) + lines(regions.flag_words())) * 8)
    }

    /// An empty filter.
    pub fn new(regions: Regions, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let (load, regions) = (Load::new(capacity, fpr)?, regions.check()?);
        let bits = Memory::zeroed(regions.positions.words())?;
        let flags = Memory::zeroed(regions.flag_words())?;
        Ok(DeletableBloomFilter { regions, bits, flags, load, hasher })
    }

    /// An empty filter with these bits and probes; the default capacity is the number of keys that set half of the
    /// bits.
    pub fn with_shape(
        positions: Positions,
        regions: Option<u64>,
        capacity: Option<u64>,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let regions = Regions::new(positions, regions)?;
        let law = regions.positions.law();
        let capacity = capacity.unwrap_or_else(|| (law.items(0.5).round() as u64).max(1));
        let fpr = law.fpr(capacity as f64).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
        Self::new(regions, capacity, fpr, hasher)
    }

    fn words(&self) -> &[u64] {
        self.bits.words()
    }

    /// The words of the bits and of the flags.
    #[inline(always)]
    fn parts(&mut self) -> Result<(&mut [u64], &mut [u64])> {
        self.bits.words_mut().zip(self.flags.words_mut()).ok_or_else(Error::read_only)
    }
}

/// Sums of a count besides that of all set bits: the set bits of regions without a flag, and the flags.
const FREE: usize = 1;
const FLAGS: usize = 2;

impl Filter for DeletableBloomFilter {
    memory_methods! { DELETABLE, Scheme::Mcg as u16, load; bits: BITS, flags: COLLISIONS }

    /// Keys fetched ahead; each needs k lines of bits and k of flags.
    const AHEAD: usize = 6;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.regions.positions.fetch(self.bits.words(), 6, hash);
        let by_region = Positions { num_bits: self.regions.count, ..self.regions.positions };
        by_region.fetch(self.flags.words(), 6, hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.regions.positions.contains(self.words(), hash)
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.regions.positions.kernel().contains_all::<Mcg>(self.words(), hashes, found);
    }

    load_answers!(added);

    fn fpr_at(&self, items: f64) -> Option<f64> {
        Some(self.regions.positions.law().fpr(items))
    }

    fn fpr(&self) -> f64 {
        self.regions.positions.law().fpr_of_fill(self.fill())
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![1, 1])
    }

    fn count_words(&self, section: usize, words: Range<usize>, counts: &mut CellCounts) {
        if section == 0 {
            counts.add(SET, bits::count_ones(&self.words()[words.clone()]));
            counts.add(FREE, self.regions.free_in(self.words(), self.flags.words(), words));
        } else {
            counts.add(FLAGS, bits::count_ones(&self.flags.words()[words]));
        }
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let fill = counts.get(SET) as f64 / self.regions.positions.num_bits as f64;
        let deletability = self.regions.deletability_of(counts.get(FREE), fill);
        let collided = counts.get(FLAGS) as f64 / self.regions.count as f64;
        CellStats::by_law(&self.regions.positions.law(), fill)
            .with("deletability", Value::Real(deletability))
            .with("collided", Value::Real(collided))
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        let Regions { positions, count } = self.regions;
        for &hash in hashes {
            let (mut sequence, mut regions) = (Mcg::start(hash, positions.num_bits), Mcg::start(hash, count));
            for _ in 0..positions.num_hashes {
                word(0, (sequence.next() >> 6) as usize);
                word(1, (regions.next() >> 6) as usize);
            }
        }
        true
    }

    fn fill(&self) -> f64 {
        bits::count_ones(self.words()) as f64 / self.regions.positions.num_bits as f64
    }

    /// From the share of set bits. Bits of deleted keys in flagged regions stay, and count: after removals it
    /// overestimates, and the deviation is that of the keys that would set as many bits.
    fn estimate_count(&self) -> Option<(f64, f64)> {
        Some(self.regions.positions.law().estimate(self.fill()))
    }
}

impl Addable for DeletableBloomFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let Regions { positions, count } = self.regions;
        let (words, flags) = self.parts()?;
        let mut sequence = Mcg::start(hash, positions.num_bits);
        let mut regions = Mcg::start(hash, count);
        let (mut earlier, mut new) = ([0u64; 64], false);
        for i in 0..positions.num_hashes as usize {
            let (bit, region) = (sequence.next(), regions.next());
            let word = &mut words[(bit >> 6) as usize];
            if *word & bits::mask(bit) == 0 {
                *word |= bits::mask(bit);
                new = true;
            } else if !earlier[..i].contains(&bit) {
                flags[(region >> 6) as usize] |= bits::mask(region);
            }
            earlier[i] = bit;
        }
        self.load.count(new);
        Ok(new)
    }

    load_takes!(bits, flags);

    clear_method!(bits, flags);
}

/// True here means that a bit was cleared, so that lookups no longer find the key: a key whose bits are all in flagged
/// regions stays, and the answer is false.
impl Removable for DeletableBloomFilter {
    /// Clears the bits that belong to the key alone; true if there was one.
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        let Regions { positions, count } = self.regions;
        let (words, flags) = self.parts()?;
        if !positions.contains(words, hash) {
            return Ok(false);
        }
        let mut sequence = Mcg::start(hash, positions.num_bits);
        let mut regions = Mcg::start(hash, count);
        let mut cleared = false;
        for _ in 0..positions.num_hashes {
            let (bit, region) = (sequence.next(), regions.next());
            if flags[(region >> 6) as usize] & bits::mask(region) == 0 {
                words[(bit >> 6) as usize] &= !bits::mask(bit);
                cleared = true;
            }
        }
        self.load.uncount(cleared);
        Ok(cleared)
    }
}

impl Mergeable for DeletableBloomFilter {
    /// Bitwise or; a bit set in both filters may belong to two keys, so its region is flagged.
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        let size = self.regions.size();
        let (words, flags) = self.parts()?;
        bits::or_assign(flags, other.flags.words());
        for (i, (word, &theirs)) in words.iter_mut().zip(other.bits.words()).enumerate() {
            let mut both = u64::from_le(*word & theirs);
            while both != 0 {
                let region = (i as u64 * 64 + u64::from(both.trailing_zeros())) / size;
                if let Some(flag) = flags.get_mut((region >> 6) as usize) {
                    *flag |= bits::mask(region);
                }
                both &= both - 1;
            }
            *word |= theirs;
        }
        self.load.join(&other.load, self.regions.positions.law().new_of_fill(self.fill()));
        Ok(())
    }
}

impl Positioned for DeletableBloomFilter {
    fn positions(&self, hash: u64) -> Vec<u64> {
        self.regions.positions.distinct(hash, &mut [0; 64]).to_vec()
    }
}

impl Loadable for DeletableBloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { num_bits, num_hashes, regions }, load) = Stored::with_load(header, Scheme::Mcg as u16)?;
        let positions = Positions { num_bits, num_hashes };
        let regions = Regions { positions, count: regions }.check().map_err(Error::as_format)?;
        let bits = memory(kind::BITS, 0, positions.words())?;
        let flags = memory(kind::COLLISIONS, 0, regions.flag_words())?;
        if has_bits_past(bits.words(), positions.num_bits) || has_bits_past(flags.words(), regions.count) {
            return Err(Error::format("the file has bits set beyond its num_bits or regions; it is damaged"));
        }
        Ok(DeletableBloomFilter { regions, bits, flags, load, hasher })
    }
}

#[cfg(test)]
mod tests;
