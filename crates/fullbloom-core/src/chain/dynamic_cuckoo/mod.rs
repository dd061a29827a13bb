//! [`DynamicCuckooFilter`]: a cuckoo filter that grows by stages and keeps removal and counts.
//!
//! Chen, Liao, Jin and Wu, "The dynamic cuckoo filter", 2017.
//!
//! All stages have one shape and one hash. So two keys with equal fingerprint and buckets in one
//! stage have them equal in every stage: the stages together are one multiset of fingerprints, and a
//! copy may be taken out of any of them. Were the stages of different sizes, two keys could be equal
//! in one and differ in another; removing the first where it only seems to lie would take the copy of
//! the second, and the second would be missed.
//!
//! A key goes to the first stage with free space: fewer keys than its capacity. If none has, another is
//! opened; when all that may be are open, stages take keys past their capacity, in order, as long as they
//! do. That depends on the stages alone, so that equal operations give equal bytes, in batches of any
//! size. A stage that holds as many copies of a key as its two buckets have slots, or no slot that 500
//! moves can free, leaves the key to the stages after it.
//!
//! Keys chosen to share buckets overflow any stage. So a stage is added to s of capacity c only with
//! n >= (s - 1) c / 2 keys: memory stays below that of twice the keys and two stages. Chance closes two stages of
//! fewer keys with probability below 2e-17, for any capacity and bucket size: 2 (b k + 1) + 1 of at most c / 2 keys
//! would have to lie in some k of B buckets, C(B, k) C(n, m) (k / B)^(2 m) summed over k, with m of them.
//!
//! * [`plan`]: what all stages are made from; `placing`: which stage takes a fingerprint.

mod placing;
pub mod plan;

pub use self::plan::Plan;
use std::sync::Arc;

use self::plan::{check_stages, room};
use super::stages::{Chain, Info, WHOLE, chain_answers};
use super::stages::{ask_in_turn, look};
use crate::container::{Container, Header};
use crate::error::{Error, Result};
use crate::growth::Growth;
use crate::key::KeyHasher;
use crate::registry::{CUCKOO, DYNAMIC_CUCKOO};
use crate::sizing::chain::{Member, Stages};
use crate::sizing::check_fpr;
use crate::sizing::fingerprints::cuckoo_buckets;
use crate::structure::batch::CHUNK;
use crate::structure::declaration::{narrow, structure};
use crate::structure::{
    Addable, CellCounts, CellStats, Countable, Declared, Filter, Loadable, Mergeable, Removable, Sections,
};
use crate::table::cuckoo::places::Places;
use crate::table::{CuckooFilter, CuckooShape};

