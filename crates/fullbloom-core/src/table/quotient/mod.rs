//! [`QuotientFilter`]: sorted runs of remainders, found by rank and select.
//!
//! Bender and others, "Don't thrash: how to cache your hash on flash", VLDB 2012; the layout with
//! rank and select is that of Pandey, Bender, Johnson and Patro, "A general-purpose counting
//! filter", SIGMOD 2017.
//!
//! The fingerprint of a key is the top `f = q + r` bits of its hash. The top q bits are the
//! quotient, the slot where the key is at home; the next r bits are the remainder, which is stored.
//! Remainders of one quotient form a *run*, sorted; runs lie in the order of their quotients,
//! pushed to the right where homes are occupied, and the last slot is followed by the first. Three
//! arrays describe this:
//!
//! * `occupied`, a bit a quotient: some key has this quotient;
//! * `runends`, a bit per slot: a run ends here. The i-th occupied quotient has the i-th run;
//! * `offsets`, a byte a block of 64 slots: how many slots from the first of the block on belong to
//!   runs of earlier quotients; 255 means 255 or more, which is then counted from the blocks
//!   before. With these, rank and select need to look at one block and its neighbours only.
//!
//! A slot holds `remainder << c | count - 1`. Without counting c is 0 and every copy of a
//! fingerprint has a slot of its own; with it c is 8 and a slot represents up to 256 copies. Of the
//! slots with equal remainders all but the last are full. Free slots are zero. The bits of a table
//! are therefore a function of the multiset of its fingerprints, whatever the order of operations.
//!
//! * [`words`]: select in a word, and runs of bits moved by some places;
//! * [`geometry`]: how many bits of what;
//! * [`slots`]: finding one fingerprint; `shifts`: inserting and removing it; `load`: reading a file;
//! * [`stream`]: the fingerprints of tables in order, and tables from such streams.

pub mod geometry;
mod load;
mod shifts;
pub mod slots;
pub mod stream;
pub mod words;

pub use self::geometry::Geometry;

