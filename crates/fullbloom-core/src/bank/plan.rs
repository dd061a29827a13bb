//! [`Plan`]: the size of every filter of a bank, and the law of their rates.
//!
//! Each owner has one filter for `capacity` keys at rate p. One that gets more keys gets further stages, each s times as
//! large as the one before, at rates that fall by the factor r:
//!
//! ```text
//! stage i    capacity * s^i keys, rate p * r^i,    r = 1 - p / P
//! all        less than p * (1 + r + r^2 + ...) = P, the bank's max_fpr
//! ```
//!
//! These are the stages of a scalable filter of rate P (Almeida et al., 2007), so that an owner can be exported as one.
//! With P = p an owner does not grow.
//!
//! A stage counts keys that were new when they were added. A few distinct keys are not, because they were found wrongly,
//! so a stage is sized for as many distinct keys as leave its capacity of new ones: it keeps its rate when it is full.

use super::directory::{Directory, SLOT_BYTES};
use super::pool::MAX_LINES;
use crate::bloom::{Layout, Scheme, Shape};
use crate::cells::LINE_BYTES;
use crate::error::{Error, Result};
use crate::sizing::chain::{stage_keys, stage_rate};
use crate::sizing::whole::mean_over;
use crate::sizing::{check_fpr, check_sized, format_rate};

/// Bits of a line.
const LINE_BITS: u64 = 8 * LINE_BYTES as u64;
/// More stages than any owner can have: each has a line and a key at least, and growth is at least 1.
pub const MAX_STAGES: usize = 1024;

/// The parameters of a bank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Keys of an owner before it grows.
    pub capacity: u64,
    /// Rate of an owner with so many keys.
    pub fpr: f64,
    /// Bound on the rate of an owner, however many keys it has.
    pub max_fpr: f64,
    /// Factor between the capacities of successive stages.
    pub growth: f64,
    /// Most owners, 0 for as many as there is space for.
    pub max_owners: u64,
}

/// One filter of an owner.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// New keys that it takes.
    pub capacity: u64,
    /// New keys that it and the stages before it take.
    pub total: u64,
    /// Its rate when it is full.
    pub fpr: f64,
    /// Its bits.
    pub shape: Shape,
}

impl Stage {
    /// Its lines.
    pub fn lines(&self) -> u32 {
        (self.shape.num_bits / LINE_BITS) as u32
    }

    /// Positions of a key in each column of its line.
    #[inline(always)]
    pub fn per_column(&self) -> u32 {
        self.shape.num_hashes / 4
    }
}

impl Plan {
    /// The parameters of a bank whose owners may reach twice the rate when they grow, unless `max_fpr` says how much.
    pub fn new(capacity: u64, fpr: f64, max_fpr: Option<f64>, growth: f64, max_owners: u64) -> Self {
        // A rate of a half or more cannot double.
        let max_fpr = max_fpr.unwrap_or_else(|| (2.0 * fpr).min(fpr + (1.0 - fpr) / 2.0));
        Plan { capacity, fpr, max_fpr, growth, max_owners }
    }

    /// Checks the parameters.
    pub fn check(self) -> Result<Self> {
        let Plan { capacity, fpr, max_fpr, growth, .. } = self;
        check_sized(capacity, fpr)?;
        if capacity > u64::from(u32::MAX) {
            return Err(Error::Parameter(format!(
                "capacity must be at most {}, the keys of an owner that a bank counts, got {capacity}; use a BloomFilter",
                u32::MAX
            )));
        }
        check_fpr(max_fpr).map_err(|_| {
            Error::Parameter(format!("max_fpr must be between 0 and 1 (exclusive), got {}", format_rate(max_fpr)))
        })?;
        if max_fpr < fpr {
            return Err(Error::Parameter(format!(
                "max_fpr must be at least fpr, {}, got {}; max_fpr=fpr refuses keys past the capacity of their owner",
                format_rate(fpr),
                format_rate(max_fpr)
            )));
        }
        if !(1.0..=1024.0).contains(&growth) {
            return Err(Error::Parameter(format!("growth must be between 1 and 1024, got {growth}")));
        }
        Ok(self)
    }

    /// r.
    pub fn tightening(&self) -> f64 {
        1.0 - self.fpr / self.max_fpr
    }

    /// True if owners get further stages.
    pub fn grows(&self) -> bool {
        self.max_fpr > self.fpr
    }

    /// Stage `index` of a known shape, behind one whose `total` is `before`.
    pub fn describe(&self, index: usize, before: u64, shape: Shape) -> Stage {
        let capacity = stage_keys(self.capacity as f64, self.growth, index as u32) as u64;
        // The first rate is the given one, without a rounding error.
        let fpr = if index == 0 { self.fpr } else { stage_rate(self.max_fpr, self.tightening(), index as u32) };
        Stage { capacity, total: before.saturating_add(capacity), fpr, shape }
    }

