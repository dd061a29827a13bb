//! [`Lanes`]: positions of Spark's version 2, in lanes of 32 bits for filters of fewer than 2^31 bits.
//!
//! ```text
//! c_i = h1 (2^31 - 1) + i h2,   position_i = (c_i if c_i >= 0 else -1 - c_i) mod m,   i = 1..k
//! ```
//!
//! While the sums have the sign of h1, the position moves by +h2 (or by -h2, if h1 is negative) modulo m: one addition, and
//! one subtraction of m at most, in place of a division. The sums keep their sign if |h1| > k, since |h2| is at most 2^31.
//!
//! The first position takes a product by a constant modulo m: with `f = floor(2^32 b / m)`, `x b - floor(x f / 2^32) m` is
//! below 2 m for x below 2^32 and b below m (Shoup). Nothing is wider than 32 bits but the products of which the high half
//! is taken, so the compiler makes vectors of these loops.

use super::rounds::{BLOCK, Rounds};

/// The factor of h1.
const FACTOR: u32 = i32::MAX as u32;

/// m and the constants that belong to it.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    bits: u32,
    factor: Constant,
    one: Constant,
}

/// A factor below m, and how often m is in 2^32 times it.
#[derive(Clone, Copy)]
struct Constant {
    value: u32,
    quotient: u32,
}

impl Constant {
    fn new(value: u32, bits: u32) -> Self {
        let value = value % bits;
        Constant { value, quotient: ((u64::from(value) << 32) / u64::from(bits)) as u32 }
    }
}

impl Lanes {
    /// For filters of `num_bits` bits; `None` for those that lanes do not hold.
    pub(super) fn of(num_bits: u64) -> Option<Self> {
        let bits = u32::try_from(num_bits).ok().filter(|bits| (2..1 << 31).contains(bits))?;
        Some(Lanes { bits, factor: Constant::new(FACTOR, bits), one: Constant::new(1, bits) })
    }

    /// A number below 2 m, modulo m: the difference wraps beyond the number if that is below m.
    #[inline(always)]
    fn reduce(self, number: u32) -> u32 {
        number.min(number.wrapping_sub(self.bits))
    }

    /// `number * by` modulo m.
    #[inline(always)]
    fn times(self, number: u32, by: Constant) -> u32 {
        let quotient = ((u64::from(number) * u64::from(by.quotient)) >> 32) as u32;
        self.reduce(number.wrapping_mul(by.value).wrapping_sub(quotient.wrapping_mul(self.bits)))
    }

    /// The first position of a key, and how far each lies behind the one before.
    #[inline(always)]
    fn start(self, first: u32, second: u32) -> (u32, u32) {
        let (first, second) = (first as i32, second as i32);
        // All ones if negative.
        let (first_sign, second_sign) = (first >> 31, second >> 31);
        let start = self.times(first.unsigned_abs(), self.factor);
        let start = if first_sign == 0 { start } else { start.wrapping_sub(1).min(start.wrapping_add(self.bits - 1)) };
        let step = self.times(second.unsigned_abs(), self.one);
        let step = if first_sign == second_sign { step } else { self.reduce(self.bits - step) };
        (self.reduce(start + step), step)
    }

    /// Fills the first `num_hashes` of `rounds`; false, and no positions, if a sum might change its sign.
    #[inline(always)]
    pub(super) fn place(
        self,
        first: &[u32; BLOCK],
        second: &[u32; BLOCK],
        num_hashes: usize,
        rounds: &mut Rounds<u32>,
    ) -> bool {
        let least = first.iter().fold(u32::MAX, |least, &first| least.min((first as i32).unsigned_abs()));
        if least as usize <= num_hashes {
            return false;
        }
        let (mut positions, mut steps) = ([0; BLOCK], [0; BLOCK]);
        for i in 0..BLOCK {
            (positions[i], steps[i]) = self.start(first[i], second[i]);
        }
        for round in &mut rounds[..num_hashes] {
            *round = positions;
            for i in 0..BLOCK {
                positions[i] = self.reduce(positions[i] + steps[i]);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::remainder::Remainder;
    use super::super::rounds::MOST;
    use super::*;
    use crate::foreign::rules::Walk;
    use crate::foreign::rules::spark::Sums64;
    use crate::hash::splitmix::mix;

    #[test]
    fn positions_are_those_of_the_walk() {
        let borders = [1 << 31, (1 << 31) + 1, u32::MAX - 16, u32::MAX - 17, i32::MAX as u32, 17, 18];
        let steps = [1 << 31, (1 << 31) + 1, u32::MAX, u32::MAX - 1, i32::MAX as u32, 0, 1];
        let random: Vec<u32> = (0..BLOCK as u64).map(|i| mix(i) as u32).collect();
        for num_bits in [2, 3, 64, 128, 1 << 20, 19_170_176, (1 << 30) - 64, 1 << 30, (1 << 31) - 64, (1 << 31) - 1] {
            let (lanes, by) = (Lanes::of(num_bits).unwrap(), Remainder::by(num_bits));
            let (mut first, mut second) = ([0; BLOCK], [0; BLOCK]);
            for i in 0..BLOCK {
                first[i] = *borders.get(i / 9).unwrap_or(&(random[i] | 1 << 20));
                second[i] = *steps.get(i % 9).unwrap_or(&random[BLOCK - 1 - i]);
            }
            let mut rounds = [[0; BLOCK]; MOST];
            assert!(lanes.place(&first, &second, MOST, &mut rounds));
            for i in 0..BLOCK {
                let mut walk = Sums64::start([first[i].into(), second[i].into()]);
                for round in &rounds {
                    assert_eq!(u64::from(round[i]), by.of(walk.next()), "{} {} mod {num_bits}", first[i], second[i]);
                }
            }
            // 16 times h2 may turn the sum of such a small h1.
            first[7] = 16;
            assert!(!lanes.place(&first, &second, MOST, &mut rounds));
        }
        assert!(Lanes::of(1).is_none() && Lanes::of(1 << 31).is_none());
    }
}
