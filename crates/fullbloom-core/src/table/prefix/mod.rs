//! [`PrefixFilter`]: bins that keep the smallest fingerprints and pass the others on to a spare.
//!
//! Even, Even and Morrison, "Prefix filter: practically and theoretically better than Bloom", 2022.
//! From the 64-bit hash h, with `fastrange(x, r)` the high 64 bits of x r, k = 25, r remainder bits:
//!
//! ```text
//! bin          i = fastrange(h, bins)
//! fingerprint  p = fastrange(h M1, k 2^r)
//! in the spare s = mix(i k 2^r + p mod 2^64)
//! ```
//!
//! M1 = 0x9e3779b97f4a7c15; mix is the finaliser of SplitMix64. A full bin that gets a smaller
//! fingerprint passes its greatest on, so that a fingerprint up to the greatest is in the bin or
//! nowhere, and a greater one, if the bin ever passed something on, may be in the spare: one line
//! for most keys. The spare is a blocked Bloom filter (scheme `columns` over s): it never refuses.
//!
//! ```text
//! rate = a 2^-r + share p'       a keys per slot, share of the keys passed on, p' the spare's rate
//! share = P(X >= k) - k / (a k) P(X > k),  X ~ Poisson(a k)
//! ```

pub mod bins;
pub mod shape;

use std::ops::Range;

use self::bins::{BIN_SIZE, BinLookup, Insertion};
use self::shape::PrefixShape;
use crate::cells::{Memory, bits};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::hash::splitmix;
use crate::isa::prefetch;
use crate::key::KeyHasher;
use crate::registry::PREFIX;
use crate::scheme::columns::Columns;
use crate::scheme::{fastrange, lines};
use crate::sizing::chain::Member;
use crate::sizing::{Law, blocked, fingerprints};
use crate::structure::declaration::structure;
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::{Addable, CellCounts, CellStats, Filter, Loadable, Sections, Value};

/// Makes the fingerprint independent of the bin, which uses the top bits of the hash.
const M1: u64 = 0x9e37_79b9_7f4a_7c15;
/// Of the keys that look in the spare of one full filter, the share that would look in that of another with other bins:
/// fingerprints keep their order. The mean of g^2 over that of g, g(x) the chance that 25 or more fingerprints of a bin
/// are below x.
const ASKING_AGAIN: f64 = 0.23;

structure! {
    /// An approximate set of keys that only grows: bins of 25 fingerprints, one bin a key, and a small
    /// spare filter for the 6 % of keys whose bin is full.
    class PrefixFilter;
    parameters {
        /// expected number of distinct keys.
        capacity: "int";
        /// rate of false positives at capacity, at least 1e-6.
        fpr: "float" = 0.01;
    }
    /// Never misses a key that was added; past capacity the rate rises, CapacityWarning is given once, and no
    /// key is refused. Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is
    /// allocated.
    /// Cost: 11.1, 11.5, 14.4 and 19.8 bits per key at 1, 0.4, 0.1 and 0.01 % (its own steps: a remainder has
    /// 5, 8, 10, 13, 15, 18, 21 or 23 bits); about 40 ns per lookup, 47 ns per add in batches.
    /// Source: Even, Even, Morrison, PVLDB 15(7), 2022; load 2^-r + share * spare rate.
    ///
    /// >>> from fullbloom import PrefixFilter
    /// >>> seen = PrefixFilter(1_000_000, fpr=0.004)
    /// >>> seen.update(range(1000))
    /// >>> 999 in seen, seen.remainder_bits
    /// (True, 8)
    fields {
        /// Bins of 25 fingerprints.
        pub num_bins: u64 = |f| f.shape.bins, NUM_BINS;
        /// Bits of a remainder: two keys of a bin share a fingerprint with probability 2^-bits / 25.
        pub remainder_bits: u32 = |f| f.shape.remainder_bits, REMAINDER_BITS;
        /// Lines of the spare.
        spare_lines: u64 = |f| f.shape.spare_lines, SPARE_LINES;
        /// Positions a column in a line of the spare.
        per_column: u32 = |f| f.shape.per_column, SPARE_PER_COLUMN;
        /// Estimated number of keys in the spare, from its bits: O(nbytes).
        pub spare_items: f64 = |f| f.spare_state().0;
        /// Model rate of false positives of the spare, from its bits: O(nbytes).
        pub spare_fpr: f64 = |f| f.spare_state().1;
        /// Bytes of the spare.
        pub spare_nbytes: u64 = |f| f.spare.len_bytes() as u64;
        /// True when the bins are in a mapped file.
        pub mapped: bool = |f| f.bins.is_mapped();
    }
}

/// The place of a key.
#[derive(Clone, Copy)]
struct Spot {
    bin: u64,
    fp: u64,
}

/// An approximate set that only grows: one line for most keys.
pub struct PrefixFilter {
    shape: PrefixShape,
    bins: Memory,
    spare: Memory,
    hasher: KeyHasher,
    load: Load,
}

