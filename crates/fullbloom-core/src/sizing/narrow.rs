//! The law of hashes with few bits.
//!
//! Of n keys, `D(n) = 2^b (1 - e^(-n / 2^b))` have distinct hashes; an absent key has one of these hashes with
//! probability `D / 2^b`, a floor under every rate: 1 % of 43 million keys at 32 bits.

use super::Law;

/// A law under hashes of `bits` bits.
pub struct Narrow {
    /// The law for keys with hashes of their own.
    pub law: Box<dyn Law>,
    /// b.
    pub bits: u32,
}

/// The probability that an absent key has the hash of one of `items`.
pub fn floor(items: f64, bits: u32) -> f64 {
    -(-items / 2f64.powi(bits as i32)).exp_m1()
}

impl Narrow {
    fn hashes(&self) -> f64 {
        2f64.powi(self.bits as i32)
    }

    fn distinct(&self, items: f64) -> f64 {
        self.hashes() * floor(items, self.bits)
    }

    /// Probability of a floor or, independently, a rate.
    fn either(&self, floor: f64, rate: f64) -> f64 {
        floor + (1.0 - floor) * rate
    }
}

impl Law for Narrow {
    fn fpr(&self, items: f64) -> f64 {
        self.either(floor(items, self.bits), self.law.fpr(self.distinct(items)))
    }

    fn fill(&self, items: f64) -> f64 {
        self.law.fill(self.distinct(items))
    }

    fn items(&self, fill: f64) -> f64 {
        let share = self.law.items(fill) / self.hashes();
        if share < 1.0 { -self.hashes() * (-share).ln_1p() } else { f64::INFINITY }
    }

    fn items_sd(&self, items: f64) -> f64 {
        // The number of keys that one more hash represents: e^(-n / 2^b). The scatter of that number, n^2 / 2^(b + 1),
        // is separate.
        let (distinct, share) = (self.distinct(items), items / self.hashes());
        if share > 700.0 {
            return f64::INFINITY;
        }
        (self.law.items_sd(distinct) * share.exp()).hypot((items * share / 2.0).sqrt())
    }

    fn fpr_sd(&self, items: f64) -> f64 {
        self.law.fpr_sd(self.distinct(items))
    }

    fn blocks(&self) -> u64 {
        self.law.blocks()
    }

    fn block_variance(&self, items: f64) -> f64 {
        self.law.block_variance(self.distinct(items))
    }

    fn cell_worth(&self, items: f64) -> f64 {
        self.law.cell_worth(self.distinct(items)) * (items / self.hashes()).exp()
    }

    fn fpr_of_fill(&self, fill: f64) -> f64 {
        let items = self.items(fill);
        if items.is_finite() { self.either(floor(items, self.bits), self.law.fpr_of_fill(fill)) } else { 1.0 }
    }
}
