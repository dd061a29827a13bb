//! [`CuckooFilter`]: a table of fingerprints, which it moves to make space.
//!
//! Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo filter: practically better than Bloom", 2014. Any number of
//! buckets: see [`self::places`] for the rule.
//!
//! Every add stores a fingerprint, even that of a key that seems to be present: two keys may share fingerprint and
//! buckets, and with one copy for both, removing one would miss the other. So the table is a multiset, and holds at
//! most 2b equal fingerprints.
//!
//! A fingerprint that finds no space within 500 moves ([`self::moves`]) goes to the stash: no key is ever lost. With
//! the stash occupied, a table that holds its capacity is full: adds are refused until a key is removed. One that holds
//! less has met keys that crowd a few buckets, as an attacker chooses them; then keys that find no space are refused,
//! their moves undone, and all others stored. The hash of the key alone decides which slot a move empties, so that
//! equal operations give equal bytes.

pub mod buckets;
mod load;
pub mod moves;
pub mod places;
mod relocation;
pub mod shape;

pub use self::shape::CuckooShape;

use self::buckets::Buckets;
use self::moves::{Refusal, Stash, Table, count, has};
use self::places::{Places, Spot};
use self::shape::Kernel;
use crate::cells::Memory;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::CUCKOO;
use crate::scheme::ahead::mark;
use crate::sizing::chain::Member;
use crate::structure::declaration::{narrow, structure};
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::{Addable, CellCounts, CellStats, Countable, Filter, Removable};

structure! {
    /// An approximate multiset of keys that takes keys out again: a table of fingerprints, two buckets a
    /// key.
    class CuckooFilter;
    parameters {
        /// expected number of keys, repetitions included.
        capacity: "int";
        /// rate of false positives at capacity.
        fpr: "float" = 0.01;
        *;
        /// fingerprints per bucket, 1, 2, 4 or 8; 4 takes the least space for most rates, 1 may be full early by
        /// chance.
        bucket_size: "int" = 4;
        /// 4 to 32; given, it decides the rate in the place of fpr, and target_fpr tells which.
        fingerprint_bits: "int | None" = None;
        /// store buckets of 4 sorted: one bit less per key, three times the time.
        semi_sort: "bool" = false;
    }
    /// Every add stores one more fingerprint, even for a key that is found already, so that removal is
    /// exact: as many removals as adds. A key can be added at most 2 * bucket_size times; check `in` first to
    /// store each key once. Never misses a key that was added, unless keys were removed that never were.
    /// Raises FilterFull when there is no free slot for a key (from about 97 % of the slots on; a filter can
    /// hold its capacity); every key added before is still found, and removing keys frees slots. Below capacity,
    /// only keys that share their buckets are refused: anyone who knows the hash can choose such keys; secret=
    /// prevents it. An add makes at most 500 moves. To grow, see DynamicCuckooFilter.
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated.
    /// Cost: 10.5, 13.7 and 17.9 bits per key at 1, 0.1 and 0.01 %; 13 ns per lookup, 41 ns per add in batches
    /// of 10 million keys, filled to 95 %.
    /// Source: Fan, Andersen, Kaminsky, Mitzenmacher, CoNEXT 2014; 1 - (1 - 1/(2^f - 1))^(2 b load).
    ///
    /// >>> from fullbloom import CuckooFilter
    /// >>> sessions = CuckooFilter(1_000_000, fpr=0.001)
    /// >>> sessions.add("ada"), sessions.add("ada"), sessions.count("ada")
    /// (True, False, 2)
    /// >>> sessions.remove("ada"); sessions.remove("ada"); "ada" in sessions
    /// False
    fields {
        /// Buckets of the table.
        pub num_buckets: u64 = |f| f.shape.buckets, NUM_BUCKETS merged;
        /// Fingerprints per bucket.
        pub bucket_size: u32 = |f| f.shape.bucket_size, BUCKET_SIZE merged;
        /// Bits of a fingerprint.
        pub fingerprint_bits: u32 = |f| f.shape.fingerprint_bits, FINGERPRINT_BITS merged;
        /// True when buckets are stored sorted, which saves one bit per key.
        pub semi_sort: bool = |f| f.shape.semi_sort, SEMI_SORT merged;
        /// The fingerprint in the stash, 0 if the stash is empty.
        stash_fingerprint: u64 = |f| f.stash.fp, STASH_FINGERPRINT;
        /// A bucket of the fingerprint in the stash.
        stash_bucket: u64 = |f| f.stash.bucket, STASH_BUCKET;
        /// True when adds are refused until a key is removed: past capacity, without a free slot.
        pub full: bool = |f| f.is_full();
        /// True when the table is in a mapped file.
        pub mapped: bool = |f| f.memory.is_mapped();
    }
}

