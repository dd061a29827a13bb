//! Lookups and additions.
//!
//! Many keys are looked up in blocks, [round by round](super::rounds). They are added in groups: the positions of a group are
//! computed once, and their memory is fetched, while the bits of the group before are set.

use std::marker::PhantomData;

use super::BitFilter;
use super::integers::Block;
use super::lanes::Lanes;
use super::remainder::Remainder;
use super::rounds::{self, BLOCK, Rounds};
use crate::cells::bits::mask;
use crate::error::Result;
use crate::foreign::rules::digests::{Cut, Pair, Words};
use crate::foreign::rules::guava::{Halves, Sums};
use crate::foreign::rules::halves::{Ints, Steps, Sum};
use crate::foreign::rules::probes::Probe;
use crate::foreign::rules::spark::{Sums32, Sums64};
use crate::foreign::rules::{Digest, Rule, Walk};
use crate::isa::prefetch;
use crate::scheme::ahead::mark;
use crate::scheme::lines;
use crate::scheme::parquet::{BLOCK_WORDS, Parquet};

/// Keys of a group: twice as many are under way. With 8 a key of a 2M-key Spark filter takes 25 ns in place of 23.
const GROUP: usize = 16;
/// Positions of a key that are computed ahead: more are rare, and follow one by one. Both groups take 4 KiB.
const MOST: u32 = rounds::MOST as u32;
/// Keys that are looked up one by one, because memory for positions costs more.
const FEW: usize = 16;
/// Hashes of blocks that are passed on together: 8 KiB.
const BLOCKS: usize = 1024;

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
            Rule::Probe(Probe::FastbloomRs) => {
                type $W = Steps;
                $work
            }
            Rule::Digest(_, Cut::Seeded) | Rule::Probe(_) => {
                type $W = Pair;
                $work
            }
            Rule::SplitBlock | Rule::Word | Rule::HashedWord | Rule::Bip158 => $blocks,
        }
    };
}

impl BitFilter {
    /// True for a key that may have been added.
    #[inline]
    pub fn contains(&self, digest: Digest) -> bool {
        let words = self.memory.words();
        by_walk!(self.layout.rule, W => {
            let mut walk = W::start(digest);
            (0..self.num_hashes).all(|_| {
                let bit = self.by.of(walk.next());
                words[(bit >> 6) as usize] & mask(bit) != 0
            })
        }, blocks => lines::contains_one::<Parquet>(&words[..self.block_words()], digest[0]))
    }

    /// Adds a key: true if it was new.
    #[inline]
    pub fn add(&mut self, digest: Digest) -> Result<bool> {
        let (by, k, rule, block_words) = (self.by, self.num_hashes, self.layout.rule, self.block_words());
        let words = self.memory.writable()?;
        Ok(by_walk!(rule, W => {
            let mut walk = W::start(digest);
            set(words, (0..k).map(|_| by.of(walk.next())))
        }, blocks => lines::add_one::<Parquet>(&mut words[..block_words], digest[0])))
    }

    /// Looks up many keys; both slices are equally long.
    pub fn contains_many(&self, digests: &[Digest], found: &mut [u8]) {
        if digests.len() < FEW {
            digests.iter().zip(found).for_each(|(digest, found)| *found = self.contains(*digest).into());
            return;
        }
        self.look_up(digests, found, &mut [[0; BLOCK]; rounds::MOST]);
    }

    /// [`BitFilter::contains_many`] with memory for positions.
    fn look_up(&self, digests: &[Digest], found: &mut [u8], rounds: &mut Rounds<u64>) {
        let words = self.memory.words();
        by_walk!(self.layout.rule, W => {
            for (digests, found) in digests.chunks(BLOCK).zip(found.chunks_mut(BLOCK)) {
                rounds::look_up(words, self.place::<W>(digests, rounds), found);
                self.look_up_rest(digests, found);
            }
        }, blocks => {
            let words = &words[..self.block_words()];
            let mut hashes = [0; BLOCKS];
            for (digests, found) in digests.chunks(BLOCKS).zip(found.chunks_mut(BLOCKS)) {
                lines::contains::<Parquet>(words, first_words(digests, &mut hashes), found);
            }
        });
    }

    /// Looks up many integers, 8 little-endian bytes each; both slices are equally long. False, and no results, if the
    /// keys are of another type.
    pub fn contains_words(&self, words: &[[u8; 8]], found: &mut [u8]) -> bool {
        let hashing = self.hashing();
        if !hashing.takes_words() || hashing.parts() > 1 {
            return false;
        }
        if self.layout.rule == Rule::Spark64
            && self.num_hashes <= MOST
            && let Some(lanes) = Lanes::of(self.num_bits)
        {
            self.look_up_lanes(lanes, words, found);
            return true;
        }
        let (mut digests, mut rounds) = ([[0; 2]; BLOCKS], [[0; BLOCK]; rounds::MOST]);
        for (words, found) in words.chunks(BLOCKS).zip(found.chunks_mut(BLOCKS)) {
            let digests = &mut digests[..words.len()];
            hashing.digest_words(words, digests);
            self.look_up(digests, found, &mut rounds);
        }
        true
    }

    /// Looks up integers by Spark's rule; blocks that need wider lanes, and what is left of a block, by their digests.
    fn look_up_lanes(&self, lanes: Lanes, words: &[[u8; 8]], found: &mut [u8]) {
        let num_hashes = self.num_hashes as usize;
        let block = Block { words: self.memory.words(), lanes, seed: self.seed.number, num_hashes };
        let (mut digests, mut rounds) = ([[0; 2]; BLOCK], [[0; BLOCK]; rounds::MOST]);
        for (words, found) in words.chunks(BLOCK).zip(found.chunks_mut(BLOCK)) {
            if !words.try_into().is_ok_and(|words| block.look_up(words, &mut rounds, found)) {
                let digests = &mut digests[..words.len()];
                self.hashing().digest_words(words, digests);
                self.contains_many(digests, found);
            }
        }
    }