structure! {
    /// A cuckoo filter that grows: stages of one shape, opened as keys come, with removal and counts.
    class DynamicCuckooFilter;
    parameters {
        /// number of keys of one stage, repetitions included; the attribute is that of the stages in use.
        capacity: "int";
        /// bound on the rate of the whole with max_stages full stages.
        fpr: "float" = 0.01;
        *;
        /// 1 to 1024; four times as many take two more bits per key.
        max_stages: "int" = 16;
        /// as for CuckooFilter.
        bucket_size: "int" = 4;
        /// as for CuckooFilter; if given, it determines the rate in place of fpr.
        fingerprint_bits: "int | None" = None;
    }
    /// Every add stores one more fingerprint in the first stage with free space, so that removal is exact in
    /// any order: a copy may be removed from any stage. Removal drops the newest stages as they become
    /// empty (the memory of one is kept for the next); compact() moves keys together. Never misses a key that
    /// was added, unless keys were removed that never were. Warns CapacityWarning past capacity * max_stages keys; raises FilterFull when no
    /// stage has space for the key, and then nothing has changed. A stage holds 2 * bucket_size copies of a key:
    /// check `in` first to store each key once. Copies, and keys chosen to share buckets, open a stage only while
    /// the stages stay half full, and are refused after that; with secret=, nobody can choose such keys.
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError; opening a stage allocates it.
    /// Cost: 14.7 and 17.9 bits per key at 1 and 0.1 % with 16 stages, the last one partly filled; a lookup of
    /// an absent key searches every stage, at about 12 ns each in batches.
    /// Source: Chen, Liao, Jin, Wu, ICNP 2017; 1 - (1 - 1/(2^f - 1))^(2 b load stages).
    ///
    /// >>> from fullbloom import DynamicCuckooFilter
    /// >>> online = DynamicCuckooFilter(1000, fpr=0.001)
    /// >>> online.update(range(2500))
    /// >>> online.stages, 2499 in online
    /// (3, True)
    /// >>> online.discard_many(range(1000, 2500)).count(True), online.stages
    /// (1500, 1)
    fields {
        /// Keys of one stage.
        stage_capacity: u64 = |f| f.plan.capacity, CAPACITY;
        /// Bound on the rate of the whole.
        fpr: f64 = |f| f.plan.fpr, FPR;
        /// Number of stages.
        pub stages: usize = |f| f.chain.stages.len();
        /// Largest number of stages.
        pub max_stages: u32 = |f| f.plan.max_stages, MAX_STAGES;
        /// Buckets of a stage.
        pub num_buckets: u64 = |f| f.plan.shape.buckets, NUM_BUCKETS;
        /// Fingerprints per bucket.
        pub bucket_size: u32 = |f| f.plan.shape.bucket_size, BUCKET_SIZE;
        /// Bits of a fingerprint.
        pub fingerprint_bits: u32 = |f| f.plan.shape.fingerprint_bits, FINGERPRINT_BITS;
        /// False: buckets are never stored sorted.
        semi_sort: bool = |f| f.plan.shape.semi_sort, SEMI_SORT;
        /// True when adds are refused until a key is removed.
        pub full: bool = |f| f.is_full();
        /// True when the cells are in a mapped file.
        pub mapped: bool = |f| f.chain.stages[0].memory.is_mapped();
    }
}

/// An approximate multiset with removal and without a fixed capacity.
pub struct DynamicCuckooFilter {
    plan: Plan,
    chain: Chain<CuckooFilter>,
    places: Places,
    /// [`DynamicCuckooFilter::first_open`], cached.
    active: usize,
    /// The warning past the capacity of all stages was given.
    warned: bool,
}

impl DynamicCuckooFilter {
    /// An empty filter with its first stage.
    pub fn construct(
        capacity: u64,
        fpr: f64,
        max_stages: u64,
        bucket_size: u64,
        fingerprint_bits: Option<u64>,
        hasher: KeyHasher,
    ) -> Result<Self> {
        Self::new(
            Plan::for_capacity(capacity, fpr, max_stages, narrow(bucket_size), fingerprint_bits.map(narrow))?,
            hasher,
        )
    }

    /// Bytes of the first stage.
    pub fn cell_bytes(
        capacity: u64,
        fpr: f64,
        max_stages: u64,
        bucket_size: u64,
        fingerprint_bits: Option<u64>,
    ) -> Result<u64> {
        let bits = fingerprint_bits.map(narrow);
        Ok(Plan::for_capacity(capacity, fpr, max_stages, narrow(bucket_size), bits)?.shape.words() * 8)
    }

    /// An empty filter of stages as planned.
    pub fn new(plan: Plan, hasher: KeyHasher) -> Result<Self> {
        Ok(Self::with_stages(plan, Chain::new(plan.stage(hasher)?)))
    }

    /// Of stages of the plan's shape.
    fn with_stages(plan: Plan, chain: Chain<CuckooFilter>) -> Self {
        let places = Places::new(plan.shape.buckets, plan.shape.fingerprint_bits);
        let mut filter = DynamicCuckooFilter { plan, chain, places, active: 0, warned: false };
        filter.active = filter.first_open();
        filter.warned = filter.is_overfull();
        filter
    }

