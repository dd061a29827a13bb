//! [`Scalable`]: a chain of filters that grows with its keys and keeps its rate, over any structure
//! that is a [`Stage`].
//!
//! Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom filters", 2007. Stage i has capacity
//! n0 * s^i and rate p (1 - r) r^i, so that the sum of all rates stays below p however many
//! stages there are. A key found in an earlier stage is not added again. Growth is decided by
//! counting the keys that were new, never by scanning cells; a stage that finds no room for a key before it
//! has reached its capacity is closed early.
//!
//! In a file, parameters and sections of stage i are those of its own file at index i, parameters of the
//! whole stand at index 0xffff.

use crate::cells::Memory;
use crate::container::{Container, Header, Section, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::SCALABLE;
use crate::sizing::{LEAST_FPR, check_fpr, shown};
use crate::structure::batch;
use crate::structure::{Addable, Estimating, Filter, Loadable, Sizable, Value};

/// More stages than doubling can ever reach; with growth 1 a sign of a wrong initial capacity.
const MAX_STAGES: usize = 1024;
/// Index of the parameters of the whole.
const WHOLE: u16 = 0xffff;
/// Parameters of the whole, beside those of the kind.
const WHOLE_PARAMS: usize = 4;

/// A structure of fixed capacity that a growing filter can be a chain of. In its own container every
/// parameter and section has index 0.
pub trait Stage: Addable + Loadable {
    /// What all stages of a filter have in common beside the hash: a structure, a layout.
    type Kind: Copy + Default + PartialEq + Send + Sync;

    /// An empty stage for `capacity` keys at rate `fpr`.
    fn fresh(kind: Self::Kind, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self>;
    /// Bytes of cells of such a stage; nothing allocated.
    fn nbytes_of(kind: Self::Kind, capacity: u64, fpr: f64) -> Result<u64>;
    /// Writes the kind under `index`.
    fn describe_kind(kind: Self::Kind, header: &mut Header, index: u16);
    /// Reads back what [`Stage::describe_kind`] wrote.
    fn restore_kind(header: &Header, index: u16) -> Result<Self::Kind>;
    /// The registry number of stages of this kind.
    fn variant(kind: Self::Kind) -> u16;
    /// True when stages store fingerprints, which are parts of one hash. What an earlier stage admits is
    /// not stored in a later one, whose fingerprints lie within those of the earlier: no false positive
    /// of one is one of the other, and the rates add up exactly.
    fn of_fingerprints(kind: Self::Kind) -> bool;
    /// The kind as people see it.
    fn kind_facts(kind: Self::Kind) -> Vec<(&'static str, Value)>;
    /// Estimated number of keys with its variance; the keys counted when added, where cells say nothing.
    fn estimate(&self) -> (f64, f64);
    /// Set cells, counted, and all cells.
    fn cells(&self) -> (f64, f64);
    /// Adds, in order, the keys that are not there yet and marks them in `new`. Tells how many of
    /// `hashes` are dealt with: all, or those before one that found no room.
    fn add_missing(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<usize>;
}

/// What every new stage is made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan<K> {
    /// Keys of the first stage.
    pub initial_capacity: u64,
    /// Bound on the rate of the whole.
    pub fpr: f64,
    /// s, at least 1.
    pub growth: f64,
    /// r, between 0 and 1.
    pub tightening: f64,
    /// What all stages have in common.
    pub kind: K,
}

impl<K: Copy> Plan<K> {
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

    fn stage<S: Stage<Kind = K>>(&self, index: usize, hasher: KeyHasher) -> Result<S> {
        if index >= MAX_STAGES {
            return Err(Error::Capacity(format!(
                "the filter has {MAX_STAGES} stages; build one with a larger initial_capacity or growth"
            )));
        }
        let (capacity, fpr) = self.rung(index);
        S::fresh(self.kind, capacity, fpr, hasher)
    }
}

/// A filter without a fixed capacity.
pub struct Scalable<S: Stage> {
    plan: Plan<S::Kind>,
    hasher: KeyHasher,
    stages: Vec<S>,
}

impl<S: Stage> Scalable<S> {
    /// An empty filter with its first stage.
    pub fn new(plan: Plan<S::Kind>, hasher: KeyHasher) -> Result<Self> {
        plan.check()?;
        let first = plan.stage(0, hasher)?;
        Ok(Scalable { plan, hasher, stages: vec![first] })
    }

    /// What new stages are made from.
    pub fn plan(&self) -> &Plan<S::Kind> {
        &self.plan
    }

    /// The stages, oldest first.
    pub fn stages(&self) -> &[S] {
        &self.stages
    }

    /// Opens another stage.
    fn grow(&mut self) -> Result<()> {
        self.stages.push(self.plan.stage(self.stages.len(), self.hasher)?);
        Ok(())
    }

    /// The newest stage.
    fn newest(&mut self) -> Result<&mut S> {
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

    /// Adds at most as many keys as the newest stage still takes, so that no stage changes within a step
    /// and a batch leaves the cells that single adds leave. Tells how many are dealt with: all, or
    /// those before one for which the newest stage had no room after all.
    fn add_step(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<usize> {
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
        let done = self.newest()?.add_missing(&unseen[..kept], &mut fresh[..kept])?;
        let mut fresh = fresh[..done].iter();
        for (at, (new, &seen)) in new.iter_mut().zip(seen.iter()).enumerate() {
            *new = match seen {
                0 => match fresh.next() {
                    Some(&fresh) => fresh,
                    None => return Ok(at),
                },
                _ => 0,
            };
        }
        Ok(hashes.len())
    }
}

/// Capacity of the first stage where none is given.
pub const INITIAL_CAPACITY: u64 = 10_000;

impl<S: Stage> Scalable<S> {
    fn default_plan(fpr: f64) -> Plan<S::Kind> {
        Plan { initial_capacity: INITIAL_CAPACITY, fpr, growth: 2.0, tightening: 0.5, kind: S::Kind::default() }
    }
}

impl<S: Stage> Sizable for Scalable<S> {
    /// One that grows from [`INITIAL_CAPACITY`] keys, whatever the capacity.
    fn for_capacity(_: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        Self::new(Self::default_plan(fpr), hasher)
    }

    /// Of a filter that grew to `capacity` by doubling.
    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        let plan = Self::default_plan(fpr);
        plan.check()?;
        let (mut held, mut bytes) = (0u64, 0u64);
        for index in 0..MAX_STAGES {
            let (stage, fpr) = plan.rung(index);
            held = held.saturating_add(stage);
            bytes = bytes.saturating_add(S::nbytes_of(plan.kind, stage, fpr)?);
            if held >= capacity {
                break;
            }
        }
        Ok(bytes)
    }
}

impl<S: Stage> Estimating for Scalable<S> {
    /// Sum of the stages' estimates, with the deviation of independent terms.
    fn approx_count(&self) -> (f64, f64) {
        let estimates = self.stages.iter().map(S::estimate);
        let (sum, variance) = estimates.fold((0.0, 0.0), |(sum, variance), (n, v)| (sum + n, variance + v));
        (sum, variance.sqrt())
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
        if S::of_fingerprints(self.plan.kind) {
            return self.stages.iter().map(S::fpr).sum::<f64>().min(1.0);
        }
        let all_deny: f64 = self.stages.iter().map(|stage| (-stage.fpr()).ln_1p()).sum();
        -all_deny.exp_m1()
    }

    fn fill(&self) -> f64 {
        let (set, all) = self.stages.iter().map(S::cells).fold((0.0, 0.0), |(set, all), (s, a)| (set + s, all + a));
        set / all
    }

    fn nbytes(&self) -> u64 {
        self.stages.iter().map(Filter::nbytes).sum()
    }

    fn estimated(&self) -> Option<(f64, f64)> {
        Some(self.approx_count())
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let mut facts = vec![
            ("initial_capacity", Value::Number(self.plan.initial_capacity)),
            ("capacity", Value::Number(self.capacity())),
            ("target_fpr", Value::Real(self.plan.fpr)),
            ("growth", Value::Real(self.plan.growth)),
            ("tightening", Value::Real(self.plan.tightening)),
            ("stages", Value::Number(self.stages.len() as u64)),
            ("num_added", Value::Number(self.num_added())),
        ];
        let (approx, sd) = self.approx_count();
        facts.extend([("approx_count", Value::Real(approx)), ("approx_count_sd", Value::Real(sd))]);
        facts.extend([("fpr", Value::Real(self.fpr())), ("fill", Value::Real(self.fill()))]);
        facts.extend(S::kind_facts(self.plan.kind));
        facts.extend([
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("nbytes", Value::Number(self.nbytes())),
        ]);
        facts
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(SCALABLE, 0, &self.hasher);
        header.set(tag::CAPACITY, WHOLE, self.plan.initial_capacity);
        header.set_f64(tag::FPR, WHOLE, self.plan.fpr);
        header.set_f64(tag::GROWTH, WHOLE, self.plan.growth);
        header.set_f64(tag::TIGHTENING, WHOLE, self.plan.tightening);
        S::describe_kind(self.plan.kind, &mut header, WHOLE);
        let mut sections = Vec::new();
        for (i, stage) in self.stages.iter().enumerate() {
            let part = stage.container();
            header.nest(i as u16, &part.header);
            sections.extend(part.sections.into_iter().map(|section| Section { index: i as u32, ..section }));
            // Stages of one kind have one scheme; a Bloom filter's has one in its own parameters.
            header.scheme = if header.get(tag::SCHEME, i as u16).is_ok() { 0 } else { part.header.scheme };
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
        if self.is_read_only() {
            return Err(Error::read_only());
        }
        if self.contains_hash(hash) {
            return Ok(false);
        }
        if self.room() == 0 {
            self.grow()?;
        }
        match self.newest()?.add_hash(hash) {
            Err(Error::Capacity(_)) => {
                self.grow()?;
                self.newest()?.add_hash(hash)
            }
            added => added,
        }
    }

    fn add_hashes(&mut self, hashes: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::read_only());
        }
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
            if done < step {
                self.grow()?;
            }
        }
        Ok(())
    }

    // Stages open in the order of keys, so one thread adds; contains uses several.

    fn is_read_only(&self) -> bool {
        self.stages.last().is_some_and(S::is_read_only)
    }

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        self.room() > 0 && !self.is_read_only()
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
            kind: S::restore_kind(header, WHOLE)?,
        };
        plan.check().map_err(Error::as_format)?;
        let mut whole = Header { params: Vec::new(), ..*header };
        S::describe_kind(plan.kind, &mut whole, WHOLE);
        let mut num_params = whole.params.len() + WHOLE_PARAMS;
        let mut stages = Vec::new();
        for index in 0..MAX_STAGES as u16 {
            let mut part = header.part(index);
            if part.params.is_empty() {
                break;
            }
            num_params += part.params.len();
            part.variant = S::variant(plan.kind);
            if let Ok(scheme) = part.get(tag::SCHEME, 0) {
                part.scheme = u16::try_from(scheme).unwrap_or(u16::MAX);
            }
            let mut section = |kind, _, words| memory(kind, u32::from(index), words);
            stages.push(S::load(&part, &mut section, secret)?);
        }
        if header.params.len() != num_params {
            return Err(Error::format("the file holds parameters that belong to no stage; it is damaged"));
        }
        if stages.is_empty() {
            return Err(Error::format("the file holds no stage of its scalable filter"));
        }
        Ok(Scalable { plan, hasher, stages })
    }
}
