//! [`RetouchedBloomFilter`]: a Bloom filter some of whose set bits are cleared, which removes chosen false positives
//! and makes it miss some members.
//!
//! Donnet, Baynat and Friedman, "Retouched Bloom filters", 2006. Training data stored with the bits decides which bit
//! to clear: for every bit the members that set it and the known false positives that need it, 8 bits each, stopping at
//! 255. They are 16 of the 17 bits that a bit costs, and are saved with the filter. The members of a cleared bit stay,
//! so that the bits that members have lost can be counted: the estimate of false negatives rests on them.
//!
//! Positions are those of scheme `mcg`, each counted once a key.

use std::ops::Range;

use crate::cells::{LINE_WORDS, Memory, PackedCells, bits};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::hash::splitmix::{self, SplitMix};
use crate::key::KeyHasher;
use crate::registry::RETOUCHED;
use crate::scheme::mcg::Mcg;
use crate::scheme::positions::{Positions, has_bits_past};
use crate::scheme::{Scheme, fastrange};
use crate::sizing::{all_of, classic};
use crate::structure::cell_stats::{CellCounts, CellStats, SET};
use crate::structure::declaration::{names, structure};
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::{Addable, Filter, Loadable, Positioned, Sections, Value};

structure! {
    /// A Bloom filter from which harmful false positives are removed, at the price of missing some of
    /// its members.
    class RetouchedBloomFilter;
    parameters {
        /// expected number of distinct keys.
        capacity: "int";
        /// rate of false positives at capacity, before any bit is cleared.
        fpr: "float" = 0.01;
        *;
    }
    /// To train it, add members, register keys that are known false positives by add_false_positive(), then
    /// retouch() the harmful ones. False negatives: by design, from the first bit that is cleared; fnr()
    /// estimates their rate. Each scheme except "random" removes several times as many false positives as
    /// it causes false negatives, while few are retouched; clear_random() removes just as many.
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError. Cost: BloomFilter's classic layout and
    /// two counters of 8 bits beside each bit, which are saved with it: 163 bits per key at 1 %.
    /// Source: Donnet, Baynat, Friedman, CoNEXT 2006; a share x of the set bits cleared at random leaves a
    /// rate of (fill (1 - x))^k and misses 1 - (1 - x)^k of the members.
    ///
    /// >>> from fullbloom import RetouchedBloomFilter
    /// >>> f = RetouchedBloomFilter(10, 0.2)
    /// >>> f.update(range(10))
    /// >>> wrong = [key for key in range(1000, 2000) if f.add_false_positive(key)]
    /// >>> f.retouch(wrong[0]), wrong[0] in f
    /// (True, False)
    /// >>> 0 < f.fnr() < 1
    /// True
    fields {
        /// m.
        pub num_bits: u64 = |f| f.positions.num_bits, NUM_BITS merged;
        /// k.
        pub num_hashes: u32 = |f| f.positions.num_hashes, NUM_HASHES merged;
        /// True when the bits are in a mapped file.
        pub mapped: bool = |f| f.bits.is_mapped();
    }
}

/// Bits of a counter.
const COUNTER_BITS: u32 = 8;

/// A Bloom filter that trades false positives for false negatives.
pub struct RetouchedBloomFilter {
    positions: Positions,
    counters: PackedCells,
    bits: Memory,
    members: Memory,
    known: Memory,
    load: Load,
    hasher: KeyHasher,
}

/// The three arrays, for writing.
struct Parts<'a> {
    bits: &'a mut [u64],
    members: &'a mut [u64],
    known: &'a mut [u64],
}

fn counter_words(positions: Positions) -> u64 {
    positions.num_bits.div_ceil(u64::from(64 / COUNTER_BITS))
}

fn create_cells() -> Result<PackedCells> {
    PackedCells::new(COUNTER_BITS).ok_or_else(|| Error::parameter("counters have 1 to 64 bits"))
}

fn is_set(words: &[u64], bit: u64) -> bool {
    words[(bit >> 6) as usize] & bits::mask(bit) != 0
}

impl RetouchedBloomFilter {
    /// An empty filter for `capacity` distinct keys at rate `fpr`.
    pub fn construct(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        Self::new(Positions::for_capacity(capacity, fpr)?, capacity, fpr, hasher)
    }

