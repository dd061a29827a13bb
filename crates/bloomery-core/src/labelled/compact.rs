//! [`CompactApproximator`]: a value a key, never below the truth in the order of its lattice.
//!
//! See [`super::valued`] for the rule. `max` gives an upper bound of the largest value added with a
//! key, `min` a lower bound of the smallest, `or` a superset of the bits.

use super::valued::{Kind, Lattice, Valued};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::COMPACT;

/// Values.
pub enum Compact {}

/// Bits of a value with default parameters.
pub const VALUE_BITS: u32 = 8;
const MAX_BITS: u32 = 32;

impl Kind for Compact {
    const VARIANT: u16 = COMPACT;
    const WORD: &'static str = "value";
    const DEFAULT_BITS: u32 = VALUE_BITS;

    fn allows(_: Lattice, width: u32, largest: u64) -> bool {
        width <= MAX_BITS && largest == u64::MAX >> (64 - width)
    }
}

/// A filter with a value for every key.
pub type CompactApproximator = Valued<Compact>;

impl CompactApproximator {
    /// An empty filter for `capacity` keys with values of `value_bits` bits.
    pub fn new(capacity: u64, fpr: f64, lattice: Lattice, value_bits: u32, hasher: KeyHasher) -> Result<Self> {
        if !(1..=MAX_BITS).contains(&value_bits) {
            return Err(Error::Parameter(format!("value_bits must be between 1 and {MAX_BITS}, got {value_bits}")));
        }
        Self::make(capacity, fpr, lattice, value_bits, u64::MAX >> (64 - value_bits), hasher)
    }
}

#[cfg(test)]
mod tests {
    use super::super::valued::LATTICES;
    use super::super::valued::tests::{hash, reload};
    use super::*;
    use crate::structure::{Filter, Loadable, Mergeable};
    use std::collections::HashMap;

    #[test]
    fn values_are_never_under_the_join_in_any_order() {
        for (lattice, _) in LATTICES {
            for bits in [1, 3, 8, 13, 32] {
                let make = || CompactApproximator::new(800, 0.02, lattice, bits, KeyHasher::seeded(0)).unwrap();
                let (mut forward, mut backward, mut batch) = (make(), make(), make());
                let pairs: Vec<(u64, u64)> = (0..1500)
                    .map(|i| (hash(hash(i) % 800), hash(1 << 40 | i) & (u64::MAX >> (64 - bits))))
                    .filter(|&(_, value)| forward.encode(value).is_ok())
                    .collect();
                let mut truth: HashMap<u64, u64> = HashMap::new();
                for &(key, value) in &pairs {
                    forward.put_hash(key, value).unwrap();
                    let old = truth.entry(key).or_insert(value);
                    *old = match lattice {
                        Lattice::Max => value.max(*old),
                        Lattice::Min => value.min(*old),
                        Lattice::Or => value | *old,
                    };
                }
                pairs.iter().rev().for_each(|&(key, value)| drop(backward.put_hash(key, value)));
                let (keys, values): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
                let mut new = vec![0; keys.len()];
                batch.put_hashes(&keys, &values, Some(&mut new)).unwrap();
                assert_eq!(new.iter().map(|&fresh| u64::from(fresh)).sum::<u64>(), batch.num_added());
                assert!(forward.same_as(&backward) && forward.same_as(&batch));
                // Idempotent: once more changes nothing.
                batch.put_hashes(&keys, &values, None).unwrap();
                assert!(forward.same_as(&batch));
                batch.merge(&forward).unwrap();
                assert!(forward.same_as(&batch));
                let mut exact = 0;
                for (&key, &value) in &truth {
                    let got = forward.get_hash(key);
                    assert!(forward.contains_hash(key));
                    assert!(match lattice {
                        Lattice::Max => got >= value,
                        Lattice::Min => got <= value,
                        Lattice::Or => got & value == value,
                    });
                    exact += usize::from(got == value);
                }
                assert!(exact as f64 > 0.9 * truth.len() as f64, "{lattice:?} {bits} {exact}");
                assert!(reload(&forward, CompactApproximator::load).same_as(&forward));
            }
        }
    }
}
