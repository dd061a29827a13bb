//! The hashes of `RedisBloom`: `MurmurHash64A`.
//!
//! ```text
//! Bloom    h1 = MurmurHash64A(key, 0xc6a4a7935bd1e995), h2 = MurmurHash64A(key, h1)
//! cuckoo   h = MurmurHash64A(key, 0)
//! ```

use super::walk::Digest;
use crate::hash::murmur64a::murmur64a;

const SEED: u64 = 0xc6a4_a793_5bd1_e995;

/// A key of the Bloom filter, as both words.
#[inline]
pub fn hash(key: &[u8]) -> Digest {
    let first = murmur64a(key, SEED);
    [first, murmur64a(key, first)]
}

/// A key of the cuckoo filter, as its word.
#[inline]
pub fn cuckoo_hash(key: &[u8]) -> u64 {
    murmur64a(key, 0)
}
