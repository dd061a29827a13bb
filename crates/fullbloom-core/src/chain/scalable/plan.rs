//! [`Plan`]: capacity and rate of every stage of a growing filter.
//!
//! Stage i has capacity n0 * s^i and rate p (1 - r) r^i, so that the sum of all rates stays below p for any number of
//! stages, as far as a structure has such rates. A key is a hash of 64 bits and a fingerprint has fewer, so every
//! structure has a lowest rate at every capacity; a stage that would need a lower one gets that.

use crate::chain::kinds::{Kind, Stage};
use crate::chain::stages::MAX_STAGES;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::sizing::chain::{stage_keys, stage_rate};
use crate::sizing::{LEAST_FPR, check_fpr, format_rate};
use crate::structure::Filter;

/// A stage that finds more absent keys than it rejects is useless.
const HIGHEST: f64 = 0.5;
/// Powers and logarithms may differ in their last bits from machine to machine.
const ROUNDING: f64 = 1e-9;

/// The parameters of every new stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Keys of the first stage.
    pub initial_capacity: u64,
    /// Bound on the rate of the whole, as long as such rates exist.
    pub fpr: f64,
    /// s, at least 1.
    pub growth: f64,
    /// r, between 0 and 1.
    pub tightening: f64,
    /// The structure of all stages.
    pub kind: Kind,
}

impl Plan {
    pub(super) fn check(self) -> Result<Self> {
        let Plan { fpr, growth, tightening, .. } = self;
        check_fpr(fpr)?;
        if self.initial_capacity == 0 {
            return Err(Error::parameter("initial_capacity must be at least 1, got 0"));
        }
        if !(1.0..=1024.0).contains(&growth) {
            return Err(Error::Parameter(format!("growth must be between 1 and 1024, got {growth}")));
        }
        if !(tightening > 0.0 && tightening < 1.0) {
            return Err(Error::Parameter(format!("tightening must be between 0 and 1 (exclusive), got {tightening}")));
        }
        if fpr * (1.0 - tightening) < LEAST_FPR {
            return Err(Error::Parameter(format!(
                "fpr must be at least {:.1e} with tightening {tightening} (keys are 64-bit hashes), got {}",
                LEAST_FPR / (1.0 - tightening),
                format_rate(fpr)
            )));
        }
        Ok(self)
    }

    /// Keys of stage `index`, before they are rounded down.
    fn keys(&self, index: usize) -> f64 {
        stage_keys(self.initial_capacity as f64, self.growth, index as u32)
    }

    /// Rate of stage `index`, whether possible or not. Without the bound a file of 384 bytes could claim millions of
    /// keys at 0.9999 and request gigabytes with the next stage.
    fn rate(&self, index: usize) -> f64 {
        stage_rate(self.fpr, self.tightening, index as u32).min(HIGHEST)
    }

    /// True if a stage can have this rate, given enough memory.
    fn allows(&self, capacity: u64, fpr: f64) -> bool {
        !matches!(self.kind.nbytes(capacity, fpr), Err(Error::Parameter(_)))
    }

    /// True of a rate above the one planned for stage `index`.
    pub(super) fn is_held(&self, index: usize, fpr: f64) -> bool {
        fpr > self.rate(index) * (1.0 + ROUNDING)
    }

    /// Calls `make` with capacity and rate of stage `index`, after one of rate `before`: the planned rate, or the
    /// lowest possible.
    fn build_within<T>(&self, index: usize, before: f64, make: impl Fn(u64, f64) -> Result<T>) -> Result<(f64, T)> {
        let (capacity, planned) = (self.keys(index) as u64, self.rate(index));
        match make(capacity, planned) {
            // A rate that the first stage cannot have is refused by its constructor, which says why.
            Err(Error::Parameter(_)) if index > 0 => {
                let least = self.least(index, before)?;
                Ok((least, make(capacity, least)?))
            }
            result => Ok((planned, result?)),
        }
    }

    /// The least rate of stage `index`, which cannot have the one planned.
    fn least(&self, index: usize, before: f64) -> Result<f64> {
        let (capacity, planned) = (self.keys(index) as u64, self.rate(index));
        if capacity == self.keys(index - 1) as u64 && self.is_held(index - 1, before) {
            return Ok(before);
        }
        if planned >= HIGHEST || !self.allows(capacity, HIGHEST) {
            return Err(Error::Capacity(format!(
                "the filter has {index} stages, and no rate can be had for one of {capacity} keys; build one with a \
                 larger initial_capacity"
            )));
        }
        // Positive floats are ordered as their bits are: the search ends at neighbours, in 62 steps.
        let (mut low, mut high) = (planned.to_bits(), HIGHEST.to_bits());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            *(if self.allows(capacity, f64::from_bits(middle)) { &mut high } else { &mut low }) = middle;
        }
        Ok(f64::from_bits(high))
    }

    /// True for a stage with the capacity and the rate of stage `index`, after one of rate `before`.
    pub(super) fn fits(&self, index: usize, before: f64, stage: &Stage) -> bool {
        let (keys, capacity, rate) = (self.keys(index), stage.capacity(), stage.target_fpr());
        let [least, most] = [1.0 - ROUNDING, 1.0 + ROUNDING];
        // Whole numbers have no rounding.
        let near = keys.fract() != 0.0 && ((keys * least) as u64..=(keys * most) as u64).contains(&capacity);
        if capacity != keys as u64 && !near {
            return false;
        }
        // If the memory is smaller than these numbers need, the next stage would be out of all proportion to the file;
        // half of it is enough, since this check need not be exact.
        if self.kind.nbytes(capacity, rate).map_or(true, |needed| stage.nbytes() < needed / 2) {
            return false;
        }
        let planned = self.rate(index);
        let alike = || rate == before && capacity == self.keys(index - 1) as u64;
        (planned * least..=planned * most).contains(&rate)
            || index > 0
                && self.is_held(index, rate)
                && (alike() || self.allows(capacity, rate) && !self.allows(capacity, rate * least))
    }

    /// An empty stage `index`, after one of rate `before`.
    pub(super) fn stage(&self, index: usize, before: f64, hasher: KeyHasher) -> Result<Stage> {
        if index >= MAX_STAGES as usize {
            return Err(Error::Capacity(format!(
                "the filter has {MAX_STAGES} stages; build one with a larger initial_capacity or growth"
            )));
        }
        self.build_within(index, before, |capacity, fpr| self.kind.stage(capacity, fpr, hasher)).map(|(_, stage)| stage)
    }

    /// Bytes of stage `index`, after one of rate `before`.
    pub(super) fn stage_bytes(&self, index: usize, before: f64) -> Result<u64> {
        self.build_within(index, before, |capacity, fpr| self.kind.nbytes(capacity, fpr)).map(|(_, bytes)| bytes)
    }

    /// Bytes of a filter that has grown to hold `capacity` keys.
    pub(super) fn nbytes(&self, capacity: u64) -> Result<u64> {
        let (mut held, mut bytes, mut before) = (0u64, 0u64, 1.0);
        for index in 0..MAX_STAGES as usize {
            let (fpr, stage) = self.build_within(index, before, |capacity, fpr| self.kind.nbytes(capacity, fpr))?;
            (held, bytes, before) = (held.saturating_add(self.keys(index) as u64), bytes.saturating_add(stage), fpr);
            if held >= capacity {
                break;
            }
        }
        Ok(bytes)
    }
}
