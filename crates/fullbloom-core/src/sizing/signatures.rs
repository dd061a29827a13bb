//! Signatures (superimposed codes): how many bits are set, and how often unrelated rows match.
//!
//! A term sets k distinct bits of L. A query names q bits; a row without its terms matches, a *false drop*, if other terms
//! set all of them (Mooers, "Zatocoding applied to mechanical organization of knowledge", 1951; Roberts, "Partial-match
//! retrieval via the method of superimposed codes", 1979).

use crate::error::{Error, Result};

/// The most bits of a signature.
pub const MOST_BITS: u64 = 1 << 20;
/// The most bits of a term.
pub const MOST_BITS_PER_TERM: u64 = 64;
/// The most bits of a query whose law is computed: 0.2 s for 2^40 terms.
const MOST_PROBE_BITS: usize = 256;

/// Transitions of the number of set bits, of `q` named ones: an upper triangular stochastic matrix.
struct Coverage {
    q: usize,
    /// Row after row.
    p: Vec<f64>,
}

/// The chances of each number of hits of `draws` distinct bits of `num_bits`, of which `open` are hits.
fn hypergeometric(num_bits: f64, open: f64, draws: usize) -> Vec<f64> {
    let mut hits = vec![1.0];
    for drawn in 0..draws {
        let (left, mut next) = (num_bits - drawn as f64, vec![0.0; hits.len() + 1]);
        for (i, &chance) in hits.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
            // Whole numbers are subtracted: 1 less a share would lose digits.
            let free = (open - i as f64).clamp(0.0, left);
            next[i] += chance * ((left - free) / left);
            next[i + 1] += chance * (free / left);
        }
        hits = next;
    }
    hits
}

impl Coverage {
    /// One term: the bits that it adds are hypergeometric.
    fn of_term(num_bits: f64, bits_per_term: usize, q: usize) -> Self {
        let mut p = vec![0.0; (q + 1) * (q + 1)];
        for covered in 0..=q {
            let open = (q - covered) as f64;
            let hits = hypergeometric(num_bits, open, bits_per_term);
            for (i, chance) in hits.into_iter().enumerate().take(q - covered + 1) {
                p[covered * (q + 1) + covered + i] = chance;
            }
        }
        Coverage { q, p }
    }

    fn times(&self, other: &Self) -> Self {
        let width = self.q + 1;
        let mut p = vec![0.0; width * width];
        for from in 0..width {
            for over in from..width {
                let chance = self.p[from * width + over];
                if chance > 0.0 {
                    for to in over..width {
                        p[from * width + to] += chance * other.p[over * width + to];
                    }
                }
            }
        }
        Coverage { q: self.q, p }
    }

    /// The chances of each number of set bits after `terms` terms.
    fn after(self, mut terms: u64) -> Vec<f64> {
        let width = self.q + 1;
        let mut chances = vec![0.0; width];
        chances[0] = 1.0;
        let mut power = self;
        while terms > 0 {
            if terms & 1 == 1 {
                let column = |to: usize| (0..=to).map(|from| chances[from] * power.p[from * width + to]).sum();
                chances = (0..width).map(column).collect();
            }
            terms >>= 1;
            if terms > 0 {
                power = power.times(&power);
            }
        }
        chances
    }
}

/// The exact chance that `terms` terms of `bits_per_term` distinct bits of `num_bits` set `probe_bits` given bits.
///
/// Sums positive chances only, where the published sum over subsets alternates and cancels.
pub fn false_drop(num_bits: f64, bits_per_term: f64, terms: f64, probe_bits: f64) -> f64 {
    let q = (probe_bits as usize).min(MOST_PROBE_BITS);
    if bits_per_term >= num_bits {
        return if terms >= 1.0 || q == 0 { 1.0 } else { 0.0 };
    }
    let one = Coverage::of_term(num_bits, bits_per_term as usize, q);
    one.after(terms as u64)[q].min(1.0)
}

/// The chance of a false drop of a query of `query_terms` terms, whose bits may coincide.
pub fn query_false_drop(num_bits: f64, bits_per_term: f64, terms: f64, query_terms: f64) -> f64 {
    let (bits, most) = (bits_per_term as usize, (bits_per_term * query_terms).min(num_bits) as usize);
    let most = most.min(MOST_PROBE_BITS);
    // The number of distinct bits of a query grows as the number of set bits among all.
    let mut weights = vec![0.0; most + 1];
    weights[0] = 1.0;
    for _ in 0..query_terms as usize {
        let mut next = vec![0.0; most + 1];
        for (set, &chance) in weights.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
            let fresh = hypergeometric(num_bits, num_bits - set as f64, bits);
            for (i, part) in fresh.into_iter().enumerate() {
                next[(set + i).min(most)] += chance * part;
            }
        }
        weights = next;
    }
    let law = |(q, weight): (usize, &f64)| weight * false_drop(num_bits, bits_per_term, terms, q as f64);
    weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0).map(law).sum::<f64>().min(1.0)
}

/// The expected share of set bits after `terms` terms.
pub fn fill(num_bits: f64, bits_per_term: f64, terms: f64) -> f64 {
    1.0 - (1.0 - (bits_per_term / num_bits).min(1.0)).powf(terms)
}

/// The smallest number of bits at which `terms` terms of `bits_per_term` bits fill at most `fill` of a signature.
fn bits_at_fill(bits_per_term: u64, terms: u64, fill: f64) -> Result<u64> {
    let each = -((-fill).ln_1p() / terms as f64).exp_m1();
    let bits = (bits_per_term as f64 / each).ceil().max(bits_per_term as f64);
    if bits <= MOST_BITS as f64 {
        return Ok(bits as u64);
    }
    Err(Error::parameter(format!(
        "signatures of {terms} terms would need {bits:.0} bits, at most are {MOST_BITS}; lower terms, or raise fpr or fill"
    )))
}

