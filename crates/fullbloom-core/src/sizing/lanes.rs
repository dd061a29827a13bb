//! The lane law: a key chooses one block and sets T distinct cells in each of its lanes.
//!
//! ```text
//! i keys in a block          i ~ Binomial(n, 1 / blocks)
//! q(s) = C(w - s, T) / C(w, T)     a key leaves s given cells of a lane of w cells alone
//! Q(i) = sum_s (-1)^s C(T, s) q(s)^i     T given cells all set after i keys
//! rate = E[Q(i)^lanes]       lanes are independent once i is known
//! ```
//!
//! `blocked` is (m/512, 4, 128, T), `split` (m/256, 8, 32, 1), `partitioned` (1, k, m/k, 1). The
//! mean over i is what the classic formula lacks for blocked filters: Putze, Sanders and Singler,
//! "Cache-, hash- and space-efficient Bloom filters", 2007.

use super::{Law, any_of};

/// Terms below this share of a sum are left out.
const NEGLIGIBLE: f64 = 1e-22;

/// A shape of the lane law.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// Blocks, each chosen with equal probability.
    pub blocks: u64,
    /// Lanes of a block.
    pub lanes: u32,
    /// Cells of a lane.
    pub width: u64,
    /// T, distinct cells a key sets in each lane.
    pub per_lane: u32,
}

impl Lanes {
    /// q(s).
    fn avoids(&self, cells: u32) -> f64 {
        self.log_avoids(cells).exp()
    }

    /// ln q(s), even for a lane so wide that q(s) is 1 to the last digit.
    fn log_avoids(&self, cells: u32) -> f64 {
        (0..self.per_lane)
            .map(|j| {
                let free = self.width as f64 - f64::from(j);
                (-(f64::from(cells) / free).min(1.0)).ln_1p()
            })
            .sum()
    }

    /// ln q(1) to ln q(cells).
    fn logs(&self, cells: u32) -> Vec<f64> {
        (1..=cells).map(|s| self.log_avoids(s)).collect()
    }

    /// The mean over the keys of a block.
    fn mean(&self, items: f64, of: impl Fn(f64) -> f64) -> f64 {
        binomial_mean(items, 1.0 / self.blocks as f64, of)
    }

    /// Q(i)^lanes; `logs` has ln q(1) to ln q(T).
    fn rate_at(&self, keys: f64, logs: &[f64]) -> f64 {
        all_set(logs, keys).powi(self.lanes as i32)
    }

    /// Probabilities that two keys share 0, 1, ... of their cells of a lane.
    fn share_chances(&self) -> Vec<f64> {
        let per_lane = f64::from(self.per_lane);
        let choose = |n: f64, k: u32| (0..k).fold(1.0, |product, j| product * (n - f64::from(j)) / f64::from(j + 1));
        let all = choose(self.width as f64, self.per_lane);
        let share = |j| choose(per_lane, j) * choose(self.width as f64 - per_lane, self.per_lane - j) / all;
        (0..=self.per_lane).map(share).collect()
    }

    /// ln of the probability that a given cell is free after `items` keys.
    fn log_free(&self, items: f64) -> f64 {
        items * (-self.share()).ln_1p()
    }

    /// Probability that a key sets a given cell.
    fn share(&self) -> f64 {
        f64::from(self.per_lane) / self.width as f64 / self.blocks as f64
    }
}

impl Law for Lanes {
    fn fpr(&self, items: f64) -> f64 {
        let logs = self.logs(self.per_lane);
        if self.blocks == 1 {
            return self.rate_at(items, &logs);
        }
        self.mean(items, |keys| self.rate_at(keys, &logs))
    }

    fn fill(&self, items: f64) -> f64 {
        any_of(self.share(), items)
    }

    fn items(&self, fill: f64) -> f64 {
        if fill >= 1.0 {
            return f64::INFINITY;
        }
        (-fill).ln_1p() / (-self.share()).ln_1p()
    }

