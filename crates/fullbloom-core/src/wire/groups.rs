//! Hashes of a batch, grouped by shard.

use std::ops::Range;

use crate::cells::allocation::zeroed;
use crate::error::{Error, Result};

/// Hashes by shard; those of a shard keep their order.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The hashes, grouped by shard.
    pub hashes: Vec<u64>,
    /// The index of each in the original batch.
    pub order: Vec<u32>,
    /// The shards of the hashes, ascending, with their ranges.
    pub shards: Vec<(u64, Range<usize>)>,
}

impl Groups {
    /// Sorts hashes by shard.
    pub(super) fn new(hashes: Vec<u64>, shards: u64, shard_of: impl Fn(u64) -> u64) -> Result<Self> {
        let Ok(len) = u32::try_from(hashes.len()) else {
            return Err(Error::Parameter(format!("a batch has fewer than 2**32 keys, got {}", hashes.len())));
        };
        if shards == 1 {
            let all = 0..hashes.len();
            let shards = if hashes.is_empty() { Vec::new() } else { vec![(0, all)] };
            return Ok(Groups { hashes, order: (0..len).collect(), shards });
        }
        let mut places: Vec<u32> = zeroed(hashes.len())?;
        let mut ends: Vec<usize> = zeroed(shards as usize + 1)?;
        for (place, &hash) in places.iter_mut().zip(&hashes) {
            *place = shard_of(hash) as u32;
            ends[*place as usize + 1] += 1;
        }
        (0..shards as usize).for_each(|shard| ends[shard + 1] += ends[shard]);
        let ranges = (0..shards).map(|shard| (shard, ends[shard as usize]..ends[shard as usize + 1]));
        let shards = ranges.filter(|(_, keys)| !keys.is_empty()).collect();
        let mut order: Vec<u32> = zeroed(hashes.len())?;
        let mut sorted: Vec<u64> = zeroed(hashes.len())?;
        for (came, (&shard, &hash)) in places.iter().zip(&hashes).enumerate() {
            let at = &mut ends[shard as usize];
            (order[*at], sorted[*at]) = (came as u32, hash);
            *at += 1;
        }
        Ok(Groups { hashes: sorted, order, shards })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_a_shard_keep_their_order_and_know_where_they_came() {
        let hashes: Vec<u64> = (0..100u64).map(|i| i * i).collect();
        for shards in [1, 3, 200] {
            let groups = Groups::new(hashes.clone(), shards, |hash| hash % shards).unwrap();
            assert!(groups.order.iter().zip(&groups.hashes).all(|(&came, &hash)| hashes[came as usize] == hash));
            for (shard, keys) in &groups.shards {
                assert!(groups.hashes[keys.clone()].iter().all(|hash| hash % shards == *shard));
                assert!(groups.order[keys.clone()].is_sorted());
            }
            assert_eq!(groups.shards.iter().map(|(_, keys)| keys.len()).sum::<usize>(), 100);
            assert!(Groups::new(Vec::new(), shards, |_| 0).unwrap().shards.is_empty());
        }
    }
}
