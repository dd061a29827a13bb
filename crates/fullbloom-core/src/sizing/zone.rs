//! The law of zones: the first primes whose product reaches u^d, a cell for each remainder of each, and the bits of a
//! cell.

use crate::error::{Error, Result};

/// Largest number of bits of u^d: 58,000 primes, one probe of a key for each.
const MOST_BITS: f64 = (1u64 << 20) as f64;

/// A natural number as digits of 32 bits, the last first.
struct Natural(Vec<u32>);

impl Natural {
    /// The product of factors.
    fn product(factors: impl Iterator<Item = u64>) -> Self {
        let mut digits = vec![1u32];
        for factor in factors {
            let mut carry = 0u128;
            for digit in &mut digits {
                let sum = u128::from(*digit) * u128::from(factor) + carry;
                *digit = sum as u32;
                carry = sum >> 32;
            }
            while carry > 0 {
                digits.push(carry as u32);
                carry >>= 32;
            }
        }
        Natural(digits)
    }

    fn at_least(&self, other: &Self) -> bool {
        let key = |number: &Self| (number.0.len(), number.0.iter().rev().copied().collect::<Vec<_>>());
        key(self) >= key(other)
    }
}

/// The primes below `end`, in order.
fn below(end: usize) -> impl Iterator<Item = u32> {
    let mut composite = vec![false; end];
    (2..end).filter_map(move |n| {
        if composite[n] {
            return None;
        }
        (n * n..end).step_by(n).for_each(|multiple| composite[multiple] = true);
        Some(n as u32)
    })
}

/// The fewest first primes whose product is at least `universe^zone`: a key that shares its residue with some member for
/// each of them would make a product of at most `zone` differences, each below the universe, divisible by all of them.
pub fn reaching(universe: u64, zone: u64) -> Result<Vec<u32>> {
    let wanted = zone as f64 * (universe as f64).ln();
    if wanted > MOST_BITS * std::f64::consts::LN_2 {
        return Err(Error::Parameter(format!(
            "capacity times the binary logarithm of the universe must be at most {MOST_BITS}, got capacity={zone} and \
             universe={universe}; take a BitSet, or a filter that may be wrong"
        )));
    }
    // The sum of the logarithms of the primes below x is above x / 2 from x = 6 on.
    let (mut primes, mut sum) = (Vec::new(), 0.0);
    for prime in below(2 * wanted as usize + 16) {
        if sum > wanted + 1e-6 {
            break;
        }
        // Logarithms cannot distinguish products that are nearly equal.
        if (sum - wanted).abs() <= 1e-6 && !primes.is_empty() {
            let power = Natural::product((0..zone).map(|_| universe));
            if Natural::product(primes.iter().map(|&prime| u64::from(prime))).at_least(&power) {
                break;
            }
        }
        primes.push(prime);
        sum += f64::from(prime).ln();
    }
    Ok(primes)
}

/// Cells: one for each remainder of each prime.
pub fn cells(primes: &[u32]) -> u64 {
    primes.iter().map(|&prime| u64::from(prime)).sum()
}

/// More occurrences than a zone can have.
pub const MOST_COUNTER_BITS: u32 = 32;

/// Bits of a counter: enough for one member more than the zone holds, since a counter at its maximum has stopped.
pub fn counter_bits(zone: u64) -> u32 {
    (zone.saturating_add(1).ilog2() + 1).clamp(2, MOST_COUNTER_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(universe: u64, zone: u64) -> (usize, u64) {
        let primes = reaching(universe, zone).unwrap();
        (primes.len(), cells(&primes))
    }

    #[test]
    fn published_shapes_hold() {
        assert_eq!(reaching(48, 2).unwrap(), [2, 3, 5, 7, 11]);
        assert_eq!(shape(48, 2), (5, 28));
        let eight = reaching(1000, 2).unwrap();
        assert_eq!((eight.len(), eight.iter().product::<u32>(), shape(1000, 2).1), (8, 9_699_690, 77));
        let computed = [
            (100, 3, 8, 77),
            (1 << 16, 2, 10, 129),
            (10_000, 3, 12, 197),
            (1_000_000, 3, 16, 381),
            (1_000_000, 10, 37, 2584),
            (1 << 32, 4, 27, 1264),
        ];
        for (universe, zone, k, m) in computed {
            assert_eq!(shape(universe, zone), (k, m), "{universe} {zone}");
        }
    }

    #[test]
    fn products_that_are_equal_are_enough_and_one_less_is_not() {
        for (k, product) in [(1, 2u64), (3, 30), (5, 2310), (15, 614_889_782_588_491_410)] {
            assert_eq!(reaching(product, 1).unwrap().len(), k);
            assert_eq!(reaching(product + 1, 1).unwrap().len(), k + 1);
            assert!(product == 2 || reaching(product - 1, 1).unwrap().len() == k);
        }
        assert!(reaching(1 << 32, 1 << 20).is_err() && reaching(u64::MAX, u64::MAX).is_err());
        assert!(reaching(1 << 32, 1 << 15).unwrap().len() > 50_000);
    }
}
