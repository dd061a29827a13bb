//! [`Surplus`]: bits of a filter that none of its keys has set.
//!
//! The AND of two filters holds the bits of their common keys and those that are set in one by some keys and in the
//! other by others: for 1000 and 1500 keys in 10,000 bits with 500 in common, k = 4, as many as 154 more keys would
//! set. Keys that are added later fall on free bits by chance, as in any filter: the estimate from all bits less the
//! surplus stays right.
//!
//! Bits do not show what remains of a surplus when such a filter is combined once more: all of it may coincide with
//! keys of the other, or none. Half is assumed to remain, with the variance of a uniform distribution in between, a
//! twelfth of its square, so that two deviations reach beyond both ends.

use crate::container::{Header, tag};
use crate::error::{Error, Result};
use crate::sizing::Law;
use crate::sizing::estimates::{Estimate, common};

/// Bits that no key has set, and their effect on the deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surplus {
    /// Number of keys that would set as many bits.
    keys: f64,
    /// Variance of the estimate, less that of an estimate from as many bits set by keys.
    variance: f64,
}

impl Surplus {
    /// The surplus of a filter all of whose bits were set by its keys.
    pub const NONE: Surplus = Surplus { keys: 0.0, variance: 0.0 };

    /// The surplus of a filter filled to `fill` that holds `kept` keys.
    pub fn of_filter(kept: Estimate, law: &dyn Law, fill: f64) -> Self {
        let all = law.items(fill);
        if !kept.variance.is_finite() || !all.is_finite() {
            return Surplus { keys: 0.0, variance: f64::INFINITY };
        }
        Surplus { keys: (all - kept.items).max(0.0), variance: kept.variance - law.items_sd(all).powi(2) }
    }

    /// The keys of a filter filled to `fill`.
    pub fn estimate(self, law: &dyn Law, fill: f64) -> Estimate {
        let (items, deviation) = law.estimate(fill);
        if self == Surplus::NONE || items.is_infinite() {
            return Estimate { items, variance: deviation * deviation };
        }
        let variance = law.items_sd(items).powi(2) + self.variance;
        Estimate { items: items - self.keys, variance }
    }

    /// The number of keys that would set as many bits as `items` keys and the surplus.
    pub fn add_to(self, items: f64) -> f64 {
        items + self.keys
    }

    /// Of the union of two filters.
    pub fn of_union(self, other: Self) -> Self {
        let both = self.keys + other.keys;
        Surplus { keys: both / 2.0, variance: self.spread() + other.spread() + both * both / 12.0 }
    }

    /// The keys that two filters, filled to `fills`, have in common, when their union is filled to `union`; as
    /// [`common`] of filters without surplus.
    pub fn common(self, other: Self, law: &dyn Law, fills: [f64; 2], union: f64) -> Estimate {
        let [ours, theirs, all] = [fills[0], fills[1], union].map(|fill| law.items(fill));
        let found = common(law, ours, theirs, all);
        let unsure = (self.keys + other.keys).min(found.items).max(0.0);
        let variance = found.variance + self.spread() + other.spread() + unsure * unsure / 12.0;
        Estimate { items: found.items - unsure / 2.0, variance }
    }

    fn spread(self) -> f64 {
        self.variance.max(0.0)
    }

    /// Number of parameters in the header of a file.
    pub fn params(header: &Header) -> usize {
        if header.get(tag::SURPLUS, 0).is_ok() { 2 } else { 0 }
    }

    /// Writes a surplus into a header, if there is one.
    pub fn describe(self, header: &mut Header) {
        if self != Surplus::NONE {
            self.fill(header);
        }
    }

    /// Writes the parameters of a surplus into a header that has none of them.
    pub fn fill(self, header: &mut Header) {
        if Self::params(header) == 0 {
            header.set_f64(tag::SURPLUS, 0, self.keys);
            header.set_f64(tag::SURPLUS_VARIANCE, 0, self.variance);
        }
    }

    /// Reads the surplus that [`Surplus::describe`] wrote.
    pub fn restore(header: &Header) -> Result<Self> {
        let Ok(keys) = header.get_f64(tag::SURPLUS, 0) else { return Ok(Surplus::NONE) };
        let surplus = Surplus { keys, variance: header.get_f64(tag::SURPLUS_VARIANCE, 0)? };
        let possible = keys.is_finite() && keys >= 0.0 && !surplus.variance.is_nan();
        if possible { Ok(surplus) } else { Err(Error::format("the file has an impossible surplus; it is damaged")) }
    }
}
