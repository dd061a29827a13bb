//! [`Remainder`]: numbers below 2^63 modulo a fixed divisor, by a multiplication in place of a division.
//!
//! With `L = ceil(log2 d)` and `m = ceil(2^(63 + L) / d)`, `floor(x m / 2^(63 + L))` is `floor(x / d)` for all x below
//! 2^63: m is off by less than 1, so the product by less than 2^L x / 2^63 of a unit of the quotient (Granlund and
//! Montgomery, "Division by invariant integers using multiplication", 1994). m fits in 64 bits, since d is above 2^(L-1).

/// A divisor.
#[derive(Clone, Copy, Debug)]
pub(in crate::foreign) struct Remainder {
    divisor: u64,
    factor: u64,
    shift: u32,
}

impl Remainder {
    /// By `divisor`, from 2 to 2^62. Of 1, only the number 0 is taken: rules whose numbers are below the divisor.
    pub(in crate::foreign) fn by(divisor: u64) -> Self {
        let bits = 64 - (divisor - 1).leading_zeros();
        let factor = (1u128 << (63 + bits)).div_ceil(divisor.into()) as u64;
        Remainder { divisor, factor, shift: bits.saturating_sub(1) }
    }

    /// `number % divisor`, for a number below 2^63.
    #[inline(always)]
    pub(super) fn of(self, number: u64) -> u64 {
        let high = ((u128::from(number) * u128::from(self.factor)) >> 64) as u64;
        number - (high >> self.shift) * self.divisor
    }

    /// `number % divisor`, for any number.
    #[inline(always)]
    pub(in crate::foreign) fn of_any(self, number: u64) -> u64 {
        let rest = 2 * self.of(number >> 1) + (number & 1);
        rest.min(rest.wrapping_sub(self.divisor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::splitmix::mix;

    #[test]
    fn the_only_number_below_one_is_kept() {
        assert_eq!(Remainder::by(1).of(0), 0);
    }

    #[test]
    fn remainders_are_those_of_division() {
        let borders = (1..62).flat_map(|bits| [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        let random = (0..2000u64).map(|i| mix(i) >> (2 + i % 60));
        for divisor in borders.chain(random).filter(|divisor| *divisor >= 2) {
            let by = Remainder::by(divisor);
            let near = (1..50).map(|i| (u64::MAX >> 1) / divisor / i * divisor);
            let numbers = near.flat_map(|n| [n.saturating_sub(1), n, n + (n < u64::MAX >> 1) as u64]);
            for number in numbers.chain((0..200).map(|i| mix(i) >> 1)).chain([0, 1, (1 << 63) - 1]) {
                assert_eq!(by.of(number), number % divisor, "{number} % {divisor}");
                for number in [2 * number, 2 * number + 1] {
                    assert_eq!(by.of_any(number), number % divisor, "{number} % {divisor}");
                }
            }
        }
    }
}
