//! Two filters: union, intersection, subset, and what can be estimated from both.
//!
//! Lawful only between filters of one shape and one hash; then the union is, bit for bit, the
//! filter of the united keys. The intersection never loses a common key, but its rate is that of
//! the operands rather than of a fresh filter.

use super::filter::BloomFilter;
use crate::cells::bits;
use crate::error::{Error, Result};
use crate::structure::{Filter, Mergeable};

impl BloomFilter {
    /// `self |= other`.
    pub fn unite(&mut self, other: &Self) -> Result<()> {
        let (count, _) = self.union_count(other)?;
        if self.strict && count > self.load.capacity as f64 {
            return Err(Error::Capacity(format!(
                "the union would hold about {count:.0} keys, the capacity is {}; build larger filters or pass \
                 strict=False",
                self.load.capacity
            )));
        }
        bits::or_assign(self.words_mut()?, other.words());
        self.recount();
        Ok(())
    }

    /// `self &= other`.
    pub fn intersect(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        bits::and_assign(self.words_mut()?, other.words());
        self.recount();
        Ok(())
    }

    /// True when every bit is set in `other` too: then every key of this filter is found there.
    pub fn is_subset(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        Ok(bits::is_subset(self.words(), other.words()))
    }

    /// Estimated keys in the union, with the standard deviation.
    pub fn union_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.check_compatible(other)?;
        let fill = bits::count_union(self.words(), other.words()) as f64 / self.shape.num_bits as f64;
        Ok(self.shape.law().estimate(fill))
    }

    /// Estimated keys in both, A* + B* - U* but not below 0, with a standard deviation that takes
    /// the three estimates as independent (an upper bound, since they share bits).
    pub fn intersection_count(&self, other: &Self) -> Result<(f64, f64)> {
        let (union, union_sd) = self.union_count(other)?;
        let ((a, a_sd), (b, b_sd)) = (self.approx_count(), other.approx_count());
        let sd = (union_sd.powi(2) + a_sd.powi(2) + b_sd.powi(2)).sqrt();
        Ok(((a + b - union).max(0.0), sd))
    }

    /// Estimated share of the union that is in both; 1 for two empty filters.
    pub fn jaccard(&self, other: &Self) -> Result<f64> {
        let (union, _) = self.union_count(other)?;
        let (both, _) = self.intersection_count(other)?;
        Ok(if union > 0.0 { (both / union).clamp(0.0, 1.0) } else { 1.0 })
    }

    /// True when the bits rule out a common key: some probe set of any common key would be set in
    /// both, so an empty AND means disjoint. Seldom true of filled filters.
    pub fn certainly_disjoint(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        let overlap = self.words().iter().zip(other.words()).any(|(x, y)| x & y != 0);
        Ok(!overlap || self.fill() == 0.0 || other.fill() == 0.0)
    }
}

impl Mergeable for BloomFilter {
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.unite(other)
    }
}
