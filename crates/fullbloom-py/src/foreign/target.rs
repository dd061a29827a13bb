//! [`Target`]: a filter that is asked by the digests of keys, and [`Measure`]: what it answers.

use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::error::{Error, Result};
use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::redisbloom::bloom::Chain;
use fullbloom_core::foreign::redisbloom::cuckoo::Cuckoo;
use fullbloom_core::foreign::rules::Digest;
use fullbloom_core::foreign::static_filter::StaticFilter;

use crate::python_objects::answers::Answer;

use super::job::Job;

/// A filter, and what batches do with it; a key has as many digests as the filter's hashing says.
pub(super) trait Target: Send + Sync {
    /// Looks up many keys.
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]);
    /// Looks up integers, 8 little-endian bytes each; false, and no results, if only their digests can be looked up.
    fn contains_words(&self, _words: &[[u8; 8]], _found: &mut [u8]) -> bool {
        false
    }
    /// Adds many keys; marks those that were new if the caller wants to know.
    fn add_keys(&mut self, digests: &[Digest], new: Option<&mut [u8]>) -> Result<()>;
    /// Removes many keys, each once; marks those that were there if the caller wants to know.
    fn remove_keys(&mut self, _digests: &[Digest], _removed: Option<&mut [u8]>) -> Result<()> {
        Err(Error::parameter("filters of this class remove no keys"))
    }
    /// How often each key was added.
    fn count_keys(&self, _digests: &[Digest], counts: &mut [u64]) {
        counts.fill(0);
    }
}

/// A result for a key, and how a filter gives it.
pub(super) trait Measure: Answer + Copy {
    /// The results of many keys.
    fn look<F: Target>(filter: &F, digests: &[Digest], out: &mut [Self]);
    /// The results of integers, 8 little-endian bytes each; false, and no results, if only their digests can be looked up.
    fn look_words<F: Target>(_filter: &F, _words: &[[u8; 8]], _out: &mut [Self]) -> bool {
        false
    }
    /// Changes the filter by many keys, as `job` says.
    fn change<F: Target>(filter: &mut F, job: Job, digests: &[Digest], out: Option<&mut [Self]>) -> Result<()>;
}

/// A mark: whether a key was found, new, or removed.
impl Measure for u8 {
    fn look<F: Target>(filter: &F, digests: &[Digest], out: &mut [Self]) {
        filter.contains_keys(digests, out);
    }
    fn look_words<F: Target>(filter: &F, words: &[[u8; 8]], out: &mut [Self]) -> bool {
        filter.contains_words(words, out)
    }
    fn change<F: Target>(filter: &mut F, job: Job, digests: &[Digest], out: Option<&mut [Self]>) -> Result<()> {
        match job {
            Job::Discard => filter.remove_keys(digests, out),
            _ => filter.add_keys(digests, out),
        }
    }
}

/// A number of occurrences.
impl Measure for u64 {
    fn look<F: Target>(filter: &F, digests: &[Digest], out: &mut [Self]) {
        filter.count_keys(digests, out);
    }
    fn change<F: Target>(_: &mut F, _: Job, _: &[Digest], _: Option<&mut [Self]>) -> Result<()> {
        Err(Error::read_only())
    }
}

impl Target for BitFilter {
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
        BitFilter::contains_keys(self, digests, found);
    }
    fn contains_words(&self, words: &[[u8; 8]], found: &mut [u8]) -> bool {
        BitFilter::contains_words(self, words, found)
    }
    fn add_keys(&mut self, digests: &[Digest], new: Option<&mut [u8]>) -> Result<()> {
        BitFilter::add_keys(self, digests, new)
    }
}

impl Target for StaticFilter {
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
        self.contains_many(digests, found);
    }
    fn add_keys(&mut self, _: &[Digest], _: Option<&mut [u8]>) -> Result<()> {
        Err(Error::ReadOnly("the filter is built of all its keys at once; build another one".into()))
    }
}

/// The words of the keys of a filter that is built of all of them.
#[derive(Default)]
pub(super) struct Words(pub(super) Vec<u64>);

impl Target for Words {
    fn contains_keys(&self, _: &[Digest], found: &mut [u8]) {
        found.fill(0);
    }
    fn add_keys(&mut self, digests: &[Digest], _: Option<&mut [u8]>) -> Result<()> {
        reserve(&mut self.0, digests.len())?;
        self.0.extend(digests.iter().map(|digest| digest[0]));
        Ok(())
    }
}

impl Target for Chain {
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
        self.contains_many(digests, found);
    }
    fn add_keys(&mut self, digests: &[Digest], new: Option<&mut [u8]>) -> Result<()> {
        self.add_many(digests, new)
    }
}

impl Target for Cuckoo {
    fn contains_keys(&self, digests: &[Digest], found: &mut [u8]) {
        self.contains_many(digests, found);
    }
    fn add_keys(&mut self, digests: &[Digest], new: Option<&mut [u8]>) -> Result<()> {
        self.add_many(digests, new)
    }
    fn remove_keys(&mut self, digests: &[Digest], mut removed: Option<&mut [u8]>) -> Result<()> {
        for (i, &[hash, _]) in digests.iter().enumerate() {
            let was_there = self.remove(hash)?;
            if let Some(removed) = &mut removed {
                removed[i] = was_there.into();
            }
        }
        Ok(())
    }
    fn count_keys(&self, digests: &[Digest], counts: &mut [u64]) {
        digests.iter().zip(counts).for_each(|(&[hash, _], count)| *count = self.count(hash));
    }
}
