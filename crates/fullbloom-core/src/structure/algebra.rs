//! [`Intersectable`]: two structures of one kind, compared and intersected cell by cell.

use crate::error::Result;
use crate::structure::declaration::Mergeable;

/// Has cells that tell, of two structures with the same parameters and hash, what one has that the other has not.
pub trait Intersectable: Mergeable {
    /// Keeps every key that is in both, and what cells cannot tell from one. On an error nothing has changed.
    fn intersect(&mut self, other: &Self) -> Result<()>;
    /// True when no cell is above that of `other`: then every key of this one is found there, as often.
    fn is_subset(&self, other: &Self) -> Result<bool>;
    /// [`Intersectable::is_subset`] of cells that differ.
    fn is_proper_subset(&self, other: &Self) -> Result<bool> {
        Ok(self.is_subset(other)? && !other.is_subset(self)?)
    }
    /// True when the cells rule out a common key. Seldom true of filled filters.
    fn certainly_disjoint(&self, other: &Self) -> Result<bool>;
    /// Estimated keys in either, with the standard deviation; both infinite when all cells of the union are set.
    fn union_count(&self, other: &Self) -> Result<(f64, f64)>;
    /// Estimated keys in both, not below 0, with the standard deviation
    /// ([`estimates`](crate::sizing::estimates)); NaN and infinite when all cells of the union are set.
    fn intersection_count(&self, other: &Self) -> Result<(f64, f64)>;
    /// Estimated share of the union that is in both; 1 for two empty ones, NaN when all cells of the union are set.
    fn jaccard(&self, other: &Self) -> Result<f64> {
        let (union, _) = self.union_count(other)?;
        let (both, _) = self.intersection_count(other)?;
        Ok(if union > 0.0 { (both / union).clamp(0.0, 1.0) } else { 1.0 })
    }
}
