//! [`Cut`] and [`Shard`]: a filter in shards.
//!
//! A shard is a run of consecutive units (lines), and the run of a key follows from its unit, `hash * units >> 64`. The
//! shard is the leading digit of that number, and the unit inside the shard the rest of it, so that they are
//! independent. The shards in order are the filter, whatever their number.

use crate::error::{Error, Result};

/// Units in shards, as even as whole units allow: the first ones have one unit more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLayout {
    shards: u64,
    /// Units of the last shard.
    least: u64,
    /// Shards with one unit more.
    longer: u64,
}

impl ShardLayout {
    /// `units` in `shards`.
    pub fn new(units: u64, shards: u64) -> Result<Self> {
        if shards == 0 || shards > units {
            return Err(Error::Parameter(format!(
                "shards must be between 1 and the {units} lines of the filter, got {shards}"
            )));
        }
        Ok(ShardLayout { shards, least: units / shards, longer: units % shards })
    }

    /// Number of shards.
    pub fn shards(&self) -> u64 {
        self.shards
    }

    /// The shard of a unit, and the unit's number there.
    #[inline]
    pub fn place(&self, unit: u64) -> (u64, u64) {
        if self.shards == 1 {
            return (0, unit);
        }
        let long = self.least + 1;
        match unit.checked_sub(self.longer * long) {
            None => (unit / long, unit % long),
            Some(unit) => (self.longer + unit / self.least, unit % self.least),
        }
    }

    /// The first unit of a shard, and how many it has.
    pub fn range(&self, shard: u64) -> (u64, u64) {
        (shard * self.least + shard.min(self.longer), self.least + u64::from(shard < self.longer))
    }
}

/// The number of a shard, and its string's name.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Its number.
    pub number: u64,
    /// The name of its string.
    pub key: Vec<u8>,
    /// A name on the same node, for bits on their way.
    pub beside: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_one_place_in_shards_that_follow_each_other() {
        for (units, shards) in [(1, 1), (7, 7), (10, 3), (100, 6), (1000, 1), (1001, 16)] {
            let cut = ShardLayout::new(units, shards).unwrap();
            let mut next = 0;
            for shard in 0..shards {
                let (first, len) = cut.range(shard);
                assert_eq!(first, next);
                assert!(len == units / shards || len == units / shards + 1);
                (0..len).for_each(|unit| assert_eq!(cut.place(first + unit), (shard, unit)));
                next += len;
            }
            assert_eq!(next, units);
        }
        assert!(ShardLayout::new(5, 6).is_err() && ShardLayout::new(5, 0).is_err());
    }
}
