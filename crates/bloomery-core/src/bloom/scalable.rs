//! [`ScalableBloomFilter`]: a chain of filters that grows with its keys and keeps its rate.
//!
//! Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom filters", 2007. Stage i has capacity
//! n0 * s^i and rate p (1 - r) r^i, so that the sum of all rates stays below p however many
//! stages there are. A key found in an earlier stage is not added again. Growth is decided by
//! counting the keys that were new, never by scanning bits.

use super::filter::BloomFilter;
use super::shape::{Layout, Shape};
use super::stored;
use crate::batch;
use crate::cells::Memory;
use crate::container::{Container, Header, tag};
use crate::error::{Error, Result};
use crate::filter::{Addable, Estimating, Fact, Filter, Loadable, Sizable};
use crate::key::KeyHasher;
use crate::registry::SCALABLE;
use crate::sizing::{LEAST_FPR, check_fpr, shown};

/// More stages than doubling can ever reach; with growth 1 a sign of a wrong initial capacity.
const MAX_STAGES: usize = 1024;

/// What every new stage is made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Keys of the first stage.
    pub initial_capacity: u64,
    /// Bound on the rate of the whole.
    pub fpr: f64,
    /// s, at least 1.
    pub growth: f64,
    /// r, between 0 and 1.
    pub tightening: f64,
    /// Layout of every stage; `None` chooses anew for each stage's rate.
    pub layout: Option<Layout>,
}

impl Plan {
    fn check(&self) -> Result<()> {
        check_fpr(self.fpr)?;
        if self.initial_capacity == 0 {
            return Err(Error::parameter("initial_capacity must be at least 1, got 0"));
        }
        if !(self.growth >= 1.0 && self.growth <= 1024.0) {
            return Err(Error::Parameter(format!("growth must be between 1 and 1024, got {}", self.growth)));
        }
        if !(self.tightening > 0.0 && self.tightening < 1.0) {
            return Err(Error::Parameter(format!(
                "tightening must be between 0 and 1 (exclusive), got {}",
                self.tightening
            )));
        }
        let first = self.fpr * (1.0 - self.tightening);
        if first < LEAST_FPR {
            return Err(Error::Parameter(format!(
                "fpr must be at least {:.1e} with tightening {} (keys are 64-bit hashes), got {}",
                LEAST_FPR / (1.0 - self.tightening),
                self.tightening,
                shown(self.fpr)
            )));
        }
        Ok(())
    }

    /// Capacity and rate of stage `index`.
    fn rung(&self, index: usize) -> (u64, f64) {
        let capacity = (self.initial_capacity as f64 * self.growth.powi(index as i32)).min(1e18) as u64;
        (capacity, self.fpr * (1.0 - self.tightening) * self.tightening.powi(index as i32))
    }

    fn stage(&self, index: usize, hasher: KeyHasher) -> Result<BloomFilter> {
        if index >= MAX_STAGES {
            return Err(Error::Capacity(format!(
                "the filter has {MAX_STAGES} stages; build one with a larger initial_capacity or growth"
            )));
        }
        let (capacity, fpr) = self.rung(index);
        let shape = match self.layout {
            Some(layout) => Shape::for_capacity(layout, None, capacity, fpr),
            None => Shape::auto(capacity, fpr),
        }?;
        BloomFilter::new(shape, capacity, fpr, hasher, false)
    }
}

/// A Bloom filter without a fixed capacity.
pub struct ScalableBloomFilter {
    plan: Plan,
    hasher: KeyHasher,
    stages: Vec<BloomFilter>,
}

impl ScalableBloomFilter {
    /// An empty filter with its first stage.
    pub fn new(plan: Plan, hasher: KeyHasher) -> Result<Self> {
        plan.check()?;
        let first = plan.stage(0, hasher)?;
        Ok(ScalableBloomFilter { plan, hasher, stages: vec![first] })
    }

    /// What new stages are made from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The stages, oldest first.
    pub fn stages(&self) -> &[BloomFilter] {
        &self.stages
    }

    /// True when the stages are mapped read-only.
    #[inline(always)]
    pub fn is_read_only(&self) -> bool {
        self.stages.last().is_some_and(BloomFilter::is_read_only)
    }

    /// The newest stage, opening another when it is full.
    fn open_stage(&mut self) -> Result<&mut BloomFilter> {
        let full = self.stages.last().is_none_or(|last| last.num_added() >= last.capacity());
        if full {
            self.stages.push(self.plan.stage(self.stages.len(), self.hasher)?);
        }
        self.stages.last_mut().ok_or_else(|| Error::Capacity("the filter has no stage".into()))
    }

