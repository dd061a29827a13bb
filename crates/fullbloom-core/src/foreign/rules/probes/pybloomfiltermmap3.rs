//! pybloomfiltermmap3: both words of `murmur3_x64_128(key, seed i)`, one xor the other, mod bits.

use super::key::Key;
use crate::foreign::rules::seed::Seed;
use crate::hash::murmur3::murmur128_seeded;

/// Position `i`.
pub(super) fn position(key: Key<'_>, i: u32) -> u64 {
    let [first, second] = murmur128_seeded(key.bytes, key.seed.each[i as usize % Seed::MOST]);
    (first ^ second) % key.range.num_bits
}
