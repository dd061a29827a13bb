//! The stable law: cells that decay while keys come, so that the rate is the same for ever.
//!
//! Each key decrements P of m cells (neighbours, from a random start) by one and then sets K cells
//! to Max. Deng and Rafiei, "Approximately detecting duplicates for streaming data using stable
//! Bloom filters", 2006:
//!
//! ```text
//! share of zeros   z = (1 / (1 + 1 / (P (1/K - 1/m))))^Max
//! rate             E[X^K] >= (1 - z)^K,  X the share of other cells
//! ```
//!
//! X varies, and its mean alone is a few percent too low in small filters (Jensen). With
//! neighbours decremented together, two cells at distance d < P are zero together a little more
//! often than apart; at d = 0 by c = (P/(P+2K))^Max - (P/(P+K))^(2 Max), and the excess falls to 0
//! at d = P as a convex function, so that
//!
//! ```text
//! Var X <= (z (1 - z) + P c) / m,   rate = (1-z)^K (1 + K (K-1)/2 Var X / (1-z)^2)
//! ```
//!
//! A cell is zero `a` keys after it was set when its Max-th decrement came sooner than the latest
//! other set: probability z Pr(Poisson((P + K) a / m) >= Max). A key is remembered while none of
//! its K cells is zero.

use super::{LEAST_FPR, check_sized, shown, smallest, too_large};
use crate::error::{Error, Result};

/// 2^46 bytes, beyond any machine, in lines of 64 bytes.
const MAX_LINES: u64 = 1 << 40;
/// Bits of a line.
const LINE_BITS: u64 = 512;

/// z, the expected share of zeros in the long run, by m, K, P and Max.
pub fn zeros([m, k, p, max]: [f64; 4]) -> f64 {
    let a = p * (1.0 / k - 1.0 / m);
    if a <= 0.0 { 0.0 } else { (-max * (1.0 / a).ln_1p()).exp() }
}

/// The rate in the long run, the variation of the fill included.
pub fn fpr([m, k, p, max]: [f64; 4]) -> f64 {
    let zeros = zeros([m, k, p, max]);
    let set = 1.0 - zeros;
    let together = (-max * (2.0 * k / p).ln_1p()).exp() - (-2.0 * max * (k / p).ln_1p()).exp();
    let variance = (zeros * set + p * together.max(0.0)) / m;
    (set.powf(k) * (1.0 + k * (k - 1.0) / 2.0 * variance / (set * set))).min(1.0)
}

/// Chance that a key is still found after `age` other keys; its K cells are taken as independent.
pub fn recall(age: f64, [m, k, p, max]: [f64; 4]) -> f64 {
    let zero = zeros([m, k, p, max]) * poisson_tail((p + k) * age / m, max as u32);
    (1.0 - zero).max(0.0).powf(k)
}

/// A shape of the stable law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stable {
    /// m.
    pub num_cells: u64,
    /// d: a cell holds 0 to Max = 2^d - 1.
    pub cell_bits: u32,
    /// K.
    pub num_hashes: u32,
    /// P.
    pub decrements: u64,
}

impl Stable {
    /// Max.
    pub fn max(&self) -> u32 {
        (1 << self.cell_bits) - 1
    }

    /// m, K, P and Max.
    fn numbers(&self) -> [f64; 4] {
        [self.num_cells as f64, f64::from(self.num_hashes), self.decrements as f64, f64::from(self.max())]
    }

    /// [`zeros`] of this shape.
    pub fn zeros(&self) -> f64 {
        zeros(self.numbers())
    }

    /// [`fpr`] of this shape.
    pub fn fpr(&self) -> f64 {
        fpr(self.numbers())
    }

    /// [`recall`] of this shape.
    pub fn recall(&self, age: f64) -> f64 {
        recall(age, self.numbers())
    }

    /// The smallest filter with a rate of at most `fpr` for ever in which a key that `capacity` others
    /// followed is still found with a chance of one half.
    pub fn for_capacity(capacity: u64, fpr: f64, cell_bits: u32, num_hashes: Option<u32>) -> Result<Self> {
        check_sized(capacity, fpr)?;
        if fpr < LEAST_FPR {
            return Err(Error::Parameter(format!(
                "fpr must be at least {LEAST_FPR:.1e} (keys are 64-bit hashes), got {}",
                shown(fpr)
            )));
        }
        if !matches!(cell_bits, 1 | 2 | 4 | 8) {
            return Err(Error::Parameter(format!("cell_bits must be 1, 2, 4 or 8, got {cell_bits}")));
        }
        let num_hashes = num_hashes.unwrap_or_else(|| default_hashes(fpr));
        if !(1..=64).contains(&num_hashes) {
            return Err(Error::Parameter(format!("num_hashes must be between 1 and 64, got {num_hashes}")));
        }
        let shape = |lines: u64| {
            let num_cells = lines * (LINE_BITS / u64::from(cell_bits));
            let of = |decrements| Stable { num_cells, cell_bits, num_hashes, decrements };
            smallest(num_cells, fpr, |decrements| of(decrements).fpr()).map(of)
        };
        let forgets = |lines: u64| shape(lines).map_or(1.0, |shape| 1.0 - shape.recall(capacity as f64));
        smallest(MAX_LINES, 0.5, forgets).and_then(shape).ok_or_else(|| too_large(capacity, fpr))
    }

    /// Refuses what no constructor makes.
    pub fn check(self) -> Result<Self> {
        let fits = matches!(self.cell_bits, 1 | 2 | 4 | 8)
            && (1..=64).contains(&self.num_hashes)
            && self.num_cells > 0
            && self.num_cells < 1 << 49
            && (self.num_cells * u64::from(self.cell_bits)).is_multiple_of(LINE_BITS)
            && (1..=self.num_cells).contains(&self.decrements);
        if fits { Ok(self) } else { Err(Error::parameter("the cells of a stable filter do not fit each other")) }
    }

    /// 64-bit words of the cells.
    pub fn words(&self) -> u64 {
        self.num_cells * u64::from(self.cell_bits) / 64
    }
}

/// Near the K of least space: a third of the cells set, 10^(-1/2) each (4 at 1 %, 6 at 0.1 %).
fn default_hashes(fpr: f64) -> u32 {
    (-2.0 * fpr.log10()).round().clamp(1.0, 32.0) as u32
}

/// Pr(Poisson(mean) >= least).
fn poisson_tail(mean: f64, least: u32) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    let (mut below, mut log_factorial) = (0.0, 0.0);
    for i in 0..least {
        if i > 0 {
            log_factorial += f64::from(i).ln();
        }
        below += (f64::from(i) * mean.ln() - mean - log_factorial).exp();
    }
    (1.0 - below).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sized_filter_keeps_rate_and_recall() {
        for cell_bits in [1, 2, 4, 8] {
            for (capacity, fpr) in [(1, 0.01), (10, 0.3), (1000, 1e-3), (1_000_000, 0.01), (10_000_000, 1e-9)] {
                let shape = Stable::for_capacity(capacity, fpr, cell_bits, None).unwrap().check().unwrap();
                assert!(shape.fpr() <= fpr, "{shape:?}");
                assert!(shape.recall(capacity as f64) >= 0.5, "{shape:?}");
                assert!(shape.recall(0.0) == 1.0 && shape.recall(1e18) <= 1.01 * fpr, "{shape:?}");
            }
        }
    }
}
