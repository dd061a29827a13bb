//! [`SortedRecords`]: distinct records in order.

use super::lane::{BUCKETS, Record};
use super::lot::{self, Lot};
use crate::error::Result;
use crate::structure::Job;

/// Facts about the records of a bucket.
#[derive(Default)]
struct Facts<const W: usize> {
    count: u64,
    /// The largest last word.
    largest: u64,
    /// The first two of one hash that differ.
    differing: Option<[Record<W>; 2]>,
}

impl<const W: usize> Facts<W> {
    fn of(sorted: &[Record<W>]) -> Self {
        let count = sorted.len() as u64;
        if W == 1 {
            return Facts { count, ..Self::default() };
        }
        let largest = sorted.iter().map(|record| record[W - 1]).max().unwrap_or_default();
        let differing = sorted.windows(2).find(|pair| pair[0][0] == pair[1][0]);
        let differing = differing.and_then(|pair| pair.first_chunk::<2>()).copied();
        Facts { count, largest, differing }
    }
}

/// Distinct records in order.
pub struct SortedRecords<const W: usize> {
    lot: Lot<W>,
    largest: u64,
    differing: Option<[Record<W>; 2]>,
}

impl<const W: usize> SortedRecords<W> {
    /// Sorts and drops repeated records; if records of one hash differ, all of them stay.
    pub(super) fn of(mut lot: Lot<W>, job: &Job<'_>) -> Result<Self> {
        let mut facts: Vec<Facts<W>> = (0..BUCKETS).map(|_| Facts::default()).collect();
        if let Some(spill) = &lot.spill {
            job.run(facts.iter_mut().enumerate(), |(i, facts)| {
                let mut read: Vec<Record<W>> = Vec::new();
                spill.read(i, &mut read)?;
                lot::sort(&mut read);
                *facts = Facts::of(&read);
                Ok(())
            })?;
        } else {
            lot.merge_lanes()?;
            let buckets = lot.lanes.iter_mut().flat_map(|lane| &mut lane.buckets);
            let parts: Vec<_> = buckets.zip(&mut facts).collect();
            job.run(parts.into_iter(), |(bucket, facts)| {
                lot::sort(bucket);
                *facts = Facts::of(bucket);
                Ok(())
            })?;
        }
        lot.counts = Some(facts.iter().map(|facts| facts.count).collect());
        Ok(SortedRecords {
            lot,
            largest: facts.iter().map(|facts| facts.largest).max().unwrap_or_default(),
            differing: facts.iter().find_map(|facts| facts.differing),
        })
    }

    /// The records by bucket.
    pub(super) fn lot(&self) -> &Lot<W> {
        &self.lot
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.lot.len()
    }

    /// True when it holds no records.
    pub fn is_empty(&self) -> bool {
        self.lot.is_empty()
    }

    /// The largest last word; 0 if a record is a hash alone.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The first two records of one hash that differ.
    pub fn differing(&self) -> Option<[Record<W>; 2]> {
        self.differing
    }

    /// Bytes that may be used for all, if that was said.
    pub fn memory_limit(&self) -> Option<u64> {
        self.lot.memory_limit()
    }

    /// How many records shard number `shard` of 2^bits has, `bits` up to [`super::BUCKET_BITS`].
    pub fn count(&self, bits: u32, shard: usize) -> u64 {
        self.lot.count(bits, shard)
    }

    /// Replaces `out` with the records of a shard, in order.
    pub fn read(&self, bits: u32, shard: usize, out: &mut Vec<Record<W>>) -> Result<()> {
        self.lot.read(bits, shard, out)
    }
}
