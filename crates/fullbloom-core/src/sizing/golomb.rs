//! Laws of sets whose sorted values are coded by their gaps.
//!
//! n keys go to values below F = n / p, of which they occupy a share of q = 1 - exp(-p): keys with one value are coded once.
//! A gap less 1 is geometric with ratio 1 - q; a Rice code of parameter P has its last P bits, and the rest in unary.

use super::{check_fpr, check_reachable};
use crate::error::{Error, Result};

/// Largest Rice parameter: a remainder is read in one piece with the 7 bits before it.
pub const MOST_RICE_BITS: u32 = 56;
/// Largest average number of unary bits of a value: four parameters below the best.
const MOST_UNARY: f64 = 16.0;

/// Unary zeros of a value: `1 / ((1 - fpr)^(-2^P) - 1)`, `fpr` the share of occupied values.
fn unary(fpr: f64, rice_bits: u32) -> f64 {
    1.0 / (-(-fpr).ln_1p() * 2f64.powi(rice_bits as i32)).exp_m1()
}

/// Bits a value: P, the 1 that ends the unary part, and the zeros before it; `fpr` is the share of values that are occupied.
pub fn bits_per_key(fpr: f64, rice_bits: u32) -> f64 {
    f64::from(rice_bits) + 1.0 + unary(fpr, rice_bits)
}

/// The Rice parameter with the fewest bits for a set built at rate `fpr`: `floor(log2(ln 2 / q))`, or one more, q = 1 -
/// exp(-fpr) the share of values that are occupied.
pub fn rice_bits(fpr: f64) -> u32 {
    let q = -(-fpr).exp_m1();
    let least = (std::f64::consts::LN_2 / q).log2().clamp(0.0, f64::from(MOST_RICE_BITS)) as u32;
    let more = (least + 1).min(MOST_RICE_BITS);
    if bits_per_key(q, more) < bits_per_key(q, least) { more } else { least }
}

/// The requested Rice parameter, or the best.
pub fn checked_rice_bits(fpr: f64, asked: Option<u64>) -> Result<u32> {
    let Some(asked) = asked else { return Ok(rice_bits(fpr)) };
    let fits = |bits: &u32| u64::from(*bits) == asked && unary(fpr, *bits) <= MOST_UNARY;
    (0..=MOST_RICE_BITS).find(fits).ok_or_else(|| {
        let least = (0..=MOST_RICE_BITS).find(|bits| unary(fpr, *bits) <= MOST_UNARY).unwrap_or(MOST_RICE_BITS);
        Error::Parameter(format!(
            "rice_bits must be between {least} and {MOST_RICE_BITS} at fpr {}, got {asked}; leave it out for the best, {}",
            super::format_rate(fpr),
            rice_bits(fpr)
        ))
    })
}

/// The number of values over which `keys` keys are spread: the fewest of which they occupy a share of `fpr` at most.
pub fn universe(keys: u64, fpr: f64) -> Result<u64> {
    check_reachable(keys, check_fpr(fpr)?)?;
    Ok((keys.max(1) as f64 / fpr).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_bits_a_key_come_out() {
        let figures = [(2f64.powi(-7), 8.534), (0.01, 8.108), (2f64.powi(-10), 11.541), (2f64.powi(-20), 21.541)];
        for (fpr, bits) in figures.into_iter().chain([(1.0 / 784_931.0, 21.052)]) {
            assert!((bits_per_key(fpr, rice_bits(fpr)) - bits).abs() < 5e-4, "{fpr}");
        }
        assert_eq!(rice_bits(1.0 / 784_931.0), 19);
    }

    #[test]
    fn no_other_parameter_takes_fewer_bits() {
        for i in 1..1000 {
            let fpr = 10f64.powf(-f64::from(i) / 67.0);
            let q = -(-fpr).exp_m1();
            let best = bits_per_key(q, rice_bits(fpr));
            assert!((0..=MOST_RICE_BITS).all(|bits| bits_per_key(q, bits) >= best), "{fpr}");
        }
    }

    #[test]
    fn parameters_that_would_blow_up_are_refused() {
        assert_eq!(checked_rice_bits(0.01, None).unwrap(), 6);
        assert_eq!(checked_rice_bits(0.01, Some(3)).unwrap(), 3);
        for bits in [0, 1, 2, 57, u64::MAX] {
            assert!(matches!(checked_rice_bits(0.01, Some(bits)), Err(Error::Parameter(_))), "{bits}");
        }
        assert_eq!(universe(3, 0.01).unwrap(), 300);
        assert!(universe(1 << 60, 0.01).is_err() && universe(1, 0.0).is_err());
    }
}
