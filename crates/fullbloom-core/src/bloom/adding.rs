//! Insertion into a [`BloomFilter`]: one key, many, on several threads; a strict filter refuses keys beyond its
//! capacity.

use super::filter::BloomFilter;
use super::surplus::Surplus;
use crate::error::{Error, Result};
use crate::scheme::ahead::mark;
use crate::structure::batch::useful_threads;
use crate::structure::{Addable, Filter, HashSource};

impl BloomFilter {
    fn refuse_overfull(&self) -> Error {
        Error::Capacity(format!(
            "the filter holds {} keys, its capacity is {}; build a larger one or pass strict=False",
            self.load.added, self.load.capacity
        ))
    }

    /// True when one more key is refused.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.strict && self.load.added >= self.load.capacity
    }

    fn add_strictly(&mut self, hash: u64) -> Result<bool> {
        if self.is_full() && !self.contains_hash(hash) {
            return Err(self.refuse_overfull());
        }
        self.put(hash)
    }

    #[inline(always)]
    fn put(&mut self, hash: u64) -> Result<bool> {
        let kernel = self.kernel;
        let new = kernel.add(self.words_mut()?, hash);
        self.load.added += u64::from(new);
        Ok(new)
    }

    fn is_crowded(&self, coming: usize) -> bool {
        self.strict && self.load.added.saturating_add(coming as u64) > self.load.capacity
    }
}

impl Addable for BloomFilter {
    const ADDS_ON_THREADS: bool = true;

    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        if self.strict { self.add_strictly(hash) } else { self.put(hash) }
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        if self.is_crowded(hashes.len()) {
            let mut new = new;
            for (i, &hash) in hashes.iter().enumerate() {
                let fresh = self.add_strictly(hash)?;
                mark(&mut new, i, fresh);
            }
            return Ok(());
        }
        let kernel = self.kernel;
        self.load.added += kernel.add_all(self.words_mut()?, hashes, new);
        Ok(())
    }

    /// Adding a key again sets no bit.
    fn add_missing(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<usize> {
        self.add_hashes(hashes, Some(new)).map(|()| hashes.len())
    }

    fn add_source(&mut self, source: &dyn HashSource, threads: usize, new: Option<&mut [u8]>) -> Result<()> {
        self.expect_adds(source.len());
        let kernel = self.kernel;
        let threads = useful_threads(threads, source.len());
        if threads == 1 || self.is_crowded(source.len()) {
            return self.add_in_turn(source, new);
        }
        self.load.added += kernel.add_threads(self.words_mut()?, source, threads, new);
        Ok(())
    }

    fn expect_adds(&mut self, adds: usize) {
        self.memory.expect_writes(adds);
    }

    #[inline(always)]
    fn is_read_only(&self) -> bool {
        self.closed || self.memory.is_read_only()
    }

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        self.load.is_roomy() && !self.is_full() && !self.is_read_only()
    }

    #[inline(always)]
    fn add_quietly(&mut self, hash: u64) -> Option<bool> {
        if self.load.is_roomy() && !self.is_full() { self.put(hash).ok() } else { None }
    }

    #[inline(always)]
    fn newly_overfull(&mut self) -> bool {
        self.load.newly_overfull()
    }

    fn clear(&mut self) -> Result<()> {
        self.words_mut()?.fill(0);
        self.surplus = Surplus::NONE;
        self.load.clear();
        Ok(())
    }
}