    /// Keys of each stage, oldest first.
    pub fn stage_capacities(&self) -> Vec<u64> {
        self.chain.stages.iter().map(Filter::capacity).collect()
    }

    /// The class of the stages and, oldest first, everything worth knowing about each.
    pub fn stage_info(&self) -> (&'static str, Vec<Info>) {
        (CuckooFilter::CLASS, self.chain.stages.iter().map(Declared::info).collect())
    }

    /// True if all stages are open and the stash of each is occupied: adds are refused until a key is removed.
    pub fn is_full(&self) -> bool {
        self.all_open() && self.active == self.chain.stages.len()
    }

    fn all_open(&self) -> bool {
        self.chain.stages.len() >= self.plan.max_stages as usize
    }

    fn is_overfull(&self) -> bool {
        self.num_added() > self.plan.capacity.saturating_mul(u64::from(self.plan.max_stages))
    }
}

impl Filter for DynamicCuckooFilter {
    chain_answers!();

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        let spot = self.places.of(hash);
        self.chain.stages.iter().rev().any(|stage| stage.holds(spot))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        if let [only] = &self.chain.stages[..] {
            return only.contains_hashes(hashes, found);
        }
        for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK)) {
            let _ = ask_in_turn(self.chain.stages.iter().rev(), hashes, found, look);
        }
    }

    fn fpr(&self) -> f64 {
        let members: Vec<_> = self.chain.stages.iter().map(|stage| Member::of_rate(stage.fpr())).collect();
        Stages::Independent.fpr(&members)
    }

    /// The stages need no count.
    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![0; self.chain.stages.len()])
    }

    fn stats_of(&self, _: &CellCounts) -> CellStats {
        let (mut used, mut all, mut members) = (0.0, 0.0, Vec::new());
        for stage in &self.chain.stages {
            let (stats, nbytes) = (stage.cell_stats(), stage.nbytes() as f64);
            (used, all) = (used + stats.fill * nbytes, all + nbytes);
            members.push(Member::of_rate(stats.fpr));
        }
        CellStats { fill: used / all, fpr: Stages::Independent.fpr(&members), ..CellStats::default() }
    }

    fn fpr_by_count(&self) -> Option<f64> {
        Some(self.stats_of(&CellCounts::default()).fpr)
    }

    fn container(&self) -> Container<'_> {
        let mut whole = Header::new(DYNAMIC_CUCKOO, 0, &self.chain.hasher);
        self.describe(&mut whole);
        self.chain.container(&whole)
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(DynamicCuckooFilter { chain: self.chain.try_clone()?, ..*self })
    }
}

impl Addable for DynamicCuckooFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.chain.check_writable()?;
        let spot = self.places.of(hash);
        let (at, new) = self.put(spot, hash)?;
        Ok(new && !self.chain.stages.iter().enumerate().any(|(i, stage)| i != at && stage.holds(spot)))
    }

    fn add_hashes(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        self.chain.check_writable()?;
        let mut start = 0;
        while start < hashes.len() {
            let end = hashes.len().min(start + CHUNK);
            let new = new.as_deref_mut().map(|new| &mut new[start..end]);
            start += self.add_step(&hashes[start..end], new)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn is_read_only(&self) -> bool {
        self.chain.is_read_only()
    }

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        self.chain.stages.get(self.active).is_some_and(|stage| room(stage) > 0) && !self.is_read_only()
    }

    fn newly_overfull(&mut self) -> bool {
        let newly = !self.warned && self.is_overfull();
        self.warned |= newly;
        newly
    }

    fn clear(&mut self) -> Result<()> {
        self.chain.clear()?;
        (self.active, self.warned) = (0, false);
        Ok(())
    }
}

