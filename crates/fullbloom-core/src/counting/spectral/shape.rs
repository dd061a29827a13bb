//! How keys are added to a spectral filter, and to how many counters of how many bits.

use super::apart::Apart;
use crate::counting::shape::{MAX_CELLS, MAX_HASHES, check_possible, impossible};
use crate::error::{Error, Result};
use crate::sizing::classic::Classic;
use crate::structure::declaration::names;

/// How keys are added. Files contain the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Mode {
    /// One to each counter.
    MinimumSelection = 1,
    /// One to the least counters.
    MinimalIncrease = 2,
    /// Increments each; a key with a single smallest counter is counted separately.
    RecurringMinimum = 3,
}

names! { Mode, "mode":
    MinimumSelection "minimum-selection",
    MinimalIncrease "minimal-increase",
    RecurringMinimum "recurring-minimum",
}

impl Mode {
    /// Words of the table of keys that are counted separately, if there is one.
    pub fn words_apart(self, capacity: u64) -> Option<u64> {
        (self == Mode::RecurringMinimum).then(|| Apart::slots_for(capacity).saturating_mul(2))
    }
}

/// Counters and probes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// w, bits of a counter.
    pub counter_bits: u32,
    /// m.
    pub num_cells: u64,
    /// k.
    pub num_hashes: u32,
}

impl Shape {
    fn check_bits(counter_bits: u32) -> Result<()> {
        if matches!(counter_bits, 8 | 16 | 32 | 64) {
            return Ok(());
        }
        Err(Error::Parameter(format!("counter_bits must be 8, 16, 32 or 64, got {counter_bits}")))
    }

    /// The smallest shape with a rate of at most `fpr` at `capacity` keys: that of a Bloom filter.
    pub fn for_capacity(counter_bits: u32, capacity: u64, fpr: f64) -> Result<Self> {
        Self::check_bits(counter_bits)?;
        check_possible(capacity, fpr, counter_bits)?;
        let found = Classic::for_capacity(MAX_CELLS, capacity, fpr).ok_or_else(|| impossible(capacity, fpr))?;
        Ok(Shape { counter_bits, num_cells: found.num_bits, num_hashes: found.num_hashes })
    }

    /// Refuses numbers that no constructor chooses.
    pub fn check(self) -> Result<Self> {
        Self::check_bits(self.counter_bits)?;
        if (1..=MAX_HASHES).contains(&self.num_hashes) && (1..=MAX_CELLS).contains(&self.num_cells) {
            return Ok(self);
        }
        Err(Error::Parameter(format!(
            "{} counters with {} per key are not a valid filter",
            self.num_cells, self.num_hashes
        )))
    }

    /// The law of membership.
    pub fn law(&self) -> Classic {
        Classic { num_bits: self.num_cells, num_hashes: self.num_hashes }
    }

    /// 64-bit words in use.
    pub fn words(&self) -> u64 {
        (self.num_cells * u64::from(self.counter_bits)).div_ceil(64)
    }
}
