//! [`Records`]: the records of a static structure, collected, then [`RecordSet`], and [`SortedRecords`] if necessary.
//!
//! A record is W words, the first a hash. Records are in 256 buckets by the first 8 bits of it. Those that exceed the
//! memory limit go to a temporary file without a name, so that nothing of it remains whatever happens.

pub mod lane;
pub mod lot;
mod set;
mod sorted;
mod spill;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Job;
use crate::cells::allocation::reserve;
use crate::error::{Error, Result};
use crate::key::source::{CHUNK, HashSource};
use crate::parallel::workers::{self, lock};

use lane::BUCKETS;
pub use lane::{BUCKET_BITS, Lane, Record};
pub use lot::Lot;
pub use set::RecordSet;
pub use sorted::SortedRecords;
use spill::Spill;

/// Collects records.
pub struct Records<const W: usize> {
    lanes: Vec<Lane<W>>,
    most: usize,
    granted: Option<u64>,
    spill: Option<Spill>,
}

impl<const W: usize> Records<W> {
    /// Empty. With `memory`, it uses at most half of that many bytes: building needs the other half.
    pub fn new(memory: Option<u64>) -> Self {
        let most = memory.map_or(usize::MAX, |bytes| (bytes / 2) as usize / size_of::<Record<W>>()).max(1 << 16);
        Records { lanes: vec![Lane::new()], most, granted: memory, spill: None }
    }

    /// Takes one record.
    #[inline(always)]
    pub fn push(&mut self, record: Record<W>) -> Result<()> {
        let lane = &mut self.lanes[0];
        lane.push(record)?;
        if lane.held >= self.most { self.spill() } else { Ok(()) }
    }

    /// Writes all records in memory to the file.
    #[cold]
    fn spill(&mut self) -> Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new()?),
        };
        for lane in &mut self.lanes {
            spill.write(&mut lane.buckets)?;
            lane.held = 0;
        }
        Ok(())
    }

    /// All records, unsorted; none stay in memory if a file has some.
    fn lot(mut self) -> Result<Lot<W>> {
        if self.spill.is_some() {
            self.spill()?;
            self.lanes.clear();
        }
        Ok(Lot { lanes: self.lanes, spill: self.spill, granted: self.granted, counts: None })
    }

    /// Sorts and drops repeated records; if records of one hash differ, all of them stay.
    pub fn sort(self, job: &Job<'_>) -> Result<SortedRecords<W>> {
        SortedRecords::of(self.lot()?, job)
    }
}

impl<const W: usize> TryFrom<Records<W>> for RecordSet<W> {
    type Error = Error;

    fn try_from(records: Records<W>) -> Result<Self> {
        Ok(RecordSet::loose(records.lot()?))
    }
}

impl Records<1> {
    /// Reserves memory for `hashes` more, if they are many and memory is not limited: moving them took 1 ns each.
    pub fn expect(&mut self, hashes: usize, threads: usize) -> Result<()> {
        if hashes < EACH || self.granted.is_some() {
            return Ok(());
        }
        self.open(threads);
        let each = hashes / threads.max(1) / BUCKETS;
        let buckets = self.lanes.iter_mut().take(threads.max(1)).flat_map(|lane| &mut lane.buckets);
        buckets.into_iter().try_for_each(|bucket| reserve(bucket, each + each / 8))
    }

    /// One lane a thread.
    fn open(&mut self, threads: usize) {
        let more = threads.saturating_sub(self.lanes.len());
        self.lanes.extend((0..more).map(|_| Lane::new()));
    }

    /// Adds part of the hashes of `source` on `threads` threads, each with its own buckets; on one thread if memory is
    /// limited, as that writes to the file.
    pub fn take(&mut self, source: &dyn HashSource, part: Range<usize>, threads: usize) -> Result<()> {
        let threads = threads.min(part.len().div_ceil(EACH));
        if threads < 2 || self.granted.is_some() {
            return hashes(source, part, |hash| self.push([hash]));
        }
        self.open(threads);
        let (next, failed) = (AtomicUsize::new(part.start), Mutex::new(None));
        let work = |lane: &mut Lane<1>| {
            loop {
                let start = next.fetch_add(EACH, Ordering::Relaxed);
                if start >= part.end || lock(&failed).is_some() {
                    return;
                }
                if let Err(error) = hashes(source, start..part.end.min(start + EACH), |hash| lane.push([hash])) {
                    lock(&failed).get_or_insert(error);
                }
            }
        };
        if let Err(lanes) = workers::share(self.lanes.iter_mut().take(threads).collect(), |_, lane| work(lane)) {
            lanes.into_iter().take(1).for_each(work);
        }
        let failed = std::mem::take(&mut *lock(&failed));
        failed.map_or(Ok(()), Err)
    }
}