    fn items_sd(&self, items: f64) -> f64 {
        if items <= 0.0 || items.is_infinite() {
            return items.max(0.0);
        }
        // Variance of the free cells: pairs in one lane, in one block, and in different blocks.
        let (width, lanes, blocks) = (self.width as f64, f64::from(self.lanes), self.blocks as f64);
        let cells = width * lanes * blocks;
        let (q1, q2) = (self.avoids(1), self.avoids(2));
        let free = self.log_free(items);
        // P(both free) / P(free)^2 - 1 for a pair whose joint avoidance by a hit is `joint`.
        let excess = |joint: f64| (items * (-(1.0 - joint) / blocks).ln_1p() - 2.0 * free).exp_m1();
        let apart = (items * (-2.0 * self.share()).ln_1p() - 2.0 * free).exp_m1();
        let pairs = (width - 1.0) * excess(q2)
            + width * (lanes - 1.0) * excess(q1 * q1)
            + width * lanes * (blocks - 1.0) * if self.blocks > 1 { apart } else { 0.0 };
        let variance = cells * ((-free).exp_m1() + pairs).max(0.0);
        // d(free cells)/dn = cells * P(free) * ln(1 - share); P(free)^2 was divided out above.
        variance.sqrt() / (cells * -(-self.share()).ln_1p())
    }

    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_variance(&self, items: f64) -> f64 {
        if self.blocks == 1 || items <= 0.0 || items.is_infinite() {
            return 0.0;
        }
        let (shared, logs) = (self.share_chances(), self.logs(2 * self.per_lane));
        // The second moment: two keys are found.
        let rates = self.mean(items, |keys| {
            let both = shared.iter().enumerate();
            let both = both.map(|(same, chance)| chance * all_set(&logs[..2 * self.per_lane as usize - same], keys));
            both.sum::<f64>().powi(self.lanes as i32)
        });
        (rates - self.fpr(items).powi(2)).max(0.0)
    }

    /// Blocks differ in their keys and in their set cells: with R the rate of a block and X its set cells, the part of
    /// R that X does not determine is Var R - Cov(R, X)^2 / Var X for one block, and a share of it for all.
    fn fpr_sd(&self, items: f64) -> f64 {
        if self.blocks == 1 || items <= 0.0 || items.is_infinite() {
            return 0.0;
        }
        let (width, lanes, per_lane) = (self.width as f64, f64::from(self.lanes), self.per_lane as usize);
        let logs = self.logs(self.per_lane + 1);
        let set = |cells: usize, keys| all_set(&logs[..cells], keys);
        let ones = self.mean(items, |keys| lanes * width * set(1, keys));
        // Second moments: two cells are set, a key is found and a cell is set.
        let squares = self.mean(items, |keys| {
            let (one, two) = (width * set(1, keys), width * (width - 1.0) * set(2, keys));
            lanes * (one + two) + lanes * (lanes - 1.0) * one * one
        });
        let joint = self.mean(items, |keys| {
            let (found, more) = (set(per_lane, keys), set(per_lane + 1, keys));
            let own = self.per_lane as f64 * found + (width - f64::from(self.per_lane)) * more;
            lanes * found.powi(self.lanes as i32 - 1) * own
        });
        let regression = (joint - self.fpr(items) * ones).powi(2) / (squares - ones * ones).max(f64::MIN_POSITIVE);
        ((self.block_variance(items) - regression).max(0.0) / self.blocks as f64).sqrt()
    }

    fn cell_worth(&self, items: f64) -> f64 {
        let cells = self.width as f64 * f64::from(self.lanes) * self.blocks as f64;
        (-self.log_free(items)).exp() / (cells * -(-self.share()).ln_1p())
    }
}

