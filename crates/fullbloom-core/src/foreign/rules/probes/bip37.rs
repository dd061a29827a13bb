//! BIP 37: `murmur3_x86_32(key, i 0xfba4c795 + tweak) mod bits`.

use super::key::Key;
use crate::hash::murmur3::murmur32;

const STEP: u32 = 0xfba4_c795;

/// Position `i`.
pub(super) fn position(key: Key<'_>, i: u32) -> u64 {
    let hash = murmur32(key.bytes, i.wrapping_mul(STEP).wrapping_add(key.seed.number));
    u64::from(hash) % key.range.num_bits
}
