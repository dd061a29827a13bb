//! The deviations of estimates of a number of keys.
//!
//! **One filter.** Let y(S) be the estimate [`Law::items`] from the cells that the keys S set. To first order the
//! errors of two such estimates, by filters of one shape and one hash, have the covariance
//!
//! ```text
//! Cov(y(S), y(T)) = V(|S and T|)
//! V(n) = sum over pairs of cells of (P(both free) / P(free)^2 - 1) / (dn's share of the cells)^2
//! ```
//!
//! where V(n) is the variance of y at n keys, [`Law::items_sd`] squared: a cell is free in S and another in T when
//! no key of S and T sets either and no other key sets its own, so that all but the common keys divide out. Linear
//! counting (Whang, Vander-Zanden and Taylor, 1990) is V of the classic law.
//!
//! **Whole cells.** Cells are whole numbers: of few keys that meet in λ cells by chance, λ below 10, two deviations
//! of the Poisson number hold as little as 84 % (at λ = 0.17). Half a cell is added in quadrature, but no more than
//! three times the variance, so that what cannot differ (λ = 0) has deviation 0: then they hold 94 % at least, and
//! more than 98 % only below λ = 1.5, where most filters tell the same number.
//!
//! **Keys taken for known.** Where only the keys are counted that were new, those are missing that were found wrongly:
//! of N keys that a look-up of rate f let pass, N f / (1 - f) were not, with variance N f / (1 - f)^2 (negative
//! binomial). Keys, too, are whole.

use super::Law;
use super::chain::Stages;
use super::whole::of_whole;

/// An estimate, with its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Keys.
    pub items: f64,
    /// The square of the deviation.
    pub variance: f64,
}

impl Estimate {
    /// The number of keys, not below 0, and its standard deviation.
    pub fn with_deviation(self) -> (f64, f64) {
        let items = if self.items < 0.0 { 0.0 } else { self.items };
        (items, self.variance.max(0.0).sqrt())
    }
}

/// Keys of both sets, `a + b - union`, from the estimates of each and of the union: below 0 now and then where there
/// are none. NaN, with an infinite variance, when all cells of the union are set: nothing is known then.
///
/// Var = V(union) - V(a) - V(b) + 2 V(both), from the covariance above. Swamidass and Baldi, 2007.
pub fn common(law: &dyn Law, a: f64, b: f64, union: f64) -> Estimate {
    if union.is_infinite() {
        return Estimate { items: f64::NAN, variance: f64::INFINITY };
    }
    let variance = |items: f64| law.items_sd(items).powi(2);
    let items = a + b - union;
    let spread = variance(union) - variance(a) - variance(b) + 2.0 * variance(items.max(0.0));
    Estimate { items, variance: of_whole(spread, law.cell_worth(union)) }
}

/// Keys that came to a table which holds `stored` of them, those that were new, and has rate `fpr` now. The rate
/// of a table of fingerprints is that of their number, so it was f x when a share x of them was in.
pub fn came_to_table(stored: f64, fpr: f64) -> Estimate {
    if fpr <= 0.0 || stored <= 0.0 {
        return Estimate { items: stored, variance: 0.0 };
    }
    if fpr >= 1.0 {
        return Estimate { items: stored, variance: f64::INFINITY };
    }
    // Integrals of 1 / (1 - f x) and of f x / (1 - f x)^2 over the keys; the second by its series for small rates.
    let log = -(-fpr).ln_1p();
    let lost = if fpr < 1e-3 { fpr / 2.0 + 2.0 * fpr * fpr / 3.0 } else { (fpr / (1.0 - fpr) - log) / fpr };
    Estimate { items: stored * (log / fpr).max(1.0), variance: stored * lost }
}

/// The same of cells filled to `fill`, whose rate at less keys `law` tells. The count tells more than the fill: in a
/// chain, the keys that pass one stage fill the lines of the next unevenly, which lowers its fill.
pub fn came_to_cells(stored: f64, law: &dyn Law, fill: f64) -> Estimate {
    let items = law.items(fill);
    if items.is_infinite() {
        return Estimate { items, variance: f64::INFINITY };
    }
    let lost = items - law.new_of_fill(fill);
    Estimate { items: stored + lost, variance: lost }
}