#[rustfmt::skip] // one arm a line
/// Runs `$work` with the spare's scheme as type `$C`.
macro_rules! spare {
    ($per_column:expr, $C:ident => $work:expr) => {
        match $per_column {
            1 => { type $C = Columns<1>; $work }
            2 => { type $C = Columns<2>; $work }
            _ => { type $C = Columns<3>; $work }
        }
    };
}

impl PrefixFilter {
    /// An empty filter for `capacity` keys at rate `fpr`.
    pub fn construct(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let (shape, load) = (PrefixShape::for_capacity(capacity, fpr)?, Load::new(capacity, fpr)?);
        let (bins, spare) = (Memory::zeroed(shape.words())?, Memory::zeroed(shape.spare_words())?);
        Ok(PrefixFilter { shape, bins, spare, hasher, load })
    }

    /// Bytes of bins and spare of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64) -> Result<u64> {
        let shape = PrefixShape::for_capacity(capacity, fpr)?;
        Ok((shape.words() + shape.spare_words()) * 8)
    }

    #[inline(always)]
    fn spot(&self, hash: u64) -> Spot {
        Spot { bin: fastrange(hash, self.shape.bins), fp: fastrange(hash.wrapping_mul(M1), self.shape.fps()) }
    }

    /// The hash under which a fingerprint is passed on.
    #[inline(always)]
    fn passed_on(&self, bin: u64, fp: u64) -> u64 {
        splitmix::mix(bin.wrapping_mul(self.shape.fps()).wrapping_add(fp))
    }

    #[inline(always)]
    fn bin(&self, i: u64) -> &[u64] {
        let words = self.shape.bin_words();
        &self.bins.words()[i as usize * words..][..words]
    }

    #[cold]
    #[inline(never)]
    fn is_passed_on(&self, spot: Spot) -> bool {
        let hash = self.passed_on(spot.bin, spot.fp);
        spare!(self.shape.per_column, C => lines::contains_one::<C>(self.spare.words(), hash))
    }

    /// Passes a fingerprint on; true if the spare did not hold it.
    #[cold]
    #[inline(never)]
    fn pass_on(&mut self, bin: u64, fp: u64) -> Result<bool> {
        let hash = self.passed_on(bin, fp);
        let words = self.spare.writable()?;
        Ok(spare!(self.shape.per_column, C => lines::add_one::<C>(words, hash)))
    }

    /// In these words of bins: slots in use, and the sum over bins of the share of fingerprints that look in the spare,
    /// in units of [`SHARE`].
    fn survey(&self, words: Range<usize>) -> (u64, u64) {
        let (width, bin_words, fps) = (self.shape.remainder_bits, self.shape.bin_words(), self.shape.fps());
        let end = words.end.min(self.shape.bins as usize * bin_words);
        let (mut held, mut asking) = (0u64, 0u64);
        for bin in self.bins.words()[words.start.min(end)..end].chunks_exact(bin_words) {
            held += u64::from(bins::len(bin));
            if let (true, Some(greatest)) = (bins::has_overflowed(bin), bins::greatest(bin, width)) {
                // A forged bin may claim more than there is.
                let larger = fps.saturating_sub(greatest.saturating_add(1));
                asking += (u128::from(larger) * u128::from(SHARE) / u128::from(fps)) as u64;
            }
        }
        (held, asking)
    }

    fn survey_all(&self) -> (u64, u64) {
        self.survey(0..self.bins.words().len())
    }

    /// Share of the slots in use.
    fn fill_of(&self, held: u64) -> f64 {
        held as f64 / (self.shape.bins as f64 * f64::from(BIN_SIZE))
    }

    /// Number of fingerprints passed on, as estimated from the spare's bits, and its rate.
    fn spare_state(&self) -> (f64, f64) {
        self.spare_state_of(bits::count_ones(self.spare.words()))
    }

    fn spare_state_of(&self, ones: u64) -> (f64, f64) {
        let law = blocked::law(self.shape.spare_lines, self.shape.per_column);
        let items = law.items(ones as f64 / (self.shape.spare_words() * 64) as f64);
        (items, if items.is_finite() { law.fpr(items) } else { 1.0 })
    }

    /// Keys per slot, share of the fingerprints that look in the spare, rate of the spare.
    fn state(&self) -> (f64, f64, f64) {
        self.state_of(self.survey_all(), self.spare_state())
    }

    fn state_of(&self, (held, asking): (u64, u64), (items, spare): (f64, f64)) -> (f64, f64, f64) {
        let passed = if items.is_finite() { items / (self.shape.bins as f64 * f64::from(BIN_SIZE)) } else { 1.0 };
        (self.fill_of(held) + passed, asking as f64 / SHARE as f64 / self.shape.bins as f64, spare)
    }
}

/// The whole, in sums of shares.
const SHARE: u64 = 1 << 32;
/// Sums of a count: those of `survey`, and the set bits of the spare.
const HELD: usize = 0;
const ASKING: usize = 1;
const SPARE_ONES: usize = 2;

impl Filter for PrefixFilter {
    memory_methods! { PREFIX, 0, load; bins: BINS, spare: SPARE; |a, b| a.shape == b.shape }

