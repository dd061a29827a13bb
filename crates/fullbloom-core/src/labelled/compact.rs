//! [`CompactApproximator`]: a value a key, never below the truth in the order of its lattice.
//!
//! See [`super::valued`] for the rule. `max` gives an upper bound of the largest value added with a
//! key, `min` a lower bound of the smallest, `or` a superset of the bits.

use super::valued::{Cells, Kind, Lattice, Valued, valued};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::COMPACT;

valued! {
    /// An approximate map from keys to small numbers: its answers are never below the true value in the
    /// order of its lattice.
    class CompactApproximator;
    parameters {
        /// distinct keys.
        capacity: "int";
        /// rate of false positives at capacity: a key never added has a value.
        fpr: "float" = 0.01;
        *;
        /// "max" returns an upper bound of the largest value added with the key, "min" a lower bound of
        /// the smallest, "or" a superset of the bits.
        lattice: "str" = "max";
        /// 1 to 32.
        value_bits: "int" = 8;
    }
    /// Values: 1 to 2**value_bits - 1; for "min" 0 to 2**value_bits - 2. get() of a key never added
    /// returns the bottom, which cannot be added: 0, and 2**value_bits - 1 for "min".
    /// False negatives: never. Raises ParameterError, ParameterTypeError, FilterMemoryError; warns
    /// CapacityWarning past capacity. Cost: value_bits for each bit of a Bloom filter, 77 bits per key at
    /// 1 % and 8 bits; num_hashes cache lines per key. Source: Boldi, Vigna, Science of Computer
    /// Programming 54(1), 2005; above v ``(1 - (1 - 1/m)**(k * keys_above_v))**k``.
    ///
    /// >>> from fullbloom import CompactApproximator
    /// >>> last = CompactApproximator(1000)
    /// >>> last.update("abracadabra", range(1, 12))
    /// Traceback (most recent call last):
    ///     ...
    /// fullbloom.errors.KeyTypeError: a batch takes many keys, got one str; use add(), in, or [key]
    /// >>> last.update(list("abracadabra"), range(1, 12))
    /// >>> last.get("a"), last.get("c"), last.get("z")
    /// (11, 5, 0)
}

/// Values.
pub enum Compact {}

const MAX_BITS: u32 = 32;

impl Kind for Compact {
    const VARIANT: u16 = COMPACT;
    const WORD: &'static str = "value";

    fn allows(_: Lattice, width: u32, largest: u64) -> bool {
        width <= MAX_BITS && largest == u64::MAX >> (64 - width)
    }
}

/// A filter with a value for every key.
pub type CompactApproximator = Valued<Compact>;

impl CompactApproximator {
    /// An empty filter for `capacity` keys with values of `value_bits` bits.
    pub fn construct(capacity: u64, fpr: f64, lattice: &str, value_bits: u64, hasher: KeyHasher) -> Result<Self> {
        let (lattice, bits) = check_parameters(lattice, value_bits)?;
        Self::make(capacity, fpr, lattice, bits, u64::MAX >> (64 - bits), hasher)
    }

    /// Bytes of cells of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, lattice: &str, value_bits: u64) -> Result<u64> {
        Self::bytes(capacity, fpr, check_parameters(lattice, value_bits)?.1)
    }
}

/// The lattice of this name, and the bits of a cell.
fn check_parameters(lattice: &str, value_bits: u64) -> Result<(Lattice, u32)> {
    let unknown = || Error::Parameter(format!("lattice must be max, min or or, got {lattice:?}"));
    let lattice = Lattice::from_name(lattice).ok_or_else(unknown)?;
    if !(1..=u64::from(MAX_BITS)).contains(&value_bits) {
        return Err(Error::Parameter(format!("value_bits must be between 1 and {MAX_BITS}, got {value_bits}")));
    }
    Ok((lattice, value_bits as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::{hash, reload};
    use crate::structure::{Filter, Mergeable};
    use std::collections::HashMap;

    #[test]
    fn values_are_never_under_the_join_in_any_order() {
        for &(lattice, name) in Lattice::NAMES {
            for bits in [1, 3, 8, 13, 32] {
                let make = || CompactApproximator::construct(800, 0.02, name, bits, KeyHasher::seeded(0)).unwrap();
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
                assert!(reload(&forward).same_as(&forward));
            }
        }
    }
}
