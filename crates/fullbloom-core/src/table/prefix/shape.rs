//! The shape of a prefix filter: the smallest bins and spare that keep a rate. The law is in [`super`].

use super::bins::{self, BIN_SIZE};
use crate::cells::LINE_WORDS;
use crate::cells::memory::ADDRESSABLE_BYTES;
use crate::error::{Error, Result};
use crate::scheme::columns::MAX_PER_COLUMN;
use crate::sizing::{Law, blocked, check_reachable, check_sized, fingerprints, format_rate, smallest};

/// Keys a slot of a bin at capacity.
const LOAD: f64 = 0.95;
/// Widest remainder: a bin has then 10 words.
const MOST_BITS: u32 = 23;
/// Lowest rate of the whole.
const LEAST_FPR: f64 = 1e-6;
/// Share of the rate that is left to the spare at least.
const SPARE_PART: f64 = 0.04;
/// A spare of a higher rate would save nothing worth having.
const MOST_SPARE_FPR: f64 = 0.1;
/// Bins, remainders and spare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixShape {
    /// Bins of 25 fingerprints.
    pub bins: u64,
    /// r.
    pub remainder_bits: u32,
    /// Lines of the spare.
    pub spare_lines: u64,
    /// Positions a column of the spare, 1 to 3.
    pub per_column: u32,
}

impl PrefixShape {
    /// The smallest filter for `capacity` keys at rate `fpr`.
    pub fn for_capacity(capacity: u64, fpr: f64) -> Result<Self> {
        check_sized(capacity, fpr)?;
        check_reachable(capacity, fpr)?;
        let bins = (capacity as f64 / (LOAD * f64::from(BIN_SIZE))).ceil() as u64;
        let load = capacity as f64 / (bins as f64 * f64::from(BIN_SIZE));
        let share = fingerprints::passed_on(LOAD, BIN_SIZE);
        // For every number of words the widest remainder that fits; the first that leaves the spare a rate that it can
        // have.
        let equal = |width: u32| fingerprints::prefix(load, width, 0.0, 0.0);
        let widths = (1..=MOST_BITS).filter(|&width| bins::words_of(width) < bins::words_of(width + 1));
        let width = widths.into_iter().find(|&width| equal(width) <= (1.0 - SPARE_PART) * fpr);
        let width = width.filter(|_| fpr >= LEAST_FPR).ok_or_else(|| {
            Error::Parameter(format!(
                "fpr must be at least {LEAST_FPR:e} (the spare has no lower rates), got {}; use CuckooFilter or \
                 BloomFilter for lower ones",
                format_rate(fpr)
            ))
        })?;
        let passed = share * capacity as f64;
        let passed = passed + 4.0 * passed.sqrt() + 8.0;
        let target = ((fpr - equal(width)) / share).min(MOST_SPARE_FPR);
        let spare = (1..=MAX_PER_COLUMN).filter_map(|per_column| {
            let lines = smallest(1 << 50, target, |blocks| blocked::law(blocks, per_column).fpr(passed))?;
            Some((lines, per_column))
        });
        let (spare_lines, per_column) = spare.min().ok_or_else(|| Error::parameter("fpr is too low for a spare"))?;
        PrefixShape { bins, remainder_bits: width, spare_lines, per_column }.check()
    }

    /// Refuses a shape that no filter has.
    pub(super) fn check(self) -> Result<Self> {
        let possible = self.bins > 0
            && (1..=MOST_BITS).contains(&self.remainder_bits)
            && self.spare_lines > 0
            && (1..=MAX_PER_COLUMN).contains(&self.per_column);
        if !possible {
            return Err(Error::parameter(format!("no prefix filter has the shape {self:?}")));
        }
        let words = self.bins.checked_mul(u64::from(bins::words_of(self.remainder_bits)));
        let spare = self.spare_lines.checked_mul(LINE_WORDS as u64);
        let sum = words.zip(spare).and_then(|(words, spare)| words.checked_add(spare));
        if sum.is_none_or(|words| words >= ADDRESSABLE_BYTES / 8) {
            return Err(Error::Memory(format!(
                "a filter of {} bins is beyond any machine; lower the capacity",
                self.bins
            )));
        }
        Ok(self)
    }

    /// Words of a bin.
    pub(super) fn bin_words(self) -> usize {
        bins::words_of(self.remainder_bits) as usize
    }

    /// Words of all bins, whole lines; the shape has been checked.
    pub(super) fn words(self) -> u64 {
        (self.bins * self.bin_words() as u64).next_multiple_of(LINE_WORDS as u64)
    }

    /// Words of the spare.
    pub(super) fn spare_words(self) -> u64 {
        self.spare_lines * LINE_WORDS as u64
    }

    /// Number of fingerprints, k 2^r.
    pub(super) fn fps(self) -> u64 {
        u64::from(BIN_SIZE) << self.remainder_bits
    }
}
