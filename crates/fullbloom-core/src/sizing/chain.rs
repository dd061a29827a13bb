//! The rate of a chain of filters that are looked up one after the other.
//!
//! The chain finds an absent key when stage j finds it and no stage before did. Unrelated stages find it independently.
//! A growing chain stores a key only if no earlier stage finds it, so a later stage holds no key that an earlier one
//! finds, and finds fewer of its false positives.
//!
//! **Fingerprints** are parts of one hash. A key that stage i finds is equal, in all that stage j compares, to some key
//! of stage i, and a key stored in j is not: the two never find the same key, and rates add up. What a stage finds by
//! other means (the spare of bins) earlier ones may find, too.
//!
//! **Pairs** of buckets, one of which holds a fingerprint: half of the keys that a stage finds have the first bucket of
//! the key that they are equal to, and so in each stage; the others have its second one, in this stage only. Even the
//! former are distinguished if a boundary of stage i, of buckets or of fingerprints, lies between the two keys.
//!
//! **Bits**: for the keys of stage j, probes that are among the first k_i fall on set bits of stage i, half of which
//! are set, less often than by chance: the share P_i of keys whose probes all would is missing. That is a factor 1 -
//! P_i / (1 - P_i) in the density of keys, ln 2 of it in the share of set bits, over the k_i probes that the absent key
//! has there, for k_i of the k_j probes of a stored key. With k = log2(1 / P):
//!
//! ```text
//! P(i and j) = P_i P_j (1 - a_ij)
//! a_ij = P_i ln(1 / P_i) / (1 - P_i) * min(1, ln(1 / P_i) / ln(1 / P_j))
//! rate = sum over j of P_j u_j * product over i < j of (1 - P_i (1 - a_ij))
//! ```
//!
//! a = 0 is the product, a = 1 the sum; u_j is for blocks, below. Measured rates by this law with u = 1, in chains of
//! 3 and 4 stages of layouts classic, blocked, split and partitioned, of counters and of layers, of 500, 2000 and
//! 20,000 keys that grow 1, 2 and 4 times, at tightening 0.5 (6 million absent keys each): -0.7 to +0.7 % at fpr 0.3,
//! -0.1 to +0.3 % at 0.1, -0.05 to +0.08 % at 0.03; by the product +1.3 to +2.7, +0.2 to +0.6 and 0 to +0.12 %, by the
//! sum -5 to -8, -2 to -3 and -0.6 to -0.9 %. At tightening 0.8 and 0.2 and fpr 0.3: -0.2 to +0.1 and 0 to +1.0 %.
//!
//! **Blocks** of all stages follow the first bits of the hash, so those of a later stage lie in those of an earlier one.
//! More keys pass a block of low rate R, in proportion to 1 - R, and more reach the blocks inside it. Loads w of mean 1
//! and variance V, for the law f at m keys, with e = m f' / f and c = m^2 f'' / f, change the rate of keys that arrive
//! equally often, and lower the fill, from which m is estimated:
//!
//! ```text
//! E[w f(m w)] = f(m) (1 + V (e + c / 2))       E[1 - exp(-l w)]: m is underestimated by the factor 1 - V l / 2
//! u_j = 1 + V (e + c / 2 + e l / 2),    V = sum over i < j of Var(R_i) / (1 - R_i)^2 * nested(B_i, B_j)
//! ```
//!
//! `nested` is the share of the variance between B_i equal parts of a line that is left between the means over B_j
//! equal parts: 1 - (1 - 1/q^2) B_i / (3 B_j) where B_j is larger and B_i / B_j is a fraction with numerator q.

use super::Law;

/// How the stages of a chain are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stages {
    /// Nothing: every stage may hold any key.
    Independent,
    /// A key found in an earlier stage is not stored in a later one; probes set bits.
    OfBits,
    /// The same; keys are stored as fingerprints.
    OfFingerprints,
    /// Fingerprints, each in one of two buckets.
    OfPairs,
}

/// A stage, as far as other stages depend on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// Its rate for any absent key.
    pub fpr: f64,
    /// Blocks, buckets or bins: equal parts of the hashes, in their order.
    pub parts: u64,
    /// Var(R) / (1 - R)^2 of the rates R of its parts.
    pub spread: f64,
    /// (u - 1) / V.
    pub bend: f64,
    /// Of a rate of fingerprints, the share that is by chance.
    pub chance: f64,
    /// The rate for keys that other stages find by such chance.
    pub meeting: f64,
}

impl Member {
    /// A stage without parts.
    pub fn of_rate(fpr: f64) -> Self {
        Member { fpr, parts: 1, spread: 0.0, bend: 0.0, chance: 0.0, meeting: 0.0 }
    }

    /// A stage of cells filled to `fill`.
    pub fn of_cells(fpr: f64, law: &dyn Law, fill: f64) -> Self {
        let (items, parts, whole) = (law.items(fill), law.blocks(), Member::of_rate(fpr));
        if parts == 1 || fpr <= 0.0 || fpr >= 1.0 || !items.is_finite() {
            return whole;
        }
        const STEP: f64 = 0.05;
        let [less, rate, more] = [1.0 - STEP, 1.0, 1.0 + STEP].map(|load| law.fpr(items * load));
        let slope = (more - less) / (2.0 * STEP * rate);
        let uneven = (((1.0 + STEP) * more + (1.0 - STEP) * less) / (2.0 * rate) - 1.0) / (STEP * STEP);
        let bend = uneven - slope * (-fill).ln_1p() / 2.0;
        let spread = law.block_variance(items) / (1.0 - rate).powi(2);
        if spread.is_finite() && bend.is_finite() { Member { parts, spread, bend, ..whole } } else { whole }
    }
}

