//! [`BloomierMap`]: a value beside each fingerprint, as the xor of the cells of a binary fuse filter.
//!
//! Chazelle, Kilian, Rubinfeld, Tal, "The Bloomier filter", 2004; cells and solving are those of [`super::fuse`]. The
//! xor of a key's K cells is its value, in the low v bits, and above it c bits of its fingerprint, the check: an absent
//! key passes it at 2^-c. Where values can be changed, the low 2 bits tell which of the K cells is the key's own,
//! which peeling gave to no other key, and the value lies in a second table:
//!
//! ```text
//! fixed     cell = check v-bit value                value = low bits
//! mutable   cell = check 2-bit own                  value = values[slot], slot = floor(64 first / (c + 2)) + place[own]
//! ```
//!
//! `first` is the first word of the shard's cells, place the number of a cell in it, so that no two cells have one slot.

mod facts;

use super::fingerprints::{self, AHEAD, View};
use super::fuse::Fuse;
use super::shards::{self, CellsAndTable, Shape};
use crate::cells::Memory;
use crate::cells::packed::PackedCells;
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::key::KeyHasher;
use crate::registry::BLOOMIER;
use crate::scheme::ahead::answer_ahead;
use crate::sizing::peeled;
use crate::structure::declaration::structure;
use crate::structure::memories::memory_methods;
use crate::structure::records::{RecordSet, SortedRecords};
use crate::structure::{Declared, Filter, Job, Loadable, Sections};
use facts::{Facts, OWN_BITS, VALUE_BITS};

structure! {
    /// A static map from keys to numbers of 1 to 64 bits, which stores no keys: at most a fifth of the memory of a hash table.
    class BloomierMap;
    parameters {
        *;
        /// rate at which an absent key has a value, rounded down to a power of two; in place of check_bits.
        fpr: "float | None" = None;
        /// bits that identify absent keys, 1 to 32: the rate is 2**-check_bits; 8 by default if fpr is not given.
        check_bits: "int | None" = None;
        /// bits of a value; by default those of the largest. With check_bits at most 64, unless mutable.
        value_bits: "int | None" = None;
        /// values can be changed in place; takes 2 more bits per cell, and one more cache line per lookup.
        mutable: "bool" = false;
        /// cells of a key: 3 is faster, 4 is 4 % smaller.
        arity: "int" = 3;
    }
    /// The value of a key it was built from is never wrong; an absent key has one at the rate. Keys cannot be added, removed
    /// or listed. Repeated keys count once if they have one value. The same pairs in any order give the same
    /// bytes, with any number of threads and any memory.
    ///
    /// Cost: 1.13 bits (arity 3) or 1.08 (arity 4) for each bit of value and check and key, more below a million keys; three
    /// or four cache lines per lookup. Raises ParameterError, also for a key with two values or a value that is too wide,
    /// ParameterTypeError, FilterMemoryError. Source: Chazelle, Kilian, Rubinfeld, Tal, SODA 2004; cells by Graf, Lemire,
    /// ACM JEA 27, 2022; rate 2**-check_bits.
    ///
    /// >>> from fullbloom import BloomierMap
    /// >>> ages = BloomierMap.build({"ada": 36, "alan": 41, "grace": 85}, check_bits=20)
    /// >>> ages["alan"], ages.get("nobody"), ages.get_many(["ada", "grace"])
    /// (41, None, [36, 85])
    fields {
        /// Bits of a value.
        pub value_bits: u32 = |f| f.facts.value_bits, VALUE_BITS;
        /// Bits that identify absent keys.
        pub check_bits: u32 = |f| f.facts.check_bits, FINGERPRINT_BITS;
        /// True when values can be changed.
        pub mutable: bool = |f| f.facts.mutable, MUTABLE;
        /// Cells of a key, 3 or 4.
        pub arity: u32 = |f| f.facts.arity, ARITY;
        /// Shards, as their binary logarithm.
        shard_bits: u32 = |f| f.facts.bits, SHARD_BITS;
        /// Number of distinct keys.
        keys: u64 = |f| f.facts.keys, COUNT;
        /// The requested rate.
        target_fpr: f64 = |f| f.facts.target_fpr, FPR;
        /// Number of cells.
        pub num_cells: u64 = |f| f.facts.cells;
        /// True when the cells are in a mapped file.
        pub mapped: bool = |f| f.cells.is_mapped();
    }
}

