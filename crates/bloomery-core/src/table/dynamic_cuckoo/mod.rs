//! [`DynamicCuckooFilter`]: a cuckoo filter that grows by stages and keeps removal and counts.
//!
//! Chen, Liao, Jin and Wu, "The dynamic cuckoo filter", 2017.
//!
//! All stages have one shape and one hash. So two keys with equal fingerprint and buckets in one
//! stage have them equal in every stage: the stages together are one multiset of fingerprints, and a
//! copy may be taken out of any of them. Were the stages of different sizes, two keys could be equal
//! in one and differ in another; removing the first where it only seems to lie would take the copy of
//! the second, and the second would be denied.
//!
//! A key goes to the first stage that has room: fewer keys than its capacity, and its stash free. If
//! none has, another is opened; when all that may be are open, stages take keys past their capacity,
//! in order, as long as they do. That depends on the stages alone, so that equal operations give equal
//! bytes, in batches of any size. A stage that holds as many copies of a key as its two buckets have
//! slots leaves the next copy to the stages after it.
//!
//! * [`plan`]: what all stages are made from; `placing`: which stage takes a fingerprint; `asking`:
//!   a batch stage by stage; `stored`: the file.

mod asking;
mod placing;
pub mod plan;
mod stored;

use self::asking::{ask_in_turn, look};
use self::placing::room;
use crate::container::Container;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::structure::batch::CHUNK;
use crate::structure::{Addable, Countable, Filter, Mergeable, Removable, Sizable, Value};
use crate::table::CuckooFilter;
use crate::table::cuckoo::places::Places;
pub use plan::Plan;

/// An approximate multiset with removal and without a fixed capacity.
pub struct DynamicCuckooFilter {
    plan: Plan,
    hasher: KeyHasher,
    places: Places,
    /// Oldest first; never empty.
    stages: Vec<CuckooFilter>,
    /// [`DynamicCuckooFilter::first_open`], kept at hand.
    active: usize,
    /// The warning past the capacity of all stages was given.
    warned: bool,
    /// The stage dropped last, empty: keys that come and go at the border of a stage would have one
    /// made for each of them, 0.9 ms at ten million keys.
    spare: Option<CuckooFilter>,
}

impl DynamicCuckooFilter {
    /// An empty filter with its first stage.
    pub fn new(plan: Plan, hasher: KeyHasher) -> Result<Self> {
        let first = plan.stage(hasher)?;
        Ok(Self::with_stages(plan, hasher, vec![first]))
    }

    /// Of stages of the plan's shape, at least one.
    fn with_stages(plan: Plan, hasher: KeyHasher, stages: Vec<CuckooFilter>) -> Self {
        let places = Places::new(plan.shape.buckets, plan.shape.fingerprint_bits);
        let mut filter = DynamicCuckooFilter { plan, hasher, places, stages, active: 0, warned: false, spare: None };
        filter.active = filter.first_open();
        filter.warned = filter.is_overfull();
        filter
    }

    /// What the stages are made from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The stages, oldest first.
    pub fn stages(&self) -> &[CuckooFilter] {
        &self.stages
    }

    /// True when all stages are open and the stash of each is taken: adds are refused until a key is
    /// removed.
    pub fn is_full(&self) -> bool {
        self.all_open() && self.active == self.stages.len()
    }

    fn all_open(&self) -> bool {
        self.stages.len() >= self.plan.max_stages as usize
    }

    fn is_overfull(&self) -> bool {
        self.num_added() > self.plan.capacity.saturating_mul(u64::from(self.plan.max_stages))
    }

    fn check_writable(&self) -> Result<()> {
        if self.is_read_only() { Err(Error::read_only()) } else { Ok(()) }
    }
}

impl Sizable for DynamicCuckooFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        Self::new(Plan::for_capacity(capacity, fpr, plan::DEFAULT_STAGES, 4, None)?, hasher)
    }

    /// Of the first stage.
    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        Ok(Plan::for_capacity(capacity, fpr, plan::DEFAULT_STAGES, 4, None)?.shape.words() * 8)
    }
}

