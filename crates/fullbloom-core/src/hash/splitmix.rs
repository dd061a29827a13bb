//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): spreads
//! counters and states over all 64 bits.

/// The step of the generator, 2^64 over the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer: a bijection in which every input bit reaches every output bit.
#[inline(always)]
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Output number `i` of the generator that starts at `seed`.
#[inline(always)]
pub fn at(seed: u64, i: u64) -> u64 {
    mix(seed.wrapping_add(i.wrapping_add(1).wrapping_mul(STEP)))
}

/// The generator, by its state.
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next output.
    #[allow(clippy::should_implement_trait)] // endless: an Option would be in the way
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_outputs_hold_both_ways() {
        let mut generator = SplitMix(1_234_567);
        for (i, want) in
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423].iter().enumerate()
        {
            assert_eq!((generator.next(), at(1_234_567, i as u64)), (*want, *want));
        }
    }
}