/// Cells, the table of shards, values that can be changed, and their parameters.
pub struct BloomierMap {
    cells: Memory,
    table: Memory,
    /// One empty line if values cannot be changed.
    values: Memory,
    hasher: KeyHasher,
    facts: Facts,
}

/// Does `$work` with the number of cells of a key and their geometry, as `$K` and `$S`.
macro_rules! by_arity {
    ($arity:expr, $self:ident.$work:ident $(::<$W:literal>)? ($($argument:expr),*)) => {
        match $arity {
            3 => $self.$work::<3, $($W,)? Fuse<3>>($($argument),*),
            _ => $self.$work::<4, $($W,)? Fuse<4>>($($argument),*),
        }
    };
}

impl Facts {
    /// Solves for values, or for slots, which then get theirs.
    fn build<const K: usize, S: Shape<K>>(
        mut self,
        keys: &RecordSet<2>,
        hasher: KeyHasher,
        job: &Job<'_>,
    ) -> Result<BloomierMap> {
        let pairs = &*keys.sort(job)?;
        self.check_granted::<K, S>(pairs)?;
        let (below, mutable, cells) = (self.below(), self.mutable, self.create_cells()?);
        let value = |&[hash, value]: &[u64; 2], own| {
            fingerprints::fingerprint(hash) << below | if mutable { own as u64 } else { value }
        };
        let parts = keys.build(job, |lot| shards::build::<K, 2, S>(lot, cells, job, value))?;
        let CellsAndTable { cells: memory, table, bits, keys } = parts;
        let (words, number) = shards::check_table::<K, S>(table.words(), bits, cells)?;
        (self.bits, self.keys, self.cells) = (bits, keys, number);
        let values = Memory::zeroed(self.value_words(words - 1)?)?;
        let mut map = BloomierMap { cells: memory, table, values, hasher, facts: self };
        if mutable {
            map.write_values::<K, S>(pairs, job)?;
        }
        Ok(map)
    }
}

/// The result of finding a key's cells.
struct Match<const K: usize> {
    /// The low bits of its cells' xor.
    low: u64,
    /// First word of the shard.
    first: usize,
    places: [u64; K],
}

impl BloomierMap {
    /// The map of `keys`, each a hash and a value.
    #[allow(clippy::too_many_arguments)] // the public signature
    pub fn build(
        keys: &RecordSet<2>,
        fpr: Option<f64>,
        check_bits: Option<u64>,
        value_bits: Option<u64>,
        mutable: bool,
        arity: u64,
        hasher: KeyHasher,
        job: &Job<'_>,
    ) -> Result<Self> {
        let pairs = keys.sort(job)?;
        let facts = Facts::new(fpr, check_bits, value_bits, mutable, arity, pairs.largest())?;
        if let Some([[hash, one], [_, other]]) = pairs.differing() {
            return Err(Error::Parameter(format!(
                "the key with the hash {hash:#018x} has two values, {one} and {other}; give each key one value, or another seed where two keys have one hash"
            )));
        }
        by_arity!(arity, facts.build(keys, hasher, job))
    }

    /// Bytes of cells of a map for `capacity` keys.
    pub fn cell_bytes(
        capacity: u64,
        fpr: Option<f64>,
        check_bits: Option<u64>,
        value_bits: Option<u64>,
        mutable: bool,
        arity: u64,
    ) -> Result<u64> {
        let facts = Facts::new(fpr, check_bits, value_bits.or(Some(VALUE_BITS)), mutable, arity, 0)?;
        by_arity!(arity, facts.nbytes(capacity))
    }

