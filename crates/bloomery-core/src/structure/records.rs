//! [`Records`]: what a static structure is made of, collected, then [`Sorted`].
//!
//! A record is W words, the first a hash. Records lie in 256 buckets by the first 8 bits of it. What does not fit in
//! the memory granted goes to a temporary file that has no name, so that nothing is left of it whatever happens.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::Job;
use crate::cells::allocation::reserve;
use crate::error::{Error, Result, shown};
use crate::parallel::workers;

/// Bits of a hash that choose the bucket: shards are whole buckets.
pub const BUCKET_BITS: u32 = 8;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// A hash and what stands beside it.
pub type Record<const W: usize> = [u64; W];

/// Collects records.
pub struct Records<const W: usize> {
    buckets: Vec<Vec<Record<W>>>,
    held: usize,
    most: usize,
    granted: Option<u64>,
    spill: Option<Spill>,
}

/// Records on disk, by bucket.
struct Spill {
    file: Mutex<File>,
    folder: PathBuf,
    end: u64,
    /// First byte and number of records of each run.
    runs: Vec<VecDeque<(u64, usize)>>,
}

/// What goes wrong with the file, by its folder: it has no name.
fn failed(folder: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Io(error, format!("{}: the temporary file of a build", shown(folder)).into())
}

impl<const W: usize> Records<W> {
    /// None yet. With `memory`, no more than half of so many bytes are held: the other half is for building.
    pub fn new(memory: Option<u64>) -> Self {
        let most = memory.map_or(usize::MAX, |bytes| (bytes / 2) as usize / size_of::<Record<W>>()).max(1 << 16);
        let buckets = (0..BUCKETS).map(|_| Vec::new()).collect();
        Records { buckets, held: 0, most, granted: memory, spill: None }
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
        if self.held >= self.most { self.spill() } else { Ok(()) }
    }

    /// Writes all that is held to the file.
    #[cold]
    fn spill(&mut self) -> Result<()> {
        if self.spill.is_none() {
            let folder = std::env::temp_dir();
            let file = tempfile::tempfile_in(&folder).map_err(|error| Error::io(error, &folder))?;
            let runs = (0..BUCKETS).map(|_| VecDeque::new()).collect();
            self.spill = Some(Spill { file: Mutex::new(file), folder, end: 0, runs });
        }
        let Some(spill) = &mut self.spill else { return Ok(()) };
        let mut bytes = Vec::new();
        for (bucket, runs) in self.buckets.iter_mut().zip(&mut spill.runs) {
            if bucket.is_empty() {
                continue;
            }
            bytes.clear();
            reserve(&mut bytes, size_of_val(bucket.as_slice()))?;
            bytes.extend(bucket.iter().flatten().flat_map(|word| word.to_le_bytes()));
            workers::lock(&spill.file).write_all(&bytes).map_err(failed(&spill.folder))?;
            runs.push_back((spill.end, bucket.len()));
            spill.end += bytes.len() as u64;
            bucket.clear();
        }
        self.held = 0;
        Ok(())
    }

    /// Sorts and drops repeated records; where records of one hash differ, all of them stay.
    pub fn sorted(mut self, job: &Job<'_>) -> Result<Sorted<W>> {
        if self.spill.is_some() {
            self.spill()?;
            self.buckets.iter_mut().for_each(|bucket| *bucket = Vec::new());
        }
        let mut sorted = Sorted { facts: Vec::new(), buckets: self.buckets, spill: self.spill, granted: self.granted };
        let mut facts: Vec<Facts<W>> = (0..BUCKETS).map(|_| Facts::default()).collect();
        let Sorted { buckets, spill, .. } = &mut sorted;
        let parts = buckets.iter_mut().zip(&mut facts).enumerate();
        job.run(parts, |(i, (bucket, facts))| {
            *facts = match spill.as_ref() {
                None => {
                    sort(bucket);
                    Facts::of(bucket)
                }
                Some(spill) => {
                    let mut read: Vec<Record<W>> = Vec::new();
                    spill.read(i, &mut read)?;
                    sort(&mut read);
                    Facts::of(&read)
                }
            };
            Ok(())
        })?;
        sorted.facts = facts;
        Ok(sorted)
    }
}