/// Hashes that a thread adds at a time.
const EACH: usize = 1 << 16;

/// Passes part of the hashes of `source` to `take`.
fn hashes(source: &dyn HashSource, part: Range<usize>, mut take: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let mut hashes = [0u64; CHUNK];
    for start in part.clone().step_by(CHUNK) {
        let hashes = &mut hashes[..CHUNK.min(part.end - start)];
        source.fill(start, hashes);
        hashes.iter().try_for_each(|&hash| take(hash))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::hash;

    fn collect(memory: Option<u64>, threads: usize, keys: impl Iterator<Item = u64>) -> Vec<Record<1>> {
        let mut records = Records::new(memory);
        keys.for_each(|key| records.push([key]).unwrap());
        let sorted = records.sort(&Job::new(threads)).unwrap();
        let (mut all, mut shard) = (Vec::new(), Vec::new());
        for i in 0..4 {
            sorted.read(2, i, &mut shard).unwrap();
            assert_eq!(sorted.count(2, i), shard.len() as u64);
            all.append(&mut shard);
        }
        assert_eq!(sorted.len(), all.len() as u64);
        all
    }

    #[test]
    fn records_come_back_once_and_in_order_whatever_the_memory_and_the_threads() {
        let keys = || (0..300_000).map(|i| hash(i % 200_000));
        let mut want: Vec<Record<1>> = (0..200_000).map(|i| [hash(i)]).collect();
        want.sort_unstable();
        assert_eq!(collect(None, 1, keys()), want);
        assert_eq!(collect(None, 3, (0..300_000).rev().map(|i| hash(i % 200_000))), want);
        assert_eq!(collect(Some(1 << 20), 2, keys()), want);
        assert_eq!(collect(Some(0), 1, keys()), want);
        assert_eq!(collect(None, 1, std::iter::empty()), Vec::<Record<1>>::new());
        assert_eq!(collect(None, 1, [5, 5, 0, u64::MAX, 0].into_iter()), vec![[0], [5], [u64::MAX]]);
    }

    #[test]
    fn threads_take_what_one_takes() {
        let keys: Vec<u64> = (0..300_000).map(|i| hash(i % 250_000)).collect();
        let want = collect(None, 1, keys.iter().copied());
        for (threads, memory) in [(1, None), (2, None), (5, None), (2, Some(1 << 20))] {
            let mut records = Records::<1>::new(memory);
            let half = keys.len() / 2;
            for part in [0..half, half..half, half..keys.len()] {
                records.take(&keys.as_slice(), part, threads).unwrap();
            }
            let (mut all, set) = (Vec::new(), RecordSet::try_from(records).unwrap());
            set.sort(&Job::new(threads)).unwrap().read(0, 0, &mut all).unwrap();
            assert_eq!(all, want, "{threads} {memory:?}");
        }
    }

    #[test]
    fn records_are_sorted_only_where_one_came_twice() {
        for (again, memory, asked) in
            [(None, None, 1), (Some(7), None, 2), (None, Some(0), 1), (Some(90_000), Some(0), 2)]
        {
            let mut records = Records::<1>::new(memory);
            (0..100_000).chain(again).for_each(|i| records.push([hash(i)]).unwrap());
            let (set, job) = (RecordSet::try_from(records).unwrap(), Job::new(1));
            let lots = Mutex::new(Vec::new());
            let distinct = set.build(&job, |lot| {
                let mut all = Vec::new();
                lot.read(0, 0, &mut all)?;
                lock(&lots).push(lot.is_sorted());
                Ok((!lot::repeats(&mut all)).then(|| (lot.len(), all.len())))
            });
            assert_eq!(distinct.unwrap(), (100_000, 100_000));
            assert_eq!(*lock(&lots), [false, true][..asked]);
        }
    }

    #[test]
    fn hashes_that_are_not_spread_are_sorted_too() {
        let keys = || (0..100_000u64).map(|i| i / 3);
        let want: Vec<Record<1>> = (0..33_334).map(|i| [i]).collect();
        assert_eq!(collect(None, 1, keys()), want);
    }

    #[test]
    fn records_of_one_hash_that_differ_all_stay() {
        let mut records = Records::new(None);
        for record in [[7, 1], [7, 2], [7, 1], [3, 9]] {
            records.push(record).unwrap();
        }
        let mut all = Vec::new();
        let sorted = records.sort(&Job::new(1)).unwrap();
        sorted.read(0, 0, &mut all).unwrap();
        assert_eq!(all, [[3, 9], [7, 1], [7, 2]]);
        assert_eq!((sorted.largest(), sorted.differing()), (9, Some([[7, 1], [7, 2]])));
    }
}
