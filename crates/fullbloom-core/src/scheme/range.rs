//! A uniform hash as a number of a range.

/// High 64 bits of the product: maps a uniform `hash` to `0..range` without division, from its
/// top bits (Lemire, "Fast random integer generation in an interval", 2019).
#[inline(always)]
pub fn fastrange(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}
