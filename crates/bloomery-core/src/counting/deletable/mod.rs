//! [`DeletableBloomFilter`]: a Bloom filter that remembers in which regions keys have met.
//!
//! Rothenberg, Macapuna, Verdi and Magalhaes, "The deletable Bloom filter", 2010. The m bits form r
//! regions of equal size. A key that finds one of its bits set flags the region of that bit; a bit
//! in a region without a flag belongs to one key alone and may be cleared. Flags are never taken
//! back, so deletability only falls.
//!
//! Positions are those of scheme `mcg`: floor(x_i m / 2^64). As m is a multiple of r, the region of
//! position i is floor(x_i r / 2^64).

use crate::cells::{LINE_WORDS, Memory, bits};
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::DELETABLE;
use crate::scheme::Scheme;
use crate::scheme::ahead::change_ahead;
use crate::scheme::mcg::Mcg;
use crate::scheme::positions::{Positions, has_bits_past};
use crate::scheme::probes::Sequence;
use crate::sizing::Law;
use crate::structure::differences::Differences;
use crate::structure::load::{self, Load, load_answers, load_takes};
use crate::structure::{Addable, Estimating, Filter, Loadable, Mergeable, Removable, Sizable, Value};

/// Keys fetched ahead; each asks for k lines of bits and k of flags.
const AHEAD: usize = 6;
/// Bits of a region unless another number of regions is asked for: a quarter more space, and 90 %
/// of the keys can be deleted at capacity.
const DEFAULT_REGION: u64 = 4;

/// m, k and the regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    /// m and k; m is a multiple of `count`.
    pub positions: Positions,
    /// r.
    pub count: u64,
}

impl Regions {
    /// `positions` cut into `count` regions (by default one for 4 bits); m is rounded up to a
    /// multiple of it.
    pub fn new(positions: Positions, count: Option<u64>) -> Result<Self> {
        let mut positions = positions.check()?;
        let count = count.unwrap_or(positions.num_bits.div_ceil(DEFAULT_REGION));
        if count == 0 || count > positions.num_bits {
            return Err(Error::Parameter(format!(
                "regions must be between 1 and num_bits ({}), got {count}",
                positions.num_bits
            )));
        }
        positions.num_bits = positions.num_bits.next_multiple_of(count);
        Regions { positions, count }.check()
    }

    fn check(self) -> Result<Self> {
        self.positions.check()?;
        if self.count == 0 || !self.positions.num_bits.is_multiple_of(self.count) {
            return Err(Error::Parameter(format!("regions must divide num_bits, got {}", self.count)));
        }
        Ok(self)
    }

    /// Bits of a region.
    fn size(self) -> u64 {
        self.positions.num_bits / self.count
    }

    fn flag_words(self) -> u64 {
        self.count.div_ceil(64)
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
    /// An empty filter.
    pub fn new(regions: Regions, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let (load, regions) = (Load::new(capacity, fpr)?, regions.check()?);
        let bits = Memory::zeroed(regions.positions.words())?;
        let flags = Memory::zeroed(regions.flag_words())?;
        Ok(DeletableBloomFilter { regions, bits, flags, load, hasher })
    }

    /// m, k and the regions.
    pub fn regions(&self) -> Regions {
        self.regions
    }

    fn words(&self) -> &[u64] {
        self.bits.words()
    }

    /// The words of the bits and of the flags.
    #[inline(always)]
    fn parts(&mut self) -> Result<(&mut [u64], &mut [u64])> {
        self.bits.words_mut().zip(self.flags.words_mut()).ok_or_else(Error::read_only)
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.regions.positions.fetch(self.bits.words(), 6, hash);
        let by_region = Positions { num_bits: self.regions.count, ..self.regions.positions };
        by_region.fetch(self.flags.words(), 6, hash);
    }

    #[inline(always)]
    fn add_one(&mut self, hash: u64) -> Result<bool> {
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

    /// Clears the bits that are the key's alone; true when there was one.
    fn delete_one(&mut self, hash: u64) -> Result<bool> {
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

    /// Share of regions in which keys have met.
    pub fn collided(&self) -> f64 {
        bits::count_ones(self.flags.words()) as f64 / self.regions.count as f64
    }

    /// Estimated share of the keys that can be deleted, from the set bits in regions without a flag;
    /// 1 for an empty filter.
    pub fn deletability(&self) -> f64 {
        let (words, flags, size) = (self.words(), self.flags.words(), self.regions.size());
        let mut free = 0;
        for region in 0..self.regions.count {
            if flags[(region >> 6) as usize] & bits::mask(region) == 0 {
                free += count_range(words, region * size, size);
            }
        }
        let law = self.regions.positions.law();
        let k = f64::from(self.regions.positions.num_hashes);
        let throws = k * law.items(self.fill());
        if throws <= 0.0 {
            return 1.0;
        }
        let share = (free as f64 / throws).min(1.0);
        -(k * (-share).ln_1p()).exp_m1()
    }

    fn facts_of_regions(&self) -> [(&'static str, Value); 3] {
        [
            ("deletability", Value::Real(self.deletability())),
            ("regions", Value::Number(self.regions.count)),
            ("collided", Value::Real(self.collided())),
        ]
    }
}

/// Set bits among `len` from number `start` on.
fn count_range(words: &[u64], start: u64, len: u64) -> u64 {
    let (mut at, end, mut ones) = (start, start + len, 0);
    while at < end {
        let take = (64 - at % 64).min(end - at);
        let part = u64::from_le(words[(at >> 6) as usize]) >> (at % 64) & (u64::MAX >> (64 - take));
        ones += u64::from(part.count_ones());
        at += take;
    }
    ones
}

impl Sizable for DeletableBloomFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        Self::new(Regions::new(Positions::for_capacity(capacity, fpr)?, None)?, capacity, fpr, hasher)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        let regions = Regions::new(Positions::for_capacity(capacity, fpr)?, None)?;
        let lines = |words: u64| words.next_multiple_of(LINE_WORDS as u64);
        Ok((lines(regions.positions.words()) + lines(regions.flag_words())) * 8)
    }
}

impl Estimating for DeletableBloomFilter {
    /// From the share of set bits. Bits of deleted keys in flagged regions stay, and count.
    fn approx_count(&self) -> (f64, f64) {
        let law = self.regions.positions.law();
        let items = law.items(self.fill());
        (items, law.items_sd(items))
    }
}

impl Filter for DeletableBloomFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.regions.positions.contains(self.words(), hash)
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.regions.positions.kernel().contains_all::<Mcg>(self.words(), hashes, found);
    }

