//! [`Scalable`]: a chain of filters that grows with its keys and keeps its rate, over any structure
//! that is a [`Stage`].
//!
//! Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom filters", 2007. Stage i has capacity
//! n0 * s^i and rate p (1 - r) r^i, so that the sum of all rates stays below p however many
//! stages there are. A key found in an earlier stage is not added again. Growth is decided by
//! counting the keys that were new, never by scanning cells.
//!
//! In a file, parameters and sections of stage i stand at index i, parameters of the whole at index
//! 0xffff.

use crate::batch;
use crate::cells::Memory;
use crate::container::{Container, Header, Section, tag};
use crate::error::{Error, Result};
use crate::filter::{Addable, Estimating, Fact, Filter, Loadable, Sizable};
use crate::key::KeyHasher;
use crate::sizing::{LEAST_FPR, check_fpr, shown};

/// More stages than doubling can ever reach; with growth 1 a sign of a wrong initial capacity.
const MAX_STAGES: usize = 1024;
/// Index of the parameters of the whole.
const WHOLE: u16 = 0xffff;
/// Parameters of the whole, beside those of the stages' choice.
const WHOLE_PARAMS: usize = 4;

/// A structure of fixed capacity that a growing filter can be a chain of.
pub trait Stage: Addable {
    /// What all stages of a filter have in common beside the hash: a layout, a mode.
    type Choice: Copy + Default + PartialEq + Send + Sync;
    /// Registry number of the growing filter of such stages.
    const VARIANT: u16;
    /// Parameters that [`Stage::describe`] writes.
    const PARAMS: usize;
    /// A tag that [`Stage::describe`] writes for every stage.
    const MARK: u16;
    /// Parameters that [`Stage::describe_choice`] writes.
    const CHOICE_PARAMS: usize;