    /// Keys fetched ahead.
    const AHEAD: usize = 16;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        let first = (fastrange(hash, self.shape.bins) as usize).wrapping_mul(self.shape.bin_words());
        let base = self.bins.words().as_ptr();
        prefetch(base.wrapping_add(first));
        prefetch(base.wrapping_add(first + self.shape.bin_words() - 1));
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        let spot = self.spot(hash);
        match bins::look(self.bin(spot.bin), self.shape.remainder_bits, spot.fp) {
            BinLookup::Here => true,
            BinLookup::Never => false,
            BinLookup::Beyond => self.is_passed_on(spot),
        }
    }

    load_answers!(added);

    fn fpr(&self) -> f64 {
        let (load, asking, spare) = self.state();
        fingerprints::prefix(load, self.shape.remainder_bits, asking, spare)
    }

    /// The spare finds absent keys by chance.
    fn member(&self) -> Member {
        let (load, asking, spare) = self.state();
        let rate = |spare| fingerprints::prefix(load, self.shape.remainder_bits, asking, spare);
        let (equal, fpr) = (rate(0.0), rate(spare));
        let chance = if fpr > 0.0 { 1.0 - equal / fpr } else { 0.0 };
        Member { chance, meeting: equal + ASKING_AGAIN * spare, ..Member::of_rate(fpr) }
    }

    /// By the law: the spare's share of the rate grows as a high power of the keys.
    fn relative_fpr(&self, items: f64) -> f64 {
        let load = items / (self.shape.bins as f64 * f64::from(BIN_SIZE));
        let asking = fingerprints::passed_on(load, BIN_SIZE);
        let spare = blocked::law(self.shape.spare_lines, self.shape.per_column).fpr(items * asking);
        fingerprints::prefix(load, self.shape.remainder_bits, asking, spare)
    }

    fn fill(&self) -> f64 {
        self.fill_of(self.survey_all().0)
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![self.shape.bin_words(), 1])
    }

    fn count_words(&self, section: usize, words: Range<usize>, counts: &mut CellCounts) {
        if section == 1 {
            return counts.add(SPARE_ONES, bits::count_ones(&self.spare.words()[words]));
        }
        let (held, asking) = self.survey(words);
        counts.add(HELD, held);
        counts.add(ASKING, asking);
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let spare = self.spare_state_of(counts.get(SPARE_ONES));
        let (load, asking, rate) = self.state_of((counts.get(HELD), counts.get(ASKING)), spare);
        let fpr = fingerprints::prefix(load, self.shape.remainder_bits, asking, rate);
        let stats = CellStats { fill: self.fill_of(counts.get(HELD)), fpr, ..CellStats::default() };
        stats.with("spare_items", Value::Real(spare.0)).with("spare_fpr", Value::Real(spare.1))
    }
}

impl Addable for PrefixFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let (spot, width, words) = (self.spot(hash), self.shape.remainder_bits, self.shape.bin_words());
        let bins = self.bins.writable()?;
        let new = match bins::add(&mut bins[spot.bin as usize * words..][..words], width, spot.fp) {
            Insertion::Old => false,
            Insertion::New => true,
            Insertion::Beyond => self.pass_on(spot.bin, spot.fp)?,
            Insertion::Instead(greatest) => {
                self.pass_on(spot.bin, greatest)?;
                true
            }
        };
        self.load.count(new);
        Ok(new)
    }

    load_takes!(bins, spare);

    clear_method!(bins, spare);
}

impl Loadable for PrefixFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (Stored { num_bins: bins, remainder_bits, spare_lines, per_column }, load) = Stored::with_load(header, 0)?;
        let shape = PrefixShape { bins, remainder_bits, spare_lines, per_column }.check().map_err(Error::as_format)?;
        let bins = memory(kind::BINS, 0, shape.words())?;
        let used = shape.bins as usize * shape.bin_words();
        if bins.words().iter().skip(used).any(|&word| word != 0) {
            return Err(Error::format("the file has bits set beyond its bins; it is damaged"));
        }
        Ok(PrefixFilter { shape, bins, spare: memory(kind::SPARE, 0, shape.spare_words())?, hasher, load })
    }

    /// Each bin is valid; keys in bins were added; the spare holds keys if and only if a bin has passed one on.
    fn check_cells(&self) -> Result<()> {
        let (width, added) = (self.shape.remainder_bits, self.load.added);
        let (mut held, mut passes) = (0, false);
        let bins = self.bins.words().chunks_exact(self.shape.bin_words()).take(self.shape.bins as usize);
        for (i, bin) in bins.enumerate() {
            if !bins::is_sound(bin, width) {
                return Err(Error::format(format!("bin {i} of the file is invalid; it is damaged")));
            }
            held += u64::from(bins::len(bin));
            passes |= bins::has_overflowed(bin);
        }
        if passes != self.spare.words().iter().any(|&word| word != 0) {
            return Err(Error::format("the bins and the spare filter of the file do not match; it is damaged"));
        }
        if held > added || !passes && held < added {
            return Err(Error::format(format!(
                "the file says that {added} keys were added, and has {held} in its bins; it is damaged"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
