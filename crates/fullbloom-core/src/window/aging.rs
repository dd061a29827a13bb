//! [`AgingBloomFilter`]: two buffers, one active and one passive, that alternate.
//!
//! Yoon, "Aging Bloom filter with two active buffers for dynamic sets", 2010. A key found only in the passive buffer is
//! written to the active one as well (`refresh`). The buffers switch when the active one holds `capacity` keys and
//! another arrives; then the passive one holds `capacity` keys that were all seen since, so that the last `capacity`
//! distinct keys are in one of the two. Without refreshing, a key is remembered for `capacity` new keys after it was
//! reported as new itself: the plain double buffer. A false positive is then not written anywhere.

use super::generations::{Generations, Kind, window};
use super::plan::Plan;
use crate::error::Result;
use crate::key::KeyHasher;
use crate::registry::AGING;

window! {
    /// A window over a stream: the last `capacity` distinct keys are never missed, older ones are
    /// forgotten after at most twice as many.
    class AgingBloomFilter;
    parameters {
        /// keys of the window; with window=, keys added within that time.
        capacity: "int";
        /// bound on the rate of false positives, at any time.
        fpr: "float" = 0.01;
        *;
        /// a lookup refreshes a known key; False is the plain double buffer, in which a key is
        /// remembered for the `capacity` new keys after it was new itself (a key that was a false positive is
        /// not stored, so it may be forgotten earlier).
        refresh: "bool" = true;
        /// seconds for which keys are remembered, instead of a count: time passes only by advance(now),
        /// and more than `capacity` keys in a window warn (CapacityWarning) and raise the rate.
        window: "float | None" = None;
    }
    /// False negatives: by design for older keys, never within the window. Raises ParameterError,
    /// ParameterTypeError, FilterMemoryError. Cost: two neighbouring cache lines per key; about 23 bits per
    /// key of capacity at 1 %. Source: Yoon, IEEE TKDE 22(1), 2010; two buffers at rate
    /// ``1 - sqrt(1 - fpr)`` each.
    ///
    /// >>> from fullbloom import AgingBloomFilter
    /// >>> f = AgingBloomFilter(1000, fpr=0.001)
    /// >>> f.update(range(10_000))
    /// >>> all(key in f for key in range(9_000, 10_000)), 0 in f
    /// (True, False)
}

/// Two generations.
pub enum Aging {}

impl Kind for Aging {
    const VARIANT: u16 = AGING;
    const RANGE: [usize; 2] = [2, 2];
}

/// A window over the last `capacity` distinct keys.
pub type AgingBloomFilter = Generations<Aging>;

impl AgingBloomFilter {
    /// An empty window over `capacity` keys or `window` seconds.
    pub fn construct(capacity: u64, fpr: f64, refresh: bool, window: Option<f64>, hasher: KeyHasher) -> Result<Self> {
        Self::new(Plan { capacity, fpr, generations: 2, refresh, window }, hasher)
    }

    /// Bytes of cells of such a window.
    pub fn cell_bytes(capacity: u64, fpr: f64, refresh: bool, window: Option<f64>) -> Result<u64> {
        Self::bytes(Plan { capacity, fpr, generations: 2, refresh, window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::{hash, reload};
    use crate::structure::{Addable, Filter};

    #[test]
    fn the_last_distinct_keys_are_never_denied() {
        for (capacity, alphabet) in [(1u64, 3u64), (7, 12), (50, 60), (50, 1000)] {
            let mut filter = AgingBloomFilter::construct(capacity, 0.01, true, None, KeyHasher::seeded(0)).unwrap();
            let mut recent: Vec<u64> = Vec::new();
            for i in 0..4000u64 {
                let key = hash(hash(i) % alphabet);
                filter.add_hash(key).unwrap();
                recent.retain(|&other| other != key);
                recent.push(key);
                if recent.len() as u64 > capacity {
                    recent.remove(0);
                }
                assert!(recent.iter().all(|&key| filter.contains_hash(key)), "{capacity} {alphabet} {i}");
            }
        }
    }

    #[test]
    fn without_refreshing_a_key_lives_for_capacity_new_keys() {
        let mut filter = AgingBloomFilter::construct(100, 1e-6, false, None, KeyHasher::seeded(0)).unwrap();
        for i in 0..1000 {
            assert!(filter.add_hash(hash(i)).unwrap());
            assert!((i.saturating_sub(99)..=i).all(|j| filter.contains_hash(hash(j))));
            assert!(!filter.add_hash(hash(i.saturating_sub(50))).unwrap());
        }
        assert!(!filter.contains_hash(hash(1)));
    }

    #[test]
    fn time_passes_only_by_advance() {
        let mut filter = AgingBloomFilter::construct(100, 1e-6, true, Some(10.0), KeyHasher::seeded(0)).unwrap();
        assert_eq!(filter.advance(1000.0).unwrap(), 0);
        filter.add_hash(hash(1)).unwrap();
        assert_eq!(filter.advance(1009.9).unwrap(), 0);
        filter.add_hash(hash(2)).unwrap();
        assert_eq!(filter.advance(1019.9).unwrap(), 1);
        assert!(filter.contains_hash(hash(1)) && filter.contains_hash(hash(2)));
        assert_eq!(filter.advance(1020.0).unwrap(), 1);
        assert!(!filter.contains_hash(hash(1)) && !filter.contains_hash(hash(2)));
        assert!(filter.advance(1019.0).is_err() && filter.advance(f64::NAN).is_err());
        let again = reload(&filter);
        assert!(again.same_as(&filter) && again.now() == Some(1020.0));
        assert_eq!(filter.advance(1e300).unwrap(), 2);
    }
}