    fn in_full_stages(&self, hashes: &[u64], found: &mut [u8]) {
        found.fill(0);
        let mut stage_found = [0u8; batch::CHUNK];
        let full = &self.stages[..self.stages.len() - 1];
        for stage in full.iter().rev() {
            for (hashes, found) in hashes.chunks(batch::CHUNK).zip(found.chunks_mut(batch::CHUNK)) {
                let stage_found = &mut stage_found[..hashes.len()];
                stage.contains_hashes(hashes, stage_found);
                found.iter_mut().zip(stage_found).for_each(|(f, s)| *f |= *s);
            }
        }
    }

    /// Keys the newest stage still takes.
    fn room(&self) -> u64 {
        self.stages.last().map_or(0, |last| last.capacity().saturating_sub(last.num_added()))
    }

    /// Adds at most as many keys as the newest stage still takes, so that no stage changes
    /// within a step and a batch leaves the bits that single adds leave.
    fn add_step(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<()> {
        let mut seen = [0u8; batch::CHUNK];
        let seen = &mut seen[..hashes.len()];
        self.in_full_stages(hashes, seen);
        let mut unseen = [0u64; batch::CHUNK];
        let mut kept = 0;
        for (&hash, &seen) in hashes.iter().zip(seen.iter()) {
            unseen[kept] = hash;
            kept += usize::from(seen == 0);
        }
        let mut fresh = [0u8; batch::CHUNK];
        self.open_stage()?.add_hashes(&unseen[..kept], Some(&mut fresh[..kept]))?;
        let mut fresh = fresh.iter();
        for (new, &seen) in new.iter_mut().zip(seen.iter()) {
            *new = if seen == 0 { fresh.next().copied().unwrap_or(0) } else { 0 };
        }
        Ok(())
    }
}

impl Sizable for ScalableBloomFilter {
    /// Of a filter that grew from 10,000 keys to `capacity` by doubling.
    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        let plan = Plan { initial_capacity: 10_000, fpr, growth: 2.0, tightening: 0.5, layout: None };
        plan.check()?;
        let (mut held, mut bytes) = (0u64, 0u64);
        for index in 0..MAX_STAGES {
            let (stage, fpr) = plan.rung(index);
            held = held.saturating_add(stage);
            bytes = bytes.saturating_add(BloomFilter::nbytes_for(stage, fpr)?);
            if held >= capacity {
                break;
            }
        }
        Ok(bytes)
    }
}

impl Estimating for ScalableBloomFilter {
    /// Sum of the stages' estimates, with the deviation of independent terms.
    fn approx_count(&self) -> (f64, f64) {
        let (sum, variance) = self.stages.iter().fold((0.0, 0.0), |(sum, variance), stage| {
            let (items, sd) = stage.approx_count();
            (sum + items, variance + sd * sd)
        });
        (sum, variance.sqrt())
    }
}

