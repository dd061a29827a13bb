//! Two counting filters: intersection, inclusion, and estimates from both.
//!
//! The counters of two multisets are bounds. The smaller of two counters is at least the sum of the keys that are in
//! both, each as often as in the filter that has it less often: so the intersection loses no key and supports removal.
//! The larger of two would not do for a union: if each filter has one key that uses a shared counter, it would be 1,
//! and one removal would take both out. The union is the sum, [`Mergeable::merge`](crate::structure::Mergeable).
//!
//! Numbers of keys are estimated from the counters that are not zero, as from the bits of a plain filter.

use super::filter::CountingBloomFilter;
use super::spread;
use crate::cells::PackedCells;
use crate::error::Result;
use crate::sizing::estimates::{self, Estimate};
use crate::structure::{Filter, Intersectable, Mergeable};

impl CountingBloomFilter {
    /// Share of the counters that are not zero in either.
    fn union_fill(&self, other: &Self) -> f64 {
        let (packed, cells) = (self.packed, self.shape.num_cells);
        spread::count_union(packed, self.words(), other.words(), cells) as f64 / cells as f64
    }

    fn common(&self, other: &Self) -> Result<Estimate> {
        self.check_compatible(other)?;
        let law = self.shape.law();
        let [ours, theirs, all] = [self.fill(), other.fill(), self.union_fill(other)].map(|fill| law.items(fill));
        Ok(estimates::common(law.as_ref(), ours, theirs, all))
    }
}

/// Additions less removals of `keys` that each filter holds as often on average as its own.
fn occurrences(keys: u64, loads: [&crate::structure::load::Load; 2]) -> u64 {
    let mean = loads.map(|load| load.occurrences as f64 / load.added.max(1) as f64);
    let most = loads[0].occurrences.min(loads[1].occurrences);
    ((keys as f64 * mean[0].min(mean[1])).round() as u64).clamp(keys.min(most), most)
}

impl Intersectable for CountingBloomFilter {
    /// The number of keys is [`Intersectable::intersection_count`], at most that of either, and 0 only if no counter is
    /// in use; each key counts as often as in the filter that has it less often.
    fn intersect(&mut self, other: &Self) -> Result<()> {
        let kept = self.common(other)?;
        let (packed, cells) = (self.packed, self.shape.num_cells);
        let words = self.memory.writable()?;
        let kept_all = spread::keep_least(packed, words, other.words(), cells);
        if kept_all {
            return Ok(());
        }
        if self.words() == other.words() {
            (self.load.added, self.load.occurrences) = (other.load.added, other.load.occurrences);
            return Ok(());
        }
        let most = self.load.added.min(other.load.added);
        let least = u64::from(crate::cells::bits::any(self.words())).min(most);
        let keys = if kept.items.is_nan() { most } else { (kept.items.round() as u64).clamp(least, most) };
        self.load.occurrences = occurrences(keys, [&self.load, &other.load]);
        self.load.added = keys;
        Ok(())
    }

    fn is_subset(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        Ok(spread::is_at_most(self.packed, self.words(), other.words(), self.shape.num_cells))
    }

    fn certainly_disjoint(&self, other: &Self) -> Result<bool> {
        self.check_compatible(other)?;
        let (packed, cells): (PackedCells, u64) = (self.packed, self.shape.num_cells);
        let [ours, theirs] = [self.words(), other.words()].map(|words| packed.count_set(words, cells));
        // None counts twice.
        Ok(spread::count_union(packed, self.words(), other.words(), cells) == ours + theirs)
    }

    fn union_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.check_compatible(other)?;
        Ok(self.shape.law().estimate(self.union_fill(other)))
    }

    fn intersection_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.common(other).map(Estimate::with_deviation)
    }
}