    /// An empty stage for `capacity` keys at rate `fpr`.
    fn fresh(choice: Self::Choice, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self>;
    /// Bytes of cells of such a stage; nothing allocated.
    fn nbytes_of(choice: Self::Choice, capacity: u64, fpr: f64) -> Result<u64>;
    /// Writes the parameters of this stage under `index`.
    fn describe(&self, header: &mut Header, index: u16);
    /// The cells of this stage under `index`.
    fn sections(&self, index: u32) -> Vec<Section<'_>>;
    /// Reads back what [`Stage::describe`] wrote, checked as a constructor would.
    fn restore(
        header: &Header,
        index: u16,
        hasher: KeyHasher,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
    ) -> Result<Self>;
    /// Writes the choice under `index`.
    fn describe_choice(choice: Self::Choice, header: &mut Header, index: u16);
    /// Reads back what [`Stage::describe_choice`] wrote.
    fn restore_choice(header: &Header, index: u16) -> Result<Self::Choice>;
    /// The choice as people see it.
    fn choice_facts(choice: Self::Choice) -> Vec<(&'static str, Fact)>;
    /// What the cells of all stages say about the number of keys, where they say anything.
    fn estimate_facts(stages: &[Self]) -> Vec<(&'static str, Fact)>;
    /// Set cells, counted, and all cells.
    fn set_cells(&self) -> (u64, u64);
    /// True when nothing can be added.
    fn is_read_only(&self) -> bool;
}

/// Sum of the stages' estimates, with the deviation of independent terms.
pub fn approx_count<S: Estimating>(stages: &[S]) -> (f64, f64) {
    let (sum, variance) = stages.iter().fold((0.0, 0.0), |(sum, variance), stage| {
        let (items, sd) = stage.approx_count();
        (sum + items, variance + sd * sd)
    });
    (sum, variance.sqrt())
}

/// What every new stage is made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan<C> {
    /// Keys of the first stage.
    pub initial_capacity: u64,
    /// Bound on the rate of the whole.
    pub fpr: f64,
    /// s, at least 1.
    pub growth: f64,
    /// r, between 0 and 1.
    pub tightening: f64,
    /// What all stages have in common.
    pub choice: C,
}

impl<C: Copy> Plan<C> {
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

    fn stage<S: Stage<Choice = C>>(&self, index: usize, hasher: KeyHasher) -> Result<S> {
        if index >= MAX_STAGES {
            return Err(Error::Capacity(format!(
                "the filter has {MAX_STAGES} stages; build one with a larger initial_capacity or growth"
            )));
        }
        let (capacity, fpr) = self.rung(index);
        S::fresh(self.choice, capacity, fpr, hasher)
    }
}

/// A filter without a fixed capacity.
pub struct Scalable<S: Stage> {
    plan: Plan<S::Choice>,
    hasher: KeyHasher,
    stages: Vec<S>,
}

impl<S: Stage> Scalable<S> {
    /// An empty filter with its first stage.
    pub fn new(plan: Plan<S::Choice>, hasher: KeyHasher) -> Result<Self> {
        plan.check()?;
        let first = plan.stage(0, hasher)?;
        Ok(Scalable { plan, hasher, stages: vec![first] })
    }

    /// What new stages are made from.
    pub fn plan(&self) -> &Plan<S::Choice> {
        &self.plan
    }

    /// The stages, oldest first.
    pub fn stages(&self) -> &[S] {
        &self.stages
    }

    /// True when the stages are mapped read-only.
    #[inline(always)]
    pub fn is_read_only(&self) -> bool {
        self.stages.last().is_some_and(S::is_read_only)
    }

    /// The newest stage, opening another when it is full.
    fn open_stage(&mut self) -> Result<&mut S> {
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

impl<S: Stage> Sizable for Scalable<S> {
    /// Of a filter that grew from 10,000 keys to `capacity` by doubling.
    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        let plan = Plan { initial_capacity: 10_000, fpr, growth: 2.0, tightening: 0.5, choice: S::Choice::default() };
        plan.check()?;
        let (mut held, mut bytes) = (0u64, 0u64);
        for index in 0..MAX_STAGES {
            let (stage, fpr) = plan.rung(index);
            held = held.saturating_add(stage);
            bytes = bytes.saturating_add(S::nbytes_of(plan.choice, stage, fpr)?);
            if held >= capacity {
                break;
            }
        }
        Ok(bytes)
    }
}

impl<S: Stage + Estimating> Estimating for Scalable<S> {
    fn approx_count(&self) -> (f64, f64) {
        approx_count(&self.stages)
    }
}

impl<S: Stage> Filter for Scalable<S> {
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
        self.stages.iter().map(S::capacity).fold(0, u64::saturating_add)
    }

    fn target_fpr(&self) -> f64 {
        self.plan.fpr
    }

    fn num_added(&self) -> u64 {
        self.stages.iter().map(S::num_added).sum()
    }

    fn fpr(&self) -> f64 {
        let all_deny: f64 = self.stages.iter().map(|stage| (-stage.fpr()).ln_1p()).sum();
        -all_deny.exp_m1()
    }

    fn fill(&self) -> f64 {
        let cells = self.stages.iter().map(S::set_cells);
        let (set, all) = cells.fold((0u64, 0u64), |(set, all), (s, a)| (set.saturating_add(s), all.saturating_add(a)));
        set as f64 / all as f64
    }

    fn nbytes(&self) -> u64 {
        self.stages.iter().map(Filter::nbytes).sum()
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        let mut facts = vec![
            ("initial_capacity", Fact::Number(self.plan.initial_capacity)),
            ("capacity", Fact::Number(self.capacity())),
            ("target_fpr", Fact::Real(self.plan.fpr)),
            ("growth", Fact::Real(self.plan.growth)),
            ("tightening", Fact::Real(self.plan.tightening)),
            ("stages", Fact::Number(self.stages.len() as u64)),
            ("num_added", Fact::Number(self.num_added())),
        ];
        facts.extend(S::estimate_facts(&self.stages));
        facts.extend([("fpr", Fact::Real(self.fpr())), ("fill", Fact::Real(self.fill()))]);
        facts.extend(S::choice_facts(self.plan.choice));
        facts.extend([
            ("seed", Fact::Number(self.hasher.seed())),
            ("keyed", Fact::Flag(self.hasher.is_keyed())),
            ("nbytes", Fact::Number(self.nbytes())),
        ]);
        facts
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(S::VARIANT, 0, &self.hasher);
        header.set(tag::CAPACITY, WHOLE, self.plan.initial_capacity);
        header.set_f64(tag::FPR, WHOLE, self.plan.fpr);
        header.set_f64(tag::GROWTH, WHOLE, self.plan.growth);
        header.set_f64(tag::TIGHTENING, WHOLE, self.plan.tightening);
        S::describe_choice(self.plan.choice, &mut header, WHOLE);
        let mut sections = Vec::new();
        for (i, stage) in self.stages.iter().enumerate() {
            stage.describe(&mut header, i as u16);
            sections.extend(stage.sections(i as u32));
        }
        Container { header, sections }
    }

    fn try_clone(&self) -> Result<Self> {
        let stages = self.stages.iter().map(Filter::try_clone).collect::<Result<_>>()?;
        Ok(Scalable { plan: self.plan, hasher: self.hasher, stages })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.plan == other.plan
            && self.stages.len() == other.stages.len()
            && self.stages.iter().zip(&other.stages).all(|(a, b)| a.same_as(b))
    }
}

impl<S: Stage> Addable for Scalable<S> {
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
            return Err(Error::read_only());
        }
        let first = self.plan.stage(0, self.hasher)?;
        self.stages = vec![first];
        Ok(())
    }
}

impl<S: Stage> Loadable for Scalable<S> {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        let plan = Plan {
            initial_capacity: header.get(tag::CAPACITY, WHOLE)?,
            fpr: header.get_f64(tag::FPR, WHOLE)?,
            growth: header.get_f64(tag::GROWTH, WHOLE)?,
            tightening: header.get_f64(tag::TIGHTENING, WHOLE)?,
            choice: S::restore_choice(header, WHOLE)?,
        };
        plan.check().map_err(Error::as_format)?;
        let mut stages = Vec::new();
        for index in 0..MAX_STAGES as u16 {
            if header.get(S::MARK, index).is_err() {
                break;
            }
            stages.push(S::restore(header, index, hasher, memory)?);
        }
        if header.params.len() != WHOLE_PARAMS + S::CHOICE_PARAMS + stages.len() * S::PARAMS {
            return Err(Error::format("the file holds parameters that belong to no stage; it is damaged"));
        }
        if stages.is_empty() {
            return Err(Error::format("the file holds no stage of its scalable filter"));
        }
        Ok(Scalable { plan, hasher, stages })
    }
}