/// Probability that given cells of a lane, one or more, are all set after so many keys; `logs` has ln q(1), ln q(2)
/// and so on, one per cell.
fn all_set(logs: &[f64], keys: f64) -> f64 {
    if keys <= 0.0 {
        return 0.0;
    }
    let (cells, mut binomial, mut sum) = (logs.len() as f64, 1.0, 0.0);
    for (s, log) in logs.iter().enumerate() {
        binomial *= -(cells - s as f64) / (s as f64 + 1.0);
        // The binomials with their signs add up to 0, so that 1 may be taken from each power.
        sum += binomial * (keys * log).exp_m1();
    }
    sum.clamp(0.0, 1.0)
}

/// E[f(i)], i ~ Binomial(n, p), by the ratio of neighbouring terms from the mode outwards: no factorials, and the
/// weights are normalised by their own sum. f grows and stays at or below 1: at low rates the sum lies far above the
/// mode, so the upward walk ends by the weight that remains.
pub(crate) fn binomial_mean(n: f64, p: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mean, sd) = (n * p, (n * p * (1.0 - p)).sqrt());
    if mean > WIDE {
        return if f(mean - 12.0 * sd) >= 1.0 { 1.0 } else { normal_mean(mean, sd, f) };
    }
    let odds = p / (1.0 - p);
    let mode = ((n + 1.0) * p).floor().min(n.floor());
    let (mut weight, mut mean) = (1.0, f(mode));
    let (mut term, mut i) = (1.0, mode);
    while i < n && term > f64::MIN_POSITIVE {
        let fall = (n - i) / (i + 1.0) * odds;
        if fall < 1.0 && term * fall <= NEGLIGIBLE * mean * (1.0 - fall) {
            break;
        }
        term *= fall;
        i += 1.0;
        weight += term;
        mean += term * f(i);
    }
    (term, i) = (1.0, mode);
    while term > NEGLIGIBLE && i > 0.0 {
        term *= i / (n - i + 1.0) / odds;
        i -= 1.0;
        weight += term;
        mean += term * f(i);
    }
    mean / weight
}

/// From this many keys a block on, the normal replaces the binomial: skewness is then below 0.02, and walking its 30 sd
/// terms would take seconds at 10^13.
const WIDE: f64 = 4096.0;

/// E[f(x)] for a normal x, on a grid of an eighth of a deviation.
fn normal_mean(mean: f64, sd: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut weight, mut sum) = (0.0, 0.0);
    for step in -64..=64 {
        let z = f64::from(step) / 8.0;
        let density = (-z * z / 2.0).exp();
        weight += density;
        sum += density * f((mean + z * sd).max(0.0));
    }
    sum / weight
}

/// Halves of equal law.
#[derive(Clone, Copy, Debug)]
pub struct Pairs {
    /// The law of a half.
    pub half: Lanes,
}

impl Law for Pairs {
    fn fpr(&self, items: f64) -> f64 {
        self.half.fpr(items).powi(2)
    }

    fn fill(&self, items: f64) -> f64 {
        self.half.fill(items)
    }

    fn items(&self, fill: f64) -> f64 {
        self.half.items(fill)
    }

    /// The fill is the mean of two that are independent.
    fn items_sd(&self, items: f64) -> f64 {
        self.half.items_sd(items) / 2f64.sqrt()
    }

    /// The halves deviate independently.
    fn fpr_sd(&self, items: f64) -> f64 {
        2f64.sqrt() * self.half.fpr(items) * self.half.fpr_sd(items)
    }

    fn blocks(&self) -> u64 {
        self.half.blocks()
    }

    /// Of pairs of lines, `E[R^2]^2 - E[R]^4`.
    fn block_variance(&self, items: f64) -> f64 {
        let rate = self.half.fpr(items).powi(2);
        (self.half.block_variance(items) + rate).powi(2) - rate * rate
    }

    fn cell_worth(&self, items: f64) -> f64 {
        self.half.cell_worth(items) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimating_inverts_the_fill() {
        let law = Lanes { blocks: 1000, lanes: 4, width: 128, per_lane: 2 };
        assert!((law.items(law.fill(40_000.0)) - 40_000.0).abs() < 1e-4);
        assert_eq!(law.fpr(0.0), 0.0);
    }
}
