//! The size of a new filter.

use std::f64::consts::LN_2;

/// `-n ln p / (ln 2)^2` down to a whole number, the bits of Spark and Guava.
pub(super) fn optimal_bits(capacity: u64, fpr: f64) -> u64 {
    (-(capacity as f64) * fpr.ln() / (LN_2 * LN_2)) as u64
}
