//! Parquet's rule: XXH64 with seed 0, and eight bits of one block, which [`scheme::parquet`](crate::scheme::parquet)
//! computes.

use xxhash_rust::xxh64::xxh64;

use super::walk::Digest;
use crate::hash::xxh64::xxh64_word;

/// The hash, and nothing.
#[inline(always)]
pub(super) fn digest(bytes: &[u8]) -> Digest {
    [xxh64(bytes, 0), 0]
}

/// [`digest`] of 8 bytes.
#[inline(always)]
pub(super) fn digest_word(word: u64) -> Digest {
    [xxh64_word(word), 0]
}