    load_answers!(added);

    fn fpr(&self) -> f64 {
        let law = self.regions.positions.law();
        let items = law.items(self.fill());
        if items.is_finite() { law.fpr(items) } else { 1.0 }
    }

    fn fill(&self) -> f64 {
        bits::count_ones(self.words()) as f64 / self.regions.positions.num_bits as f64
    }

    fn nbytes(&self) -> u64 {
        (self.bits.len_bytes() + self.flags.len_bytes()) as u64
    }

    fn estimated(&self) -> Option<(f64, f64)> {
        Some(self.approx_count())
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let (approx, sd) = self.approx_count();
        let mut facts = vec![
            ("capacity", Value::Number(self.load.capacity)),
            ("target_fpr", Value::Real(self.load.target_fpr)),
            ("num_added", Value::Number(self.load.added)),
            ("approx_count", Value::Real(approx)),
            ("approx_count_sd", Value::Real(sd)),
            ("fpr", Value::Real(self.fpr())),
            ("fill", Value::Real(self.fill())),
            ("num_bits", Value::Number(self.regions.positions.num_bits)),
            ("num_hashes", Value::Number(u64::from(self.regions.positions.num_hashes))),
        ];
        facts.extend(self.facts_of_regions());
        facts.extend([
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("mapped", Value::Flag(self.bits.is_mapped())),
            ("nbytes", Value::Number(self.nbytes())),
        ]);
        facts
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(DELETABLE, Scheme::Mcg as u16, &self.hasher);
        self.load.describe(&mut header, 0);
        header.set(tag::NUM_BITS, 0, self.regions.positions.num_bits);
        header.set(tag::NUM_HASHES, 0, u64::from(self.regions.positions.num_hashes));
        header.set(tag::REGIONS, 0, self.regions.count);
        let sections = vec![
            Section { kind: kind::BITS, index: 0, bytes: self.bits.bytes() },
            Section { kind: kind::COLLISIONS, index: 0, bytes: self.flags.bytes() },
        ];
        Container { header, sections }
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(DeletableBloomFilter { bits: self.bits.try_clone()?, flags: self.flags.try_clone()?, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.check_compatible(other).is_ok()
            && self.words() == other.words()
            && self.flags.words() == other.flags.words()
    }
}

impl Addable for DeletableBloomFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.add_one(hash)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        change_ahead(AHEAD, self, hashes, new, Self::fetch, Self::add_one)
    }

    load_takes!(bits, flags);

    fn clear(&mut self) -> Result<()> {
        let (words, flags) = self.parts()?;
        words.fill(0);
        flags.fill(0);
        self.load.clear();
        Ok(())
    }
}

/// True here means that a bit was cleared, so that the key is found no more: a key whose bits all
/// lie in flagged regions stays, and the answer is false.
impl Removable for DeletableBloomFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        self.delete_one(hash)
    }

    fn remove_hashes(&mut self, hashes: &[u64], removed: Option<&mut [u8]>) -> Result<()> {
        change_ahead(AHEAD, self, hashes, removed, Self::fetch, Self::delete_one)
    }
}

impl Mergeable for DeletableBloomFilter {
    fn check_compatible(&self, other: &Self) -> Result<()> {
        let (a, b) = (self.regions, other.regions);
        Differences::of(&self.hasher, &other.hasher)
            .field("num_bits", a.positions.num_bits, b.positions.num_bits)
            .field("num_hashes", a.positions.num_hashes, b.positions.num_hashes)
            .field("regions", a.count, b.count)
            .check()
    }

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
        // After bits came from elsewhere, the count is what the bits say.
        self.load.added = self.approx_count().0.round().min(u64::MAX as f64) as u64;
        Ok(())
    }
}

/// Parameters besides those of [`Load`].
const PARAMS: usize = 3;

impl Loadable for DeletableBloomFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        let num_hashes = u32::try_from(header.get(tag::NUM_HASHES, 0)?).unwrap_or(u32::MAX);
        let positions = Positions { num_bits: header.get(tag::NUM_BITS, 0)?, num_hashes };
        let regions = Regions { positions, count: header.get(tag::REGIONS, 0)? }.check().map_err(Error::as_format)?;
        let load = Load::restore(header, 0)?;
        if header.params.len() != load::PARAMS + PARAMS || header.scheme != Scheme::Mcg as u16 {
            return Err(Error::format("the file holds parameters that no DeletableBloomFilter has; it is damaged"));
        }
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
