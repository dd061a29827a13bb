//! [`ScalableBloomFilter`]: a chain of filters that grows with its keys and keeps its rate.
//!
//! Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom filters", 2007. A key found in an earlier stage is not
//! added again. The number of new keys decides when to grow, never a scan of cells; a stage without space for a key
//! before it has reached its capacity is closed early.
//!
//! [`plan`] computes the capacity and rate of each stage.

pub mod plan;

use std::ops::Range;
use std::sync::Arc;

pub use self::plan::Plan;
use super::kinds::{Kind, Stage};
use super::stages::{Chain, Info, MAX_STAGES, WHOLE, chain_answers};
use crate::bloom::{BloomFilter, Layout};
use crate::container::{Container, Header};
use crate::error::{Error, Result};
use crate::growth::Growth;
use crate::key::KeyHasher;
use crate::registry::SCALABLE;
use crate::sizing::estimates::{StageKeys, reached_chain};
use crate::structure::cell_stats::{CellCounts, CellStats, SET};
use crate::structure::declaration::structure;
use crate::structure::{Addable, Declared, Filter, Loadable, Sections, batch};

/// Capacity of the first stage of a filter that is sized by the keys it grows to.
const INITIAL_CAPACITY: u64 = 10_000;

structure! {
    /// A Bloom filter that grows: a chain of filters whose rates add up to at most `fpr`, however many
    /// keys come.
    class ScalableBloomFilter;
    parameters {
        /// keys of the first stage.
        initial_capacity: "int" = 10000;
        /// bound on the rate of the whole.
        fpr: "float" = 0.01;
        *;
        /// the structure of every stage, by its name in the registry: one of kinds().
        kind: "str" = "bloom";
        /// factor between the capacities of successive stages.
        growth: "float" = 2.0;
        /// factor between their rates; the first stage has fpr * (1 - tightening).
        tightening: "float" = 0.5;
        /// of every stage of kind "bloom"; "auto" chooses for each.
        layout: "str" = "auto";
    }
    /// A key is stored once, in one stage, and cannot be removed: the stage that stores a key cannot be
    /// distinguished from one that has a false positive for it. DynamicCuckooFilter grows and removes.
    ///
    /// Every kind has a least rate (from 64-bit hashes, or the bits of a fingerprint). A stage whose share of fpr
    /// is lower gets the least rate, which fpr() includes and at_least_rate counts; the rate of the whole may then
    /// exceed fpr.
    ///
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError; FilterFull past 1024 stages. Cost: a lookup
    /// searches the stages, newest first; about log2(n / initial_capacity) of them.
    /// Source: Almeida, Baquero, Preguica, Hutchison, IPL 101(6), 2007; the rate lies between 1 - prod(1 - p_i)
    /// and the sum of all p_i, by at most 1 % of it above the former at fpr 0.1.
    ///
    /// >>> from fullbloom import ScalableBloomFilter
    /// >>> f = ScalableBloomFilter(100, fpr=0.001)
    /// >>> f.update(range(10_000))
    /// >>> f.stages, 9_999 in f
    /// (7, True)
    /// >>> ScalableBloomFilter(100, kind="cuckoo").stage_capacities
    /// [100]
    fields {
        /// Keys of the first stage.
        pub initial_capacity: u64 = |f| f.plan.initial_capacity, CAPACITY;
        /// Bound on the rate of the whole.
        fpr: f64 = |f| f.plan.fpr, FPR;
        /// Factor between the capacities of successive stages.
        pub growth: f64 = |f| f.plan.growth, GROWTH;
        /// Factor between the rates of successive stages.
        pub tightening: f64 = |f| f.plan.tightening, TIGHTENING;
        /// The structure of every stage, by its name in the registry.
        pub kind: &'static str = |f| f.plan.kind.row().name;
        /// The layout of every stage of kind "bloom", "auto" when each has its own; also for other kinds.
        pub layout: Option<&'static str> = |f| f.plan.kind.layout();
        /// Number of stages.
        pub stages: usize = |f| f.chain.stages.len();
        /// Number of stages with the least possible rate, which is above the planned one.
        pub at_least_rate: usize = |f| f.count_held();
    }
}

/// A filter without a fixed capacity.
pub struct ScalableBloomFilter {
    plan: Plan,
    chain: Chain<Stage>,
}

impl ScalableBloomFilter {
    /// An empty filter with its first stage.
    pub fn construct(
        initial_capacity: u64,
        fpr: f64,
        kind: &str,
        growth: f64,
        tightening: f64,
        layout: &str,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let plan = Plan { initial_capacity, fpr, growth, tightening, kind: Kind::new(kind, layout)? }.check()?;
        Ok(ScalableBloomFilter { plan, chain: Chain::new(plan.stage(0, 1.0, hasher)?) })
    }

