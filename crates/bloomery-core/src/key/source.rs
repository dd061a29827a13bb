//! A batch of keys as the loops see it: hashes on demand.

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
}

/// Ready hashes.
impl<T: AsRef<[u64]> + Sync> HashSource for T {
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    fn fill(&self, start: usize, out: &mut [u64]) {
        out.copy_from_slice(&self.as_ref()[start..start + out.len()]);
    }
}
