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
//! where V(n) is the variance of y at n keys, [`Law::items_sd`] squared: a cell is free in S and another in T if no key
//! of S and T sets either and no other key sets its own, so that all but the common keys divide out. Linear counting
//! (Whang, Vander-Zanden and Taylor, 1990) is V of the classic law.
//!
//! **Whole cells.** Cells are whole numbers: if few keys share λ cells by chance, λ below 10, two deviations of the
//! Poisson number cover as little as 84 % (at λ = 0.17). Half a cell is added in quadrature, but no more than three
//! times the variance, so that an exact number (λ = 0) has deviation 0: then they cover 94 % at least, and more than 98
//! % only below λ = 1.5, where most filters have the same number.
//!
//! **Wrongly found keys.** If only new keys are counted, those that were wrongly found are missing: besides N keys that
//! a lookup of rate f let pass, N f / (1 - f) did not pass, with variance N f / (1 - f)^2 (negative binomial). Keys are
//! whole numbers, too.

use super::Law;
use super::chain::{Member, Stages};
use super::whole::{mean_over, of_whole};

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

/// Keys of both sets, `a + b - union`, from the estimates of each and of the union: sometimes below 0 if the sets
/// are disjoint. NaN, with an infinite variance, if all cells of the union are set.
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

/// Added keys that a table wrongly found, if keys were added to it as to a separate filter: it holds `stored`, and has
/// rate `fpr` now; `relative` is the rate at fewer keys, up to a factor.
pub fn lost_in_table(stored: f64, fpr: f64, relative: impl Fn(f64) -> f64) -> Estimate {
    if fpr <= 0.0 || stored <= 0.0 {
        return Estimate { items: 0.0, variance: 0.0 };
    }
    if fpr >= 1.0 {
        return Estimate { items: 0.0, variance: f64::INFINITY };
    }
    let rate = |items: f64| fpr * (relative(items) / relative(stored)).min(1.0);
    // For each key stored, f / (1 - f) were found.
    let found = mean_over(stored, |items| rate(items) / (1.0 - rate(items)));
    let variance = mean_over(stored, |items| rate(items) / (1.0 - rate(items)).powi(2));
    Estimate { items: stored * found, variance: stored * variance }
}

/// The same for cells filled to `fill`; `law` gives the rate at fewer keys.
pub fn lost_in_cells(law: &dyn Law, fill: f64) -> Estimate {
    let items = law.items(fill);
    if items.is_infinite() {
        return Estimate { items, variance: f64::INFINITY };
    }
    let lost = items - law.new_of_fill(fill);
    Estimate { items: lost, variance: lost }
}

/// A stage of a chain.
#[derive(Clone, Copy, Debug)]
pub struct StageKeys {
    /// The keys that it holds: those that were new. This number is more exact than the fill, which is lower if keys
    /// that passed earlier stages fill lines unevenly.
    pub stored: f64,
    /// Keys that it would have wrongly found without the other stages.
    pub lost: Estimate,
    /// The stage, as far as others depend on it.
    pub member: Member,
    /// The deviation of its rate.
    pub fpr_sd: f64,
}

impl StageKeys {
    /// Of a stage whose cells, filled to `fill`, determine its rate.
    pub fn of_cells(stored: f64, law: &dyn Law, fill: f64) -> Self {
        let member = Member::of_cells(law.fpr_of_fill(fill), law, fill);
        StageKeys { stored, lost: lost_in_cells(law, fill), member, fpr_sd: law.fpr_sd(law.items(fill)) }
    }
}