impl Stages {
    /// How far the later stage avoids the false positives of the earlier one; for rates above 0.
    fn avoidance(self, earlier: &Member, later: &Member) -> f64 {
        match self {
            Stages::Independent => 0.0,
            Stages::OfFingerprints => (1.0 - later.chance * earlier.meeting / earlier.fpr).max(0.0),
            Stages::OfPairs => {
                let values = (later.fpr / earlier.fpr).min(1.0);
                0.5 * shared_variance(earlier.parts, later.parts) * (1.0 - values / 3.0)
            }
            // Of a stage that is full, the probes say nothing.
            Stages::OfBits if earlier.fpr >= 1.0 || later.fpr >= 1.0 => 1.0,
            Stages::OfBits => {
                let probes = (earlier.fpr.ln() / later.fpr.ln()).min(1.0);
                earlier.fpr * -earlier.fpr.ln() / (1.0 - earlier.fpr) * probes
            }
        }
    }

    /// Rate of a chain of these stages, oldest first.
    pub fn fpr(self, members: &[Member]) -> f64 {
        (0..members.len()).map(|index| self.first_found(members, index)).sum::<f64>().clamp(0.0, 1.0)
    }

    /// Rate at which stage `index` of such a chain is the first to find an absent key.
    pub fn first_found(self, members: &[Member], index: usize) -> f64 {
        let later = &members[index];
        if later.fpr <= 0.0 {
            return 0.0;
        }
        let (mut missed, mut variance) = (1.0, 0.0);
        for earlier in members[..index].iter().filter(|earlier| earlier.fpr > 0.0) {
            missed *= 1.0 - earlier.fpr * (1.0 - self.avoidance(earlier, later));
            variance += earlier.spread * shared_variance(earlier.parts, later.parts);
        }
        (later.fpr * (1.0 + later.bend * variance)).clamp(0.0, 1.0) * missed
    }
}

/// The share of the variance between `parts` parts that remains between `others` parts.
fn shared_variance(parts: u64, others: u64) -> f64 {
    let (few, many) = (parts.min(others).max(1), parts.max(others).max(1));
    let share = few as f64 / many as f64;
    let phases = (few / common_divisor(few, many)) as f64;
    let kept = 1.0 - share * (1.0 - phases.powi(-2)) / 3.0;
    if parts <= others { kept } else { kept * share }
}

/// The greatest common divisor of numbers above 0.
fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Rate of stage `index` of a filter that grows: `p (1 - r) r^i`, so that all rates together stay below p. Almeida,
/// Baquero, Preguica and Hutchison, "Scalable Bloom filters", 2007.
pub fn stage_rate(fpr: f64, tightening: f64, index: u32) -> f64 {
    fpr * (1.0 - tightening) * tightening.powi(index as i32)
}

/// Keys of stage `index`, before rounding down: `n0 s^i`, at most 10^18.
pub fn stage_keys(initial_capacity: f64, growth: f64, index: u32) -> f64 {
    (initial_capacity * growth.powi(index as i32)).min(1e18)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_lies_between_product_and_sum_and_is_a_rate() {
        let chains: [&[f64]; 9] = [
            &[0.15, 0.075, 0.0375, 0.01875],
            &[0.5, 0.5, 0.5],
            &[1e-12, 1e-11, 0.0, 1e-15],
            &[0.9, 0.3, 1.0],
            &[0.1, 1.0],
            &[0.01, 1.0, 1.0],
            &[1.0, 0.1],
            &[0.0, 0.0],
            &[],
        ];
        for rates in chains {
            let members: Vec<Member> = rates.iter().copied().map(Member::of_rate).collect();
            let [product, bits, sum] =
                [Stages::Independent, Stages::OfBits, Stages::OfFingerprints].map(|stages| stages.fpr(&members));
            let missed: f64 = rates.iter().map(|rate| 1.0 - rate).product();
            assert!((product - (1.0 - missed)).abs() < 1e-12, "{rates:?}");
            assert!((sum - rates.iter().sum::<f64>().min(1.0)).abs() < 1e-12, "{rates:?}");
            assert!(product <= bits && bits <= sum && sum <= 1.0, "{rates:?} {product} {bits} {sum}");
        }
    }

    #[test]
    fn measured_chains_come_out() {
        // Rates of four stages, of 20,000 keys and twice as many each, and of the whole: of 8 million absent keys.
        let blocked = ([0.166_324, 0.078_124, 0.038_017, 0.018_942], 0.28050);
        let classic = ([0.164_822, 0.078_024, 0.038_108, 0.018_754], 0.27761);
        for (rates, measured) in [blocked, classic] {
            let [product, law, sum] = [Stages::Independent, Stages::OfBits, Stages::OfFingerprints]
                .map(|stages| stages.fpr(&rates.map(Member::of_rate)) / measured - 1.0);
            assert!(law.abs() < 0.005 && product < -0.015 && sum > 0.07, "{product} {law} {sum}");
        }
    }

    #[test]
    fn the_remaining_variance_is_that_of_the_means() {
        for (parts, others) in [(1, 1), (3, 3), (2, 6), (6, 2), (4, 7), (7, 4), (10, 13), (9, 6), (1, 5)] {
            let share = |part: u64, parts: u64| [part, part + 1].map(|edge| edge as f64 / parts as f64);
            let mut left = 0.0;
            for other in 0..others {
                let ours = share(other, others);
                let parts = (0..parts).map(|part| {
                    let theirs = share(part, parts);
                    (ours[1].min(theirs[1]) - ours[0].max(theirs[0])).max(0.0) * others as f64
                });
                left += parts.map(|weight| weight * weight).sum::<f64>() / others as f64;
            }
            assert!((left - shared_variance(parts, others)).abs() < 1e-12, "{parts} {others}");
        }
    }
}
