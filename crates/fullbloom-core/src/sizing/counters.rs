//! Laws of cells that count: a key adds to each of its distinct cells once.
//!
//! ```text
//! s = 1 - (1 - 1/m)^k                 a key touches a given cell
//! q = P(Bin(n, s) >= theta)           n keys lift a given cell to the threshold
//! rate = E[q^D]                       D distinct cells among k throws over m
//! ```
//!
//! The counts of several cells are negatively associated, so the product q^D is an upper bound. The
//! published form, P(Bin(kn, 1/m) >= theta)^k (Kim et al.), is its limit for large m.

use super::any_of;
use super::lanes::binomial_mean;

/// Terms below this share of their sum are left out.
const NEGLIGIBLE: f64 = 1e-18;

/// P(Bin(n, p) >= least); `n` may be an estimate, and so a fraction.
pub fn binomial_tail(n: f64, p: f64, least: u64) -> f64 {
    if least == 0 {
        return 1.0;
    }
    if n < least as f64 || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    if least == 1 {
        return any_of(p, n);
    }
    let odds = p / (1.0 - p);
    // Chances of j + 1 by those of j.
    let rise = |j: f64| ((n - j) / (j + 1.0) * odds).max(0.0);
    let log = (0..least).fold(n * (-p).ln_1p(), |log, j| log + rise(j as f64).ln());
    let (mut term, mut sum, mut j) = (log.exp(), 0.0, least as f64);
    if j <= n * p {
        // Downwards from the mean, where terms are largest.
        while j > 0.0 && term > NEGLIGIBLE * sum {
            j -= 1.0;
            term /= rise(j);
            sum += term;
        }
        return (1.0 - sum).clamp(0.0, 1.0);
    }
    while term > NEGLIGIBLE * sum {
        sum += term;
        term *= rise(j);
        j += 1.0;
    }
    sum.min(1.0)
}

/// Probability that a key touches a given one of `cells` with `hashes` throws.
pub fn share(cells: f64, hashes: u32) -> f64 {
    if cells <= 1.0 { 1.0 } else { any_of(1.0 / cells, f64::from(hashes)) }
}

/// P(D = 0), P(D = 1), ...: D the number of distinct cells among `hashes` throws over `cells`.
pub fn distinct(cells: f64, hashes: u32) -> Vec<f64> {
    let mut distinct = vec![0.0; hashes as usize + 1];
    distinct[0] = 1.0;
    for throw in 1..=hashes as usize {
        for d in (1..=throw).rev() {
            let fresh = ((cells - (d - 1) as f64) / cells).max(0.0);
            distinct[d] = distinct[d] * (d as f64 / cells).min(1.0) + distinct[d - 1] * fresh;
        }
        distinct[0] = 0.0;
    }
    distinct
}

/// E[q^D], D as in [`distinct`].
pub fn all_accept(q: f64, cells: f64, hashes: u32) -> f64 {
    distinct(cells, hashes).iter().enumerate().map(|(d, p)| p * q.powi(d as i32)).sum::<f64>().min(1.0)
}

/// Rate at which an absent key has all of its k cells at `threshold` or more: k throws over m cells.
pub fn threshold_fpr(items: f64, cells: f64, hashes: u32, threshold: u64) -> f64 {
    all_accept(binomial_tail(items, share(cells, hashes), threshold), cells, hashes)
}

/// The same for a key with one cell in each of `lanes` lanes of `width` cells of one of `blocks` blocks: exact, since
/// lanes are independent given the keys of the block.
pub fn lane_threshold_fpr(items: f64, blocks: f64, lanes: u32, width: f64, threshold: u64) -> f64 {
    let found = |keys: f64| binomial_tail(keys, 1.0 / width, threshold).powi(lanes as i32);
    if blocks <= 1.0 { found(items) } else { binomial_mean(items, 1.0 / blocks, found) }
}

/// Share of cells that accept a probe of a variable-increment filter (increments L to 2L - 1): all except empty ones,
/// those with one other increment, and those whose two increments cannot contain it.
pub fn variable_accepts(items: f64, cells: f64, hashes: u32, l: f64) -> f64 {
    let s = share(cells, hashes);
    if s >= 1.0 {
        return 1.0;
    }
    let (rest, odds) = ((-s).ln_1p(), s / (1.0 - s));
    let none = (items * rest).exp();
    let one = items * odds * none;
    let two = items * (items - 1.0).max(0.0) / 2.0 * odds * odds * none;
    (1.0 - none - (l - 1.0) / l * one - (l * l - 1.0) / (6.0 * l * l) * two).clamp(0.0, 1.0)
}

/// Rate of a variable-increment filter: all k probes accept. Rottenstreich, Kanizo and Keslassy, "The
/// variable-increment counting Bloom filter", 2014, whose form is (share that accepts)^k.
pub fn variable_fpr(items: f64, cells: f64, hashes: u32, l: f64) -> f64 {
    if items <= 0.0 { 0.0 } else { all_accept(variable_accepts(items, cells, hashes, l), cells, hashes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_right_on_both_sides_of_the_mean() {
        let exact = |least: u64| -> f64 {
            let choose = |j: u64| (0..j).fold(1.0, |c, i| c * (20 - i) as f64 / (i + 1) as f64);
            (least..=20).map(|j| choose(j) * 0.3f64.powi(j as i32) * 0.7f64.powi(20 - j as i32)).sum()
        };
        for least in 1..=20 {
            assert!((binomial_tail(20.0, 0.3, least) / exact(least) - 1.0).abs() < 1e-9, "{least}");
        }
        assert_eq!(binomial_tail(20.0, 0.3, 21), 0.0);
    }

    #[test]
    fn tiny_filters_meet_the_exact_occupancy() {
        // One key, two cells, two throws: all of another key's cells are taken with probability 5/8.
        assert!(threshold_fpr(1.0, 2.0, 2, 1) >= 0.625);
        assert!(threshold_fpr(1.0, 2.0, 2, 1) < 0.7);
    }
}
