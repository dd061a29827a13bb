//! [`RibbonFilter`]: result bits as parities of 64 neighbouring slots; keys that do not fit are passed on.
//!
//! Dillinger, Walzer, "Ribbon filter: practically smaller than Bloom and xor", 2021; Dillinger, Hübschle-Schneider,
//! Sanders, Walzer, "Fast succinct retrieval and approximate membership using ribbon", SEA 2022 (bumped ribbon). A
//! shard is three ribbons: the first has fewer slots than keys and passes one key in 43 on; so does the second; the
//! last holds all.
//!
//! * [`layer`]: one ribbon, for lookups; [`band`]: its solver; [`build`]: shards of ribbons.

pub mod band;
pub mod build;
pub mod layer;
pub mod table;
#[cfg(test)]
mod tests;

use self::layer::Columns;
use self::table::View;
use super::shards;
use crate::cells::Memory;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::RIBBON;
use crate::sizing::ribbon as sizing;
use crate::structure::declaration::structure;
use crate::structure::records::RecordSet;
use crate::structure::{Declared, Filter, Job, Loadable, Sections};

structure! {
    /// A static approximate set of nearly the least possible size, for any rate: 2 % above log2(1/fpr) bits per key.
    class RibbonFilter;
    parameters {
        /// rate of false positives, also between powers of two; 0.01 by default if bits is not given.
        fpr: "float | None" = None;
        *;
        /// result bits of every key in place of fpr, 1 to 32: the rate is 2**-bits.
        bits: "int | None" = None;
    }
    /// Never misses a key it was built from; nothing can be added or removed. Repeated keys count once. The same keys in
    /// any order give the same bytes, with any number of threads and any memory.
    ///
    /// Cost: 1.01 bits for each result bit and key, 1.1 at 5,000 keys, 128 slots more below; about 75 ns per key to build; a
    /// lookup reads two or three neighbouring cache lines and takes longer with each result bit. Raises ParameterError,
    /// ParameterTypeError, FilterMemoryError. Source: Dillinger, Hübschle-Schneider, Sanders, Walzer, SEA 2022; rate
    /// a 2**-r + (1 - a) 2**-(r + 1), a the share of slots with r bits.
    ///
    /// >>> from fullbloom import RibbonFilter
    /// >>> known = RibbonFilter.build(range(100_000), fpr=0.01)
    /// >>> 4711 in known, round(known.fpr(), 3), known.nbytes * 8 / 100_000 < 6.9
    /// (True, 0.01, True)
    fields {
        /// Result bits of a key, on average.
        pub result_bits: f64 = |f| f.columns.mean();
        /// Result bits of all keys; those of a share of keys are one more.
        low_bits: u32 = |f| f.columns.low, RESULT_BITS;
        /// The share of keys without that bit, of 2^32.
        low_share: u32 = |f| f.columns.share, LOW_SHARE;
        /// Shards, as their binary logarithm.
        shard_bits: u32 = |f| f.bits, SHARD_BITS;
        /// Number of distinct keys.
        keys: u64 = |f| f.keys, COUNT;
        /// The requested rate.
        target_fpr: f64 = |f| f.target_fpr, FPR;
        /// Number of slots.
        pub num_cells: u64 = |f| f.view().slots();
        /// True when the cells are in a mapped file.
        pub mapped: bool = |f| f.cells.is_mapped();
    }
}

/// Blocks of columns, the table of shards, and what there is to know of them.
pub struct RibbonFilter {
    cells: Memory,
    table: Memory,
    hasher: KeyHasher,
    columns: Columns,
    bits: u32,
    keys: u64,
    target_fpr: f64,
}

/// Most result bits: 2^-32 is one in 4 billion.
const MOST_BITS: u64 = 32;

/// The requested rate, and columns that keep it.
fn columns_for(fpr: Option<f64>, bits: Option<u64>) -> Result<(f64, Columns)> {
    let fpr = match (fpr, bits) {
        (Some(fpr), Some(bits)) => {
            return Err(Error::Parameter(format!("give fpr or bits, not both, got fpr={fpr} and bits={bits}")));
        }
        (None, Some(bits)) if (1..=MOST_BITS).contains(&bits) => 0.5f64.powi(bits as i32),
        (None, Some(bits)) => {
            return Err(Error::Parameter(format!("bits must be between 1 and {MOST_BITS}, got {bits}")));
        }
        (fpr, None) => crate::sizing::check_fpr(fpr.unwrap_or(0.01))?,
    };
    let columns = sizing::columns(fpr).map(|(low, share)| Columns { low, share });
    let low = || Error::Parameter(format!("fpr must be at least 2**-{MOST_BITS}, got {fpr:?}"));
    Ok((fpr, columns.ok_or_else(low)?))
}

impl RibbonFilter {
    /// The filter of `keys`.
    pub fn build(
        keys: &RecordSet<1>,
        fpr: Option<f64>,
        bits: Option<u64>,
        hasher: KeyHasher,
        job: &Job<'_>,
    ) -> Result<Self> {
        let (target_fpr, columns) = columns_for(fpr, bits)?;
        let shards::CellsAndTable { cells, table, bits, keys } = build::build(&*keys.sort(job)?, columns, job)?;
        Ok(RibbonFilter { cells, table, hasher, columns, bits, keys, target_fpr })
    }

    /// Bytes of cells of a filter for so many keys.
    pub fn cell_bytes(capacity: u64, fpr: Option<f64>, bits: Option<u64>) -> Result<u64> {
        Ok(build::bytes(capacity, columns_for(fpr, bits)?.1))
    }

    #[inline(always)]
    fn view(&self) -> View<'_> {
        View { table: self.table.words(), cells: self.cells.words(), columns: self.columns, bits: self.bits }
    }
}

impl Filter for RibbonFilter {
    crate::structure::memories::memory_methods! { RIBBON, 0; cells: CELLS, table: RIBBONS }

    const AHEAD: usize = table::AHEAD;

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.view().look(hash)
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.view().fetch(hash);
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.view().look_all(hashes, found);
    }

    fn capacity(&self) -> u64 {
        self.keys
    }

    fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    fn num_added(&self) -> u64 {
        self.keys
    }

    fn fpr(&self) -> f64 {
        if self.keys == 0 { 0.0 } else { self.view().rate() }
    }

    fn fill(&self) -> f64 {
        // More keys than slots can be: where results have a bit or none, some are right by chance.
        (self.keys as f64 / self.view().slots().max(1) as f64).min(1.0)
    }
}

impl Loadable for RibbonFilter {
    fn load(header: &crate::container::Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        use crate::container::kind;
        Self::check_header(header, 0, 0)?;
        let Stored { low_bits: low, low_share: share, shard_bits: bits, keys, target_fpr } = Stored::read(header)?;
        if u64::from(low) >= MOST_BITS {
            return Err(Error::Format(format!(
                "the file has {low} result bits, at most 31 are possible; it is damaged"
            )));
        }
        let (columns, target_fpr) =
            (Columns { low, share }, crate::sizing::check_fpr(target_fpr).map_err(Error::as_format)?);
        let table = memory(kind::RIBBONS, 0, table::words(bits)?)?;
        let (words, slots) = table::check(table.words(), bits, columns)?;
        if keys / 2 > slots {
            return Err(Error::Format(format!("the file has {keys} keys in {slots} slots; it is damaged")));
        }
        let cells = memory(kind::CELLS, 0, words)?;
        Ok(RibbonFilter { cells, table, hasher, columns, bits, keys, target_fpr })
    }
}
