//! Sizes of a d-left table: d, w, r and B for a capacity and a rate.

use crate::error::{Error, Result};
use crate::sizing::{check_reachable, check_sized, fingerprints, format_rate};

/// Bits of a digit.
const DIGIT_BITS: u32 = 2;

/// Sizes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// d.
    pub subtables: u32,
    /// w, cells of a bucket.
    pub cells: u32,
    /// r.
    pub remainder_bits: u32,
    /// B, buckets of a sub-table.
    pub buckets: u64,
}

impl Shape {
    /// The smallest table of `subtables` times `cells` for `capacity` keys at rate `fpr`.
    pub fn for_capacity(capacity: u64, fpr: f64, subtables: u32, cells: u32) -> Result<Self> {
        check_sized(capacity, fpr)?;
        check_reachable(capacity, fpr)?;
        check_table(subtables, cells)?;
        let n = capacity as f64;
        let for_load = (n / (f64::from(subtables) * fingerprints::d_left_load(subtables, cells))).ceil().max(1.0);
        let least = fingerprints::least(n, fpr);
        let candidates = (1..=60).map(|remainder_bits| {
            let for_rate = (least * (1.0 + 1e-12) / (1u64 << remainder_bits) as f64).ceil();
            (remainder_bits, for_load.max(for_rate))
        });
        let cost = |&(r, buckets): &(u32, f64)| buckets * f64::from(r + DIGIT_BITS);
        let best = candidates.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let (remainder_bits, buckets) = best.unwrap_or((60, f64::INFINITY));
        Shape { subtables, cells, remainder_bits, buckets: buckets as u64 }.check().map_err(|_| {
            Error::Parameter(format!(
                "fpr {} is out of reach for a capacity of {capacity} (fingerprints of 63 bits); raise it",
                format_rate(fpr)
            ))
        })
    }

    /// Refuses sizes that cannot be addressed.
    pub fn check(self) -> Result<Self> {
        check_table(self.subtables, self.cells)?;
        let fingerprints = u128::from(self.buckets) << self.remainder_bits.min(64);
        let bits =
            u128::from(self.buckets) * u128::from(self.subtables * self.cells * (self.remainder_bits.min(64) + 2));
        if self.buckets == 0 || !(1..=60).contains(&self.remainder_bits) || fingerprints > 1 << 63 || bits >= 1 << 52 {
            return Err(Error::Parameter(format!(
                "buckets and remainder_bits must make at most 2^63 fingerprints and 2^52 bits, got {} and {}",
                self.buckets, self.remainder_bits
            )));
        }
        Ok(self)
    }

    /// Cells of the table.
    pub fn num_cells(self) -> u64 {
        self.buckets * u64::from(self.subtables * self.cells)
    }

    /// Bits of a cell.
    pub fn width(self) -> u32 {
        self.remainder_bits + DIGIT_BITS
    }

    /// Words of the table: its cells, and one more so that any cell can be read as two words.
    pub fn words(self) -> u64 {
        (self.num_cells() * u64::from(self.width())).div_ceil(64) + 1
    }

    /// B R.
    pub fn fingerprints(self) -> u64 {
        self.buckets << self.remainder_bits
    }
}

fn check_table(subtables: u32, cells: u32) -> Result<()> {
    if !(2..=8).contains(&subtables) {
        return Err(Error::Parameter(format!("subtables must be between 2 and 8, got {subtables}")));
    }
    if !(6..=64).contains(&cells) {
        return Err(Error::Parameter(format!("cells must be between 6 and 64, got {cells}")));
    }
    Ok(())
}
