//! The places of a key in a cuckoo table, and the ring that prefetches them.
//!
//! From the 64-bit hash h, with `fastrange(x, r)` the high 64 bits of x r:
//!
//! ```text
//! fingerprint  p  = 1 + fastrange(h M1, 2^f - 1)          never 0
//! bucket       i1 = fastrange(h, n)                       n buckets, any number
//! bucket       i2 = fastrange(p M2, n) - i1  mod n        its own inverse: i1 from p and i2 likewise
//! ```
//!
//! M1 = 0x9e3779b97f4a7c15, M2 = 0xd6e8feb86659fd93, products modulo 2^64.

use crate::scheme::fastrange;

/// Makes the fingerprint independent of the bucket, which uses the top bits of the hash.
const M1: u64 = 0x9e37_79b9_7f4a_7c15;
/// Spreads fingerprints over the buckets.
const M2: u64 = 0xd6e8_feb8_6659_fd93;

/// How far ahead of the key in hand buckets are fetched.
const AHEAD: usize = 16;

/// A fingerprint and its two buckets (which may be one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Never 0.
    pub fp: u64,
    /// i1.
    pub first: u64,
    /// i2.
    pub second: u64,
}

/// From hashes to places in a table of one size.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    buckets: u64,
    /// Number of fingerprints, 2^f - 1.
    fps: u64,
}

impl Places {
    /// Of a table of `buckets` buckets (at least 1) of fingerprints of `width` bits (1 to 63).
    pub fn new(buckets: u64, width: u32) -> Self {
        Places { buckets, fps: (1 << width) - 1 }
    }

    /// The place of a hash.
    #[inline(always)]
    pub fn of(&self, hash: u64) -> Spot {
        let fp = 1 + fastrange(hash.wrapping_mul(M1), self.fps);
        let first = fastrange(hash, self.buckets);
        Spot { fp, first, second: self.other(fp, first) }
    }

    /// The place of a fingerprint found in `bucket`.
    #[inline(always)]
    pub fn at(&self, fp: u64, bucket: u64) -> Spot {
        Spot { fp, first: bucket, second: self.other(fp, bucket) }
    }

    /// The other bucket of any `fp`; below the number of buckets, as `bucket` must be.
    #[inline(always)]
    pub fn other(&self, fp: u64, bucket: u64) -> u64 {
        let sum = fastrange(fp.wrapping_mul(M2), self.buckets);
        let (difference, below) = sum.overflowing_sub(bucket);
        if below { difference.wrapping_add(self.buckets) } else { difference }
    }

    /// Visits the places of `hashes` in order, up to the first error; calls `fetch` with both buckets of a key some
    /// visits before.
    #[inline(always)]
    pub fn each<E>(
        &self,
        hashes: &[u64],
        fetch: impl Fn(u64),
        mut visit: impl FnMut(usize, Spot) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut ring = [Spot::default(); AHEAD];
        let plan = |hash: u64| {
            let spot = self.of(hash);
            fetch(spot.first);
            fetch(spot.second);
            spot
        };
        for (spot, &hash) in ring.iter_mut().zip(hashes) {
            *spot = plan(hash);
        }
        for i in 0..hashes.len() {
            let spot = ring[i % AHEAD];
            if let Some(&next) = hashes.get(i + AHEAD) {
                ring[i % AHEAD] = plan(next);
            }
            visit(i, spot)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_bucket_of_the_other_bucket_is_the_first() {
        let mut x = 1u64;
        for buckets in [1, 2, 3, 5, 1000, 1 << 20, (1 << 40) + 7] {
            let places = Places::new(buckets, 12);
            for _ in 0..1000 {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let spot = places.of(x);
                assert!(spot.first < buckets && spot.second < buckets && (1..4096).contains(&spot.fp));
                assert_eq!(places.other(spot.fp, spot.second), spot.first);
            }
        }
    }
}
