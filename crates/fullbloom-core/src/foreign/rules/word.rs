//! Filters of fingerprints take words of 64 bits as keys: integers as they are, texts as their XXH64 with seed 0.

use super::walk::Digest;

/// The word itself; 0 for other bytes, which no key has.
#[inline(always)]
pub(super) fn digest(bytes: &[u8]) -> Digest {
    [bytes.try_into().map_or(0, u64::from_le_bytes), 0]
}