    /// The positions of at most a block of keys, round by round.
    #[inline(always)]
    fn place<'a, W: Walk>(&self, digests: &[Digest], rounds: &'a mut Rounds<u64>) -> &'a [[u64; BLOCK]] {
        let rounds = &mut rounds[..self.num_hashes.min(MOST) as usize];
        for (i, digest) in digests.iter().enumerate().take(BLOCK) {
            let mut walk = W::start(*digest);
            rounds.iter_mut().for_each(|round| round[i] = self.by.of(walk.next()));
        }
        rounds
    }

    /// Tests the positions beyond the first [`MOST`] of keys of which these are set.
    #[inline(always)]
    fn look_up_rest(&self, digests: &[Digest], found: &mut [u8]) {
        if self.num_hashes > MOST {
            for (digest, found) in digests.iter().zip(found).filter(|(_, found)| **found != 0) {
                *found = self.contains(*digest).into();
            }
        }
    }

    /// Adds many keys; marks those that were new if the caller wants to know.
    pub fn add_many(&mut self, digests: &[Digest], mut new: Option<&mut [u8]>) -> Result<()> {
        let (by, k, rule, block_words) = (self.by, self.num_hashes, self.layout.rule, self.block_words());
        if k > MOST {
            for (i, digest) in digests.iter().enumerate() {
                let added = self.add(*digest)?;
                mark(&mut new, i, added);
            }
            return Ok(());
        }
        let words = self.memory.writable()?;
        by_walk!(rule, W => {
            let mut groups = Groups::<W>::over(by, k, words.as_ptr());
            groups.each(digests, |key, positions| {
                let added = set(words, positions.iter().copied());
                mark(&mut new, key, added);
            });
        }, blocks => {
            let mut hashes = [0; BLOCKS];
            for (i, digests) in digests.chunks(BLOCKS).enumerate() {
                let hashes = first_words(digests, &mut hashes);
                lines::add::<Parquet>(&mut words[..block_words], hashes, |j, added| mark(&mut new, i * BLOCKS + j, added));
            }
        });
        Ok(())
    }

    /// The positions of a key in order; they may repeat.
    pub fn positions(&self, parts: &[Digest]) -> Vec<u64> {
        let per_part = self.layout.rule.positions_per_part();
        let mut left = self.num_hashes;
        let mut positions = Vec::new();
        for &digest in parts {
            let count = left.min(per_part);
            left -= count;
            by_walk!(self.layout.rule, W => {
                let mut walk = W::start(digest);
                positions.extend((0..count).map(|_| self.by.of(walk.next())));
            }, blocks => positions.extend(lines::positions::<Parquet>(self.block_words(), digest[0])));
        }
        positions
    }

    /// Words of whole blocks; the memory ends with a whole line.
    fn block_words(&self) -> usize {
        (self.num_bits / 64) as usize / BLOCK_WORDS * BLOCK_WORDS
    }
}

/// Sets bits; true if one of them was clear.
#[inline(always)]
fn set(words: &mut [u64], bits: impl Iterator<Item = u64>) -> bool {
    let mut new = 0;
    for bit in bits {
        let word = &mut words[(bit >> 6) as usize];
        new |= !*word & mask(bit);
        *word |= mask(bit);
    }
    new != 0
}

/// The first words of `digests`, in `out`.
fn first_words<'a>(digests: &[Digest], out: &'a mut [u64; BLOCKS]) -> &'a [u64] {
    out.iter_mut().zip(digests).for_each(|(out, digest)| *out = digest[0]);
    &out[..digests.len()]
}

/// The positions of many keys, group by group.
struct Groups<W> {
    by: Remainder,
    per_key: usize,
    /// Start of the bits, which are only fetched.
    base: *const u64,
    positions: [[u64; GROUP * MOST as usize]; 2],
    walk: PhantomData<W>,
}

impl<W: Walk> Groups<W> {
    #[inline(always)]
    fn over(by: Remainder, num_hashes: u32, base: *const u64) -> Self {
        let per_key = num_hashes.min(MOST) as usize;
        Groups { by, per_key, base, positions: [[0; _]; 2], walk: PhantomData }
    }

    /// Computes the positions of a group, and fetches their memory.
    #[inline(always)]
    fn place(&mut self, digests: &[Digest], into: usize) {
        let (by, base) = (self.by, self.base);
        for (digest, positions) in digests.iter().zip(self.positions[into].chunks_exact_mut(self.per_key)) {
            let mut walk = W::start(*digest);
            for position in positions {
                *position = by.of(walk.next());
                prefetch(base.wrapping_add((*position >> 6) as usize));
            }
        }
    }

    /// Passes the number and the first [`MOST`] positions of each key to `visit`, in order.
    #[inline(always)]
    fn each(&mut self, digests: &[Digest], mut visit: impl FnMut(usize, &[u64])) {
        let mut later = digests.chunks(GROUP);
        if let Some(first) = later.next() {
            self.place(first, 0);
        }
        for (i, group) in digests.chunks(GROUP).enumerate() {
            if let Some(next) = later.next() {
                self.place(next, (i + 1) % 2);
            }
            let positions = self.positions[i % 2].chunks_exact(self.per_key);
            for (j, positions) in positions.take(group.len()).enumerate() {
                visit(i * GROUP + j, positions);
            }
        }
    }
}
