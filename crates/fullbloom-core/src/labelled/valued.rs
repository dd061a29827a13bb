//! [`Valued`]: k cells per key; adding joins its value into them, and a lookup returns their meet.
//!
//! Boldi and Vigna, "Mutable strings in Java: design, implementation and lightweight text-search algorithms", 2005
//! (compact approximators). Cells hold elements of a lattice, initially its bottom, 0. Adding a pair joins the value
//! into the key's k cells; the meet of the k cells is never below the join of the values added with the key. Cells of w
//! bits are packed ([`PackedCells`]), the positions are those of scheme `mcg` below m. Stored as:
//!
//! | lattice | stored | join | meet |
//! |---|---|---|---|
//! | `max` | the value, 1 to the largest | max | min |
//! | `min` | largest - value, for values 0 to largest - 1 | max | min |
//! | `or` | the value, a set of bits, not empty | or | and |
//!
//! The bottom cannot be added, so that a key is found exactly if its meet is not the bottom, at the rate of a classic
//! filter of m bits.

use std::marker::PhantomData;
use std::ops::Range;

use crate::cells::{Memory, PackedCells};
use crate::container::kind;
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::key::{KeyDomains, KeyHasher};
use crate::scheme::Scheme;
use crate::scheme::ahead::{answer_ahead, change_ahead};
use crate::scheme::mcg::Mcg;
use crate::scheme::positions::Positions;
use crate::scheme::probes::Sequence;
use crate::sizing::Law;
use crate::sizing::classic::Classic;
use crate::structure::cell_stats::{CellCounts, CellStats, SET};
use crate::structure::declaration::names;
use crate::structure::load::{Load, load_answers};
use crate::structure::memories::memory_methods;
use crate::structure::{Declared, Filter, Mergeable, Sections};

/// Keys fetched ahead; each needs k lines.
const AHEAD: usize = 8;
/// 2^46 bytes, beyond any machine.
const MAX_BITS: u64 = 1 << 49;

/// How cells are joined. Files contain the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Lattice {
    /// The larger of two numbers.
    Max = 1,
    /// The smaller of two numbers.
    Min = 2,
    /// The bits of either.
    Or = 3,
}

names! { Lattice, "lattice": Max "max", Min "min", Or "or", }

impl Lattice {
    #[inline(always)]
    fn join(self, a: u64, b: u64) -> u64 {
        if self == Lattice::Or { a | b } else { a.max(b) }
    }

    #[inline(always)]
    fn meet(self, a: u64, b: u64) -> u64 {
        if self == Lattice::Or { a & b } else { a.min(b) }
    }
}

/// The difference between one variant of valued filters and another.
pub trait Kind: Send + Sync + Sized + 'static {
    /// Number in files.
    const VARIANT: u16;
    /// The word for a value in messages.
    const WORD: &'static str;
    /// True if a file may have this lattice with this largest stored value.
    fn allows(lattice: Lattice, width: u32, largest: u64) -> bool;
}

/// The cells of a valued filter.
#[derive(Clone, Copy)]
pub(super) struct Cells {
    /// m.
    pub(super) num_cells: u64,
    /// k.
    pub(super) num_hashes: u32,
    /// Bits of a cell.
    pub(super) cell_bits: u32,
    /// How they are joined.
    pub(super) lattice: Lattice,
    /// The largest value that is stored.
    pub(super) largest: u64,
}

