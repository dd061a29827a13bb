//! A uniform hash as a number of a range.

/// High 64 bits of the product: maps a uniform `hash` to `0..range` without division, from its
/// top bits (Lemire, "Fast random integer generation in an interval", 2019).
#[inline(always)]
pub fn fastrange(hash: u64, range: u64) -> u64 {
    // WebAssembly has no product of 128 bits: it would be a call with a result in memory.
    if cfg!(target_arch = "wasm32") && range >> 32 == 0 { by_halves(hash, range) } else { product(hash, range) }
}

#[inline(always)]
fn product(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}

/// [`product`] for a range below 2^32, whose partial products have 64 bits.
#[inline(always)]
fn by_halves(hash: u64, range: u64) -> u64 {
    let (high, low) = (hash >> 32, hash & 0xffff_ffff);
    (high * range + ((low * range) >> 32)) >> 32
}

#[cfg(test)]
mod tests {
    use super::{by_halves, product};
    use crate::structure::testing::fixed_cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(fixed_cases())]
        #[test]
        fn halves_give_the_product(hash: u64, range: u32) {
            prop_assert_eq!(by_halves(hash, range.into()), product(hash, range.into()));
            let ends = [(u64::MAX, u32::MAX), (u64::MAX, range), (hash, u32::MAX), (0, range), (hash, 0)];
            for (hash, range) in ends {
                prop_assert_eq!(by_halves(hash, range.into()), product(hash, range.into()));
            }
        }
    }
}