    /// Bytes of bits and counters of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64) -> Result<u64> {
        let positions = Positions::for_capacity(capacity, fpr)?;
        let lines = |words: u64| words.next_multiple_of(LINE_WORDS as u64);
        Ok((lines(positions.words()) + 2 * lines(counter_words(positions))) * 8)
    }

    /// An empty filter.
    pub fn new(positions: Positions, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let (load, positions) = (Load::new(capacity, fpr)?, positions.check()?);
        Ok(RetouchedBloomFilter {
            positions,
            counters: create_cells()?,
            bits: Memory::zeroed(positions.words())?,
            members: Memory::zeroed(counter_words(positions))?,
            known: Memory::zeroed(counter_words(positions))?,
            load,
            hasher,
        })
    }

    #[inline(always)]
    fn parts(&mut self) -> Result<Parts<'_>> {
        match (self.bits.words_mut(), self.members.words_mut(), self.known.words_mut()) {
            (Some(bits), Some(members), Some(known)) => Ok(Parts { bits, members, known }),
            _ => Err(Error::read_only()),
        }
    }

    /// One more, up to the top.
    #[inline(always)]
    fn bump(counters: PackedCells, words: &mut [u64], bit: u64) {
        let count = counters.get(words, bit);
        counters.set(words, bit, (count + 1).min(counters.max()));
    }

    /// Records that a key is a false positive; false if it is not found.
    pub fn note_false_positive(&mut self, hash: u64) -> Result<bool> {
        let (positions, counters) = (self.positions, self.counters);
        let parts = self.parts()?;
        if !positions.contains(parts.bits, hash) {
            return Ok(false);
        }
        let mut buffer = [0; 64];
        for &bit in positions.distinct(hash, &mut buffer) {
            Self::bump(counters, parts.known, bit);
        }
        Ok(true)
    }

    /// Clears one bit of a key, so that lookups no longer find it; false if they did not.
    pub fn retouch(&mut self, hash: u64, choice: Choice) -> Result<bool> {
        let (positions, counters) = (self.positions, self.counters);
        let parts = self.parts()?;
        if !positions.contains(parts.bits, hash) {
            return Ok(false);
        }
        let mut buffer = [0; 64];
        let candidates = positions.distinct(hash, &mut buffer);
        let weigh = |bit: u64| (counters.get(parts.members, bit), counters.get(parts.known, bit));
        let chosen = choose(choice, hash, candidates, weigh);
        parts.bits[(chosen >> 6) as usize] &= !bits::mask(chosen);
        // This key no longer needs its bits, and no key the cleared one. Other known false positives that needed the
        // cleared bit still count at their bits: only their keys could correct that.
        for &bit in candidates {
            let left = if bit == chosen { 0 } else { counters.get(parts.known, bit).saturating_sub(1) };
            counters.set(parts.known, bit, left);
        }
        Ok(true)
    }

    /// Clears a `share` of the set bits, chosen by `seed`; the number of bits cleared.
    pub fn clear_random(&mut self, share: f64, seed: u64) -> Result<u64> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::Parameter(format!("share must be between 0 and 1, got {share}")));
        }
        let (mut left, num_bits, counters) =
            (bits::count_ones(self.bits.words()), self.positions.num_bits, self.counters);
        let wanted = (share * left as f64).round() as u64;
        let parts = self.parts()?;
        let (mut want, mut random) = (wanted, SplitMix(seed));
        for bit in 0..num_bits {
            if want == 0 {
                break;
            }
            if !is_set(parts.bits, bit) {
                continue;
            }
            // Selection sampling: exactly `wanted` of them, each such subset equally likely.
            if fastrange(random.next(), left) < want {
                parts.bits[(bit >> 6) as usize] &= !bits::mask(bit);
                counters.set(parts.known, bit, 0);
                want -= 1;
            }
            left = left.saturating_sub(1);
        }
        Ok(wanted - want)
    }

    /// Set bits that members have lost, and all bits that members set, each counted once a member; of these words of
    /// members.
    fn count_lost(&self, range: Range<usize>) -> (u64, u64) {
        let (mut lost, mut all) = (0u64, 0u64);
        let words = self.bits.words();
        for (i, &word) in range.clone().zip(&self.members.words()[range]) {
            if word == 0 {
                continue;
            }
            for (j, count) in u64::from_le(word).to_le_bytes().into_iter().enumerate() {
                let bit = (8 * i + j) as u64;
                if bit < self.positions.num_bits {
                    all += u64::from(count);
                    lost += if is_set(words, bit) { 0 } else { u64::from(count) };
                }
            }
        }
        (lost, all)
    }

    /// Estimated share of the members that are missed: 1 - (1 - lost share of their bits)^k.
    pub fn fnr(&self) -> f64 {
        let (lost, all) = self.count_lost(0..self.members.words().len());
        self.fnr_of(lost, all)
    }

    fn fnr_of(&self, lost: u64, all: u64) -> f64 {
        if lost == 0 {
            return 0.0;
        }
        classic::missed_rate(lost as f64 / all as f64, f64::from(self.positions.num_hashes))
    }
}

/// Sums of a count besides that of the set bits: see `lost_in`.
const LOST: usize = 1;
const ALL: usize = 2;

impl Filter for RetouchedBloomFilter {
    memory_methods! {
        RETOUCHED, Scheme::Mcg as u16, load;
        bits: BITS, members: MEMBERS, known: FALSE_POSITIVES
    }

