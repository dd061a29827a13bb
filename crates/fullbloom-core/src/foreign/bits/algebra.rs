//! Two filters of one format and shape: intersection, subset, and estimates from both.

use super::BitFilter;
use crate::cells::bits;
use crate::error::Result;
use crate::sizing::estimates::common;

impl BitFilter {
    /// True if no bit is set.
    pub fn is_empty(&self) -> bool {
        !bits::any(self.memory.words())
    }

    /// Keeps the keys of both, and those that bits cannot distinguish from one.
    pub fn intersect(&mut self, other: &Self) -> Result<()> {
        self.check_alike(other)?;
        bits::and_assign(self.memory.writable()?, other.memory.words());
        Ok(())
    }

    /// True if `other` has all bits of this one, so that it finds every key of it.
    pub fn is_subset(&self, other: &Self) -> Result<bool> {
        self.check_alike(other)?;
        Ok(bits::is_subset(self.memory.words(), other.memory.words()))
    }

    /// [`BitFilter::is_subset`] of bits that differ.
    pub fn is_proper_subset(&self, other: &Self) -> Result<bool> {
        Ok(self.is_subset(other)? && !other.is_subset(self)?)
    }

    /// True if the bits rule out a common key.
    pub fn certainly_disjoint(&self, other: &Self) -> Result<bool> {
        self.check_alike(other)?;
        Ok(bits::are_disjoint(self.memory.words(), other.memory.words()))
    }

    fn union_fill(&self, other: &Self) -> f64 {
        bits::count_union(self.memory.words(), other.memory.words()) as f64 / self.num_bits as f64
    }

    /// Estimated keys in either, and the standard deviation.
    pub fn union_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.check_alike(other)?;
        Ok(self.law().estimate(self.union_fill(other)))
    }

    /// Estimated keys in both, and the standard deviation; NaN and infinite when all bits of the union are set.
    pub fn intersection_count(&self, other: &Self) -> Result<(f64, f64)> {
        self.check_alike(other)?;
        let law = self.law();
        let [a, b, union] = [self.fill(), other.fill(), self.union_fill(other)].map(|fill| law.items(fill));
        Ok(common(law.as_ref(), a, b, union).with_deviation())
    }

    /// Estimated share of the union that is in both; 1 for two empty ones.
    pub fn jaccard(&self, other: &Self) -> Result<f64> {
        let ((union, _), (both, _)) = (self.union_count(other)?, self.intersection_count(other)?);
        Ok(if union > 0.0 { (both / union).clamp(0.0, 1.0) } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::formats;
    use crate::hash::splitmix::mix;

    fn build(name: &str, keys: std::ops::Range<u64>) -> Result<BitFilter> {
        let format = formats::find_by_name(name)?;
        let mut filter = BitFilter::for_capacity(format, format.key_types[0], 0, 5000, 0.01)?;
        let hashing = filter.hashing();
        keys.map(|key| [mix(key), mix(key ^ 1 << 63)]).try_for_each(|digest| {
            // Numbers of a rule are below 2^63, and those of these rules are any.
            filter.add(if hashing.parts() == 1 { digest } else { [digest[0] >> 2, digest[1] >> 2] }).map(drop)
        })?;
        Ok(filter)
    }

    #[test]
    fn sets_are_compared_and_intersected() -> Result<()> {
        for name in ["spark", "guava", "parquet"] {
            let (one, other, all) = (build(name, 0..3000)?, build(name, 2000..5000)?, build(name, 0..5000)?);
            assert!(one.is_subset(&all)? && one.is_proper_subset(&all)? && !all.is_subset(&one)?);
            assert!(one.is_subset(&one)? && !one.is_proper_subset(&one)?);
            let mut united = one.try_clone()?;
            united.merge(&other)?;
            assert!(united.equals(&all));
            for ((found, deviation), wanted) in
                [(one.union_count(&other)?, 5000.0), (one.intersection_count(&other)?, 1000.0)]
            {
                assert!((found - wanted).abs() < 6.0 * deviation, "{name} {found} {deviation} {wanted}");
            }
            assert!((one.jaccard(&other)? - 0.2).abs() < 0.05);
            let mut both = one.try_clone()?;
            both.intersect(&other)?;
            assert!(both.is_subset(&one)? && both.is_subset(&other)? && build(name, 2000..3000)?.is_subset(&both)?);
            let empty = build(name, 0..0)?;
            assert!(
                empty.is_empty()
                    && !one.is_empty()
                    && empty.certainly_disjoint(&one)?
                    && !one.certainly_disjoint(&other)?
            );
        }
        assert!(build("spark", 0..10)?.intersect(&build("parquet", 0..10)?).is_err());
        Ok(())
    }
}
