//! [`RollingBloomFilter`]: a window of several generations, the oldest of which expires at a time.
//!
//! The form of Bitcoin's `CRollingBloomFilter` (three generations, half of the promised keys in
//! each) with lines side by side instead of cells of two bits: 2-bit cells hold every key at the
//! rate of one filter for 1.5 n keys and need 3 * 1.44 log2(1/p) n bits; g separate planes need
//! g/(g-1) * 1.44 log2(g/p) n, 1.6 times less at g = 3, p = 1 %, for g neighbouring lines a look-up
//! instead of k scattered ones.
//!
//! The last `capacity` keys that were added are never denied, repeats counted (a repeat within the
//! active generation costs nothing). It is not the last `capacity` distinct keys: a repeat from an
//! older generation takes a place in the active one, too. Only g = 2 gives that
//! ([`super::AgingBloomFilter`]), since nothing but one full generation is sure to hold no repeat.

use super::generations::{Generations, Kind, MAX_GENERATIONS, Plan};
use crate::error::Result;
use crate::key::KeyHasher;
use crate::registry::ROLLING;

/// Two generations and more.
pub enum Rolling {}

impl Kind for Rolling {
    const VARIANT: u16 = ROLLING;
    const GENERATIONS: usize = 3;
    const RANGE: [usize; 2] = [2, MAX_GENERATIONS];
}

/// A window over the last `capacity` keys.
pub type RollingBloomFilter = Generations<Rolling>;

impl RollingBloomFilter {
    /// An empty window over `capacity` keys or `window` seconds.
    pub fn of(capacity: u64, fpr: f64, generations: usize, window: Option<f64>, hasher: KeyHasher) -> Result<Self> {
        Self::new(Plan { capacity, fpr, generations, refresh: true, window }, hasher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::structure::{Addable, Filter, Loadable};
    use crate::window::generations::tests::{hash, reload};

    #[test]
    fn the_last_keys_are_never_denied() {
        for generations in [2, 3, 5, 16] {
            for (capacity, alphabet) in [(1u64, 3u64), (7, 12), (40, 60), (100, u64::MAX)] {
                let mut filter =
                    RollingBloomFilter::of(capacity, 0.01, generations, None, KeyHasher::seeded(0)).unwrap();
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
    fn a_batch_leaves_what_single_adds_leave() {
        for generations in [2, 3, 4, 7] {
            let make = || RollingBloomFilter::of(300, 0.001, generations, None, KeyHasher::seeded(3)).unwrap();
            let (mut batch, mut single) = (make(), make());
            let keys: Vec<u64> = (0..5000).map(|i| hash(hash(i) % 2500)).collect();
            let mut new = vec![0; keys.len()];
            batch.add_hashes(&keys, Some(&mut new)).unwrap();
            let told: Vec<u8> = keys.iter().map(|&key| u8::from(single.add_hash(key).unwrap())).collect();
            assert_eq!(new, told);
            assert!(batch.same_as(&single));
            assert!(reload(&batch, RollingBloomFilter::load).same_as(&batch));
            let mut found = vec![0; keys.len()];
            batch.contains_hashes(&keys, &mut found);
            assert!(keys.iter().zip(&found).all(|(&key, &found)| batch.contains_hash(key) == (found == 1)));
        }
    }

    #[test]
    fn keys_of_a_window_of_time_live_through_it() {
        let mut filter = RollingBloomFilter::of(1000, 0.001, 4, Some(30.0), KeyHasher::seeded(0)).unwrap();
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
        let make = |capacity, fpr, g, window| RollingBloomFilter::of(capacity, fpr, g, window, KeyHasher::seeded(0));
        assert!(make(0, 0.1, 3, None).is_err() && make(1, 1.0, 3, None).is_err());
        assert!(make(10, 0.1, 1, None).is_err() && make(10, 0.1, 17, None).is_err());
        assert!(make(10, 0.1, 3, Some(0.0)).is_err() && make(10, 0.1, 3, Some(f64::NAN)).is_err());
        assert!(matches!(make(u64::MAX, 0.5, 3, None), Err(Error::Memory(_))));
        assert!(matches!(make(10, 0.1, 3, None).unwrap().advance(1.0), Err(Error::Parameter(_))));
    }
}
