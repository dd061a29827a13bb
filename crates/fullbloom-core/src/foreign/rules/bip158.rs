//! BIP 158: SipHash-2-4 under the first 16 bytes of a block's hash, as a number below N 784931.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use super::seed::Seed;
use super::walk::Digest;

/// The hash, and nothing.
pub(super) fn digest(bytes: &[u8], seed: &Seed) -> Digest {
    let [first, second] = seed.key();
    let mut state = SipHasher24::new_with_keys(first, second);
    state.write(bytes);
    [state.finish(), 0]
}
