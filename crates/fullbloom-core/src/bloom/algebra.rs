//! Two filters: union, intersection, subset, and estimates from both.
//!
//! Valid only between filters of one shape and one hash; then the union is, bit for bit, the filter of the united keys.
//! The intersection never loses a common key, but it has the rate of the operands rather than that of a fresh filter.

use super::filter::BloomFilter;
use super::surplus::Surplus;
use crate::cells::bits;
use crate::error::{Error, Result};
use crate::sizing::estimates::Estimate;
use crate::structure::{Filter, Intersectable, Mergeable};

impl BloomFilter {
    /// `self |= other`. The number of keys is an estimate of those that would have been new if all had been added here:
    /// the exact number depends on their order, which bits do not show. A strict filter accepts a union that may fit:
    /// an estimate within three deviations of the capacity.
    pub fn unite(&mut self, other: &Self) -> Result<()> {
        let (count, deviation) = self.union_count(other)?;
        let adds = !bits::is_subset(other.words(), self.words());
        if adds && self.strict && count - 3.0 * deviation > self.load.capacity as f64 {
            return Err(Error::Capacity(format!(
                "the union would hold about {count:.0} keys, the capacity is {}; build larger filters or pass \
                 strict=False",
                self.load.capacity
            )));
        }
        let covered = bits::is_subset(self.words(), other.words());
        if adds {
            self.check_room(if covered { other.surplus } else { self.united_surplus(other) })?;
        }
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

    /// Copies the counts of `other`, which has the same bits.
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
        let (law, fills) = (self.law(), [self.fill(), other.fill()]);
        Ok(self.surplus.common(other.surplus, law.as_ref(), fills, self.union_fill(other)))
    }
}

impl Mergeable for BloomFilter {
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.unite(other)
    }
}

impl Intersectable for BloomFilter {
    /// `self &= other`. The number of keys is [`BloomFilter::intersection_count`], at most that of either, and 0 only
    /// if no bit is set.
    fn intersect(&mut self, other: &Self) -> Result<()> {
        let kept = self.common(other)?;
        let (covered, covers) =
            (bits::is_subset(self.words(), other.words()), bits::is_subset(other.words(), self.words()));
        if !covered {
            let fill = self.fill() + other.fill() - self.union_fill(other);
            let surplus = if covers { other.surplus } else { Surplus::of_filter(kept, self.law().as_ref(), fill) };
            self.check_room(surplus)?;
        }
        bits::and_assign(self.words_mut()?, other.words());
        match (covered, covers) {
            (true, _) => {}
            (false, true) => self.count_as(other),
            (false, false) => {
                self.surplus = Surplus::of_filter(kept, self.law().as_ref(), self.fill());
                let most = self.load.added.min(other.load.added);
                let least = u64::from(bits::any(self.words())).min(most);
                self.load.added =
                    if kept.items.is_nan() { most } else { (kept.items.round() as u64).clamp(least, most) };
            }
        }
        Ok(())
    }

    fn is_subset(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        Ok(bits::is_subset(self.words(), other.words()))
    }

    /// Some probe set of any common key would be set in both, so an empty AND means disjoint.
    fn certainly_disjoint(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        Ok(bits::are_disjoint(self.words(), other.words()))
    }

    fn union_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.check_compatible(other)?;
        let surplus = self.united_surplus(other);
        Ok(surplus.estimate(self.law().as_ref(), self.union_fill(other)).with_deviation())
    }

    fn intersection_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.common(other).map(Estimate::with_deviation)
    }
}
