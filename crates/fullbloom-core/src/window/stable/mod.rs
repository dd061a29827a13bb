//! [`StableBloomFilter`]: cells that decay, so that an endless stream never fills them.
//!
//! Deng and Rafiei, 2006; the law and the choice of sizes are in [`crate::sizing::stable`]. Adding a key reads its K
//! cells, decrements P neighbouring cells from a random start on (wrapping at the end), and sets the K cells to Max =
//! 2^d - 1. Cells of d bits lie LSB first in words, cell `c` at bit `c d`. The positions of a key are scheme `mcg`'s
//! below m; the start of the `t`-th key (t from 0, stored in the file) is `fastrange(x, m)` with x the finalised
//! SplitMix64 of `seed + (t + 1) * 0x9e3779b97f4a7c15`: the same keys in the same order give the same bytes.

use std::convert::Infallible;
use std::ops::Range;

use crate::cells::{Memory, PackedCells};
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::hash::splitmix;
use crate::isa::prefetch;
use crate::key::KeyHasher;
use crate::registry::STABLE;
use crate::scheme::ahead::{ahead, answer_ahead};
use crate::scheme::mcg::Mcg;
use crate::scheme::positions::Positions;
use crate::scheme::probes::Sequence;
use crate::scheme::{Scheme, fastrange};
use crate::sizing::all_of;
use crate::sizing::stable::Stable;
use crate::structure::cell_stats::{CellCounts, CellStats, SET};
use crate::structure::declaration::{narrow, structure};
use crate::structure::load::{Load, load_answers};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::traits::write_methods;
use crate::structure::{Addable, Filter, Loadable, Positioned, Sections};

/// Keys fetched ahead; each needs K lines and those of its decrements.
const AHEAD: usize = 12;
/// Lines of a run of decrements that are fetched ahead; the processor sees to the rest of a run.
const FETCHED: u64 = 2;
structure! {
    /// A Bloom filter for streams without end: cells decay while keys come, so that its rate stays at
    /// `fpr` permanently and old keys are forgotten gradually.
    class StableBloomFilter;
    parameters {
        /// half-life of a key, in keys: one that `capacity` other keys followed is still found with a
        /// chance of one half.
        capacity: "int";
        /// rate of false positives in the long run.
        fpr: "float" = 0.01;
        *;
        /// 1, 2, 4 or 8; a cell holds up to 2**cell_bits - 1.
        cell_bits: "int" = 2;
        /// cells of a key; by default about 2 log10(1/fpr).
        num_hashes: "int | None" = None;
    }
    /// The seed also drives the decay, so that the same keys in the same order give the same bytes.
    ///
    /// False negatives: by design; only the latest key is certain to be found, see recall(). Use
    /// AgingBloomFilter if the last keys must be found. Raises ParameterError, ParameterTypeError,
    /// FilterMemoryError. Cost: about 41 bits a key of capacity at 1 %; num_hashes cache lines and the
    /// decay a key. Source: Deng, Rafiei, SIGMOD 2006; m from the half-life, and P from fpr by
    /// ``(1 - (1 / (1 + 1 / (P (1/K - 1/m))))**Max)**K``, the variation of the fill included.
    ///
    /// >>> from fullbloom import StableBloomFilter
    /// >>> f = StableBloomFilter(1000, fpr=0.01)
    /// >>> f.update(range(100_000))
    /// >>> 99_999 in f, f.recall(1000) >= 0.5
    /// (True, True)
    fields {
        /// Lines of 64 bytes.
        lines: u64 = |f| f.shape.words() / 8, LINES;
        /// Number of cells, m.
        pub num_cells: u64 = |f| f.shape.num_cells;
        /// Bits of a cell.
        pub cell_bits: u32 = |f| f.shape.cell_bits, CELL_BITS;
        /// Cells of a key, K.
        pub num_hashes: u32 = |f| f.shape.num_hashes, NUM_HASHES;
        /// Cells decremented by each key, P.
        pub decrements: u64 = |f| f.shape.decrements, DECREMENTS;
        /// Keys added since the filter was empty, repeats counted.
        pub seen: u64 = |f| f.ticks, TICKS;
        /// Model rate of false positives on a stream in its stable state.
        pub stable_fpr: f64 = |f| f.shape.fpr();
        /// Model share of cells that are not zero, on a stream in its stable state.
        pub stable_fill: f64 = |f| 1.0 - f.shape.zeros();
    }
}

/// Remembers recent keys, forgets old ones gradually.
pub struct StableBloomFilter {
    shape: Stable,
    load: Load,
    memory: Memory,
    hasher: KeyHasher,
    ticks: u64,
}

/// Cells of `D` bits in words.
struct Cells<const D: u32>;

impl<const D: u32> Cells<D> {
    /// The lowest bit of every cell.
    const LOWEST: u64 = u64::MAX / (u64::MAX >> (64 - D));
    const MAX: u64 = u64::MAX >> (64 - D);

    #[inline(always)]
    fn place(cell: u64) -> (usize, u32) {
        let bit = cell * D as u64;
        ((bit >> 6) as usize, (bit & 63) as u32)
    }

