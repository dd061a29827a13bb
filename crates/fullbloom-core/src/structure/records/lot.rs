//! [`Lot`]: all records by bucket, in memory and in a file.

use std::ops::Range;

use super::lane::{BUCKET_BITS, BUCKETS, Lane, Record};
use super::spill::Spill;
use crate::cells::allocation::reserve;
use crate::error::Result;

/// Records by bucket: in the order of their arrival, or sorted without repetitions.
pub struct Lot<const W: usize> {
    /// One for each thread that collected records; one if they are sorted; none if all are in the file.
    pub(super) lanes: Vec<Lane<W>>,
    pub(super) spill: Option<Spill>,
    pub(super) granted: Option<u64>,
    /// Number of records in each bucket, if they are sorted.
    pub(super) counts: Option<Vec<u64>>,
}

/// The buckets of shard number `shard` of 2^bits.
fn buckets_of(bits: u32, shard: usize) -> Range<usize> {
    let each = BUCKETS >> bits.min(BUCKET_BITS);
    shard * each..(shard + 1) * each
}

impl<const W: usize> Lot<W> {
    /// True if no record is repeated; otherwise one may be.
    pub fn is_sorted(&self) -> bool {
        self.counts.is_some()
    }

    /// True if some records are in a file.
    pub fn is_spilled(&self) -> bool {
        self.spill.is_some()
    }

    /// Bytes that may be used for all, if that was said.
    pub fn memory_limit(&self) -> Option<u64> {
        self.granted
    }

    /// How many records there are.
    pub fn len(&self) -> u64 {
        self.count(0, 0)
    }

    /// True when it holds no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many records shard number `shard` of 2^bits has, `bits` up to [`BUCKET_BITS`].
    pub fn count(&self, bits: u32, shard: usize) -> u64 {
        let lying = |bucket: usize| {
            let held: usize = self.lanes.iter().map(|lane| lane.buckets[bucket].len()).sum();
            (held + self.spill.as_ref().map_or(0, |spill| spill.count(bucket))) as u64
        };
        buckets_of(bits, shard).map(|i| self.counts.as_ref().map_or_else(|| lying(i), |counts| counts[i])).sum()
    }

    /// The records of a shard, bucket after bucket, in pieces; `room` is the buffer for those read from the file.
    pub fn pieces<'a>(&'a self, bits: u32, shard: usize, room: &'a mut Vec<Record<W>>) -> Result<Vec<&'a [Record<W>]>> {
        let buckets = buckets_of(bits, shard);
        if self.spill.is_some() {
            self.read(bits, shard, room)?;
            return Ok(vec![room.as_slice()]);
        }
        let mut pieces = Vec::new();
        reserve(&mut pieces, buckets.len() * self.lanes.len())?;
        pieces.extend(buckets.flat_map(|i| self.lanes.iter().map(move |lane| lane.buckets[i].as_slice())));
        Ok(pieces)
    }

    /// Replaces `out` with the records of a shard, in order if the lot is sorted.
    pub fn read(&self, bits: u32, shard: usize, out: &mut Vec<Record<W>>) -> Result<()> {
        out.clear();
        reserve(out, self.count(bits, shard) as usize)?;
        for bucket in buckets_of(bits, shard) {
            match &self.spill {
                None => self.lanes.iter().for_each(|lane| out.extend_from_slice(&lane.buckets[bucket])),
                Some(spill) if self.is_sorted() => {
                    let start = out.len();
                    spill.read(bucket, out)?;
                    out[start..].sort_unstable();
                    let mut last = None;
                    let mut kept = start;
                    for i in start..out.len() {
                        if last.replace(out[i]) != Some(out[i]) {
                            out[kept] = out[i];
                            kept += 1;
                        }
                    }
                    out.truncate(kept);
                }
                Some(spill) => spill.read(bucket, out)?,
            }
        }
        Ok(())
    }

    /// Brings the records of all lanes into one.
    pub(super) fn merge_lanes(&mut self) -> Result<()> {
        while self.lanes.len() > 1
            && let (Some(lane), Some(first)) = (self.lanes.pop(), self.lanes.first_mut())
        {
            for (into, mut bucket) in first.buckets.iter_mut().zip(lane.buckets) {
                reserve(into, bucket.len())?;
                into.append(&mut bucket);
            }
        }
        Ok(())
    }

    /// True if, in one bucket of 256, a record is repeated.
    pub fn repeats_often(&self) -> Result<bool> {
        let mut some = Vec::new();
        self.read(BUCKET_BITS, 0, &mut some)?;
        Ok(repeats(&mut some))
    }
}

/// Sorts records and drops repeated ones: 10 ns each for 39,000, and dealing them to pieces of the first-level cache
/// before gained nothing.
pub(super) fn sort<const W: usize>(records: &mut Vec<Record<W>>) {
    records.sort_unstable();
    records.dedup();
}

/// True if a hash is repeated; sorts the records.
pub fn repeats<const W: usize>(records: &mut [Record<W>]) -> bool {
    records.sort_unstable();
    records.windows(2).any(|pair| pair[0][0] == pair[1][0])
}