/// The bits of a signature, and of a term, at one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Bits of a signature (rows of the matrix).
    pub num_bits: u64,
    /// Distinct bits that a term sets.
    pub bits_per_term: u64,
}

impl Width {
    fn rate(self, terms: u64) -> f64 {
        let (num_bits, bits) = (self.num_bits as f64, self.bits_per_term as f64);
        false_drop(num_bits, bits, terms as f64, bits)
    }
}

/// Bits of a term that keep `fpr` in signatures filled to `fill`.
pub fn bits_per_term(fpr: f64, fill: f64) -> u64 {
    // To 12 digits: 0.01 is the square of 0.1.
    (fpr.ln() / fill.ln() * (1.0 - 1e-12)).ceil().clamp(1.0, MOST_BITS_PER_TERM as f64) as u64
}

/// The widths of rank 0 and of rank `rank` (if not 0) that keep `fpr` for a query of one absent term, filled to `fill` by
/// documents of `terms` terms. Two bits of a term stay at rank 0, the others go to the higher rank.
pub fn widths(terms: u64, fpr: f64, fill: f64, rank: u32) -> Result<Vec<Width>> {
    if !(fill > 0.0 && fill < 1.0) {
        return Err(Error::parameter(format!("fill must be between 0 and 1 (exclusive), got {fill}")));
    }
    let all = bits_per_term(fpr, fill);
    let low = if rank == 0 { all } else { all.min(2) };
    let of = |bits: u64, terms: u64| Ok(Width { num_bits: bits_at_fill(bits, terms, fill)?, bits_per_term: bits });
    let grouped = terms.saturating_mul(1 << rank);
    let mut widths = vec![(of(low, terms)?, terms)];
    if all > low {
        widths.push((of(all - low, grouped)?, grouped));
    }
    // The fill is an expectation; the law of the rate is a little above its power. Steps are 1,024ths.
    let widened = |step: u64| {
        let each =
            |&(width, _): &(Width, u64)| Width { num_bits: (width.num_bits * (1024 + step)).div_ceil(1024), ..width };
        widths.iter().map(each).collect::<Vec<_>>()
    };
    let keeps = |step: u64| {
        let rate = |(width, (_, terms)): (Width, &(Width, u64))| width.rate(*terms);
        widened(step).into_iter().zip(&widths).map(rate).product::<f64>() <= fpr
    };
    let too_wide = || {
        let remedy = "lower terms or raise fpr";
        Error::parameter(format!(
            "no signature of at most {MOST_BITS} bits keeps fpr={fpr} for {terms} terms; {remedy}"
        ))
    };
    let mut high = 1;
    while !keeps(high - 1) {
        if widened(high - 1).iter().any(|width| width.num_bits > MOST_BITS) {
            return Err(too_wide());
        }
        high *= 2;
    }
    // Steps from high / 2 to high - 1 are left, of which the last one keeps the rate.
    let (mut low, mut high) = (high / 2, high - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if keeps(middle) { high = middle } else { low = middle + 1 }
    }
    let found = widened(high);
    if found.iter().any(|width| width.num_bits > MOST_BITS) { Err(too_wide()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published alternating sum, for few bits.
    fn by_subsets(num_bits: f64, k: u32, terms: i32, q: u32) -> f64 {
        let missed = |j: u32| -> f64 {
            (0..k).map(|i| ((num_bits - f64::from(j + i)) / (num_bits - f64::from(i))).max(0.0)).product()
        };
        let choose = |j: u32| -> f64 { (0..j).map(|i| f64::from(q - i) / f64::from(i + 1)).product() };
        (0..=q).map(|j| (-1f64).powi(j as i32) * choose(j) * missed(j).powi(terms)).sum()
    }

    #[test]
    fn the_law_equals_the_published_alternating_sum() {
        for (num_bits, k, terms, q) in [(80.0, 1, 12, 4), (40.0, 4, 6, 4), (200.0, 3, 30, 5), (16.0, 2, 3, 7)] {
            let law = false_drop(num_bits, f64::from(k), f64::from(terms), f64::from(q));
            assert!((law - by_subsets(num_bits, k, terms, q)).abs() < 1e-12, "{num_bits} {k} {terms} {q}: {law}");
        }
    }

    #[test]
    fn published_rows_of_postgresql_are_expected() {
        // 10M rows, 6 columns of 2 bits, 2 columns asked: 2439 and 55 rows were rechecked.
        let rows = |num_bits| 1e7 * false_drop(num_bits, 1.0, 12.0, 4.0);
        assert!((rows(80.0) - 2372.0).abs() < 1.0, "{}", rows(80.0));
        assert!((rows(200.0) - 68.5).abs() < 0.1, "{}", rows(200.0));
    }

    #[test]
    fn widths_keep_the_rate() -> Result<()> {
        for (terms, fpr, fill, rank) in [(1, 0.5, 0.5, 0), (30, 0.01, 0.5, 0), (200, 1e-6, 0.1, 3), (500, 1e-4, 0.3, 5)]
        {
            let widths = widths(terms, fpr, fill, rank)?;
            let rate: f64 = widths.iter().zip([terms, terms << rank]).map(|(width, terms)| width.rate(terms)).product();
            assert!(rate <= fpr, "{terms} {fpr} {fill} {rank}: {rate}");
        }
        Ok(())
    }
}