    #[inline(always)]
    fn contains(words: &[u64], shape: &Stable, hash: u64) -> bool {
        let mut sequence = Mcg::start(hash, shape.num_cells);
        for _ in 0..shape.num_hashes {
            let (word, shift) = Self::place(sequence.next());
            if u64::from_le(words[word]) >> shift & Self::MAX == 0 {
                return false;
            }
        }
        true
    }

    /// [`Cells::contains`] without branches, for many keys: which cell is 0 cannot be foreseen.
    #[inline(always)]
    fn contains_steadily(words: &[u64], shape: &Stable, hash: u64) -> bool {
        let mut sequence = Mcg::start(hash, shape.num_cells);
        let mut zero = false;
        for _ in 0..shape.num_hashes {
            let (word, shift) = Self::place(sequence.next());
            zero |= u64::from_le(words[word]) >> shift & Self::MAX == 0;
        }
        !zero
    }

    /// Decrements the cells of `word` whose lowest bits are in `which`, but not below 0.
    #[inline(always)]
    fn fade(word: &mut u64, which: u64) {
        let old = u64::from_le(*word);
        let mut some = old;
        let mut width = 1;
        while width < D {
            some |= some >> width;
            width *= 2;
        }
        *word = (old - (some & Self::LOWEST & which)).to_le();
    }

    /// Decrements `count` cells from `start` on, all before the end.
    #[inline(always)]
    fn decay(words: &mut [u64], start: u64, count: u64) {
        if count == 0 {
            return;
        }
        let (first, low) = Self::place(start);
        let (last, high) = Self::place(start + count - 1);
        let (from, to) = (u64::MAX << low, u64::MAX >> (64 - D - high));
        match &mut words[first..=last] {
            [only] => Self::fade(only, from & to),
            [head, middle @ .., tail] => {
                Self::fade(head, from);
                middle.iter_mut().for_each(|word| Self::fade(word, u64::MAX));
                Self::fade(tail, to);
            }
            [] => {}
        }
    }

    /// True if a cell of `hash` was 0.
    #[inline(always)]
    fn add(words: &mut [u64], shape: &Stable, hash: u64, start: u64) -> bool {
        let new = !Self::contains_steadily(words, shape, hash);
        let before_end = shape.decrements.min(shape.num_cells - start);
        Self::decay(words, start, before_end);
        Self::decay(words, 0, shape.decrements - before_end);
        let mut sequence = Mcg::start(hash, shape.num_cells);
        for _ in 0..shape.num_hashes {
            let (word, shift) = Self::place(sequence.next());
            words[word] |= (Self::MAX << shift).to_le();
        }
        new
    }

    #[inline(always)]
    fn fetch(words: &[u64], shape: &Stable, hash: u64) {
        let mut sequence = Mcg::start(hash, shape.num_cells);
        for _ in 0..shape.num_hashes {
            prefetch(words.as_ptr().wrapping_add(Self::place(sequence.next()).0));
        }
    }

    fn contains_all(words: &[u64], shape: &Stable, hashes: &[u64], found: &mut [u8]) {
        let fetch = |hash| Self::fetch(words, shape, hash);
        answer_ahead(AHEAD, hashes, found, fetch, |hash| u8::from(Self::contains_steadily(words, shape, hash)));
    }

    fn add_all(
        words: &mut [u64],
        shape: &Stable,
        hashes: &[u64],
        starts: impl Fn(u64) -> u64,
        mut tell: impl FnMut(usize, bool),
    ) -> u64 {
        let fetch = |words: &[u64], i: usize, hash: u64| {
            Self::fetch(words, shape, hash);
            let word = Self::place(starts(i as u64)).0;
            let lines = (shape.decrements * u64::from(D) / 512).min(FETCHED) as usize;
            (0..=lines).for_each(|line| prefetch(words.as_ptr().wrapping_add(word + 8 * line)));
        };
        let mut count = 0;
        let Ok(()) = ahead(AHEAD, words, hashes, fetch, |words, i, hash| {
            let new = Self::add(words, shape, hash, starts(i as u64));
            count += u64::from(new);
            tell(i, new);
            Ok::<(), Infallible>(())
        });
        count
    }
}

#[rustfmt::skip] // one arm a line
/// Runs `$work` with the cells of `$bits` bits as type `$C`.
macro_rules! dispatch {
    ($bits:expr, $C:ident => $work:expr) => {
        match $bits {
            1 => { type $C = Cells<1>; $work }
            2 => { type $C = Cells<2>; $work }
            4 => { type $C = Cells<4>; $work }
            _ => { type $C = Cells<8>; $work }
        }
    };
}

/// The cell at which the decrements of key number `tick` begin.
#[inline(always)]
fn start_of(seed: u64, tick: u64, num_cells: u64) -> u64 {
    fastrange(splitmix::at(seed, tick), num_cells)
}

