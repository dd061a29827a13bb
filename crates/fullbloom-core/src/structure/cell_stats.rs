//! [`CellStats`]: what the cells of a structure say about it, from one count of them.

use crate::sizing::Law;

/// Fill, rate and estimate. Each has a method of its own in [`Filter`](super::Filter), which counts the cells again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellStats {
    /// The share of set cells.
    pub fill: f64,
    /// The model rate of false positives at this fill.
    pub fpr: f64,
    /// The estimated number of distinct keys and its standard deviation, if the cells allow one.
    pub estimated: Option<(f64, f64)>,
}

impl CellStats {
    /// Of cells whose fill determines the rate and the estimate, both by `law`.
    pub fn by_law(law: &dyn Law, fill: f64) -> Self {
        CellStats { fill, fpr: law.fpr_of_fill(fill), estimated: Some(law.estimate(fill)) }
    }
}