impl Spill {
    /// Appends the records of a bucket to `out`.
    fn read<const W: usize>(&self, bucket: usize, out: &mut Vec<Record<W>>) -> Result<()> {
        let number = self.runs[bucket].iter().map(|run| run.1).sum();
        reserve(out, number)?;
        let mut bytes = Vec::new();
        for &(start, records) in &self.runs[bucket] {
            let len = records * size_of::<Record<W>>();
            bytes.clear();
            reserve(&mut bytes, len)?;
            bytes.resize(len, 0);
            let mut file = workers::lock(&self.file);
            file.seek(SeekFrom::Start(start))
                .and_then(|_| file.read_exact(&mut bytes))
                .map_err(failed(&self.folder))?;
            drop(file);
            let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            out.extend((0..records).map(|_| std::array::from_fn(|_| words.next().unwrap_or(0))));
        }
        Ok(())
    }
}

/// Sorts the records of one bucket and drops repeated ones: 10 ns each for 39,000, and dealing them to pieces of the
/// first-level cache before gained nothing.
fn sort<const W: usize>(bucket: &mut Vec<Record<W>>) {
    bucket.sort_unstable();
    bucket.dedup();
}

/// What is known of the records of a bucket.
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
pub struct Sorted<const W: usize> {
    facts: Vec<Facts<W>>,
    buckets: Vec<Vec<Record<W>>>,
    spill: Option<Spill>,
    granted: Option<u64>,
}

impl<const W: usize> Sorted<W> {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.facts.iter().map(|facts| facts.count).sum()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest last word; 0 where a record is a hash alone.
    pub fn largest(&self) -> u64 {
        self.facts.iter().map(|facts| facts.largest).max().unwrap_or_default()
    }

    /// The first two records of one hash that differ.
    pub fn differing(&self) -> Option<[Record<W>; 2]> {
        self.facts.iter().find_map(|facts| facts.differing)
    }

    /// Bytes that may be used for all, if that was said.
    pub fn granted(&self) -> Option<u64> {
        self.granted
    }

    fn buckets_of(bits: u32, shard: usize) -> std::ops::Range<usize> {
        let each = BUCKETS >> bits.min(BUCKET_BITS);
        shard * each..(shard + 1) * each
    }

    /// How many records shard number `shard` of 2^bits has, `bits` up to [`BUCKET_BITS`].
    pub fn count(&self, bits: u32, shard: usize) -> u64 {
        self.facts[Self::buckets_of(bits, shard)].iter().map(|facts| facts.count).sum()
    }

    /// The records of a shard, in order, in place of what `out` holds.
    pub fn read(&self, bits: u32, shard: usize, out: &mut Vec<Record<W>>) -> Result<()> {
        out.clear();
        let number = self.count(bits, shard) as usize;
        reserve(out, number)?;
        for bucket in Self::buckets_of(bits, shard) {
            match &self.spill {
                None => out.extend_from_slice(&self.buckets[bucket]),
                Some(spill) => {
                    let mut read = Vec::new();
                    spill.read(bucket, &mut read)?;
                    sort(&mut read);
                    out.append(&mut read);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::hash;

    fn collected(memory: Option<u64>, threads: usize, keys: impl Iterator<Item = u64>) -> Vec<Record<1>> {
        let mut records = Records::new(memory);
        keys.for_each(|key| records.push([key]).unwrap());
        let sorted = records.sorted(&Job::new(threads)).unwrap();
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
        assert_eq!(collected(None, 1, keys()), want);
        assert_eq!(collected(None, 3, (0..300_000).rev().map(|i| hash(i % 200_000))), want);
        assert_eq!(collected(Some(1 << 20), 2, keys()), want);
        assert_eq!(collected(Some(0), 1, keys()), want);
        assert_eq!(collected(None, 1, std::iter::empty()), Vec::<Record<1>>::new());
        assert_eq!(collected(None, 1, [5, 5, 0, u64::MAX, 0].into_iter()), vec![[0], [5], [u64::MAX]]);
    }

    #[test]
    fn hashes_that_are_not_spread_are_sorted_too() {
        let keys = || (0..100_000u64).map(|i| i / 3);
        let want: Vec<Record<1>> = (0..33_334).map(|i| [i]).collect();
        assert_eq!(collected(None, 1, keys()), want);
    }

    #[test]
    fn records_of_one_hash_that_differ_all_stay() {
        let mut records = Records::new(None);
        for record in [[7, 1], [7, 2], [7, 1], [3, 9]] {
            records.push(record).unwrap();
        }
        let mut all = Vec::new();
        let sorted = records.sorted(&Job::new(1)).unwrap();
        sorted.read(0, 0, &mut all).unwrap();
        assert_eq!(all, [[3, 9], [7, 1], [7, 2]]);
        assert_eq!((sorted.largest(), sorted.differing()), (9, Some([[7, 1], [7, 2]])));
    }
}
