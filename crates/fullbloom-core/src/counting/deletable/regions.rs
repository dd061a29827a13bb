//! [`Regions`]: the bits of a deletable filter in equal parts, with a flag each for keys that met.

use std::ops::Range;

use crate::cells::bits;
use crate::error::{Error, Result};
use crate::scheme::positions::Positions;
use crate::sizing::{Law, classic};

/// The default size of a region in bits: a quarter more space, and 90 % of the keys can be deleted at capacity.
const DEFAULT_REGION: u64 = 4;

/// m, k and the regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    /// m and k; m is a multiple of `count`.
    pub positions: Positions,
    /// r.
    pub count: u64,
}

impl Regions {
    /// `positions` cut into `count` regions (by default one for 4 bits); m is rounded up to a
    /// multiple of it.
    pub fn new(positions: Positions, count: Option<u64>) -> Result<Self> {
        let mut positions = positions.check()?;
        let count = count.unwrap_or(positions.num_bits.div_ceil(DEFAULT_REGION));
        if count == 0 || count > positions.num_bits {
            return Err(Error::Parameter(format!(
                "regions must be between 1 and num_bits ({}), got {count}",
                positions.num_bits
            )));
        }
        positions.num_bits = positions.num_bits.next_multiple_of(count);
        Regions { positions, count }.check()
    }

    /// Refuses numbers that no constructor chooses.
    pub fn check(self) -> Result<Self> {
        self.positions.check()?;
        if self.count == 0 || !self.positions.num_bits.is_multiple_of(self.count) {
            return Err(Error::Parameter(format!("regions must divide num_bits, got {}", self.count)));
        }
        Ok(self)
    }

    /// Bits of a region.
    pub(super) fn size(self) -> u64 {
        self.positions.num_bits / self.count
    }

    /// Words of the flags.
    pub(super) fn flag_words(self) -> u64 {
        self.count.div_ceil(64)
    }

    /// Set bits of regions without a flag, in a range of words.
    pub(super) fn free_in(self, words: &[u64], flags: &[u64], range: Range<usize>) -> u64 {
        let (size, from, to) = (self.size(), range.start as u64 * 64, range.end as u64 * 64);
        let regions = from / size..to.div_ceil(size).min(self.count);
        let unflagged = regions.filter(|region| flags[(region >> 6) as usize] & bits::mask(*region) == 0);
        let parts = unflagged.map(|region| (from.max(region * size), to.min((region + 1) * size)));
        parts.map(|(start, end)| count_range(words, start, end - start)).sum()
    }

    /// Estimated share of the keys that can be deleted, from the set bits in regions without a flag; 1 for an empty
    /// filter. `fill` is the share of set bits.
    pub(super) fn deletability_of(self, free: u64, fill: f64) -> f64 {
        let throws = f64::from(self.positions.num_hashes) * self.positions.law().items(fill);
        classic::deletability(free as f64, throws, self.positions.num_hashes)
    }
}

/// Set bits among `len` from number `start` on.
fn count_range(words: &[u64], start: u64, len: u64) -> u64 {
    let (mut at, end, mut ones) = (start, start + len, 0);
    while at < end {
        let take = (64 - at % 64).min(end - at);
        let part = u64::from_le(words[(at >> 6) as usize]) >> (at % 64) & (u64::MAX >> (64 - take));
        ones += u64::from(part.count_ones());
        at += take;
    }
    ones
}