/// A [`structure!`](crate::structure::declaration) with the fields of all valued filters, and the reader of their
/// files.
macro_rules! valued {
    (
        $(#[doc = $summary:tt])* class $Class:ident;
        parameters $parameters:tt
        $(#[doc = $rest:tt])*
    ) => {
        $crate::structure::declaration::structure! {
            $(#[doc = $summary])* class $Class;
            parameters $parameters
            $(#[doc = $rest])*
            fields {
                /// Number of cells, m.
                pub num_cells: u64 = |f| f.cells.num_cells, NUM_BITS merged;
                /// Cells of a key, k.
                pub num_hashes: u32 = |f| f.cells.num_hashes, NUM_HASHES merged;
                /// Bits of a cell.
                pub cell_bits: u32 = |f| f.cells.cell_bits, CELL_BITS merged;
                /// How cells are joined: max, min or or.
                pub lattice: Lattice = |f| f.cells.lattice, RULE merged;
                /// The largest value that is stored.
                pub largest: u64 = |f| f.cells.largest, LABELS merged;
            }
        }

        impl $crate::structure::Loadable for $Class {
            fn load(header: &$crate::container::Header, hasher: $crate::key::KeyHasher, memory: $crate::structure::Sections<'_>) -> Result<Self> {
                let (Stored { num_cells, num_hashes, cell_bits, lattice, largest }, load) =
                    Stored::with_load(header, $crate::scheme::Scheme::Mcg as u16)?;
                Self::restore(load, hasher, memory, Cells { num_cells, num_hashes, cell_bits, lattice, largest })
            }
        }
    };
}
pub(super) use valued;

/// A filter with a value for every key.
pub struct Valued<V> {
    pub(super) cells: Cells,
    packed: PackedCells,
    load: Load,
    memory: Memory,
    hasher: KeyHasher,
    kind: PhantomData<V>,
}

/// m and k of the fewest cells with a rate of at most `fpr` at `capacity` keys.
fn size(capacity: u64, fpr: f64, width: u32) -> Result<(u64, u32)> {
    let Positions { num_bits, num_hashes } = Positions::fit_within(MAX_BITS / u64::from(width), capacity, fpr)?;
    Ok((num_bits, num_hashes))
}

impl<V: Kind> Valued<V> {
    /// Records the domains of keys that were added.
    pub fn record(&mut self, domains: KeyDomains) {
        self.hasher.domains_mut().insert(domains);
    }

    /// An empty filter with cells of `cell_bits` bits that hold up to `largest`.
    pub(super) fn make(
        capacity: u64,
        fpr: f64,
        lattice: Lattice,
        cell_bits: u32,
        largest: u64,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let load = Load::new(capacity, fpr)?;
        let packed = PackedCells::new(cell_bits).ok_or_else(|| Error::parameter("cells must have 1 to 64 bits"))?;
        let (num_cells, num_hashes) = size(capacity, fpr, cell_bits)?;
        let memory = Memory::zeroed(packed.words(num_cells).unwrap_or(u64::MAX))?;
        let cells = Cells { num_cells, num_hashes, cell_bits, lattice, largest };
        Ok(Valued { cells, packed, load, memory, hasher, kind: PhantomData })
    }

    /// Bytes of cells of such a filter.
    pub(super) fn bytes(capacity: u64, fpr: f64, cell_bits: u32) -> Result<u64> {
        let (num_cells, _) = size(capacity, fpr, cell_bits)?;
        Ok((num_cells * u64::from(cell_bits)).div_ceil(512) * 64)
    }

    /// The number of keys, once, when there are more than the capacity.
    pub fn newly_overfull(&mut self) -> Option<u64> {
        self.load.newly_overfull().then_some(self.load.added)
    }

    /// Has the kernel supply memory for `keys` additions.
    pub fn expect_writes(&mut self, keys: usize) {
        self.memory.expect_writes(keys);
    }

    /// The stored form of `value`, or why it cannot be stored.
    pub fn encode(&self, value: u64) -> Result<u64> {
        let (least, most) =
            if self.cells.lattice == Lattice::Min { (0, self.cells.largest - 1) } else { (1, self.cells.largest) };
        if !(least..=most).contains(&value) {
            return Err(Error::Parameter(format!("{} must be between {least} and {most}, got {value}", V::WORD)));
        }
        Ok(if self.cells.lattice == Lattice::Min { self.cells.largest - value } else { value })
    }

    /// The value of a stored one; damaged cells may hold more than the largest.
    fn decode(&self, stored: u64) -> u64 {
        let stored = stored.min(self.cells.largest);
        if self.cells.lattice == Lattice::Min { self.cells.largest - stored } else { stored }
    }

    #[inline(always)]
    fn meet(&self, hash: u64) -> u64 {
        let words = self.memory.words();
        let mut sequence = Mcg::start(hash, self.cells.num_cells);
        let mut met = self.packed.max();
        for _ in 0..self.cells.num_hashes {
            met = self.cells.lattice.meet(met, self.packed.get(words, sequence.next()));
            if met == 0 {
                break;
            }
        }
        met
    }

    /// Joins `stored` into the cells; true if the key was certainly new.
    #[inline(always)]
    fn join(&mut self, hash: u64, stored: u64) -> Result<bool> {
        let (packed, lattice) = (self.packed, self.cells.lattice);
        let mut sequence = Mcg::start(hash, self.cells.num_cells);
        let words = self.memory.writable()?;
        let mut met = packed.max();
        for _ in 0..self.cells.num_hashes {
            let cell = sequence.next();
            let old = packed.get(words, cell);
            met = lattice.meet(met, old);
            let joined = lattice.join(old, stored);
            if joined != old {
                packed.set(words, cell, joined);
            }
        }
        self.load.count(met == 0);
        Ok(met == 0)
    }

    fn fetch(&self, hash: u64) {
        let mut sequence = Mcg::start(hash, self.cells.num_cells);
        for _ in 0..self.cells.num_hashes {
            let bit = sequence.next() * u64::from(self.cells.cell_bits);
            prefetch(self.memory.words().as_ptr().wrapping_add((bit >> 6) as usize));
        }
    }

    /// Adds a pair; true if the key was certainly new.
    pub fn put_hash(&mut self, hash: u64, value: u64) -> Result<bool> {
        let stored = self.encode(value)?;
        self.join(hash, stored)
    }

    /// Adds pairs in order; `new`, if given, is as long and gets 1 for each new key. All values are
    /// checked before the first pair is added.
    pub fn put_hashes(&mut self, hashes: &[u64], values: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        if hashes.len() != values.len() {
            return Err(Error::Parameter(format!(
                "there must be as many {}s as keys, got {} for {}",
                V::WORD,
                values.len(),
                hashes.len()
            )));
        }
        for &value in values {
            self.encode(value)?;
        }
        let mut values = values.iter();
        change_ahead(AHEAD, self, hashes, new, Self::fetch, |filter, hash| {
            values.next().map_or(Ok(false), |&value| filter.put_hash(hash, value))
        })
    }

    /// The value of a key: the bottom when it was certainly never added.
    pub fn get_hash(&self, hash: u64) -> u64 {
        self.decode(self.meet(hash))
    }

    /// One value a hash; the slices are equally long.
    pub fn get_hashes(&self, hashes: &[u64], values: &mut [u64]) {
        answer_ahead(AHEAD, hashes, values, |hash| self.fetch(hash), |hash| self.get_hash(hash));
    }

    /// Forgets every key.
    pub fn clear(&mut self) -> Result<()> {
        self.memory.writable()?.fill(0);
        self.load.clear();
        Ok(())
    }

    /// Calls `visit` with the stored value of every cell.
    pub(super) fn each_cell(&self, visit: impl FnMut(u64)) {
        let words = self.memory.words();
        (0..self.cells.num_cells).map(|cell| self.packed.get(words, cell)).for_each(visit);
    }

    fn law(&self) -> Classic {
        Classic { num_bits: self.cells.num_cells, num_hashes: self.cells.num_hashes }
    }
}

impl<V: Kind> Filter for Valued<V>
where
    Self: Declared,
{
    memory_methods! { V::VARIANT, Scheme::Mcg as u16, load; memory: CELLS }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.meet(hash) != 0
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        answer_ahead(AHEAD, hashes, found, |hash| self.fetch(hash), |hash| u8::from(self.meet(hash) != 0));
    }

    load_answers!(added);

    fn fpr_at(&self, items: f64) -> Option<f64> {
        Some(self.law().fpr(items))
    }

    fn fpr(&self) -> f64 {
        // Under `or` cells need not share a bit, so this is an upper bound there.
        self.law().fpr_of_fill(self.fill())
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![self.packed.step()])
    }

    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        let cells = self.packed.cells_in(&words, self.cells.num_cells);
        counts.add(SET, self.packed.count_set(&self.memory.words()[words], cells));
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        CellStats::by_law(&self.law(), counts.get(SET) as f64 / self.cells.num_cells as f64)
    }

    fn fill(&self) -> f64 {
        let mut set = 0u64;
        self.each_cell(|stored| set += u64::from(stored != 0));
        set as f64 / self.cells.num_cells as f64
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        for &hash in hashes {
            let mut sequence = Mcg::start(hash, self.cells.num_cells);
            let cells = (0..self.cells.num_hashes).map(|_| sequence.next());
            cells.flat_map(|cell| self.packed.words_of(cell)).for_each(|at| word(0, at));
        }
        true
    }

    /// From the share of cells that are not the bottom; infinite if all are.
    fn estimate_count(&self) -> Option<(f64, f64)> {
        Some(self.law().estimate(self.fill()))
    }
}

impl<V: Kind> Mergeable for Valued<V>
where
    Self: Declared,
{
    /// Joins cell by cell, with the result of adding the pairs of both.
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        let (packed, lattice) = (self.packed, self.cells.lattice);
        let words = self.memory.writable()?;
        for cell in 0..self.cells.num_cells {
            let theirs = packed.get(other.memory.words(), cell);
            if theirs != 0 {
                let joined = lattice.join(packed.get(words, cell), theirs);
                packed.set(words, cell, joined);
            }
        }
        self.load.join(&other.load, self.law().new_of_fill(self.fill()));
        Ok(())
    }
}

impl<V: Kind> Valued<V>
where
    Self: Declared,
{
    /// Restores the fields that [`valued!`] read from a file, checked.
    pub(super) fn restore(load: Load, hasher: KeyHasher, memory: Sections<'_>, cells: Cells) -> Result<Self> {
        let damaged = |what: &str| Error::format(format!("the file holds an impossible {what}; it is damaged"));
        let packed = PackedCells::new(cells.cell_bits).ok_or_else(|| damaged("width of cells"))?;
        if !V::allows(cells.lattice, cells.cell_bits, cells.largest) {
            return Err(damaged("largest value"));
        }
        if !(1..=64).contains(&cells.num_hashes) {
            return Err(damaged("number of hashes"));
        }
        let words = packed.words(cells.num_cells).filter(|_| (1..=MAX_BITS).contains(&cells.num_cells));
        let words = words.ok_or_else(|| damaged("number of cells"))?;
        Ok(Valued { cells, packed, load, memory: memory(kind::CELLS, 0, words)?, hasher, kind: PhantomData })
    }
}
