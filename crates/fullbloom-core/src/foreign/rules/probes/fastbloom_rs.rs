//! fastbloom-rs: `(xxh3(key, 0) mod bits + i (xxh3(key, 32) mod bits)) mod bits`.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::key::Key;
use crate::foreign::rules::walk::Digest;

/// Start and step.
pub(super) fn start_and_step(key: Key<'_>) -> Digest {
    [0, 32].map(|seed| xxh3_64_with_seed(key.bytes, seed) % key.range.num_bits)
}