#[rustfmt::skip] // one arm a line
/// Runs `$work` with the bucket rule of `$kernel` as `$rule`.
macro_rules! dispatch {
    ($kernel:expr, $rule:ident => $work:expr) => {
        match $kernel {
            Kernel::Lanes($rule) => $work,
            Kernel::Slots($rule) => $work,
            Kernel::SemiSorted($rule) => $work,
        }
    };
}
use dispatch;

/// An approximate multiset with removal.
pub struct CuckooFilter {
    pub(crate) shape: CuckooShape,
    kernel: Kernel,
    places: Places,
    pub(crate) memory: Memory,
    pub(crate) stash: Stash,
    pub(crate) hasher: KeyHasher,
    pub(crate) load: Load,
}

impl CuckooFilter {
    /// An empty filter for `capacity` keys at rate `fpr`, or at that which `fingerprint_bits` give.
    pub fn construct(
        capacity: u64,
        fpr: f64,
        bucket_size: u64,
        fingerprint_bits: Option<u64>,
        semi_sort: bool,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let bits = fingerprint_bits.map(narrow);
        let shape = CuckooShape::for_capacity(capacity, fpr, narrow(bucket_size), bits, semi_sort)?;
        let target = if bits.is_some() { shape.fpr(capacity as f64) } else { fpr };
        Self::new(shape, capacity, target, hasher)
    }

    /// Bytes of the table of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, bucket_size: u64, bits: Option<u64>, semi_sort: bool) -> Result<u64> {
        let shape = CuckooShape::for_capacity(capacity, fpr, narrow(bucket_size), bits.map(narrow), semi_sort)?;
        Ok(shape.words() * 8)
    }

    /// An empty filter of `shape`.
    pub fn new(shape: CuckooShape, capacity: u64, target_fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, target_fpr)?;
        Self::with_memory(shape, load, hasher, Memory::zeroed(shape.check()?.words())?)
    }

    pub(crate) fn with_memory(shape: CuckooShape, load: Load, hasher: KeyHasher, memory: Memory) -> Result<Self> {
        Ok(CuckooFilter {
            kernel: shape.check()?.kernel()?,
            places: Places::new(shape.buckets, shape.fingerprint_bits),
            stash: Stash::default(),
            shape,
            memory,
            hasher,
            load,
        })
    }

    /// Buckets and fingerprints.
    pub fn shape(&self) -> &CuckooShape {
        &self.shape
    }

    /// True if the stash is occupied and the capacity reached: adds are refused until a key is removed.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.has_stashed() && self.load.added >= self.load.capacity
    }

    /// True if the stash holds a fingerprint.
    #[inline(always)]
    pub(crate) fn has_stashed(&self) -> bool {
        self.stash.fp != 0
    }

    /// Number of fingerprints, counted, including the one in the stash.
    fn items(&self) -> u64 {
        let words = self.memory.words();
        let free: u64 = dispatch!(self.kernel, rule => {
            (0..self.shape.buckets).map(|i| u64::from(rule.count(rule.load(words, i), 0))).sum()
        });
        self.shape.slots() - free + u64::from(self.has_stashed())
    }

    /// The share of slots in use with so many fingerprints; a forged file may say anything.
    fn fill_of(&self, items: u64) -> f64 {
        items.saturating_sub(u64::from(self.has_stashed())) as f64 / self.shape.slots() as f64
    }

    fn refusal(&self, why: Refusal) -> Error {
        match why {
            Refusal::ReadOnly => Error::read_only(),
            Refusal::Full => Error::Capacity(format!(
                "the filter is full: {} keys in {} slots; remove keys or build one with a larger capacity (or a \
                 DynamicCuckooFilter, which grows)",
                self.load.added,
                self.shape.slots()
            )),
            Refusal::Crowded => Error::Capacity(format!(
                "no free slot within 500 moves for this key, although {} keys are in {} slots: too many keys share its buckets, \
                 as keys that somebody chose do; nothing was changed, and other keys are still taken; pass secret= where \
                 strangers choose keys",
                self.load.added,
                self.shape.slots()
            )),
            Refusal::Copies => Error::Capacity(format!(
                "the filter holds {} copies of this key, as many as its two buckets have slots; it cannot be added \
                 again before it is removed (ask `in` first to store each key once, and pass secret= where strangers choose keys)",
                2 * self.shape.bucket_size
            )),
        }
    }

    /// True if a fingerprint equal to that of `spot` is stored.
    #[inline(always)]
    pub(crate) fn holds(&self, spot: Spot) -> bool {
        dispatch!(self.kernel, rule => has(rule, self.memory.words(), self.stash, spot))
    }

    /// Number of fingerprints equal to that of `spot`.
    pub(crate) fn copies(&self, spot: Spot) -> u64 {
        dispatch!(self.kernel, rule => count(rule, self.memory.words(), self.stash, spot))
    }

    /// Stores a fingerprint, in slots that `turn` decides; true if no equal one was present.
    #[inline(always)]
    pub(crate) fn store(&mut self, spot: Spot, turn: u64) -> std::result::Result<bool, Refusal> {
        if self.is_full() {
            return Err(Refusal::Full);
        }
        let (places, bucket_size) = (self.places, self.shape.bucket_size);
        let words = self.memory.words_mut().ok_or(Refusal::ReadOnly)?;
        let new = dispatch!(self.kernel, rule => {
            Table { rule, places, words, stash: &mut self.stash, bucket_size }.add(spot, turn)
        })?;
        self.load.count(true);
        Ok(new)
    }

    /// Stores the fingerprints of `hashes` in order, up to the first that is refused; calls `tell` for each that was
    /// stored, with whether no equal one was present.
    pub(crate) fn store_each(
        &mut self,
        hashes: &[u64],
        mut tell: impl FnMut(usize, bool),
    ) -> std::result::Result<(), Refusal> {
        let (places, bucket_size, load) = (self.places, self.shape.bucket_size, &mut self.load);
        let base = self.memory.words().as_ptr();
        let words = self.memory.words_mut().ok_or(Refusal::ReadOnly)?;
        dispatch!(self.kernel, rule => {
            let mut table = Table { rule, places, words, stash: &mut self.stash, bucket_size };
            places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                if table.stash.fp != 0 && load.added >= load.capacity {
                    return Err(Refusal::Full);
                }
                let new = table.add(spot, hashes[i])?;
                load.count(true);
                tell(i, new);
                Ok(())
            })
        })
    }
}

