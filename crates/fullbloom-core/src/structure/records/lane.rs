//! [`Lane`]: the records that one thread collects, by bucket.

use crate::cells::allocation::reserve;
use crate::error::Result;

/// Bits of a hash that choose the bucket: shards are whole buckets.
pub const BUCKET_BITS: u32 = 8;
/// Buckets in all.
pub(super) const BUCKETS: usize = 1 << BUCKET_BITS;

/// A hash, and a value if it has one.
pub type Record<const W: usize> = [u64; W];

/// Records that one thread collects.
pub struct Lane<const W: usize> {
    pub(super) buckets: Vec<Vec<Record<W>>>,
    pub(super) held: usize,
}

impl<const W: usize> Lane<W> {
    /// Empty.
    pub(super) fn new() -> Self {
        Lane { buckets: (0..BUCKETS).map(|_| Vec::new()).collect(), held: 0 }
    }

    /// Takes one record.
    #[inline(always)]
    pub fn push(&mut self, record: Record<W>) -> Result<()> {
        let bucket = &mut self.buckets[(record[0] >> (64 - BUCKET_BITS)) as usize];
        if bucket.len() == bucket.capacity() {
            reserve(bucket, 1)?;
        }
        bucket.push(record);
        self.held += 1;
        Ok(())
    }
}
