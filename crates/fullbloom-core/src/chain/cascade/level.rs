//! A level of a cascade that is a classic Bloom filter among the bits of all, with probes of its own.

use crate::cells::bits::mask;
use crate::hash::splitmix;
use crate::scheme::mcg::Mcg;
use crate::scheme::probes::Sequence;
use crate::sizing::classic::MAX_HASHES;

/// Bits of a row that say how many bits a level has: 2^48 are 32 TiB.
const WIDTH: u32 = 48;

/// Every second level halves the remaining keys: 128 levels suffice for 2^64 keys in all but one of 2^64 worlds.
pub(super) const MOST_LEVELS: usize = 255;

/// The number of the run of bits beside the filter that is level `i`, after those of all levels.
pub(super) fn later(i: usize) -> usize {
    MOST_LEVELS + i
}

/// The numbers of runs in the order of their rows: `runs` beside filters, then levels from `parts` on.
pub(super) fn numbers(runs: usize, parts: usize) -> impl Iterator<Item = usize> {
    (0..runs).map(later).chain(parts..)
}

/// How many bits, and probes per key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// m.
    pub(super) num_bits: u64,
    /// k.
    pub(super) num_hashes: u32,
}

impl Level {
    /// Its row in the table of levels.
    pub(super) fn row(self) -> u64 {
        self.num_bits | u64::from(self.num_hashes) << WIDTH
    }

    /// Of a row that [`Level::checked`] took.
    #[inline(always)]
    pub(super) fn of(row: u64) -> Self {
        Level { num_bits: row & ((1 << WIDTH) - 1), num_hashes: (row >> WIDTH) as u32 }
    }

    /// From a row of a file; `None` for one that no level has.
    pub(super) fn from_row(row: u64) -> Option<Self> {
        let level = Self::of(row);
        (level.num_bits > 0 && (1..=MAX_HASHES).contains(&level.num_hashes)).then_some(level)
    }

    /// The bits of a key in level number `i`, which begins at bit `start`. Each level spreads hashes differently;
    /// otherwise a false positive of one level would be one in all.
    #[inline(always)]
    pub(super) fn bits(self, i: usize, start: u64, hash: u64) -> impl Iterator<Item = u64> {
        let mut sequence = Mcg::start(splitmix::at(hash, i as u64), self.num_bits);
        (0..self.num_hashes).map(move |_| start + sequence.next())
    }

    /// Whether the level finds the key.
    #[inline(always)]
    pub(super) fn takes(self, i: usize, start: u64, words: &[u64], hash: u64) -> bool {
        self.bits(i, start, hash).all(|bit| words[(bit >> 6) as usize] & mask(bit) != 0)
    }
}
