//! [`FilterCascade`]: which of two sets a key is in, where it is in one of them.
//!
//! Larisch et al., "CRLite", 2017. The first level is a Bloom filter of the smaller set; the second one of those keys of
//! the other set that the first takes; the third one of those of the first set that the second takes; until nothing is
//! mistaken. A key is of the smaller set if the levels that take it, counted up to the first that does not, are odd in
//! number. Rates of `sqrt(1/2) r / s`, then 1/2 a level, leave about `1.44 r log2(s / r) + 4.2 r` bits.
//!
//! Levels lie one after the other, bit by bit, in one section; the table has a word for each.

use crate::cells::Memory;
use crate::cells::bits::count_ones;
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::key::KeyHasher;
use crate::registry::CASCADE;
use crate::structure::declaration::structure;
use crate::structure::kept::kept_in;
use crate::structure::records::Sorted;
use crate::structure::{Declared, Filter, Job, Loadable, Sections};

mod build;
mod level;
#[cfg(test)]
mod tests;

pub use build::common;
use build::{Levels, MOST_LEVELS};
use level::Level;

structure! {
    /// Tells two sets apart without a mistake, in a closed world: of keys in neither set it knows nothing.
    class FilterCascade;
    parameters {}
    /// Made by build(included, excluded) of all keys that it will be asked for, such as the certificates that were
    /// revoked and those that were not. includes() is True for every key of the first set and False for every one of
    /// the second; for any other key the answer means nothing, which is why there is no `in`. verify() asks for all.
    ///
    /// Cost: about 1.44 r log2(s/r) + 4.2 r bits, r keys of the smaller set, s of the larger: 9.0 bits for each of r where
    /// s is ten times as many; some 0.03 us a key to build; some cache lines a look-up. Raises ParameterError for sets that
    /// overlap, KeyTypeError, FilterMemoryError. Source: Larisch et al., CRLite, IEEE S&P 2017.
    ///
    /// >>> from bloomery import FilterCascade
    /// >>> issued = [f"certificate {number}" for number in range(10_000)]
    /// >>> revoked, good = issued[:500], issued[500:]
    /// >>> cascade = FilterCascade.build(revoked, good)
    /// >>> cascade.includes("certificate 7"), cascade.includes("certificate 7000")
    /// (True, False)
    /// >>> cascade.verify(revoked, good), cascade.nbytes
    /// (0, 768)
    fields {
        /// Number of distinct keys that are included.
        pub num_included: u64 = |f| f.included, COUNT;
        /// Number of distinct keys that are excluded.
        pub num_excluded: u64 = |f| f.excluded, EXCLUDED;
        /// Number of levels.
        pub num_levels: u32 = |f| f.levels, LEVELS;
        /// Number of bits of all levels.
        pub num_bits: u64 = |f| f.rows().map(|level| level.num_bits).sum();
        /// True when the levels live in a file.
        pub mapped: bool = |f| f.bits.is_mapped();
    }
}

/// Which of two sets a key is in.
pub struct FilterCascade {
    included: u64,
    excluded: u64,
    levels: u32,
    table: Memory,
    bits: Memory,
    hasher: KeyHasher,
}

impl FilterCascade {
    /// Tells `included` from `excluded`, which have no hash in [`common`].
    pub fn build(included: &Sorted<1>, excluded: &Sorted<1>, hasher: KeyHasher, job: &Job<'_>) -> Result<Self> {
        let (smaller, larger) =
            if included.len() <= excluded.len() { (included, excluded) } else { (excluded, included) };
        let levels = Levels::of(smaller, larger, job)?;
        Ok(FilterCascade {
            included: included.len(),
            excluded: excluded.len(),
            levels: levels.rows.len() as u32,
            table: of_words(&levels.rows, u64::to_le)?,
            bits: of_words(&levels.words, |word| word)?,
            hasher,
        })
    }

    /// True when the first level is over the excluded keys.
    #[inline(always)]
    fn negated(&self) -> bool {
        self.included > self.excluded
    }

    /// The levels.
    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = Level> {
        self.table.words().iter().take(self.levels as usize).map(|&row| Level::of(u64::from_le(row)))
    }

    /// How many levels take the key before one does not.
    #[inline(always)]
    fn depth(&self, hash: u64) -> usize {
        let (words, mut start) = (self.bits.words(), 0);
        for (i, level) in self.rows().enumerate() {
            if !level.takes(i, start, words, hash) {
                return i;
            }
            start += level.num_bits;
        }
        self.levels as usize
    }
}

/// A memory of these words.
fn of_words(words: &[u64], stored: impl Fn(u64) -> u64) -> Result<Memory> {
    let mut memory = Memory::zeroed(words.len() as u64)?;
    memory.writable()?.iter_mut().zip(words).for_each(|(to, &from)| *to = stored(from));
    Ok(memory)
}

impl Filter for FilterCascade {
    kept_in! { CASCADE, 0; table: LEVELS, bits: BITS }

    /// Keys fetched ahead, each with the probes of the first level: three to five where s is ten times r.
    const AHEAD: usize = 4;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        if let Some(first) = self.rows().next() {
            for bit in first.bits(0, 0, hash) {
                prefetch(self.bits.words().as_ptr().wrapping_add((bit >> 6) as usize));
            }
        }
    }

    /// For a key of its world: whether it is included.
    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        (self.depth(hash) % 2 == 1) != self.negated()
    }

    fn capacity(&self) -> u64 {
        self.included.saturating_add(self.excluded)
    }

    fn target_fpr(&self) -> f64 {
        0.0
    }

    fn num_added(&self) -> u64 {
        self.included
    }

    fn fpr(&self) -> f64 {
        0.0
    }

    fn fill(&self) -> f64 {
        count_ones(self.bits.words()) as f64 / self.num_bits().max(1) as f64
    }
}

impl Loadable for FilterCascade {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        Self::check_header(header, 0, 0)?;
        let Stored { num_included: included, num_excluded: excluded, num_levels: levels } = Stored::read(header)?;
        if levels as usize > MOST_LEVELS || (levels == 0) != (included.min(excluded) == 0) {
            return Err(Error::Format(format!(
                "the file says that {levels} levels tell {included} keys from {excluded}; it is damaged"
            )));
        }
        let table = memory(kind::LEVELS, 0, u64::from(levels).max(1))?;
        let wrong = || Error::format("the file's table of levels is none; it is damaged");
        let (rows, rest) = table.words().split_at_checked(levels as usize).ok_or_else(wrong)?;
        let bits = rows.iter().try_fold(0u64, |sum, &row| Some(sum + Level::checked(u64::from_le(row))?.num_bits));
        let bits = bits.filter(|_| rest.iter().all(|&word| word == 0)).ok_or_else(wrong)?;
        let bits = memory(kind::BITS, 0, bits.div_ceil(64).max(1))?;
        Ok(FilterCascade { included, excluded, levels, table, bits, hasher })
    }

    /// Bits behind the last level are nobody's.
    fn check_cells(&self) -> Result<()> {
        let end = self.num_bits();
        let mut rest = self.bits.words().iter().skip((end / 64) as usize).map(|word| u64::from_le(*word));
        if rest.next().is_some_and(|word| word >> (end % 64) > 0) || rest.any(|word| word > 0) {
            return Err(Error::format("the file has bits behind its last level; it is damaged"));
        }
        Ok(())
    }
}