impl Filter for ScalableBloomFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn contains_hash(&self, hash: u64) -> bool {
        // Newest first: it holds at least half of the keys when growth is 2.
        self.stages.iter().rev().any(|stage| stage.contains_hash(hash))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.in_full_stages(hashes, found);
        let mut last_found = [0u8; batch::CHUNK];
        if let Some(last) = self.stages.last() {
            for (hashes, found) in hashes.chunks(batch::CHUNK).zip(found.chunks_mut(batch::CHUNK)) {
                let last_found = &mut last_found[..hashes.len()];
                last.contains_hashes(hashes, last_found);
                found.iter_mut().zip(last_found).for_each(|(f, s)| *f |= *s);
            }
        }
    }

    /// Keys the present stages hold before the next is opened.
    fn capacity(&self) -> u64 {
        self.stages.iter().map(BloomFilter::capacity).fold(0, u64::saturating_add)
    }

    fn target_fpr(&self) -> f64 {
        self.plan.fpr
    }

    fn num_added(&self) -> u64 {
        self.stages.iter().map(BloomFilter::num_added).sum()
    }

    fn fpr(&self) -> f64 {
        let all_deny: f64 = self.stages.iter().map(|stage| (-stage.fpr()).ln_1p()).sum();
        -all_deny.exp_m1()
    }

    fn fill(&self) -> f64 {
        let bits: u64 = self.stages.iter().map(|stage| stage.shape().num_bits).sum();
        self.stages.iter().map(BloomFilter::ones).sum::<u64>() as f64 / bits as f64
    }

    fn nbytes(&self) -> u64 {
        self.stages.iter().map(Filter::nbytes).sum()
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        let (approx, sd) = self.approx_count();
        vec![
            ("initial_capacity", Fact::Number(self.plan.initial_capacity)),
            ("capacity", Fact::Number(self.capacity())),
            ("target_fpr", Fact::Real(self.plan.fpr)),
            ("growth", Fact::Real(self.plan.growth)),
            ("tightening", Fact::Real(self.plan.tightening)),
            ("stages", Fact::Number(self.stages.len() as u64)),
            ("num_added", Fact::Number(self.num_added())),
            ("approx_count", Fact::Real(approx)),
            ("approx_count_sd", Fact::Real(sd)),
            ("fpr", Fact::Real(self.fpr())),
            ("fill", Fact::Real(self.fill())),
            ("layout", Fact::Text(self.plan.layout.map_or("auto", Layout::name).into())),
            ("seed", Fact::Number(self.hasher.seed())),
            ("keyed", Fact::Flag(self.hasher.is_keyed())),
            ("nbytes", Fact::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(SCALABLE, 0, &self.hasher);
        // Parameters of the whole stand at index 0xffff, those of stage i at index i.
        header.set(tag::CAPACITY, WHOLE, self.plan.initial_capacity);
        header.set_f64(tag::FPR, WHOLE, self.plan.fpr);
        header.set_f64(tag::GROWTH, WHOLE, self.plan.growth);
        header.set_f64(tag::TIGHTENING, WHOLE, self.plan.tightening);
        header.set(tag::LAYOUT, WHOLE, self.plan.layout.map_or(0, |layout| layout as u64));
        let mut sections = Vec::new();
        for (i, stage) in self.stages.iter().enumerate() {
            stored::describe(stage, &mut header, i as u16);
            sections.push(stored::section(stage, i as u32));
        }
        Container { header, sections }
    }

    fn try_clone(&self) -> Result<Self> {
        let stages = self.stages.iter().map(Filter::try_clone).collect::<Result<_>>()?;
        Ok(ScalableBloomFilter { plan: self.plan, hasher: self.hasher, stages })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.plan == other.plan
            && self.stages.len() == other.stages.len()
            && self.stages.iter().zip(&other.stages).all(|(a, b)| a.same_as(b))
    }
}

const WHOLE: u16 = 0xffff;
/// Parameters of the whole.
const WHOLE_PARAMS: usize = 5;

impl Addable for ScalableBloomFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        if self.contains_hash(hash) {
            return Ok(false);
        }
        self.open_stage()?.add_hash(hash)
    }

    fn add_hashes(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        let mut scratch = [0u8; batch::CHUNK];
        let mut start = 0;
        while start < hashes.len() {
            let room = self.room();
            let limit = batch::CHUNK.min(hashes.len() - start);
            let step = if room == 0 { limit } else { usize::try_from(room).unwrap_or(usize::MAX).min(limit) };
            let fresh = match new.as_deref_mut() {
                Some(new) => &mut new[start..start + step],
                None => &mut scratch[..step],
            };
            let hashes = &hashes[start..start + step];
            if room > 0 {
                self.add_step(hashes, fresh)?;
                start += step;
                continue;
            }
            // Full: known keys open no stage, the first unknown one does.
            self.contains_hashes(hashes, fresh);
            let known = fresh.iter().take_while(|&&found| found != 0).count();
            fresh[..known].fill(0);
            start += known;
            if known < step {
                self.open_stage()?;
            }
        }
        Ok(())
    }

    // Stages open in the order of keys, so one thread adds; contains uses several.

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        self.stages.last().is_some_and(|last| last.num_added() < last.capacity()) && !self.is_read_only()
    }

    fn newly_overfull(&mut self) -> bool {
        false
    }

    fn clear(&mut self) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::ReadOnly("the filter is mapped read-only; take a copy() and clear that".into()));
        }
        let first = self.plan.stage(0, self.hasher)?;
        self.stages = vec![first];
        Ok(())
    }
}

impl Loadable for ScalableBloomFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        let layout = match header.get(tag::LAYOUT, WHOLE)? {
            0 => None,
            id => Some(Layout::from_id(id).ok_or_else(|| Error::format("the file names an unknown layout"))?),
        };
        let plan = Plan {
            initial_capacity: header.get(tag::CAPACITY, WHOLE)?,
            fpr: header.get_f64(tag::FPR, WHOLE)?,
            growth: header.get_f64(tag::GROWTH, WHOLE)?,
            tightening: header.get_f64(tag::TIGHTENING, WHOLE)?,
            layout,
        };
        plan.check().map_err(Error::as_format)?;
        let mut stages = Vec::new();
        for index in 0..MAX_STAGES as u16 {
            if header.get(tag::NUM_BITS, index).is_err() {
                break;
            }
            stages.push(stored::restore(header, index, hasher, memory)?);
        }
        if header.params.len() != WHOLE_PARAMS + stages.len() * stored::PARAMS {
            return Err(Error::format("the file holds parameters that belong to no stage; it is damaged"));
        }
        if stages.is_empty() {
            return Err(Error::format("the file holds no stage of its scalable filter"));
        }
        Ok(ScalableBloomFilter { plan, hasher, stages })
    }
}
