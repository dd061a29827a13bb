//! [`QuotientFilter`]: a table with its hash, its capacity, and the number of its fingerprints.

use super::geometry::Geometry;
use super::slots::Slots;
use super::stream::{build, damaged};
use crate::container::Container;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::structure::differences::Differences;
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::{Addable, Countable, Filter, Mergeable, Removable, Sizable, Value};

/// Keys whose lines are asked for before the first of them is looked at.
const AHEAD: usize = 32;

/// A multiset of fingerprints that can be taken out, counted, merged and spread over more slots.
pub struct QuotientFilter {
    pub(super) slots: Slots,
    pub(super) hasher: KeyHasher,
    pub(super) load: Load,
    /// Slots in use.
    pub(super) used: u64,
}

impl QuotientFilter {
    /// An empty filter for `capacity` keys at rate `fpr`; with `counting`, copies share slots.
    pub fn new(capacity: u64, fpr: f64, counting: bool, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let geometry = Geometry::for_capacity(capacity, fpr, counting)?;
        Ok(QuotientFilter { slots: Slots::new(geometry)?, hasher, load, used: 0 })
    }

    /// Bits of quotient, remainder and counter.
    #[inline(always)]
    pub fn geometry(&self) -> Geometry {
        self.slots.geometry()
    }

    /// Slots in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// True when the slots that may be filled are.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.used >= self.geometry().limit()
    }

    fn check_writable(&self) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::read_only());
        }
        Ok(())
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

    #[inline(always)]
    fn split(&self, hash: u64) -> (u64, u64) {
        self.geometry().split(self.geometry().fingerprint(hash))
    }

    /// Asks for the lines of each hash, then visits each.
    #[inline(always)]
    fn ask_ahead(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.slots.prefetch(self.split(hash).0);
        }
    }

    #[inline(always)]
    fn find(&self, hash: u64) -> bool {
        let (quotient, remainder) = self.split(hash);
        // A damaged table is answered like an absent key.
        self.slots.is_occupied(quotient) && self.slots.locate(quotient, remainder).is_some_and(|place| place.found)
    }

    #[inline(always)]
    fn put(&mut self, hash: u64) -> Result<bool> {
        let geometry = self.geometry();
        let (quotient, remainder) = self.split(hash);
        let place = self.slots.locate(quotient, remainder).ok_or_else(damaged)?;
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
        self.slots.insert(quotient, &place, geometry.cell(remainder, 1)).ok_or_else(damaged)?;
        self.used += 1;
        self.load.count(!place.found);
        Ok(!place.found)
    }

    fn take(&mut self, hash: u64) -> Result<bool> {
        let (quotient, remainder) = self.split(hash);
        if !self.slots.is_occupied(quotient) {
            return Ok(false);
        }
        let place = self.slots.locate(quotient, remainder).ok_or_else(damaged)?;
        if !place.found {
            return Ok(false);
        }
        let (_, copies) = self.slots.read(place.slot);
        if copies > 1 {
            self.slots.write(place.slot, self.geometry().cell(remainder, copies - 1));
            return Ok(true);
        }
        let only = self.slots.is_only(quotient, &place);
        self.slots.remove(quotient, &place).ok_or_else(damaged)?;
        self.used = self.used.saturating_sub(1);
        self.load.uncount(only);
        Ok(true)
    }

    /// Doubles the slots by moving one bit from remainder to quotient; no key is needed, and no
    /// answer changes. The capacity doubles, and with it the rate there; `target_fpr` follows. On an
    /// error nothing has changed.
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
        let (slots, census) = build(geometry, &[&self.slots])?;
        let capacity = self.load.capacity.saturating_mul(2);
        let fpr = self.load.target_fpr.max(geometry.fpr(capacity));
        let mut load = Load::new(capacity, fpr)?;
        load.added = census.distinct;
        (self.slots, self.load, self.used) = (slots, load, census.used);
        Ok(())
    }
}

impl Sizable for QuotientFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        Self::new(capacity, fpr, false, hasher)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        let words = Geometry::for_capacity(capacity, fpr, false)?.words();
        Ok(words.iter().map(|words| words.next_multiple_of(8) * 8).sum())
    }
}

impl Filter for QuotientFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
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

    /// Share of all fingerprints that are stored: exact, where the law at capacity is an expectation.
    fn fpr(&self) -> f64 {
        self.load.added as f64 * 0.5f64.powi(self.geometry().fingerprint_bits() as i32)
    }

    /// Share of slots in use.
    fn fill(&self) -> f64 {
        self.used as f64 / self.geometry().slots() as f64
    }

    fn nbytes(&self) -> u64 {
        self.slots.memories().iter().map(|memory| memory.len_bytes() as u64).sum()
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let geometry = self.geometry();
        vec![
            ("capacity", Value::Number(self.load.capacity)),
            ("target_fpr", Value::Real(self.load.target_fpr)),
            ("num_added", Value::Number(self.load.added)),
            ("fpr", Value::Real(self.fpr())),
            ("fill", Value::Real(self.fill())),
            ("used_slots", Value::Number(self.used)),
            ("num_slots", Value::Number(geometry.slots())),
            ("quotient_bits", Value::Number(u64::from(geometry.quotient_bits))),
            ("remainder_bits", Value::Number(u64::from(geometry.remainder_bits))),
            ("counting", Value::Flag(geometry.counter_bits > 0)),
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("mapped", Value::Flag(self.slots.memories()[0].is_mapped())),
            ("nbytes", Value::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        super::stored::container(self)
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(QuotientFilter { slots: self.slots.try_clone()?, hasher: self.hasher, load: self.load, used: self.used })
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

    fn add_hashes(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        self.check_writable()?;
        for (i, hashes) in hashes.chunks(AHEAD).enumerate() {
            self.ask_ahead(hashes);
            for (j, &hash) in hashes.iter().enumerate() {
                let fresh = self.put(hash)?;
                if let Some(new) = new.as_deref_mut() {
                    new[i * AHEAD + j] = u8::from(fresh);
                }
            }
        }
        Ok(())
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

    fn remove_hashes(&mut self, hashes: &[u64], mut removed: Option<&mut [u8]>) -> Result<()> {
        self.check_writable()?;
        for (i, hashes) in hashes.chunks(AHEAD).enumerate() {
            self.ask_ahead(hashes);
            for (j, &hash) in hashes.iter().enumerate() {
                let was_there = self.take(hash)?;
                if let Some(removed) = removed.as_deref_mut() {
                    removed[i * AHEAD + j] = u8::from(was_there);
                }
            }
        }
        Ok(())
    }
}

impl Countable for QuotientFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        let (quotient, remainder) = self.split(hash);
        match self.slots.locate(quotient, remainder) {
            Some(place) if place.found => self.slots.copies(quotient, &place),
            _ => 0,
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
        Differences::of(&self.hasher, &other.hasher)
            .field("fingerprint_bits", a.fingerprint_bits(), b.fingerprint_bits())
            .field("counting", a.counter_bits > 0, b.counter_bits > 0)
            .check()
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        self.check_writable()?;
        let (slots, census) = build(self.geometry(), &[&self.slots, &other.slots])?;
        self.slots = slots;
        self.used = census.used;
        self.load.added = census.distinct;
        Ok(())
    }
}