use self::slots::Slots;
use self::stream::{build, table_error};
use crate::container::{Container, Header, Section, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::QUOTIENT;
use crate::scheme::ahead::mark;
use crate::sizing::fingerprints;
use crate::structure::declaration::structure;
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::{Addable, Countable, Declared, Filter, Mergeable, Removable};

/// Keys whose lines are prefetched before the first of them is read.
const AHEAD: usize = 32;
/// The sections of a file, in their order.
const KINDS: [u32; 3] = [kind::QUOTIENT_BITS, kind::QUOTIENT_OFFSETS, kind::QUOTIENT_SLOTS];

structure! {
    /// A sorted table of fingerprints: keys can be removed and counted, tables merged and grown without
    /// their keys.
    class QuotientFilter;
    parameters {
        /// expected number of distinct keys. The number of slots is a power of two of which 95 % may be
        /// filled. Every add stores one fingerprint, so repeated keys take slots too.
        capacity: "int";
        /// rate of false positives at capacity; it determines the bits of the remainder that a slot stores.
        fpr: "float" = 0.01;
        *;
        /// let up to 256 copies of a fingerprint share a slot, for 8 more bits per slot.
        counting: "bool" = false;
    }
    /// False negatives: never, unless a key that was not added is removed, which may take the fingerprint of
    /// another key. count is never too low. Raises ParameterError, ParameterTypeError,
    /// FilterMemoryError, before anything is allocated; add raises FilterFull when no slot may be filled,
    /// and earlier keys are still found. It raises FilterFull too for a key with no free slot within 1024 of its own up to
    /// a quarter full, 4096, 16,384 and 65,536 for each quarter more, which bounds the work of an add. Random keys
    /// never reach it; keys chosen by anyone who knows the hash do (pass secret=), and so do copies of one key
    /// (pass counting=True). num_added counts distinct fingerprints.
    /// Cost: slots / keys * (r + 2.125) bits per key with r = log2(load / fpr): 9.6 at 1 % when 95 % full,
    /// twice that just past a power of two; 25 ns per lookup, 35 (half full) to 80 ns (95 % full) per add.
    /// Source: Bender et al., PVLDB 5(11), 2012, laid out as by Pandey et al., SIGMOD 2017; rate
    /// 1 - (1 - 2^-(q+r))^n, about 1 - exp(-load / 2^r).
    ///
    /// >>> from fullbloom import QuotientFilter
    /// >>> f = QuotientFilter(1000, counting=True)
    /// >>> f.update(["a", "b", "b"])
    /// >>> f.remove("a")
    /// >>> "a" in f, f.count("b")
    /// (False, 2)
    fields {
        /// Bits of the fingerprint that select its slot.
        pub quotient_bits: u32 = |f| f.geometry().quotient_bits, QUOTIENT_BITS;
        /// Bits of the fingerprint that a slot stores.
        pub remainder_bits: u32 = |f| f.geometry().remainder_bits, REMAINDER_BITS;
        /// Bits of a slot that count copies.
        counter_bits: u32 = |f| f.geometry().counter_bits, COUNTER_BITS;
        /// True when copies of a fingerprint share slots.
        pub counting: bool = |f| f.geometry().counter_bits > 0;
        /// Number of slots, a power of two.
        pub num_slots: u64 = |f| f.geometry().slots();
        /// Slots in use; 95 % of them may be.
        pub used_slots: u64 = |f| f.used, USED_SLOTS;
        /// True when the slots are in a mapped file.
        pub mapped: bool = |f| f.slots.memories()[0].is_mapped();
    }
}

/// A multiset of fingerprints that supports removal, counts, merging and growth.
pub struct QuotientFilter {
    slots: Slots,
    hasher: KeyHasher,
    load: Load,
    /// Slots in use.
    used: u64,
    /// Most bytes of cells after growing.
    max_bytes: u64,
}

impl QuotientFilter {
    /// An empty filter for `capacity` keys at rate `fpr`; with `counting`, copies share slots.
    pub fn construct(capacity: u64, fpr: f64, counting: bool, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let geometry = Geometry::for_capacity(capacity, fpr, counting)?;
        Ok(QuotientFilter { slots: Slots::new(geometry)?, hasher, load, used: 0, max_bytes: u64::MAX })
    }

    /// Bytes of the three arrays of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, counting: bool) -> Result<u64> {
        Ok(Geometry::for_capacity(capacity, fpr, counting)?.nbytes())
    }

    /// Bits of quotient, remainder and counter.
    #[inline(always)]
    pub fn geometry(&self) -> Geometry {
        self.slots.geometry()
    }

    /// True if all slots that may be filled are.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.used >= self.geometry().limit()
    }

    #[cold]
    fn full(&self) -> Error {
        Error::Capacity(format!(
            "all {} slots that may be filled are in use (95 % of {}); grow() the filter, remove keys, or build a \
             larger one",
            self.geometry().limit(),
            self.geometry().slots()
        ))
    }

    /// Refuses a key for which `used` slots in use leave no space within reach of its home.
    #[cold]
    fn crowded_error(&self, used: u64) -> Error {
        let reach = self.geometry().reach(used).min(self.geometry().slots());
        Error::Capacity(format!(
            "no free slot within {reach} of the key's own, though {} of {} slots are in use: too many keys lie there, as \
             keys that somebody chose do and copies of one key; nothing was changed, and other keys are still taken; pass \
             secret= where strangers choose keys, counting=True where keys repeat (or the file is damaged: open it with \
             verify=\"full\")",
            used,
            self.geometry().slots()
        ))
    }

    #[inline(always)]
    fn split(&self, hash: u64) -> (u64, u64) {
        self.geometry().split(self.geometry().fingerprint(hash))
    }

    /// Changes the table for each hash, as [`Addable::add_hashes`] does: prefetches the lines of some, then visits
    /// each.
    #[inline(always)]
    fn change_each(
        &mut self,
        hashes: &[u64],
        mut answers: Option<&mut [u8]>,
        change: impl Fn(&mut Self, u64) -> Result<bool>,
    ) -> Result<()> {
        self.check_writable()?;
        for (i, hashes) in hashes.chunks(AHEAD).enumerate() {
            self.ask_ahead(hashes);
            for (j, &hash) in hashes.iter().enumerate() {
                let changed = change(self, hash)?;
                mark(&mut answers, i * AHEAD + j, changed);
            }
        }
        Ok(())
    }

    /// Prefetches the lines of each hash.
    #[inline(always)]
    fn ask_ahead(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.slots.prefetch(self.split(hash).0);
        }
    }

    #[inline(always)]
    fn find(&self, hash: u64) -> bool {
        let (quotient, remainder) = self.split(hash);
        // If a walk gives up, the key may be present.
        self.slots.is_occupied(quotient) && self.slots.locate(quotient, remainder).is_none_or(|place| place.found)
    }

    #[inline(always)]
    fn put(&mut self, hash: u64) -> Result<bool> {
        let geometry = self.geometry();
        let (quotient, remainder) = self.split(hash);
        let place = self.slots.locate(quotient, remainder).ok_or_else(table_error)?;
        if place.found && geometry.counter_bits > 0 {
            let (_, copies) = self.slots.read(place.slot);
            if copies < geometry.most_copies() {
                self.slots.write(place.slot, geometry.cell(remainder, copies + 1));
                return Ok(false);
            }
        }
        if self.is_full() {
            return Err(self.full());
        }
        let reach = geometry.reach(self.used);
        self.slots
            .insert(quotient, &place, geometry.cell(remainder, 1), reach)
            .ok_or_else(|| self.crowded_error(self.used))?;
        self.used += 1;
        self.load.count(!place.found);
        Ok(!place.found)
    }

    fn take(&mut self, hash: u64) -> Result<bool> {
        let (quotient, remainder) = self.split(hash);
        if !self.slots.is_occupied(quotient) {
            return Ok(false);
        }
        let place = self.slots.locate(quotient, remainder).ok_or_else(table_error)?;
        if !place.found {
            return Ok(false);
        }
        let (_, copies) = self.slots.read(place.slot);
        if copies > 1 {
            self.slots.write(place.slot, self.geometry().cell(remainder, copies - 1));
            return Ok(true);
        }
        let only = self.slots.is_only(quotient, &place);
        self.slots.remove(quotient, &place).ok_or_else(table_error)?;
        self.used = self.used.saturating_sub(1);
        self.load.uncount(only);
        Ok(true)
    }
}