    /// A filter of given stages of layout `blocked`, which follow the plan of `initial_capacity`, `fpr`, `growth` and
    /// `tightening`.
    pub fn of_blocked(
        (initial_capacity, fpr, growth, tightening): (u64, f64, f64, f64),
        stages: Vec<BloomFilter>,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let kind = Kind::new("bloom", Layout::Blocked.name())?;
        let plan = Plan { initial_capacity, fpr, growth, tightening, kind }.check()?;
        let mut stages = stages.into_iter().map(Stage::BloomFilter);
        let Some(first) = stages.next() else { return Err(Error::parameter("a filter has one stage at least")) };
        let mut chain = Chain::new(first);
        chain.hasher = hasher;
        stages.for_each(|stage| chain.open(stage));
        Ok(ScalableBloomFilter { plan, chain })
    }

    /// Of a filter that grew from [`INITIAL_CAPACITY`] to `capacity` keys.
    pub fn cell_bytes(capacity: u64, fpr: f64, kind: &str, growth: f64, tightening: f64, layout: &str) -> Result<u64> {
        let (initial_capacity, kind) = (INITIAL_CAPACITY, Kind::new(kind, layout)?);
        Plan { initial_capacity, fpr, growth, tightening, kind }.check()?.nbytes(capacity)
    }

    /// Bytes of a new filter, that is of its first stage.
    pub fn first_stage_bytes(
        initial_capacity: u64,
        fpr: f64,
        kind: &str,
        growth: f64,
        tightening: f64,
        layout: &str,
    ) -> Result<u64> {
        let plan = Plan { initial_capacity, fpr, growth, tightening, kind: Kind::new(kind, layout)? }.check()?;
        plan.stage_bytes(0, 1.0)
    }

    /// Keys of each stage, oldest first.
    pub fn stage_capacities(&self) -> Vec<u64> {
        self.chain.stages.iter().map(Filter::capacity).collect()
    }

    /// The class of the stages and, oldest first, everything worth knowing about each.
    pub fn stage_info(&self) -> (&'static str, Vec<Info>) {
        (self.plan.kind.row().class, self.chain.stages.iter().map(Stage::info).collect())
    }

    /// Stages above their planned rate.
    fn count_held(&self) -> usize {
        let rates = self.chain.stages.iter().map(Filter::target_fpr).enumerate();
        rates.filter(|(index, rate)| self.plan.is_held(*index, *rate)).count()
    }

    fn stats_of_stages(&self, fill: f64, stages: &[StageKeys]) -> CellStats {
        let (kind, members) = (self.plan.kind.stages(), stages.iter().map(|stage| stage.member).collect::<Vec<_>>());
        let estimated = Some(reached_chain(kind, stages).with_deviation());
        CellStats { fill, fpr: kind.fpr(&members), estimated, ..CellStats::default() }
    }

    /// The newest stage.
    fn newest(&mut self) -> Result<&mut Stage> {
        self.chain.stages.last_mut().ok_or_else(|| Error::Capacity("the filter has no stage".into()))
    }

    /// Opens another stage.
    fn grow(&mut self) -> Result<()> {
        let (index, before) = (self.chain.stages.len(), self.newest()?.target_fpr());
        if !self.chain.bound.is_open() {
            self.chain.check_room(self.plan.stage_bytes(index, before)?)?;
        }
        let stage = self.plan.stage(index, before, self.chain.hasher.fresh())?;
        self.chain.open(stage);
        Ok(())
    }

    /// True if chance may have filled the newest stage for a key: there are half as many keys as the stages before it
    /// hold. With fewer, keys share their places as chosen ones do; they would overflow the next stage too, and memory
    /// would double for every few of them.
    fn may_close(&self) -> bool {
        let before = &self.chain.stages[..self.chain.stages.len() - 1];
        let planned = before.iter().map(Filter::capacity).fold(0, u64::saturating_add);
        self.num_added().saturating_mul(2) >= planned
    }

    /// Keys that the newest stage still takes.
    fn room(&self) -> u64 {
        self.chain.stages.last().map_or(0, |last| last.capacity().saturating_sub(last.num_added()))
    }

    /// Adds at most as many keys as the newest stage still takes, so that no stage changes within a step and a batch
    /// leaves the cells that single adds leave. Returns how many were processed: all, or those before one for which the
    /// newest stage had no space after all.
    fn add_step(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<usize> {
        let mut seen = [0u8; batch::CHUNK];
        let seen = &mut seen[..hashes.len()];
        let full = self.chain.stages.len() - 1;
        find(&self.chain.stages[..full], hashes, seen);
        let mut unseen = [0u64; batch::CHUNK];
        let mut kept = 0;
        for (&hash, &seen) in hashes.iter().zip(seen.iter()) {
            unseen[kept] = hash;
            kept += usize::from(seen == 0);
        }
        let mut fresh = [0u8; batch::CHUNK];
        let done = self.newest()?.add_missing(&unseen[..kept], &mut fresh[..kept])?;
        let mut fresh = fresh[..done].iter();
        for (at, (new, &seen)) in new.iter_mut().zip(seen.iter()).enumerate() {
            *new = 0;
            if seen == 0 {
                let Some(&fresh) = fresh.next() else { return Ok(at) };
                *new = fresh;
            }
        }
        Ok(hashes.len())
    }
}

/// Marks the hashes that one of `stages` finds.
fn find(stages: &[Stage], hashes: &[u64], found: &mut [u8]) {
    found.fill(0);
    let mut stage_found = [0u8; batch::CHUNK];
    for stage in stages.iter().rev() {
        for (hashes, found) in hashes.chunks(batch::CHUNK).zip(found.chunks_mut(batch::CHUNK)) {
            let stage_found = &mut stage_found[..hashes.len()];
            stage.contains_hashes(hashes, stage_found);
            found.iter_mut().zip(stage_found).for_each(|(f, s)| *f |= *s);
        }
    }
}

impl Filter for ScalableBloomFilter {
    chain_answers!();