    /// Keys fetched ahead; each needs k lines of bits and k of counters.
    const AHEAD: usize = 4;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.positions.fetch(self.bits.words(), 6, hash);
        self.positions.fetch(self.members.words(), 3, hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.positions.contains(self.bits.words(), hash)
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.positions.kernel().contains_all::<Mcg>(self.bits.words(), hashes, found);
    }

    load_answers!(added);

    /// fill^k: exact for the bits at hand, also after clearing.
    fn fpr(&self) -> f64 {
        all_of(self.fill(), self.positions.num_hashes)
    }

    fn fill(&self) -> f64 {
        bits::count_ones(self.bits.words()) as f64 / self.positions.num_bits as f64
    }

    fn estimate_missed(&self) -> Option<f64> {
        Some(self.fnr())
    }

    /// Bits and the members that set them; nobody counts known false positives.
    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![1, 1, 0])
    }

    fn count_words(&self, section: usize, words: Range<usize>, counts: &mut CellCounts) {
        if section == 0 {
            return counts.add(SET, bits::count_ones(&self.bits.words()[words]));
        }
        let (lost, all) = self.count_lost(words);
        counts.add(LOST, lost);
        counts.add(ALL, all);
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let fill = counts.get(SET) as f64 / self.positions.num_bits as f64;
        let stats = CellStats { fill, fpr: all_of(fill, self.positions.num_hashes), ..CellStats::default() };
        stats.with("fnr", Value::Real(self.fnr_of(counts.get(LOST), counts.get(ALL))))
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        for bit in hashes.iter().flat_map(|&hash| Positioned::positions(self, hash)) {
            word(0, (bit >> 6) as usize);
            word(1, (bit >> 3) as usize);
        }
        true
    }
}

impl Addable for RetouchedBloomFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let (positions, counters) = (self.positions, self.counters);
        let parts = self.parts()?;
        let (mut buffer, mut new) = ([0; 64], false);
        for &bit in positions.distinct(hash, &mut buffer) {
            let word = &mut parts.bits[(bit >> 6) as usize];
            new |= *word & bits::mask(bit) == 0;
            *word |= bits::mask(bit);
            Self::bump(counters, parts.members, bit);
        }
        self.load.count(new);
        Ok(new)
    }

    load_takes!(bits, members);

    clear_method!(bits, members, known);
}

impl Positioned for RetouchedBloomFilter {
    fn positions(&self, hash: u64) -> Vec<u64> {
        self.positions.distinct(hash, &mut [0; 64]).to_vec()
    }
}

impl Loadable for RetouchedBloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { num_bits, num_hashes }, load) = Stored::with_load(header, Scheme::Mcg as u16)?;
        let positions = Positions { num_bits, num_hashes }.check().map_err(Error::as_format)?;
        let bits = memory(kind::BITS, 0, positions.words())?;
        let members = memory(kind::MEMBERS, 0, counter_words(positions))?;
        let known = memory(kind::FALSE_POSITIVES, 0, counter_words(positions))?;
        let counters_past = |memory: &Memory| has_bits_past(memory.words(), positions.num_bits * 8);
        if has_bits_past(bits.words(), positions.num_bits) || counters_past(&members) || counters_past(&known) {
            return Err(Error::format("the file has cells beyond its num_bits; it is damaged"));
        }
        Ok(RetouchedBloomFilter { positions, counters: create_cells()?, bits, members, known, load, hasher })
    }
}

/// Which bit of a false positive to clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A random one, by the key's hash.
    Random,
    /// The one that fewest members set.
    MinimumFn,
    /// The one that most known false positives need.
    MaximumFp,
    /// The one with the most known false positives per member.
    Ratio,
}

names! { Choice, "scheme":
    Random "random",
    MinimumFn "minimum-fn",
    MaximumFp "maximum-fp",
    Ratio "ratio",
}

/// The candidate that `choice` prefers, given the members and known false positives of each; the first of equals.
fn choose(choice: Choice, hash: u64, candidates: &[u64], weigh: impl Fn(u64) -> (u64, u64)) -> u64 {
    let mut best = candidates.first().copied().unwrap_or(0);
    if choice == Choice::Random {
        let i = fastrange(splitmix::at(hash, 0), candidates.len() as u64);
        return candidates.get(i as usize).copied().unwrap_or(best);
    }
    let (mut members, mut known) = weigh(best);
    for &bit in candidates.iter().skip(1) {
        let (m, f) = weigh(bit);
        let better = match choice {
            Choice::Random => false,
            Choice::MinimumFn => m < members || (m == members && f > known),
            Choice::MaximumFp => f > known || (f == known && m < members),
            // f/m against known/members without a division; of equal ratios, the one with fewer members.
            Choice::Ratio => f * members > known * m || (f * members == known * m && m < members),
        };
        if better {
            (best, members, known) = (bit, m, f);
        }
    }
    best
}

#[cfg(test)]
mod tests;
