//! The classic law: k independent throws a key over m cells.
//!
//! Rate E[(X/m)^k], X the occupied cells after kn throws (Bose et al., "On the false-positive rate
//! of Bloom filters", 2008): [`occupied`]. The mean alone, (1 - (1-1/m)^kn)^k, is too low in small filters: by
//! 5 % at m = 18, k = 3 and by 6 % at m = 100, k = 7. Sizes are found, and stated in files, by the second-order
//! term below, with the variance of X by occupancy: it leaves 0.1 % at m = 64, k = 7 and 1.1 % at m = 292, k = 19,
//! and up to 64 % for a single key at 1e-12. Up to 4096 bits sizing takes the upper bound of Goel and Gupta instead.

use super::occupancy::occupied;
use super::{Law, all_of, any_of, smallest};

/// m cells, k throws a key.
#[derive(Clone, Copy, Debug)]
pub struct Classic {
    /// m.
    pub num_bits: u64,
    /// k.
    pub num_hashes: u32,
}

/// At rates from 1e-15 on, no more probes than this are useful.
pub const MAX_HASHES: u32 = 64;

/// The upper bound `(1 - e^(-k(n + 1/2)/(m - 1)))^k` of the exact rate, for m above 1: Goel and Gupta, "Small subset
/// queries and Bloom filters using ternary associative memories", 2010.
pub fn goel_gupta(items: f64, num_bits: f64, num_hashes: f64) -> f64 {
    (-(-num_hashes * (items + 0.5) / (num_bits - 1.0)).exp_m1()).powf(num_hashes)
}

/// Bits with the real optimum of k: `-n ln p / (ln 2)^2` (Bloom, 1970).
pub fn optimal_bits(items: f64, fpr: f64) -> f64 {
    items * -fpr.ln() / std::f64::consts::LN_2.powi(2)
}

impl Classic {
    /// The smallest m up to `most`, with its k, whose safe rate is at most `fpr` at `capacity` keys.
    pub fn for_capacity(most: u64, capacity: u64, fpr: f64) -> Option<Self> {
        let best = (-fpr.log2()).floor().clamp(1.0, f64::from(MAX_HASHES - 1)) as u32;
        let sized = [best, best + 1].into_iter().filter_map(|num_hashes| {
            let rate = |num_bits| Classic { num_bits, num_hashes }.safe_fpr(capacity as f64);
            smallest(most, fpr, rate).map(|num_bits| Classic { num_bits, num_hashes })
        });
        sized.min_by_key(|found| found.num_bits)
    }

    /// A rate that is never too low: up to 4096 bits the bound of [`goel_gupta`], beyond them the rate of
    /// second order. Costs tiny filters a few bits.
    pub fn safe_fpr(&self, items: f64) -> f64 {
        if self.num_bits > 4096 {
            return self.second_order(items);
        }
        let (m, k) = (self.num_bits as f64, f64::from(self.num_hashes));
        if self.num_bits < 2 {
            return 1.0;
        }
        goel_gupta(items, m, k).max(self.second_order(items))
    }

    /// The rate by mean and variance of the occupied cells, which sizes, and so files, are based on.
    pub fn second_order(&self, items: f64) -> f64 {
        let (m, k, throws) = (self.num_bits as f64, f64::from(self.num_hashes), self.throws(items));
        if items <= 0.0 {
            return 0.0;
        }
        if self.num_bits <= 1 {
            return 1.0;
        }
        // log of P(cell free) and of P(two cells free)
        let (one, two) = (throws * (-1.0 / m).ln_1p(), throws * (-2.0 / m).ln_1p());
        let fill = -one.exp_m1();
        // Var(X)/m^2 = P2 - P1^2 + (P1 - P2)/m, the first difference through expm1.
        let pair = (2.0 * one).exp() * (two - 2.0 * one).exp_m1();
        let variance = (pair + (one.exp() - two.exp()) / m).max(0.0);
        let correction = k * (k - 1.0) / 2.0 * variance / (fill * fill);
        (k * fill.ln() + correction.ln_1p()).exp().min(1.0)
    }