impl Filter for CuckooFilter {
    memory_methods! { CUCKOO, 0, load; memory: FINGERPRINTS; |a, b| a.stash == b.stash }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.holds(self.places.of(hash))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        let (words, stash) = (self.memory.words(), self.stash);
        let found = &mut found[..hashes.len()];
        let base = words.as_ptr();
        let _ = dispatch!(self.kernel, rule => {
            self.places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                found[i] = u8::from(has(rule, words, stash, spot));
                Ok::<(), Refusal>(())
            })
        });
    }

    load_answers!(added);

    fn fpr_at(&self, items: f64) -> Option<f64> {
        Some(self.shape.true_fpr(items))
    }

    fn fpr(&self) -> f64 {
        self.shape.true_fpr(self.items() as f64)
    }

    /// Keys that were stored once have distinct fingerprints, so the rate is the sum of their chances.
    fn member(&self) -> Member {
        Member { parts: self.shape.buckets, ..Member::of_rate(-(-self.fpr()).ln_1p()) }
    }

    fn fill(&self) -> f64 {
        self.fill_of(self.items())
    }

    /// The number of keys is that of the fingerprints, so nothing is counted.
    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![0])
    }

    fn stats_of(&self, _: &CellCounts) -> CellStats {
        let fpr = self.shape.true_fpr(self.load.added as f64);
        CellStats { fill: self.fill_of(self.load.added), fpr, ..CellStats::default() }
    }

    fn fpr_by_count(&self) -> Option<f64> {
        Some(self.shape.true_fpr(self.load.added as f64))
    }
}

impl Addable for CuckooFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.store(self.places.of(hash), hash).map_err(|why| self.refusal(why))
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        let added = match new {
            None => self.store_each(hashes, |_, _| {}),
            Some(new) => self.store_each(hashes, |i, fresh| new[i] = u8::from(fresh)),
        };
        added.map_err(|why| self.refusal(why))
    }

    load_takes!(full, memory);

    clear_method!(memory; stash = Stash::default());
}

impl Removable for CuckooFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        let mut removed = [0];
        self.remove_hashes(&[hash], Some(&mut removed))?;
        Ok(removed[0] == 1)
    }

    fn remove_hashes(&mut self, hashes: &[u64], mut removed: Option<&mut [u8]>) -> Result<()> {
        let (places, bucket_size, load) = (self.places, self.shape.bucket_size, &mut self.load);
        let base = self.memory.words().as_ptr();
        let words = self.memory.writable()?;
        dispatch!(self.kernel, rule => {
            let mut table = Table { rule, places, words, stash: &mut self.stash, bucket_size };
            places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                // Below capacity the stash excludes no key, and an attacker would gain 500 moves for each removal.
                let was_there = table.remove(spot, load.added >= load.capacity);
                load.uncount(was_there);
                mark(&mut removed, i, was_there);
                Ok(())
            })
        })
    }
}

impl Countable for CuckooFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        self.copies(self.places.of(hash))
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        let (words, stash) = (self.memory.words(), self.stash);
        let counts = &mut counts[..hashes.len()];
        let base = words.as_ptr();
        let _ = dispatch!(self.kernel, rule => {
            self.places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                counts[i] = count(rule, words, stash, spot);
                Ok::<(), Refusal>(())
            })
        });
    }
}

#[cfg(test)]
mod tests;