impl Removable for DynamicCuckooFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        self.chain.check_writable()?;
        let spot = self.places.of(hash);
        let Some(stage) = self.chain.stages.iter_mut().rev().find(|stage| stage.holds(spot)) else { return Ok(false) };
        let was_there = stage.remove_hash(hash)?;
        self.settle();
        Ok(was_there)
    }

    fn remove_hashes(&mut self, hashes: &[u64], mut removed: Option<&mut [u8]>) -> Result<()> {
        self.chain.check_writable()?;
        let mut scratch = [0u8; CHUNK];
        for (i, hashes) in hashes.chunks(CHUNK).enumerate() {
            let removed = match removed.as_deref_mut() {
                Some(removed) => &mut removed[i * CHUNK..][..hashes.len()],
                None => &mut scratch[..hashes.len()],
            };
            // Each key is handled by one stage, in the order of keys: as one by one.
            ask_in_turn(self.chain.stages.iter_mut().rev(), hashes, removed, |stage, hashes, removed| {
                stage.remove_hashes(hashes, Some(removed))
            })?;
        }
        self.settle();
        Ok(())
    }
}

impl Countable for DynamicCuckooFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        let spot = self.places.of(hash);
        self.chain.stages.iter().map(|stage| stage.copies(spot)).sum()
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        let mut some = [0u64; CHUNK];
        for (hashes, counts) in hashes.chunks(CHUNK).zip(counts.chunks_mut(CHUNK)) {
            counts.fill(0);
            for stage in &self.chain.stages {
                stage.count_hashes(hashes, &mut some[..hashes.len()]);
                counts.iter_mut().zip(&some).for_each(|(count, some)| *count += some);
            }
        }
    }
}

impl Mergeable for DynamicCuckooFilter {
    /// Hash and shape must be the same; capacity and number of stages need not.
    fn check_compatible(&self, other: &Self) -> Result<()> {
        self.chain.stages[0].check_compatible(&other.chain.stages[0])
    }

    /// The union of two multisets: stores every fingerprint of `other`, at the places that follow from its bucket.
    /// `Error::Capacity` if they do not all fit.
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        self.chain.check_writable()?;
        *self = self.merge_with(other)?;
        Ok(())
    }
}

impl Loadable for DynamicCuckooFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let stored = Stored::read(&header.part(WHOLE))?;
        let Stored { stage_capacity: capacity, fpr, max_stages, num_buckets: buckets, .. } = stored;
        let shape = CuckooShape {
            buckets,
            bucket_size: stored.bucket_size,
            fingerprint_bits: stored.fingerprint_bits,
            semi_sort: stored.semi_sort,
        };
        let checked = check_fpr(fpr).and(check_stages(max_stages.into())).and(shape.check());
        let mut plan = Plan { capacity, fpr, max_stages, shape: checked.map_err(Error::as_format)?, stage_fpr: fpr };
        // If tables were far larger than their keys need, a few keys would open one after the other.
        if buckets / 2 > cuckoo_buckets(capacity.max(1), stored.bucket_size, stored.fingerprint_bits) {
            return Err(Error::format("the file's stages are larger than their capacity requires; it is damaged"));
        }
        let shape = (CUCKOO, Self::STORED, plan.max_stages);
        let chain = Chain::load(header, hasher, memory, shape, |before: &[CuckooFilter], stage| {
            // The rate of a stage is stored with the first one.
            let rate = before.first().unwrap_or(stage).target_fpr();
            *stage.shape() == plan.shape && stage.capacity() == plan.capacity && stage.target_fpr() == rate
        })?;
        plan.stage_fpr = chain.stages[0].target_fpr();
        Ok(Self::with_stages(plan, chain))
    }

    fn check_cells(&self) -> Result<()> {
        self.chain.check_cells()
    }

    fn bound(&mut self, max_bytes: u64) {
        self.chain.bound.most = max_bytes;
    }

    fn share(&mut self, growth: Arc<dyn Growth>) {
        self.chain.bound.share(growth);
    }
}

#[cfg(test)]
mod tests;
