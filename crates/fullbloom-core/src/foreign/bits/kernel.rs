//! Lookups and additions.
//!
//! Many keys are looked up by rounds: round i tests position i of every key that has passed the rounds before. The
//! loads of a round do not wait for each other, so that misses of the cache overlap, and no branch depends on a bit.

use super::BitFilter;
use crate::cells::bits::mask;
use crate::error::Result;
use crate::foreign::rules::digests::{Cut, Pair, Words};
use crate::foreign::rules::guava::{Halves, Sums};
use crate::foreign::rules::halves::{Ints, Steps, Sum};
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::spark::{Sums32, Sums64};
use crate::foreign::rules::{Digest, Rule, Walk};
use crate::scheme::parquet::{BLOCK_WORDS, Parquet};
use crate::scheme::pattern::LineScheme;

/// Keys whose walks are under way together: 6 KiB.
const TOGETHER: usize = 256;

/// `$work` with the walk of `$rule` as `$W`; `$block` for split blocks.
macro_rules! by_walk {
    ($rule:expr, $W:ident => $work:expr, blocks => $blocks:expr) => {
        match $rule {
            Rule::Spark32 => {
                type $W = Sums32;
                $work
            }
            Rule::Spark64 => {
                type $W = Sums64;
                $work
            }
            Rule::Guava32 => {
                type $W = Halves;
                $work
            }
            Rule::Guava64 => {
                type $W = Sums;
                $work
            }
            Rule::Halves(Sum::Wide) | Rule::Digest(_, Cut::Double) | Rule::RedisBloom | Rule::RedisCuckoo => {
                type $W = Steps;
                $work
            }
            Rule::Halves(_) => {
                type $W = Ints;
                $work
            }
            Rule::Digest(_, Cut::Slices) => {
                type $W = Words;
                $work
            }
            Rule::Probe(Probe::Xxh3) => {
                type $W = Steps;
                $work
            }
            Rule::Digest(_, Cut::Seeded) | Rule::Probe(_) => {
                type $W = Pair;
                $work
            }
            Rule::SplitBlock => $blocks,
        }
    };
}

impl BitFilter {
    /// True for a key that may have been added.
    #[inline]
    pub fn contains(&self, digest: Digest) -> bool {
        let words = self.memory.words();
        by_walk!(self.format.rule, W => {
            let mut walk = W::start(digest);
            (0..self.num_hashes).all(|_| {
                let bit = self.by.of(walk.next());
                words[(bit >> 6) as usize] & mask(bit) != 0
            })
        }, blocks => self.contains_block(digest[0]))
    }

    /// Adds a key: true if it was new.
    #[inline]
    pub fn add(&mut self, digest: Digest) -> Result<bool> {
        let (by, k, rule) = (self.by, self.num_hashes, self.format.rule);
        let lines = self.lines();
        let words = self.memory.writable()?;
        Ok(by_walk!(rule, W => {
            let (mut walk, mut new) = (W::start(digest), 0);
            for _ in 0..k {
                let bit = by.of(walk.next());
                let word = &mut words[(bit >> 6) as usize];
                new |= !*word & mask(bit);
                *word |= mask(bit);
            }
            new != 0
        }, blocks => add_block(words, lines, digest[0])))
    }

    /// Looks up many keys; both slices are equally long.
    pub fn contains_many(&self, digests: &[Digest], found: &mut [u8]) {
        for (digests, found) in digests.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
            by_walk!(self.format.rule, W => self.rounds::<W>(digests, found), blocks => {
                for (digest, found) in digests.iter().zip(found) {
                    *found = self.contains_block(digest[0]).into();
                }
            });
        }
    }

    /// Adds many keys; marks those that were new if the caller wants to know.
    pub fn add_many(&mut self, digests: &[Digest], mut new: Option<&mut [u8]>) -> Result<()> {
        for (i, &digest) in digests.iter().enumerate() {
            let added = self.add(digest)?;
            if let Some(new) = &mut new {
                new[i] = added.into();
            }
        }
        Ok(())
    }

    /// At most [`TOGETHER`] lookups.
    #[inline(always)]
    fn rounds<W: Walk>(&self, digests: &[Digest], found: &mut [u8]) {
        let (words, by) = (self.memory.words(), self.by);
        let mut walks = [W::start([0; 2]); TOGETHER];
        let mut passing = [0u8; TOGETHER];
        for (i, (walk, digest)) in walks.iter_mut().zip(digests).enumerate() {
            *walk = W::start(*digest);
            passing[i] = i as u8;
        }
        let mut count = digests.len();
        for _ in 0..self.num_hashes {
            let mut passed = 0;
            for at in 0..count {
                let key = passing[at];
                let bit = by.of(walks[usize::from(key)].next());
                let set = words[(bit >> 6) as usize] & mask(bit) != 0;
                passing[passed] = key;
                passed += usize::from(set);
            }
            count = passed;
            if count == 0 {
                break;
            }
        }
        found.fill(0);
        passing[..count].iter().for_each(|&key| found[usize::from(key)] = 1);
    }

    /// The positions of a key in order; they may repeat.
    pub fn positions(&self, parts: &[Digest]) -> Vec<u64> {
        let per_part = self.format.rule.positions_per_part();
        let mut left = self.num_hashes;
        let mut positions = Vec::new();
        for &digest in parts {
            let count = left.min(per_part);
            left -= count;
            by_walk!(self.format.rule, W => {
                let mut walk = W::start(digest);
                positions.extend((0..count).map(|_| self.by.of(walk.next())));
            }, blocks => {
                let first = Parquet::line(digest[0], self.lines()) * 256;
                for (word, base) in Parquet::words(digest[0]).iter().zip((first..).step_by(64)) {
                    positions.extend((0..64).filter(|bit| word >> bit & 1 != 0).map(|bit| base + bit));
                }
            });
        }
        positions
    }

    fn lines(&self) -> u64 {
        self.num_bits / 256
    }

    #[inline(always)]
    fn contains_block(&self, hash: u64) -> bool {
        let at = Parquet::line(hash, self.lines()) as usize * BLOCK_WORDS;
        let block = &self.memory.words()[at..at + BLOCK_WORDS];
        Parquet::words(hash).iter().zip(block).fold(0, |missing, (want, have)| missing | want & !have) == 0
    }
}

#[inline(always)]
fn add_block(words: &mut [u64], lines: u64, hash: u64) -> bool {
    let at = Parquet::line(hash, lines) as usize * BLOCK_WORDS;
    let mut new = 0;
    for (want, have) in Parquet::words(hash).iter().zip(&mut words[at..at + BLOCK_WORDS]) {
        new |= want & !*have;
        *have |= want;
    }
    new != 0
}
