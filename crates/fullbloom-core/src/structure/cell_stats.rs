//! [`CellStats`]: what the cells of a structure say about it, from one count of them, and [`CellCounts`]: such a count,
//! which may be made a slice at a time.

use crate::sizing::Law;
use crate::structure::values::Value;

/// Fill, rate and estimate. Each has a method of its own in [`Filter`](super::Filter), which counts the cells again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellStats {
    /// The share of set cells.
    pub fill: f64,
    /// The model rate of false positives at this fill.
    pub fpr: f64,
    /// The estimated number of distinct keys and its standard deviation, if the cells allow one.
    pub estimated: Option<(f64, f64)>,
    /// Attributes that follow from the count.
    pub counted: Vec<(&'static str, Value)>,
}

impl CellStats {
    /// Of cells whose fill determines the rate and the estimate, both by `law`.
    pub fn by_law(law: &dyn Law, fill: f64) -> Self {
        CellStats { fill, fpr: law.fpr_of_fill(fill), estimated: Some(law.estimate(fill)), ..CellStats::default() }
    }

    /// The same, with an attribute that follows from the count.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.counted.push((name, value));
        self
    }
}

/// Sums over cells. Each structure chooses its own sums, such as the number of set bits of each section; those of two
/// slices add up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellCounts(Vec<u64>);

impl CellCounts {
    /// Adds `count` to sum number `at`.
    pub fn add(&mut self, at: usize, count: u64) {
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += count;
    }

    /// Sum number `at`.
    pub fn get(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }
}

/// The counted ones among sums 0 and 1: cells that are not zero, and cells at their maximum.
pub(crate) const SET: usize = 0;
/// See [`SET`].
pub(crate) const FULL: usize = 1;
