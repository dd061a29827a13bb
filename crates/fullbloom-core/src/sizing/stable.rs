//! The stable law: cells that decay while keys are added, so that the rate stays constant.
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
//! X varies, and its mean alone is a few percent too low in small filters (Jensen). With cells decremented
//! together by P neighbours, Var X <= (z (1 - z) + P c) / m, c = (P/(P+2K))^Max - (P/(P+K))^(2 Max): the bound that
//! filters are sized by. The rate itself, [`fpr`], takes the variance of pairs of cells at every distance, K throws
//! that may meet, and
//!
//! ```text
//! rate = (1-z)^K (1 + Var X / (1-z)^2)^(K (K-1) / 2)
//! ```
//!
//! Of two cells, backwards in time: each is zero if Max decrements come before a set. A key sets none, one or
//! both of them, and decrements both with chance (P - d)/m at distance d < P and never beyond: what near cells
//! are zero together more often, far ones are less. Var X is a fifth of the bound (m = 1000, K = 3, P = 36, Max = 3:
//! 1.071e-4; 1.06e-4 in a simulation).
//!
//! A cell is zero `a` keys after it was set when its Max-th decrement came sooner than the latest
//! other set: probability z Pr(Poisson((P + K) a / m) >= Max). A key is remembered while none of
//! its K cells is zero.

use super::{LEAST_FPR, check_sized, format_rate, smallest, too_large};
use crate::error::{Error, Result};

/// 2^46 bytes, beyond any machine, in lines of 64 bytes.
const MAX_LINES: u64 = 1 << 40;
/// Terms below this share of their sum are left out.
const NEGLIGIBLE: f64 = 1e-18;
/// Bits of a line.
const LINE_BITS: u64 = 512;

/// z, the expected share of zeros in the long run, by m, K, P and Max.
pub fn zeros([m, k, p, max]: [f64; 4]) -> f64 {
    let a = p * (1.0 / k - 1.0 / m);
    if a <= 0.0 { 0.0 } else { (-max * (1.0 / a).ln_1p()).exp() }
}

/// Bound on the rate in the long run, the variation of the fill included, by which filters are sized.
fn most([m, k, p, max]: [f64; 4]) -> f64 {
    let zeros = zeros([m, k, p, max]);
    let set = 1.0 - zeros;
    let together = (-max * (2.0 * k / p).ln_1p()).exp() - (-2.0 * max * (k / p).ln_1p()).exp();
    let variance = (zeros * set + p * together.max(0.0)) / m;
    (set.powf(k) * (1.0 + k * (k - 1.0) / 2.0 * variance / (set * set))).min(1.0)
}

/// The rate in the long run, the variation of the fill included; Max^2 steps for each of at most 65 distances.
pub fn fpr([m, k, p, max]: [f64; 4]) -> f64 {
    let pair = Pair::new([m, k, p, max]);
    let set = pair.one[max as usize];
    let variance = pair.variance(m, p.min(m)).max(0.0);
    (set.powf(k) * (1.0 + variance / (set * set)).powf(k * (k - 1.0) / 2.0)).min(1.0)
}

/// Two cells, backwards in time from now: the effect of one key on them.
struct Pair {
    /// Decrements one of them.
    decays: f64,
    /// Sets neither, both, or a given one but not the other.
    neither: f64,
    both: f64,
    single: f64,
    /// Sets at least one.
    some: f64,
    /// Chance that a cell is set before it is decremented that often.
    one: Vec<f64>,
}

/// More distances than these are summed by Simpson's rule: for cells of at most 4 bits, and for others, which take 300
/// times as long.
const FEW: [f64; 2] = [64.0, 16.0];

impl Pair {
    fn new([m, k, p, max]: [f64; 4]) -> Self {
        let (one, two) = (k * (-1.0 / m).ln_1p(), k * (-(2.0 / m).min(1.0)).ln_1p());
        let (missed, hit) = (one.exp(), -one.exp_m1());
        let apart = missed * missed * (k * (-(1.0 / (m - 1.0).powi(2)).min(1.0)).ln_1p()).exp_m1();
        let (decays, neither) = ((p / m).min(1.0), two.exp());
        let both = (hit * hit + apart).max(0.0);
        // The odds, as a logarithm, that a decrement comes before a set.
        let log = -(hit / (missed * decays)).ln_1p();
        let one = (0..=max as u32).map(|left| -(f64::from(left) * log).exp_m1()).collect();
        Pair { decays, neither, both, single: hit - both, some: -two.exp_m1(), one }
    }

