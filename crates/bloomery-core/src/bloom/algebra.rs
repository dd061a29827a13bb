//! Two filters: union, intersection, subset, and what can be estimated from both.
//!
//! Lawful only between filters of one shape and one hash; then the union is, bit for bit, the
//! filter of the united keys. The intersection never loses a common key, but its rate is that of
//! the operands rather than of a fresh filter.

use super::filter::BloomFilter;
use super::surplus::Surplus;
use crate::cells::bits;
use crate::error::{Error, Result};
use crate::sizing::estimates::Estimate;
use crate::structure::{Filter, Mergeable};

impl BloomFilter {
    /// `self |= other`. The number of keys is the estimate of those that would have been new, had all been added
    /// here: how many were, depends on their order, which bits do not tell.
    pub fn unite(&mut self, other: &Self) -> Result<()> {
        let (count, _) = self.union_count(other)?;
        let adds = !bits::is_subset(other.words(), self.words());
        if adds && self.strict && count > self.load.capacity as f64 {
            return Err(Error::Capacity(format!(
                "the union would hold about {count:.0} keys, the capacity is {}; build larger filters or pass \
                 strict=False",
                self.load.capacity
            )));
        }
        let covered = bits::is_subset(self.words(), other.words());
        bits::or_assign(self.words_mut()?, other.words());
        match (adds, covered) {
            (false, _) => {}
            (true, true) => self.count_as(other),
            (true, false) => {
                self.surplus = self.united_surplus(other);
                let new = self.new_when_added();
                self.load.join(&other.load, new);
            }
        }
        Ok(())
    }

    /// `self &= other`. The number of keys is [`BloomFilter::intersection_count`], no more than that of either.
    pub fn intersect(&mut self, other: &Self) -> Result<()> {
        let kept = self.common(other)?;
        let (covered, covers) =
            (bits::is_subset(self.words(), other.words()), bits::is_subset(other.words(), self.words()));
        bits::and_assign(self.words_mut()?, other.words());
        match (covered, covers) {
            (true, _) => {}
            (false, true) => self.count_as(other),
            (false, false) => {
                self.surplus = Surplus::beside(kept, self.shape.law().as_ref(), self.fill());
                let most = self.load.added.min(other.load.added);
                self.load.added = if kept.items.is_nan() { most } else { (kept.items.round() as u64).min(most) };
            }
        }
        Ok(())
    }

    /// The bits are those of `other`.
    fn count_as(&mut self, other: &Self) {
        (self.load.added, self.surplus) = (other.load.added, other.surplus);
    }

    fn united_surplus(&self, other: &Self) -> Surplus {
        match (self.surplus, other.surplus) {
            (Surplus::NONE, Surplus::NONE) => Surplus::NONE,
            (ours, theirs) => ours.of_union(theirs),
        }
    }

    /// Share of the bits that are set in either.
    fn union_fill(&self, other: &Self) -> f64 {
        bits::count_union(self.words(), other.words()) as f64 / self.shape.num_bits as f64
    }

    fn common(&self, other: &Self) -> Result<Estimate> {
        self.check_compatible(other)?;
        let (law, fills) = (self.shape.law(), [self.fill(), other.fill()]);
        Ok(self.surplus.common(other.surplus, law.as_ref(), fills, self.union_fill(other)))
    }

    /// True when every bit is set in `other` too: then every key of this filter is found there.
    pub fn is_subset(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        Ok(bits::is_subset(self.words(), other.words()))
    }

    /// Estimated keys in the union, with the standard deviation; both infinite when all its bits are set.
    pub fn union_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.check_compatible(other)?;
        let surplus = self.united_surplus(other);
        Ok(surplus.estimate(self.shape.law().as_ref(), self.union_fill(other)).with_deviation())
    }

    /// Estimated keys in both, A* + B* - U* but not below 0, with the standard deviation
    /// ([`estimates`](crate::sizing::estimates)); NaN and infinite when all bits of the union are set.
    pub fn intersection_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.common(other).map(Estimate::with_deviation)
    }

    /// Estimated share of the union that is in both; 1 for two empty filters, NaN when all bits of the union are set.
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