    #[inline(always)]
    fn view(&self) -> View<'_> {
        let width = self.facts.below() + self.facts.check_bits;
        View { table: self.table.words(), cells: self.cells.words(), width, bits: self.facts.bits }
    }

    /// The contents of the cells of a hash; `None` if the check shows that it is absent.
    #[inline(always)]
    fn find<const K: usize, const W: u32, S: Shape<K>>(&self, hash: u64) -> Option<Match<K>> {
        let (view, below) = (self.view(), self.facts.below());
        let (first, places, fingerprint) = view.places::<K, S>(hash)?;
        let xor = places.into_iter().fold(0, |xor, i| xor ^ view.cell::<W>(first, i));
        let passed = (xor >> below ^ fingerprint) << (64 - self.facts.check_bits) == 0;
        let low = xor & (u64::MAX >> (64 - below));
        (passed && (low < K as u64 || !self.facts.mutable)).then_some(Match { low, first, places })
    }

    /// The slot of a result.
    #[inline(always)]
    fn slot<const K: usize>(&self, found: &Match<K>) -> u64 {
        let width = u64::from(OWN_BITS + self.facts.check_bits);
        found.first as u64 * 64 / width + found.places[found.low as usize % K]
    }

    /// The value in a slot; 0 if its file is damaged.
    #[inline(always)]
    fn value_in(&self, slot: u64) -> u64 {
        PackedCells::new(self.facts.value_bits).map_or(0, |values| values.get(self.values.words(), slot))
    }

    #[inline(always)]
    fn value<const K: usize, const W: u32, S: Shape<K>>(&self, hash: u64) -> Option<u64> {
        let found = self.find::<K, W, S>(hash)?;
        Some(if self.facts.mutable { self.value_in(self.slot(&found)) } else { found.low })
    }

    /// The value of a key; an absent one has none, except at the rate of false positives.
    pub fn get_hash(&self, hash: u64) -> Option<u64> {
        by_arity!(self.facts.arity, self.value::<0>(hash))
    }

    /// One value per hash, `default` for an absent key; the slices are equally long.
    pub fn get_hashes(&self, hashes: &[u64], default: u64, values: &mut [u64]) {
        let arity = self.facts.arity;
        match self.view().width {
            _ if self.facts.mutable => by_arity!(arity, self.get_slots(hashes, default, values)),
            8 => by_arity!(arity, self.get_wide::<8>(hashes, default, values)),
            16 => by_arity!(arity, self.get_wide::<16>(hashes, default, values)),
            32 => by_arity!(arity, self.get_wide::<32>(hashes, default, values)),
            _ => by_arity!(arity, self.get_wide::<0>(hashes, default, values)),
        }
    }

    fn get_wide<const K: usize, const W: u32, S: Shape<K>>(&self, hashes: &[u64], default: u64, values: &mut [u64]) {
        let view = self.view();
        answer_ahead(
            AHEAD,
            hashes,
            values,
            |hash| view.fetch::<K, S>(hash),
            |hash| self.find::<K, W, S>(hash).map_or(default, |found| found.low),
        );
    }

    /// First the slots, whose memory is prefetched meanwhile; then their values.
    fn get_slots<const K: usize, S: Shape<K>>(&self, hashes: &[u64], default: u64, values: &mut [u64]) {
        let (view, own) = (self.view(), self.values.words().as_ptr());
        for (hashes, values) in hashes.chunks(256).zip(values.chunks_mut(256)) {
            answer_ahead(
                AHEAD,
                hashes,
                values,
                |hash| view.fetch::<K, S>(hash),
                |hash| {
                    let Some(found) = self.find::<K, 0, S>(hash) else { return u64::MAX };
                    let slot = self.slot(&found);
                    prefetch(own.wrapping_add(((slot * u64::from(self.facts.value_bits)) >> 6) as usize));
                    slot
                },
            );
            for value in values {
                *value = if *value == u64::MAX { default } else { self.value_in(*value) };
            }
        }
    }

    /// Changes the value of a stored key; false if it was certainly absent. An absent key that passes the check, at the
    /// rate of false positives, takes an unused slot or that of a stored key, whose value is lost.
    pub fn set_hash(&mut self, hash: u64, value: u64) -> Result<bool> {
        self.check_settable(value)?;
        by_arity!(self.facts.arity, self.set_value(hash, value))
    }

    /// Refuses a value that is too wide, and any if values cannot be changed.
    pub fn check_settable(&self, value: u64) -> Result<()> {
        if !self.facts.mutable {
            return Err(Error::ReadOnly(
                "the values lie in the cells of all keys and cannot be changed; build the map with mutable=True".into(),
            ));
        }
        if self.values.is_read_only() {
            return Err(Error::read_only());
        }
        if value > self.facts.values()?.max() {
            return Err(Error::Parameter(format!(
                "value must be below 2**{}, got {value}; build the map with more value_bits",
                self.facts.value_bits
            )));
        }
        Ok(())
    }

    fn set_value<const K: usize, S: Shape<K>>(&mut self, hash: u64, value: u64) -> Result<bool> {
        let Some(found) = self.find::<K, 0, S>(hash) else { return Ok(false) };
        let (slot, values) = (self.slot(&found), self.facts.values()?);
        values.set(self.values.writable()?, slot, value);
        Ok(true)
    }

    fn write_values<const K: usize, S: Shape<K>>(&mut self, pairs: &SortedRecords<2>, job: &Job<'_>) -> Result<()> {
        let (mut read, shards) = (Vec::new(), 1 << self.facts.bits);
        job.expect(shards as u64);
        for shard in 0..shards {
            pairs.read(self.facts.bits, shard, &mut read)?;
            for &[hash, value] in &read {
                self.set_value::<K, S>(hash, value)?;
            }
            job.report(1)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn fetch_cells<const K: usize, S: Shape<K>>(&self, hash: u64) {
        self.view().fetch::<K, S>(hash);
    }

    #[inline(always)]
    fn finds<const K: usize, const W: u32, S: Shape<K>>(&self, hash: u64) -> bool {
        self.find::<K, W, S>(hash).is_some()
    }
}

impl Filter for BloomierMap {
    memory_methods! { BLOOMIER, 0; cells: CELLS, table: SHARDS, values: VALUES }

    const AHEAD: usize = AHEAD;

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        by_arity!(self.facts.arity, self.finds::<0>(hash))
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        by_arity!(self.facts.arity, self.fetch_cells(hash));
    }

    fn capacity(&self) -> u64 {
        self.facts.keys
    }

    fn target_fpr(&self) -> f64 {
        self.facts.target_fpr
    }

    fn num_added(&self) -> u64 {
        self.facts.keys
    }

    fn fpr(&self) -> f64 {
        if self.facts.keys == 0 {
            return 0.0;
        }
        let (keys, cells) = (self.facts.keys as f64, self.facts.cells as f64);
        let own = if self.facts.mutable { peeled::own_cell(keys, cells, self.facts.arity) } else { 1.0 };
        own * 0.5f64.powi(self.facts.check_bits as i32)
    }

    fn fill(&self) -> f64 {
        self.facts.keys as f64 / self.facts.cells.max(1) as f64
    }
}

impl Loadable for BloomierMap {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        Self::check_header(header, 0, 0)?;
        let Stored { value_bits, check_bits, mutable, arity, shard_bits: bits, keys, target_fpr } =
            Stored::read(header)?;
        let given = |bits: u32| Some(u64::from(bits));
        let facts = Facts::new(None, given(check_bits), given(value_bits), mutable, arity.into(), 0);
        let target_fpr = crate::sizing::check_fpr(target_fpr).map_err(Error::as_format)?;
        let facts = Facts { bits, keys, target_fpr, ..facts.map_err(Error::as_format)? };
        let table = memory(kind::SHARDS, 0, shards::table_words(bits)?)?;
        let (words, values, facts) = by_arity!(arity, facts.load(table.words()))?;
        let (cells, values) = (memory(kind::CELLS, 0, words)?, memory(kind::VALUES, 0, values)?);
        Ok(BloomierMap { cells, table, values, hasher, facts })
    }
}

#[cfg(test)]
mod tests;