impl Filter for QuotientFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn hasher_mut(&mut self) -> &mut KeyHasher {
        &mut self.hasher
    }

    fn contains_hash(&self, hash: u64) -> bool {
        self.find(hash)
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        for (hashes, found) in hashes.chunks(AHEAD).zip(found.chunks_mut(AHEAD)) {
            self.ask_ahead(hashes);
            for (&hash, found) in hashes.iter().zip(found) {
                *found = u8::from(self.find(hash));
            }
        }
    }

    load_answers!();

    /// Distinct fingerprints.
    fn num_added(&self) -> u64 {
        self.load.added
    }

    /// Share of all fingerprints that are stored: exact, whereas the law at capacity is an expectation.
    fn fpr_at(&self, items: f64) -> Option<f64> {
        Some(fingerprints::share_of(items, 2f64.powi(self.geometry().fingerprint_bits() as i32)))
    }

    fn fpr(&self) -> f64 {
        fingerprints::share_of(self.load.added as f64, 2f64.powi(self.geometry().fingerprint_bits() as i32))
    }

    /// Share of slots in use.
    fn fill(&self) -> f64 {
        self.used as f64 / self.geometry().slots() as f64
    }

    /// The number of slots in use is known.
    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(Vec::new())
    }

    fn fpr_by_count(&self) -> Option<f64> {
        Some(self.fpr())
    }

    fn nbytes(&self) -> u64 {
        self.slots.memories().iter().map(|memory| memory.len_bytes() as u64).sum()
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(QUOTIENT, 0, &self.hasher);
        self.load.describe(&mut header, 0);
        self.describe(&mut header);
        let memories = self.slots.memories().into_iter().zip(KINDS);
        let sections = memories.map(|(memory, kind)| Section::of(kind, memory)).collect();
        Container { header, sections }
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(QuotientFilter { slots: self.slots.try_clone()?, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        let memories = self.slots.memories().into_iter().zip(other.slots.memories());
        self.check_compatible(other).is_ok()
            && self.geometry() == other.geometry()
            && memories.into_iter().all(|(a, b)| a.words() == b.words())
    }
}

impl Addable for QuotientFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.check_writable()?;
        self.put(hash)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        self.change_each(hashes, new, Self::put)
    }

    load_takes!(full, slots);

    fn clear(&mut self) -> Result<()> {
        self.check_writable()?;
        self.slots.clear();
        self.load.clear();
        self.used = 0;
        Ok(())
    }
}