    /// Covariance of two cells that a key decrements together with chance `joint`.
    fn covariance(&self, joint: f64) -> f64 {
        let max = self.one.len() - 1;
        let alone = self.decays - joint;
        let any = self.some + self.neither * (joint + 2.0 * alone);
        // The one set by a key, the other goes on, from this very key's decrement.
        let rest = |left: usize| (1.0 - self.decays) * self.one[left] + self.decays * self.one[left - 1];
        let mut before = vec![0.0; max + 1];
        for a in 1..=max {
            let mut row = vec![0.0; max + 1];
            for b in 1..=max {
                let decayed = joint * before[b - 1] + alone * (before[b] + row[b - 1]);
                row[b] = (self.both + self.single * (rest(a) + rest(b)) + self.neither * decayed) / any;
            }
            before = row;
        }
        before[max] - self.one[max] * self.one[max]
    }

    /// Variance of the share of cells that are not zero.
    fn variance(&self, m: f64, p: f64) -> f64 {
        let set = self.one[self.one.len() - 1];
        let near = (p.min(m - p).ceil() - 1.0).max(0.0);
        let far = self.covariance((2.0 * p - m).max(0.0) / m);
        let at = |distance: f64| self.covariance((p - distance) / m);
        (set * (1.0 - set)
            + 2.0 * sum_smooth(near, FEW[usize::from(self.one.len() > 16)], at)
            + (m - 1.0 - 2.0 * near) * far)
            / m
    }
}

/// The sum of a smooth f(1) ... f(count).
fn sum_smooth(count: f64, few: f64, f: impl Fn(f64) -> f64) -> f64 {
    if count <= few {
        return (1..=count as u32).map(|i| f(f64::from(i))).sum();
    }
    let step = (count - 1.0) / few;
    let values: Vec<f64> = (0..=few as u32).map(|i| f(1.0 + f64::from(i) * step)).collect();
    let last = values.len() - 1;
    let inner = values[1..last].iter().enumerate().map(|(i, value)| if i % 2 == 0 { 4.0 * value } else { 2.0 * value });
    let integral = (values[0] + values[last] + inner.sum::<f64>()) * step / 3.0;
    // Euler and Maclaurin: the ends count half in an integral.
    let slope = |a: f64, b: f64, c: f64| (4.0 * b - 3.0 * a - c) / (2.0 * step);
    let slopes = slope(values[last], values[last - 1], values[last - 2]) + slope(values[0], values[1], values[2]);
    integral + (values[0] + values[last]) / 2.0 - slopes / 12.0
}

/// Chance that a key is still found after `age` other keys; its K cells count as independent.
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

    /// [`most`] of this shape.
    fn sizing_fpr(&self) -> f64 {
        most(self.numbers())
    }

    /// [`recall`] of this shape.
    pub fn recall(&self, age: f64) -> f64 {
        recall(age, self.numbers())
    }

    /// The smallest filter with a permanent rate of at most `fpr` that still finds a key with a chance of one half
    /// after `capacity` others.
    pub fn for_capacity(capacity: u64, fpr: f64, cell_bits: u32, num_hashes: Option<u32>) -> Result<Self> {
        check_sized(capacity, fpr)?;
        if fpr < LEAST_FPR {
            return Err(Error::Parameter(format!(
                "fpr must be at least {LEAST_FPR:.1e} (keys are 64-bit hashes), got {}",
                format_rate(fpr)
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
            smallest(num_cells, fpr, |decrements| of(decrements).sizing_fpr()).map(of)
        };
        let forgets = |lines: u64| shape(lines).map_or(1.0, |shape| 1.0 - shape.recall(capacity as f64));
        smallest(MAX_LINES, 0.5, forgets).and_then(shape).ok_or_else(|| too_large(capacity, fpr))
    }

    /// Refuses numbers that no constructor chooses.
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
        return if least == 0 { 1.0 } else { 0.0 };
    }
    let log = (1..=least).map(|i| (mean / f64::from(i)).ln()).sum::<f64>() - mean;
    let (mut term, mut sum, mut i) = (log.exp(), 0.0, f64::from(least));
    if i > mean {
        while term > NEGLIGIBLE * sum {
            sum += term;
            i += 1.0;
            term *= mean / i;
        }
        return sum.min(1.0);
    }
    while i > 0.0 && term > NEGLIGIBLE * sum {
        term *= i / mean;
        i -= 1.0;
        sum += term;
    }
    (1.0 - sum).clamp(0.0, 1.0)
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
