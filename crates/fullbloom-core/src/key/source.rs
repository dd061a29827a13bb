//! A batch of keys as the loops see it: hashes on demand.

use super::{Domain, KeyDomains};

/// Hashes in flight between hashing and probing: 8 KiB, which stay in the first-level cache.
pub const CHUNK: usize = 1024;

/// Hashes on demand, for batches: a column of keys that can be hashed from any position on.
pub trait HashSource: Sync {
    /// Number of keys.
    fn len(&self) -> usize;
    /// True when there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Writes the hashes of the keys from `start` on into `out`.
    fn fill(&self, start: usize, out: &mut [u64]);
    /// The domains of the keys.
    fn domains(&self) -> KeyDomains;
    /// Passes the canonical bytes of `count` keys from `start` on, each with its domain, to `take`, for hashes of other
    /// programs; false if the source has no such bytes.
    fn each_key(&self, _start: usize, _count: usize, _take: &mut dyn FnMut(Domain, &[u8])) -> bool {
        false
    }
    /// The canonical bytes of all keys, if these are integers of 8 bytes that are side by side.
    fn as_words(&self) -> Option<&[[u8; 8]]> {
        None
    }
}

/// Ready hashes.
impl<T: AsRef<[u64]> + Sync> HashSource for T {
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        out.copy_from_slice(&self.as_ref()[start..start + out.len()]);
    }

    fn domains(&self) -> KeyDomains {
        KeyDomains::HASHED
    }
}

/// Hashes of keys whose domains are known.
pub struct Hashed<H> {
    /// The hashes.
    pub hashes: H,
    /// The domains of the keys.
    pub domains: KeyDomains,
}

impl<H: AsRef<[u64]> + Sync> HashSource for Hashed<H> {
    fn len(&self) -> usize {
        self.hashes.as_ref().len()
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        self.hashes.fill(start, out);
    }

    fn domains(&self) -> KeyDomains {
        self.domains
    }
}