impl StableBloomFilter {
    /// An empty filter: see [`Stable::for_capacity`] for the meaning of `capacity`.
    pub fn construct(
        capacity: u64,
        fpr: f64,
        cell_bits: u64,
        num_hashes: Option<u64>,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let shape = Stable::for_capacity(capacity, fpr, narrow(cell_bits), num_hashes.map(narrow))?.check()?;
        Self::of_shape(shape, capacity, fpr, hasher)
    }

    /// Bytes of cells of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, cell_bits: u64, num_hashes: Option<u64>) -> Result<u64> {
        Ok(Stable::for_capacity(capacity, fpr, narrow(cell_bits), num_hashes.map(narrow))?.words() * 8)
    }

    /// An empty filter of a shape given outright.
    pub fn of_shape(shape: Stable, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let (shape, load) = (shape.check()?, Load::new(capacity, fpr)?);
        Ok(StableBloomFilter { shape, load, memory: Memory::zeroed(shape.words())?, hasher, ticks: 0 })
    }

    /// Cells, bits of a cell, positions and decrements.
    pub fn shape(&self) -> &Stable {
        &self.shape
    }

    fn add_counted(&mut self, hashes: &[u64], tell: impl FnMut(usize, bool)) -> Result<()> {
        let (shape, seed, ticks) = (self.shape, self.hasher.seed(), self.ticks);
        let words = self.memory.writable()?;
        let starts = |i: u64| start_of(seed, ticks.wrapping_add(i), shape.num_cells);
        let new = dispatch!(shape.cell_bits, C => C::add_all(words, &shape, hashes, starts, tell));
        self.load.added = self.load.added.saturating_add(new);
        self.ticks = ticks.wrapping_add(hashes.len() as u64);
        Ok(())
    }

    /// Cells that are not 0.
    fn set_cells(&self) -> u64 {
        let cells = |packed: PackedCells| packed.count_set(self.memory.words(), self.shape.num_cells);
        PackedCells::new(self.shape.cell_bits).map_or(0, cells)
    }
}

impl Filter for StableBloomFilter {
    memory_methods! {
        STABLE, Scheme::Mcg as u16, load; memory: CELLS;
        |a, b| (a.shape, a.load.capacity, a.load.added, a.ticks) == (b.shape, b.load.capacity, b.load.added, b.ticks)
            && a.load.target_fpr == b.load.target_fpr
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        dispatch!(self.shape.cell_bits, C => C::contains(self.memory.words(), &self.shape, hash))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        dispatch!(self.shape.cell_bits, C => C::contains_all(self.memory.words(), &self.shape, hashes, found));
    }

    load_answers!();

    /// Keys that were not remembered when they were added; forgotten ones are not subtracted.
    fn num_added(&self) -> u64 {
        self.load.added
    }

    fn fpr(&self) -> f64 {
        all_of(self.fill(), self.shape.num_hashes)
    }

    fn fill(&self) -> f64 {
        self.set_cells() as f64 / self.shape.num_cells as f64
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        PackedCells::new(self.shape.cell_bits).map(|packed| vec![packed.step()])
    }

    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        if let Some(packed) = PackedCells::new(self.shape.cell_bits) {
            let cells = packed.cells_in(&words, self.shape.num_cells);
            counts.add(SET, packed.count_set(&self.memory.words()[words], cells));
        }
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let fill = counts.get(SET) as f64 / self.shape.num_cells as f64;
        CellStats { fill, fpr: all_of(fill, self.shape.num_hashes), ..CellStats::default() }
    }
}

impl Addable for StableBloomFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let (shape, start) = (self.shape, start_of(self.hasher.seed(), self.ticks, self.shape.num_cells));
        let words = self.memory.writable()?;
        let new = dispatch!(shape.cell_bits, C => C::add(words, &shape, hash, start));
        self.load.count(new);
        self.ticks = self.ticks.wrapping_add(1);
        Ok(new)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        match new {
            None => self.add_counted(hashes, |_, _| {}),
            Some(new) => self.add_counted(hashes, |i, fresh| new[i] = u8::from(fresh)),
        }
    }

    // A stream never fills it, so no method about free space is needed.
    write_methods!(memory);

    clear_method!(memory; ticks = 0);
}

impl Positioned for StableBloomFilter {
    fn positions(&self, hash: u64) -> Vec<u64> {
        let Stable { num_cells, num_hashes, .. } = self.shape;
        Positions { num_bits: num_cells, num_hashes }.distinct(hash, &mut [0; 64]).to_vec()
    }
}

impl Loadable for StableBloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let (stored, load) = Stored::with_load(header, Scheme::Mcg as u16)?;
        let Stored { cell_bits, num_hashes, decrements, .. } = stored;
        let num_cells = match cell_bits {
            1 | 2 | 4 | 8 => stored.lines.saturating_mul(512 / u64::from(cell_bits)),
            _ => 0,
        };
        let shape = Stable { num_cells, cell_bits, num_hashes, decrements }.check().map_err(Error::as_format)?;
        let memory = memory(kind::CELLS, 0, shape.words())?;
        Ok(StableBloomFilter { shape, load, memory, hasher, ticks: stored.seen })
    }
}

#[cfg(test)]
mod tests;
