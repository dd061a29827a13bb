//! Shapes of a variable-increment filter: how many counters of how many bits, k, and the increments.

use crate::counting::shape::{MAX_CELLS, MAX_HASHES, check_possible, first_minimum, impossible};
use crate::error::{Error, Result};
use crate::sizing::classic::Classic;
use crate::sizing::counters::variable_fpr;
use crate::sizing::smallest;

/// Cells, probes and increments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// L: increments are L to 2L - 1.
    pub increments: u64,
    /// w, bits of a counter.
    pub counter_bits: u32,
    /// m.
    pub num_cells: u64,
    /// k.
    pub num_hashes: u32,
}

impl Shape {
    fn check_cells(increments: u64, counter_bits: u32) -> Result<()> {
        if !matches!(increments, 2 | 4 | 8) {
            return Err(Error::Parameter(format!("increments must be 2, 4 or 8, got {increments}")));
        }
        // With two increments in it a cell must be below its maximum, or the law would not hold.
        let least = increments.ilog2() + 2;
        if !(least..=16).contains(&counter_bits) {
            return Err(Error::Parameter(format!(
                "counter_bits must be between {least} and 16 with increments {increments}, got {counter_bits}"
            )));
        }
        Ok(())
    }

    /// The smallest shape with a rate of at most `fpr` at `capacity` keys. The default counter holds 15 to 20
    /// increments, while a full filter has one or two in a cell.
    pub fn for_capacity(increments: u64, counter_bits: Option<u32>, capacity: u64, fpr: f64) -> Result<Self> {
        let counter_bits = counter_bits.unwrap_or(increments.checked_ilog2().unwrap_or(0) + 5);
        Self::check_cells(increments, counter_bits)?;
        check_possible(capacity, fpr, counter_bits)?;
        let sized = (1..=MAX_HASHES).filter_map(|num_hashes| {
            let shape = |num_cells| Shape { increments, counter_bits, num_cells, num_hashes };
            smallest(MAX_CELLS, fpr, |cells| shape(cells).fpr(capacity as f64)).map(shape)
        });
        first_minimum(sized, |shape| shape.num_cells).ok_or_else(|| impossible(capacity, fpr))
    }

    /// Refuses numbers that no constructor chooses.
    pub fn check(self) -> Result<Self> {
        Self::check_cells(self.increments, self.counter_bits)?;
        if (1..=MAX_HASHES).contains(&self.num_hashes) && (1..=MAX_CELLS).contains(&self.num_cells) {
            return Ok(self);
        }
        Err(Error::Parameter(format!(
            "{} counters with {} per key are not a valid filter",
            self.num_cells, self.num_hashes
        )))
    }

    /// Rate when `items` keys are in, once each.
    pub fn fpr(&self, items: f64) -> f64 {
        variable_fpr(items, self.num_cells as f64, self.num_hashes, self.increments as f64)
    }

    /// The law of the occupied cells.
    pub(super) fn occupancy(&self) -> Classic {
        Classic { num_bits: self.num_cells, num_hashes: self.num_hashes }
    }

    /// 64-bit words in use.
    pub fn words(&self) -> u64 {
        (self.num_cells * u64::from(self.counter_bits)).div_ceil(64)
    }
}