/// Keys added to a chain, oldest stage first: those that reach a stage are those that passed the ones before.
///
/// All but the newest stage were full when a later one took its first key. The error in the rate f of a stage affects
/// all keys N that came after it: the share that passes is a product with 1 - f, so N / (1 - f) of it.
pub fn reached_chain(kind: Stages, stages: &[StageKeys]) -> Estimate {
    let members: Vec<Member> = stages.iter().map(|stage| stage.member).collect();
    if stages.iter().any(|stage| !stage.lost.items.is_finite()) {
        return Estimate { items: f64::INFINITY, variance: f64::INFINITY };
    }
    let mut found = 0.0f64;
    let passing = |index| {
        let (pass, first) = ((1.0 - found).max(f64::MIN_POSITIVE), kind.first_found(&members, index));
        found += first;
        (pass, first)
    };
    let passes: Vec<(f64, f64)> = (0..stages.len()).map(passing).collect();
    let (mut later, mut lost, mut spread) = (0.0, 0.0, 0.0);
    // Newest first.
    for (stage, (pass, first)) in stages.iter().zip(passes).rev() {
        let fpr = stage.member.fpr;
        // A key that passed is found at another rate than any key.
        let share = if fpr > 0.0 { first / pass / fpr } else { 1.0 };
        let (came, own) = (stage.stored + stage.lost.items * share, stage.lost.variance * share);
        // The keys that the stage itself found are the variance of those that reached it.
        let asked = later + if first > 0.0 { own / first } else { 0.0 };
        let missed = (1.0 - fpr).max(f64::MIN_POSITIVE);
        spread += (asked * stage.fpr_sd / missed).powi(2);
        lost += (own + came * (1.0 - pass)) / (pass * pass);
        later += came / pass;
    }
    let variance = of_whole(lost, 1.0) + spread;
    // A stage that finds every key lets none pass: the number of later keys is unknown.
    if !later.is_finite() || variance.is_nan() {
        return Estimate { items: f64::INFINITY, variance: f64::INFINITY };
    }
    Estimate { items: later, variance }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::classic::Classic;
    use crate::sizing::lanes::Lanes;
    use crate::sizing::whole::{distinct_among, new_among};

    #[test]
    fn certain_numbers_are_exact_and_saturated_ones_unknown() {
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
        assert_eq!(lost_in_table(100.0, 0.0, |items| items), Estimate { items: 0.0, variance: 0.0 });
        assert_eq!(of_whole(0.0, 1.0), 0.0);
    }

    #[test]
    fn keys_after_a_stage_that_finds_every_key_are_unknown() {
        let stage = |stored, fpr| {
            let lost = Estimate { items: 0.0, variance: 0.0 };
            StageKeys { stored, lost, member: Member::of_rate(fpr), fpr_sd: 0.0 }
        };
        for kind in [Stages::Independent, Stages::OfBits, Stages::OfFingerprints, Stages::OfPairs] {
            for last in [0.0, 5.0] {
                let (items, deviation) =
                    reached_chain(kind, &[stage(10.0, 1.0), stage(last, 1.0), stage(last, 0.1)]).with_deviation();
                assert!(items >= 10.0 && deviation >= 0.0, "{kind:?}: {items} +- {deviation}");
            }
            assert_eq!(reached_chain(kind, &[stage(10.0, 0.0), stage(5.0, 0.0)]).items, 15.0);
        }
    }

    #[test]
    fn new_keys_are_all_but_those_found() {
        // The integral of x^7 from 0 to 1 is an eighth.
        assert!((new_among(1000.0, |items| (items / 1000.0).powi(7)) - 875.0).abs() < 0.01);
        assert_eq!(new_among(1000.0, |_| 0.0), 1000.0);
        assert_eq!(new_among(f64::INFINITY, |_| 1.0), f64::INFINITY);
    }

    #[test]
    fn the_distinct_keys_are_those_of_which_so_many_were_new() {
        let rate = |items: f64| (1.0 - (-items / 1000.0).exp()).powi(7);
        for items in [0.0, 1.0, 500.0, 1500.0, 5000.0] {
            let found = distinct_among(new_among(items, rate), rate);
            assert!((found - items).abs() <= 1e-6 * items, "{items}: {found}");
        }
        assert_eq!(distinct_among(10.0, |_| 1.0), f64::INFINITY);
    }

    #[test]
    fn keys_wrongly_found_are_the_integral_of_the_rate() {
        for fpr in [1e-9, 1e-3, 0.1, 0.5] {
            let (straight, log) = (lost_in_table(1000.0, fpr, |items| items), -f64::ln_1p(-fpr));
            let (items, variance) = (1000.0 * (log / fpr - 1.0), 1000.0 * (fpr / (1.0 - fpr) - log) / fpr);
            assert!((straight.items - items).abs() < 1e-4 * items + 1e-6, "{fpr}");
            assert!((straight.variance - variance).abs() < 1e-4 * variance + 1e-6, "{fpr}");
        }
        let bent = lost_in_table(1000.0, 1e-3, |items| items.powi(9));
        assert!((bent.items - 0.1).abs() < 1e-3 && (bent.variance - 0.1).abs() < 1e-3);
    }
}
