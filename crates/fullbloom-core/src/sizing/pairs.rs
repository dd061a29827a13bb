//! The law of two lines a key, one in each half of the bits: the square of the law of one in a half.
//!
//! Which keys come to the line of one half says nothing of those in a line of the other, so that the chance that both
//! hold an absent key is the product of two means, `E[q(I)]^2`, I ~ Binomial(n, 1 / lines of a half). Bits that fall
//! together on a line are not as many on the other: Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom
//! filters", 2007.

use super::Law;
use super::lanes::Lanes;

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

    /// Each half strays by itself.
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
