//! [`Mergeable`] and [`Intersectable`]: two structures of one type, combined and compared cell by cell.

use crate::error::Result;
use crate::structure::declaration::Declared;

/// Merges another structure of its type into itself; the registry defines the result.
pub trait Mergeable: Declared {
    /// An error that names every field in which the two differ and may not.
    fn check_compatible(&self, other: &Self) -> Result<()> {
        self.differences(other).check()
    }
    /// Merges `other` into this one, without its key domains: see [`Mergeable::take_in`]. Checks first; on an error
    /// nothing has changed.
    fn merge(&mut self, other: &Self) -> Result<()>;
    /// Merges `other` into this one, with its key domains.
    fn take_in(&mut self, other: &Self) -> Result<()> {
        let mut added = *self.hasher().domains();
        self.merge(other)?;
        added.join(other.hasher().domains());
        *self.hasher_mut().domains_mut() = added;
        Ok(())
    }
}

/// Compares cells: for two structures with the same parameters and hash, they show which keys only one of them has.
pub trait Intersectable: Mergeable {
    /// Keeps the keys that are in both, and those that cells cannot distinguish from one. On an error nothing has
    /// changed.
    fn intersect(&mut self, other: &Self) -> Result<()>;
    /// True if no cell exceeds that of `other`: then `other` finds every key of this one, as often.
    fn is_subset(&self, other: &Self) -> Result<bool>;
    /// [`Intersectable::is_subset`] of cells that differ.
    fn is_proper_subset(&self, other: &Self) -> Result<bool> {
        Ok(self.is_subset(other)? && !other.is_subset(self)?)
    }
    /// True if the cells rule out a common key; rarely so for filled filters.
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