impl Removable for QuotientFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        self.check_writable()?;
        self.take(hash)
    }

    fn remove_hashes(&mut self, hashes: &[u64], removed: Option<&mut [u8]>) -> Result<()> {
        self.change_each(hashes, removed, Self::take)
    }
}

impl Countable for QuotientFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        let (quotient, remainder) = self.split(hash);
        match self.slots.locate(quotient, remainder) {
            Some(place) if place.found => self.slots.copies(quotient, &place),
            Some(_) => 0,
            None => u64::from(self.slots.is_occupied(quotient)),
        }
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        for (hashes, counts) in hashes.chunks(AHEAD).zip(counts.chunks_mut(AHEAD)) {
            self.ask_ahead(hashes);
            for (&hash, count) in hashes.iter().zip(counts) {
                *count = self.count_hash(hash);
            }
        }
    }
}

impl Mergeable for QuotientFilter {
    /// Fingerprints must be equally long; the numbers of slots may differ.
    fn check_compatible(&self, other: &Self) -> Result<()> {
        let (a, b) = (self.geometry(), other.geometry());
        self.differences(other)
            .field("fingerprint_bits", a.fingerprint_bits(), b.fingerprint_bits())
            .field("counting", a.counter_bits > 0, b.counter_bits > 0)
            .check()
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        self.check_writable()?;
        let (slots, census) = build(self.geometry(), &[&self.slots, &other.slots])?;
        if census.farthest > self.geometry().reach(census.used) {
            return Err(self.crowded_error(census.used));
        }
        self.slots = slots;
        self.used = census.used;
        self.load.added = census.distinct;
        Ok(())
    }
}

impl QuotientFilter {
    /// Doubles the slots by moving one bit from remainder to quotient; no key is needed, and no answer changes. The
    /// capacity doubles, and with it the rate at capacity; `target_fpr` follows. After an error nothing has changed.
    pub fn grow(&mut self) -> Result<()> {
        self.check_writable()?;
        let mut geometry = self.geometry();
        if geometry.remainder_bits == 1 {
            return Err(Error::Capacity(
                "the remainders have no bit left to give; build a new filter from the keys".into(),
            ));
        }
        geometry.quotient_bits += 1;
        geometry.remainder_bits -= 1;
        let geometry = geometry.check().map_err(|error| Error::Capacity(error.to_string()))?;
        if geometry.nbytes() > self.max_bytes {
            return Err(Error::Memory(format!(
                "growing would make the filter {} bytes large, max_bytes is {}; open its file with more if you trust it",
                geometry.nbytes(),
                self.max_bytes
            )));
        }
        let (slots, census) = build(geometry, &[&self.slots])?;
        let capacity = self.load.capacity.saturating_mul(2);
        let fpr = self.load.target_fpr.max(geometry.fpr(capacity));
        let mut load = Load::new(capacity, fpr)?;
        load.added = census.distinct;
        (self.slots, self.load, self.used) = (slots, load, census.used);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