    fn throws(&self, items: f64) -> f64 {
        items * f64::from(self.num_hashes)
    }
}

impl Law for Classic {
    fn fpr(&self, items: f64) -> f64 {
        match (items > 0.0, self.num_bits) {
            (false, _) => 0.0,
            (true, 0 | 1) => 1.0,
            (true, m) => occupied(self.throws(items), m as f64, self.num_hashes),
        }
    }

    fn fill(&self, items: f64) -> f64 {
        if self.num_bits <= 1 {
            return if items > 0.0 { 1.0 } else { 0.0 };
        }
        any_of(1.0 / self.num_bits as f64, self.throws(items))
    }

    fn items(&self, fill: f64) -> f64 {
        if fill >= 1.0 || self.num_bits <= 1 {
            return if fill > 0.0 { f64::INFINITY } else { 0.0 };
        }
        (-fill).ln_1p() / (f64::from(self.num_hashes) * (-1.0 / self.num_bits as f64).ln_1p())
    }

    /// Exact if the cells are known: each of k probes finds a set one independently.
    fn fpr_of_fill(&self, fill: f64) -> f64 {
        all_of(fill, self.num_hashes)
    }

    fn items_sd(&self, items: f64) -> f64 {
        // Linear counting over kn throws (Whang et al., 1990): sqrt(m (e^t - t - 1)) / k.
        let per_bit = self.throws(items) / self.num_bits as f64;
        // Infinity less infinity would be no number.
        let scatter = if per_bit < 700.0 { per_bit.exp_m1() - per_bit } else { f64::INFINITY };
        (self.num_bits as f64 * scatter).max(0.0).sqrt() / f64::from(self.num_hashes)
    }

    fn cell_worth(&self, items: f64) -> f64 {
        (self.throws(items) / self.num_bits as f64).exp() / f64::from(self.num_hashes)
    }
}

/// Share of the keys of a deletable filter that can be deleted now: `1 - (1 - free / throws)^k`, each of the k throws
/// of a key being one of the `free` set bits in regions where no keys met; 1 for an empty filter. Rothenberg, Macapuna,
/// Verdi and Magalhaes, "The deletable Bloom filter", 2010.
pub fn deletability(free: f64, throws: f64, num_hashes: u32) -> f64 {
    if throws <= 0.0 {
        return 1.0;
    }
    any_of((free / throws).min(1.0), f64::from(num_hashes))
}

/// Share of the keys of a retouched filter that are missed when a share of their bits was cleared: `1 - (1 - x)^k`.
/// Donnet, Baynat and Friedman, "Retouched Bloom filters", 2006.
pub fn missed_rate(lost: f64, num_hashes: f64) -> f64 {
    any_of(lost, num_hashes)
}

/// Chance that a key of no area is given each label, 1 first, from the cells c_j of m that hold label j:
/// `p_i = (sum_(j>=i) c_j / m)^k - sum_(j>i) p_j`. Palmieri, Calderoni and Maio, "Spatial Bloom filters", 2014.
pub fn label_rates(label_cells: &[u64], num_cells: u64, num_hashes: u32) -> Vec<f64> {
    let mut rates = label_cells.iter().map(|&cells| cells as f64).collect::<Vec<_>>();
    let (mut above, mut total) = (0.0, 0.0);
    for rate in rates.iter_mut().rev() {
        above += *rate;
        let at_least = all_of(above / num_cells as f64, num_hashes);
        *rate = (at_least - total).max(0.0);
        total = at_least;
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimating_inverts_the_fill() {
        let law = Classic { num_bits: 10_000, num_hashes: 7 };
        assert!((law.items(law.fill(1000.0)) - 1000.0).abs() < 1e-6);
        assert!((law.items_sd(1000.0) - 8.00).abs() < 0.01);
        assert!(law.items(1.0).is_infinite());
    }
}
