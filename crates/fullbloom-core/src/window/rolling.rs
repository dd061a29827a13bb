//! [`RollingBloomFilter`]: a window of several generations, which expire oldest first.
//!
//! The design of Bitcoin's `CRollingBloomFilter` (three generations, half of the keys of the window in each) with
//! interleaved lines instead of cells of two bits: 2-bit cells hold every key at the rate of one filter for 1.5 n keys
//! and need 3 * 1.44 log2(1/p) n bits; g separate planes need g/(g-1) * 1.44 log2(g/p) n, 1.6 times less at g = 3, p =
//! 1 %, for g adjacent lines per lookup instead of k scattered ones.
//!
//! The last `capacity` keys that were added are never missed, counting repeats (a repeat within the active generation
//! costs nothing). These are not the last `capacity` distinct keys: a repeat from an older generation takes a place in
//! the active one, too. Only g = 2 guarantees distinct keys ([`super::AgingBloomFilter`]), since only a single full
//! generation certainly holds no repeat.

use super::generations::{Generations, Kind, window};
use super::plan::{MAX_GENERATIONS, Plan};
use crate::error::Result;
use crate::key::KeyHasher;
use crate::registry::ROLLING;

window! {
    /// A window over a stream in several generations: the last `capacity` keys are never missed, in less
    /// space than AgingBloomFilter needs.
    class RollingBloomFilter;
    parameters {
        /// keys of the window, repeats counted (a repeat within one generation is free; for the last
        /// `capacity` *distinct* keys, use AgingBloomFilter). With window=, keys added within that time.
        capacity: "int";
        /// bound on the rate of false positives, at any time.
        fpr: "float" = 0.01;
        *;
        /// 2 to 16; g of them hold at most g/(g - 1) times `capacity` keys, one cache line each per lookup.
        generations: "int" = 3;
        /// seconds for which keys are remembered, instead of a count: time passes only by advance(now),
        /// every generation is sized for `capacity` keys, and more keys in one generation warn (CapacityWarning).
        window: "float | None" = None;
    }
    /// False negatives: by design for older keys, never within the window. Raises ParameterError,
    /// ParameterTypeError, FilterMemoryError. Cost: `generations` neighbouring cache lines per key; about
    /// 19 bits a key of capacity at 1 % with 3 generations. Source: Bitcoin Core's CRollingBloomFilter,
    /// with lines instead of 2-bit cells; each generation at rate ``1 - (1 - fpr)**(1/g)``.
    ///
    /// >>> from fullbloom import RollingBloomFilter
    /// >>> f = RollingBloomFilter(1000, fpr=0.001)
    /// >>> f.update(range(10_000))
    /// >>> all(key in f for key in range(9_000, 10_000)), 0 in f
    /// (True, False)
}

/// Two generations and more.
pub enum Rolling {}

impl Kind for Rolling {
    const VARIANT: u16 = ROLLING;
    const RANGE: [usize; 2] = [2, MAX_GENERATIONS];
}

/// A window over the last `capacity` keys.
pub type RollingBloomFilter = Generations<Rolling>;

impl RollingBloomFilter {
    /// An empty window over `capacity` keys or `window` seconds.
    pub fn construct(
        capacity: u64,
        fpr: f64,
        generations: u64,
        window: Option<f64>,
        hasher: KeyHasher,
    ) -> Result<Self> {
        Self::new(Self::plan(capacity, fpr, generations, window), hasher)
    }

    /// Bytes of cells of such a window.
    pub fn cell_bytes(capacity: u64, fpr: f64, generations: u64, window: Option<f64>) -> Result<u64> {
        Self::bytes(Self::plan(capacity, fpr, generations, window))
    }

    fn plan(capacity: u64, fpr: f64, generations: u64, window: Option<f64>) -> Plan {
        let generations = usize::try_from(generations).unwrap_or(usize::MAX);
        Plan { capacity, fpr, generations, refresh: true, window }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::structure::conformance::{adding, lying};
    use crate::structure::testing::hash;
    use crate::structure::{Addable, Filter};

    #[test]
    fn the_last_keys_are_never_denied() {
        for generations in [2, 3, 5, 16] {
            for (capacity, alphabet) in [(1u64, 3u64), (7, 12), (40, 60), (100, u64::MAX)] {
                let mut filter =
                    RollingBloomFilter::construct(capacity, 0.01, generations, None, KeyHasher::seeded(0)).unwrap();
                let keys: Vec<u64> = (0..1500).map(|i| hash(hash(i) % alphabet)).collect();
                for (i, &key) in keys.iter().enumerate() {
                    filter.add_hash(key).unwrap();
                    let recent = &keys[(i + 1).saturating_sub(capacity as usize)..=i];
                    assert!(recent.iter().all(|&key| filter.contains_hash(key)), "{generations} {capacity} {i}");
                }
            }
        }
    }

    #[test]
    fn batches_and_files_are_the_filter_of_single_adds_and_lies_harm_nobody() {
        for (generations, window) in [(2, None), (3, Some(5.0)), (4, None), (7, None)] {
            let make = || RollingBloomFilter::construct(300, 0.001, generations, window, KeyHasher::seeded(3)).unwrap();
            let mut filter = adding(&make, 2500);
            assert!(window.is_none() || filter.advance(5.0).is_ok());
            lying(&filter, |_, _, _| true, |mut opened| drop(opened.advance(1e9)));
        }
    }

    #[test]
    fn keys_of_a_window_of_time_live_through_it() {
        let mut filter = RollingBloomFilter::construct(1000, 0.001, 4, Some(30.0), KeyHasher::seeded(0)).unwrap();
        let times: Vec<f64> = (0..800).map(|i| f64::from(i) * 0.7).collect();
        for (i, &now) in times.iter().enumerate() {
            filter.advance(now).unwrap();
            filter.add_hash(hash(i as u64)).unwrap();
            let alive = (0..=i).filter(|&j| now - times[j] <= 30.0);
            assert!(alive.into_iter().all(|j| filter.contains_hash(hash(j as u64))), "{now}");
        }
        assert_eq!(filter.advance(1e9).unwrap(), 4);
        assert_eq!((filter.num_added(), filter.fill()), (0, 0.0));
    }

    #[test]
    fn nonsense_is_refused() {
        let make =
            |capacity, fpr, g, window| RollingBloomFilter::construct(capacity, fpr, g, window, KeyHasher::seeded(0));
        assert!(make(10, 0.1, 1, None).is_err() && make(10, 0.1, 17, None).is_err());
        assert!(make(10, 0.1, 3, Some(0.0)).is_err() && make(10, 0.1, 3, Some(f64::NAN)).is_err());
        assert!(matches!(make(10, 0.1, 3, None).unwrap().advance(1.0), Err(Error::Parameter(_))));
    }
}