/// A stage of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// The keys that came to it.
    pub came: Estimate,
    /// Its rate, as it now is.
    pub fpr: f64,
    /// The deviation of this rate.
    pub fpr_sd: f64,
}

/// Keys that came to a chain, oldest stage first: what came to each stage is what passed those before it.
///
/// All but the newest stage were full when a later one took its first key. What is wrong with the rate f of a stage is
/// wrong for all keys N that came after it: the share that passes is a product with 1 - f, so N / (1 - f) of it.
pub fn came_to_chain(kind: Stages, stages: &[Passed]) -> Estimate {
    let rates: Vec<f64> = stages.iter().map(|stage| stage.fpr).collect();
    if stages.iter().any(|stage| !stage.came.items.is_finite()) {
        return Estimate { items: f64::INFINITY, variance: f64::INFINITY };
    }
    let mut found = 0.0f64;
    let passing = |index| {
        let pass = (1.0 - found).max(f64::MIN_POSITIVE);
        found += kind.first_found(&rates, index);
        pass
    };
    let passes: Vec<f64> = (0..stages.len()).map(passing).collect();
    let (mut later, mut lost, mut spread) = (0.0, 0.0, 0.0);
    // Newest first.
    for (stage, pass) in stages.iter().zip(passes).rev() {
        let passed = stage.came;
        // Those that it found itself are the variance of what came to it.
        let asked = later + if stage.fpr > 0.0 { passed.variance / stage.fpr / pass } else { 0.0 };
        let missed = (1.0 - stage.fpr).max(f64::MIN_POSITIVE);
        spread += (asked * stage.fpr_sd / missed).powi(2);
        lost += (passed.variance + passed.items * (1.0 - pass)) / (pass * pass);
        later += passed.items / pass;
    }
    Estimate { items: later, variance: of_whole(lost, 1.0) + spread }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::classic::Classic;
    use crate::sizing::lanes::Lanes;
    use crate::sizing::whole::new_among;

    #[test]
    fn what_cannot_differ_is_exact_and_what_is_saturated_is_unknown() {
        let laws: [&dyn Law; 2] =
            [&Classic { num_bits: 10_000, num_hashes: 7 }, &Lanes { blocks: 20, lanes: 4, width: 128, per_lane: 2 }];
        for law in laws {
            assert_eq!(law.estimate(0.0), (0.0, 0.0));
            assert_eq!(law.estimate(1.0), (f64::INFINITY, f64::INFINITY));
            let nothing = common(law, 10.0, 10.0, f64::INFINITY);
            assert!(nothing.items.is_nan() && nothing.variance.is_infinite());
            // Equal sets: the common keys are those of either.
            let equal = common(law, 500.0, 500.0, 500.0);
            assert!((equal.variance - of_whole(law.items_sd(500.0).powi(2), law.cell_worth(500.0))).abs() < 1e-9);
        }
        assert_eq!(came_to_table(100.0, 0.0), Estimate { items: 100.0, variance: 0.0 });
        assert_eq!(of_whole(0.0, 1.0), 0.0);
    }

    #[test]
    fn what_is_new_is_all_but_what_is_found() {
        // The integral of x^7 from 0 to 1 is an eighth.
        assert!((new_among(1000.0, |items| (items / 1000.0).powi(7)) - 875.0).abs() < 0.01);
        assert_eq!(new_among(1000.0, |_| 0.0), 1000.0);
        assert_eq!(new_among(f64::INFINITY, |_| 1.0), f64::INFINITY);
    }

    #[test]
    fn the_series_meets_the_integral() {
        let [below, above] = [9.999e-4, 1.0001e-3].map(|fpr| came_to_table(1000.0, fpr));
        assert!((below.variance / above.variance - 1.0).abs() < 1e-3 && (below.items - above.items).abs() < 1e-3);
        assert!((above.items - 1000.5).abs() < 0.01 && (above.variance - 0.5).abs() < 0.01);
    }
}