impl Filter for DynamicCuckooFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        let spot = self.places.of(hash);
        self.stages.iter().rev().any(|stage| stage.holds(spot))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        if let [only] = &self.stages[..] {
            return only.contains_hashes(hashes, found);
        }
        for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK)) {
            let _ = ask_in_turn(self.stages.iter().rev(), hashes, found, look);
        }
    }

    /// Keys the present stages hold before the next is opened.
    fn capacity(&self) -> u64 {
        self.plan.capacity.saturating_mul(self.stages.len() as u64)
    }

    fn target_fpr(&self) -> f64 {
        self.plan.fpr
    }

    fn num_added(&self) -> u64 {
        self.stages.iter().map(Filter::num_added).sum()
    }

    fn fpr(&self) -> f64 {
        let all_deny: f64 = self.stages.iter().map(|stage| (-stage.fpr()).ln_1p()).sum();
        -all_deny.exp_m1()
    }

    /// Share of taken slots in the present stages, which have equally many.
    fn fill(&self) -> f64 {
        self.stages.iter().map(Filter::fill).sum::<f64>() / self.stages.len() as f64
    }

    /// With those of the spare.
    fn nbytes(&self) -> u64 {
        self.stages.iter().chain(&self.spare).map(Filter::nbytes).sum()
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let shape = &self.plan.shape;
        vec![
            ("stage_capacity", Value::Number(self.plan.capacity)),
            ("capacity", Value::Number(self.capacity())),
            ("target_fpr", Value::Real(self.plan.fpr)),
            ("stages", Value::Number(self.stages.len() as u64)),
            ("max_stages", Value::Number(u64::from(self.plan.max_stages))),
            ("num_added", Value::Number(self.num_added())),
            ("fpr", Value::Real(self.fpr())),
            ("fill", Value::Real(self.fill())),
            ("num_buckets", Value::Number(shape.buckets)),
            ("bucket_size", Value::Number(u64::from(shape.bucket_size))),
            ("fingerprint_bits", Value::Number(u64::from(shape.fingerprint_bits))),
            ("full", Value::Flag(self.is_full())),
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("mapped", Value::Flag(self.stages[0].memory.is_mapped())),
            ("nbytes", Value::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        stored::container(self)
    }

    fn try_clone(&self) -> Result<Self> {
        let stages = self.stages.iter().map(Filter::try_clone).collect::<Result<_>>()?;
        Ok(DynamicCuckooFilter { stages, spare: None, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.plan == other.plan
            && self.stages.len() == other.stages.len()
            && self.stages.iter().zip(&other.stages).all(|(a, b)| a.same_as(b))
    }
}

impl Addable for DynamicCuckooFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.check_writable()?;
        let spot = self.places.of(hash);
        let (at, new) = self.put(spot, hash)?;
        Ok(new && !self.stages.iter().enumerate().any(|(i, stage)| i != at && stage.holds(spot)))
    }

    fn add_hashes(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        self.check_writable()?;
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
        self.stages[0].memory.is_read_only()
    }

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        self.stages.get(self.active).is_some_and(|stage| room(stage) > 0) && !self.is_read_only()
    }

    fn newly_overfull(&mut self) -> bool {
        let newly = !self.warned && self.is_overfull();
        self.warned |= newly;
        newly
    }

    fn clear(&mut self) -> Result<()> {
        self.check_writable()?;
        self.stages.truncate(1);
        self.stages[0].clear()?;
        (self.active, self.warned, self.spare) = (0, false, None);
        Ok(())
    }
}

impl Removable for DynamicCuckooFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        self.check_writable()?;
        let spot = self.places.of(hash);
        let Some(stage) = self.stages.iter_mut().rev().find(|stage| stage.holds(spot)) else { return Ok(false) };
        let was_there = stage.remove_hash(hash)?;
        self.settle();
        Ok(was_there)
    }

    fn remove_hashes(&mut self, hashes: &[u64], mut removed: Option<&mut [u8]>) -> Result<()> {
        self.check_writable()?;
        let mut scratch = [0u8; CHUNK];
        for (i, hashes) in hashes.chunks(CHUNK).enumerate() {
            let removed = match removed.as_deref_mut() {
                Some(removed) => &mut removed[i * CHUNK..][..hashes.len()],
                None => &mut scratch[..hashes.len()],
            };
            // A stage is asked in the order of keys, and no other one answers for it: as one by one.
            ask_in_turn(self.stages.iter_mut().rev(), hashes, removed, |stage, hashes, removed| {
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
        self.stages.iter().map(|stage| stage.copies(spot)).sum()
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        let mut some = [0u64; CHUNK];
        for (hashes, counts) in hashes.chunks(CHUNK).zip(counts.chunks_mut(CHUNK)) {
            counts.fill(0);
            for stage in &self.stages {
                stage.count_hashes(hashes, &mut some[..hashes.len()]);
                counts.iter_mut().zip(&some).for_each(|(count, some)| *count += some);
            }
        }
    }
}

impl Mergeable for DynamicCuckooFilter {
    /// Hash and shape must be the same; capacity and number of stages need not.
    fn check_compatible(&self, other: &Self) -> Result<()> {
        self.stages[0].check_compatible(&other.stages[0])
    }

    /// The union of two multisets: every fingerprint of `other` is stored again, as its bucket says
    /// where it may lie. `Error::Capacity` when they do not all fit.
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        self.check_writable()?;
        *self = self.merged(other)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