    /// Stage `index`, behind one whose `total` is `before`.
    pub fn stage(&self, index: usize, before: u64) -> Result<Stage> {
        let nothing = Shape { layout: Layout::Blocked, scheme: Scheme::Columns, num_bits: 0, num_hashes: 0 };
        let Stage { capacity, fpr, total, .. } = self.describe(index, before, nothing);
        let shape = shape_for(capacity, fpr)?;
        if shape.num_bits / LINE_BITS > MAX_LINES {
            return Err(Error::Memory(format!(
                "a filter for {capacity} keys at fpr {} has more lines than a bank, {MAX_LINES} of 64 bytes; lower the \
                 capacity, or use a BloomFilter",
                format_rate(fpr)
            )));
        }
        Ok(Stage { capacity, total, fpr, shape })
    }

    /// The stages that an owner of so many keys has.
    pub fn stages_for(&self, keys: u64) -> Result<Vec<Stage>> {
        let mut stages = vec![self.stage(0, 0)?];
        while stages.last().is_some_and(|last| last.total < keys) {
            if !self.grows() || stages.len() == MAX_STAGES {
                return Err(Error::Parameter(format!(
                    "an owner of this bank takes {} keys at most, got {keys}",
                    stages.last().map_or(0, |last| last.total)
                )));
            }
            stages.push(self.stage(stages.len(), stages.last().map_or(0, |last| last.total))?);
        }
        Ok(stages)
    }

    /// Bytes of a bank of `owners` that have `keys` keys each: their lines, and directories nine tenths full.
    pub fn nbytes(&self, owners: u64, keys: u64) -> Result<u64> {
        let stages = self.stages_for(keys)?;
        let lines: u64 = stages.iter().map(|stage| u64::from(stage.lines())).sum();
        if lines.saturating_mul(owners) > MAX_LINES {
            return Err(Error::Parameter(format!(
                "{owners} owners of {lines} lines of 64 bytes each exceed the {MAX_LINES} lines of a bank; spread them \
                 over several banks"
            )));
        }
        let directory = |entries| Directory::homes_for(entries) * SLOT_BYTES;
        let later = owners.saturating_mul(stages.len() as u64 - 1);
        Ok(owners * lines * LINE_BYTES as u64 + directory(owners) + if later > 0 { directory(later) } else { 0 })
    }
}

/// The shape of a filter that has rate `fpr` when `capacity` of its keys were new.
fn shape_for(capacity: u64, fpr: f64) -> Result<Shape> {
    let shape = |keys| Shape::for_capacity(Layout::Blocked, None, keys, fpr);
    let law = shape(capacity)?.law();
    // Not more than fpr, the rate of the full filter.
    let found = mean_over(capacity as f64, |items| law.fpr(items)).min(fpr);
    shape((capacity as f64 / (1.0 - found)).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(capacity: u64, fpr: f64) -> Plan {
        Plan { capacity, fpr, max_fpr: 2.0 * fpr, growth: 2.0, max_owners: 0 }.check().unwrap()
    }

    #[test]
    fn rates_of_all_stages_add_up_to_less_than_the_bound() {
        for max_fpr in [0.015, 0.02, 0.05, 0.5] {
            let plan = Plan { max_fpr, ..plan(100, 0.01) };
            let stages = plan.stages_for(1_000_000).unwrap();
            assert!(stages.len() > 10 && stages.iter().map(|stage| stage.fpr).sum::<f64>() <= max_fpr);
            for stage in &stages {
                assert!(stage.shape.law().fpr(stage.capacity as f64) <= stage.fpr);
            }
        }
    }

    #[test]
    fn five_hundred_keys_at_one_percent_are_ten_lines() {
        let stage = plan(500, 0.01).stage(0, 0).unwrap();
        assert_eq!((stage.lines(), stage.per_column()), (10, 2));
        assert_eq!(plan(500, 0.01).nbytes(100_000, 500).unwrap(), 64_000_000 + 111_112 * 16);
    }

    #[test]
    fn owners_without_a_rate_to_spare_do_not_grow() {
        let plan = Plan { max_fpr: 0.01, ..plan(100, 0.01) };
        assert!(!plan.grows() && plan.stages_for(100).unwrap().len() == 1);
        assert!(matches!(plan.stages_for(101), Err(Error::Parameter(_))));
        assert!(matches!(Plan { max_fpr: 0.009, ..plan }.check(), Err(Error::Parameter(_))));
    }
}
