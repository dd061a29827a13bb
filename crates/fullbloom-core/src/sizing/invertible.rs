//! Laws of invertible tables: k sub-tables of `each` cells, in each of which a key lies in one cell.

use super::counters::binomial_tail;
use super::{all_of, smallest};
use crate::error::Result;
use crate::sizing::too_large;

/// Sub-tables.
const TABLES: u32 = 4;
/// Cells per key beyond the threshold of 1.295 (k = 4), and cells for each square root of the number of keys, with which less
/// than one table in a thousand fails (simulated, 1 to 10,000 keys).
const SLOPE: f64 = 1.3;
const SPREAD: f64 = 3.0;
/// No machine has more cells.
const MOST: u64 = 1 << 48;

/// Chance that an absent key is not ruled out: each of its cells holds two keys or more.
pub fn rate(items: f64, each: f64, tables: u32) -> f64 {
    all_of(binomial_tail(items, 1.0 / each, 2), tables)
}

/// Upper bound on the chance that some two of `items` keys share all their cells, which prevents decoding. In
/// logarithms, for pairs beyond the range of a float.
pub fn twins(items: f64, each: f64, tables: f64) -> f64 {
    let pairs = items * (items - 1.0) / 2.0;
    if pairs.is_finite() {
        return (pairs * each.powf(-tables)).clamp(0.0, 1.0);
    }
    (2.0 * items.ln() - std::f64::consts::LN_2 - tables * each.ln()).exp().clamp(0.0, 1.0)
}

/// Cells of a sub-table with which less than one table in a thousand cannot be decoded.
pub fn decodable(items: u64) -> u64 {
    let n = items as f64;
    let peeled = (SLOPE * n + SPREAD * n.sqrt() + 8.0) / f64::from(TABLES);
    // Half of the allowed chance: larger groups of keys add to it.
    let parted = (n * (n - 1.0) / 2.0 * 2000.0).max(0.0).powf(0.25);
    peeled.max(parted).ceil() as u64
}

/// Cells of a sub-table of a table that can be decoded at `items` keys and then finds absent ones at `fpr` at most.
pub fn cells(items: u64, fpr: f64) -> Result<u64> {
    if items >= MOST {
        return Err(too_large(items, fpr));
    }
    let sparse = smallest(MOST, fpr, |each| rate(items as f64, each as f64, TABLES));
    sparse.map(|sparse| sparse.max(decodable(items)).max(2)).ok_or_else(|| too_large(items, fpr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fall_with_the_cells_and_sizes_keep_them() {
        for items in [1u64, 2, 44, 1000, 1_000_000] {
            for fpr in [0.5, 0.01, 1e-6] {
                let each = cells(items, fpr).unwrap();
                assert!(rate(items as f64, each as f64, 4) <= fpr);
                assert!(twins(items as f64, each as f64, 4.0) <= 1e-3);
                assert!(each == decodable(items).max(2) || rate(items as f64, each as f64 - 1.0, 4) > fpr);
            }
        }
        assert!(rate(0.0, 8.0, 4) == 0.0 && rate(1e9, 8.0, 4) > 0.999);
    }
}