    fn contains_hash(&self, hash: u64) -> bool {
        // Newest first: it holds at least half of the keys when growth is 2.
        self.chain.stages.iter().rev().any(|stage| stage.contains_hash(hash))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        find(&self.chain.stages, hashes, found);
    }

    fn fpr(&self) -> f64 {
        let members: Vec<_> = self.chain.stages.iter().map(Filter::member).collect();
        self.plan.kind.stages().fpr(&members)
    }

    /// If the cells of all stages are bits of one section.
    fn count_steps(&self) -> Option<Vec<usize>> {
        self.chain.stages.iter().map(|stage| stage.law_of_bits().map(|_| 1)).collect()
    }

    fn count_words(&self, section: usize, words: Range<usize>, counts: &mut CellCounts) {
        if let Some(stage) = self.chain.stages.get(section) {
            let mut of_stage = CellCounts::default();
            stage.count_words(0, words, &mut of_stage);
            counts.add(section, of_stage.get(SET));
        }
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let (mut stages, mut used, mut all) = (Vec::new(), 0.0, 0.0);
        for (at, stage) in self.chain.stages.iter().enumerate() {
            let (keys, fill) = match stage.law_of_bits() {
                Some((law, bits)) => {
                    let fill = counts.get(at) as f64 / bits as f64;
                    (StageKeys::of_cells(stage.num_added() as f64, law.as_ref(), fill), fill)
                }
                None => (stage.stage_keys(), stage.fill()),
            };
            let nbytes = stage.nbytes() as f64;
            (used, all) = (used + fill * nbytes, all + nbytes);
            stages.push(keys);
        }
        self.stats_of_stages(used / all, &stages)
    }

    /// Including the keys that an earlier stage, or their own, found wrongly.
    fn estimate_count(&self) -> Option<(f64, f64)> {
        let stages: Vec<_> = self.chain.stages.iter().map(Stage::stage_keys).collect();
        Some(reached_chain(self.plan.kind.stages(), &stages).with_deviation())
    }

    fn container(&self) -> Container<'_> {
        let mut whole = Header::new(SCALABLE, 0, &self.chain.hasher);
        self.describe(&mut whole);
        self.plan.kind.describe(&mut whole);
        self.chain.container(&whole)
    }

    /// While it opens no stage.
    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        let Some((newest, before)) = self.chain.stages.split_last() else { return false };
        let sections: usize = before.iter().map(|stage| stage.container().sections.len()).sum();
        newest.writes(hashes, &mut |section, at| word(sections + section, at))
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(ScalableBloomFilter { chain: self.chain.try_clone()?, ..*self })
    }
}

impl Addable for ScalableBloomFilter {
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.chain.check_writable()?;
        if self.contains_hash(hash) {
            return Ok(false);
        }
        if self.room() == 0 {
            self.grow()?;
        }
        match self.newest()?.add_hash(hash) {
            Err(Error::Capacity(_)) if self.may_close() => {
                self.grow()?;
                self.newest()?.add_hash(hash)
            }
            added => added,
        }
    }

    fn add_hashes(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        self.chain.check_writable()?;
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
            let done = if room > 0 {
                self.add_step(hashes, fresh)?
            } else {
                // Full: known keys open no stage, the first unknown one does.
                self.contains_hashes(hashes, fresh);
                let known = fresh.iter().take_while(|&&found| found != 0).count();
                fresh[..known].fill(0);
                known
            };
            start += done;
            if done < step && (room == 0 || self.may_close()) {
                self.grow()?;
            } else if done < step {
                self.newest()?.add_hash(hashes[done])?;
            }
        }
        Ok(())
    }

    // Stages open in the order of keys, so one thread adds; contains uses several.

    fn is_read_only(&self) -> bool {
        self.chain.is_read_only()
    }

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        self.room() > 0 && !self.is_read_only()
    }

    /// Back to the first stage, empty.
    fn clear(&mut self) -> Result<()> {
        self.chain.clear()
    }
}

impl Loadable for ScalableBloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let whole = header.part(WHOLE);
        let Stored { initial_capacity, fpr, growth, tightening } = Stored::read(&whole)?;
        let plan = Plan { initial_capacity, fpr, growth, tightening, kind: Kind::restore(&whole)? };
        let plan = plan.check().map_err(Error::as_format)?;
        let shape = (plan.kind.row().id, Self::STORED + 1, MAX_STAGES);
        let chain = Chain::load(header, hasher, memory, shape, |before: &[Stage], stage| {
            plan.fits(before.len(), before.last().map_or(1.0, Filter::target_fpr), stage)
        })?;
        Ok(ScalableBloomFilter { plan, chain })
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
