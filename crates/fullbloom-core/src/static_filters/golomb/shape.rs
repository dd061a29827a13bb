//! [`Shape`]: the number of values, and the block of each hash.

use crate::error::{Error, Result};
use crate::scheme::fastrange;
use crate::sizing::golomb;

/// Keys of a block at capacity: a lookup decodes half of them, and their offset takes 0.13 bits per key.
const KEYS_A_BLOCK: u64 = 128;

/// Number of blocks, values of each, and bits of a remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub blocks: u64,
    /// Values of a block: the universe is blocks times this.
    pub range: u64,
    /// P, bits of a remainder.
    pub rice_bits: u32,
}

impl Shape {
    /// For `capacity` keys, whose values lie among `universe` or slightly more.
    pub fn of(capacity: u64, universe: u64, rice_bits: u32) -> Self {
        let blocks = Self::blocks_for(capacity);
        Shape { blocks, range: universe.div_ceil(blocks), rice_bits }
    }

    fn blocks_for(capacity: u64) -> u64 {
        capacity.div_ceil(KEYS_A_BLOCK).max(1)
    }

    /// From the numbers of a file.
    pub fn from_numbers(capacity: u64, range: u64, rice_bits: u32) -> Result<Self> {
        let shape = Shape { blocks: Self::blocks_for(capacity), range, rice_bits };
        // Codes take fewer than 2^62 bits: each value at most 64.
        let fits = capacity < 1 << 56 && (1..=1 << 63).contains(&range) && shape.blocks.checked_mul(range).is_some();
        if fits && rice_bits <= golomb::MOST_RICE_BITS {
            return Ok(shape);
        }
        Err(Error::Format(format!(
            "the file has {} blocks of {range} values with remainders of {rice_bits} bits, which no set has; it is damaged",
            shape.blocks
        )))
    }

    /// Number of values.
    pub fn universe(self) -> u64 {
        self.blocks * self.range
    }

    /// The block of a hash, and its place among the values of the block: together its value, hash * universe >> 64.
    #[inline(always)]
    pub fn place(self, hash: u64) -> (u64, u64) {
        let product = u128::from(hash) * u128::from(self.blocks);
        ((product >> 64) as u64, fastrange(product as u64, self.range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::hash;

    #[test]
    fn a_place_is_a_value_cut_into_blocks() {
        for (capacity, universe) in
            [(1, 1), (1, 100), (128, 12_800), (129, 12_900), (1_000_000, 1 << 50), (3, u64::MAX)]
        {
            let shape = Shape::of(capacity, universe, 5);
            assert!(shape.universe() >= universe && shape.universe() - universe < shape.blocks);
            for key in (0..1000).map(hash).chain([0, u64::MAX]) {
                let (block, place) = shape.place(key);
                assert!(block < shape.blocks && place < shape.range);
                assert_eq!(block * shape.range + place, fastrange(key, shape.universe()));
            }
        }
    }
}
