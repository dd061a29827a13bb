//! The common part of filters whose fingerprints are the xor of K cells: [`fingerprint_filter!`] defines one from its
//! geometries.

use super::shards::{self, CellsAndTable, Shape};
use crate::cells::packed::PackedCells;
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::scheme::ahead::answer_ahead;
use crate::structure::Job;
use crate::structure::records::RecordSet;

/// Widest fingerprint: 2^-32 is one in 4 billion.
const MOST_BITS: u64 = 32;

/// The requested rate, and bits of a fingerprint that keep it.
#[derive(Clone, Copy)]
pub struct Precision {
    /// The rate.
    pub fpr: f64,
    /// The bits.
    pub width: u32,
}

impl Precision {
    /// From the caller's arguments: a rate or bits, else 1 %.
    pub fn of(fpr: Option<f64>, bits: Option<u64>) -> Result<Self> {
        Self::parse_bits("bits", fpr, bits)
    }

    /// [`Precision::of`], with another name for the bits in messages.
    pub fn parse_bits(name: &str, fpr: Option<f64>, bits: Option<u64>) -> Result<Self> {
        match (fpr, bits) {
            (Some(fpr), Some(bits)) => {
                Err(Error::Parameter(format!("give fpr or {name}, not both, got fpr={fpr} and {name}={bits}")))
            }
            (None, Some(bits)) if (1..=MOST_BITS).contains(&bits) => {
                Ok(Precision { fpr: 0.5f64.powi(bits as i32), width: bits as u32 })
            }
            (None, Some(bits)) => {
                Err(Error::Parameter(format!("{name} must be between 1 and {MOST_BITS}, got {bits}")))
            }
            (fpr, None) => {
                let fpr = crate::sizing::check_fpr(fpr.unwrap_or(0.01))?;
                let width = (1..=MOST_BITS as u32).find(|&width| 0.5f64.powi(width as i32) <= fpr);
                let low = || Error::Parameter(format!("fpr must be at least 2**-{MOST_BITS}, got {fpr:?}"));
                Ok(Precision { fpr, width: width.ok_or_else(low)? })
            }
        }
    }
}

/// The fields besides cells and table.
#[derive(Clone, Copy)]
pub struct Facts {
    /// Bits of a fingerprint.
    pub width: u32,
    /// Cells of a key.
    pub arity: u32,
    /// Shards are 2^bits.
    pub bits: u32,
    /// Distinct keys.
    pub keys: u64,
    /// Cells of all shards.
    pub cells: u64,
    /// The requested rate.
    pub target_fpr: f64,
}

/// Cells of `width` bits; widths are checked.
fn create_cells(width: u32) -> Result<PackedCells> {
    PackedCells::new(width).filter(|_| u64::from(width) <= MOST_BITS).ok_or_else(|| {
        Error::Format(format!(
            "the file has fingerprints of {width} bits, at most {MOST_BITS} are possible; it is damaged"
        ))
    })
}

/// The fingerprint of a spread hash; more bits than a cell has.
#[inline(always)]
pub(super) fn fingerprint(hash: u64) -> u64 {
    hash ^ hash >> 32
}

/// Solves for fingerprints.
pub fn build<const K: usize, S: Shape<K>>(
    keys: &RecordSet<1>,
    precision: Precision,
    job: &Job<'_>,
) -> Result<(CellsAndTable, Facts)> {
    let cells = create_cells(precision.width)?;
    let parts = keys.build(job, |lot| shards::build::<K, 1, S>(lot, cells, job, |[hash], _| fingerprint(*hash)))?;
    let (_, number) = shards::check_table::<K, S>(parts.table.words(), parts.bits, cells)?;
    let facts = Facts {
        width: precision.width,
        arity: K as u32,
        bits: parts.bits,
        keys: parts.keys,
        cells: number,
        target_fpr: precision.fpr,
    };
    Ok((parts, facts))
}

/// Bytes of cells and table for `keys` keys.
pub fn bytes<const K: usize, S: Shape<K>>(keys: u64, precision: Precision) -> Result<u64> {
    let table = (8 * shards::ROW as u64) << shards::bits_for(keys);
    Ok(shards::cell_bytes::<K, S>(keys, create_cells(precision.width)?) + table.next_multiple_of(64))
}

impl Facts {
    /// Completes the facts of a file by its table: words of cells, and the facts.
    pub fn load<const K: usize, S: Shape<K>>(self, table: &[u64]) -> Result<(u64, Facts)> {
        let (words, cells) = shards::check_table::<K, S>(table, self.bits, create_cells(self.width)?)?;
        if self.keys > cells {
            return Err(Error::Format(format!("the file has {} keys in {cells} cells; it is damaged", self.keys)));
        }
        Ok((
            words,
            Facts { target_fpr: crate::sizing::check_fpr(self.target_fpr).map_err(Error::as_format)?, cells, ..self },
        ))
    }
}

/// Cells and table for lookups; cells of `W` bits, or, if that is 0, of any width.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Words of the table.
    pub table: &'a [u64],
    /// Words of the cells.
    pub cells: &'a [u64],
    /// Bits of a cell.
    pub width: u32,
    /// Shards are 2^bits.
    pub bits: u32,
}

impl View<'_> {
    /// First word, cells and fingerprint of a hash; `None` in a shard without keys.
    #[inline(always)]
    pub(super) fn places<const K: usize, S: Shape<K>>(self, hash: u64) -> Option<(usize, [u64; K], u64)> {
        let [first, a, b, attempt] = shards::row(self.table, shards::shard_of(hash, self.bits));
        if a == 0 {
            return None;
        }
        let hash = shards::spread(hash, self.bits, attempt);
        Some((first as usize, S::of([a, b]).places(hash), fingerprint(hash)))
    }

    /// Cell `i` after word `first`, with bits of its neighbours above it.
    #[inline(always)]
    pub(super) fn cell<const W: u32>(self, first: usize, i: u64) -> u64 {
        if W > 0 && 64 % W == 0 {
            let i = i as usize;
            let each = (64 / W) as usize;
            return u64::from_le(self.cells[first + i / each]) >> (W as usize * (i % each));
        }
        let bit = i * u64::from(self.width);
        let (word, shift) = (first + (bit >> 6) as usize, bit & 63);
        // One word more than all cells need, so that there always is a next.
        let pair = &self.cells[word..word + 2];
        u64::from_le(pair[0]) >> shift | u64::from_le(pair[1]) << 1 << (63 - shift)
    }

    /// Whether the xor of its cells is the fingerprint of a hash.
    #[inline(always)]
    pub fn look<const K: usize, const W: u32, S: Shape<K>>(self, hash: u64) -> bool {
        let Some((first, places, fingerprint)) = self.places::<K, S>(hash) else { return false };
        let xor = places.into_iter().fold(fingerprint, |xor, i| xor ^ self.cell::<W>(first, i));
        xor << (64 - if W > 0 { W } else { self.width }) == 0
    }

    /// Prefetches the memory of a hash.
    #[inline(always)]
    pub fn fetch<const K: usize, S: Shape<K>>(self, hash: u64) {
        if let Some((first, places, _)) = self.places::<K, S>(hash) {
            for i in places {
                let word = first.wrapping_add(((i * u64::from(self.width)) >> 6) as usize);
                prefetch(self.cells.as_ptr().wrapping_add(word));
            }
        }
    }

    /// One answer a hash.
    pub fn look_all<const K: usize, S: Shape<K>>(self, hashes: &[u64], found: &mut [u8]) {
        match self.width {
            8 => self.look_wide::<K, 8, S>(hashes, found),
            16 => self.look_wide::<K, 16, S>(hashes, found),
            32 => self.look_wide::<K, 32, S>(hashes, found),
            _ => self.look_wide::<K, 0, S>(hashes, found),
        }
    }

    fn look_wide<const K: usize, const W: u32, S: Shape<K>>(self, hashes: &[u64], found: &mut [u8]) {
        answer_ahead(
            AHEAD,
            hashes,
            found,
            |hash| self.fetch::<K, S>(hash),
            |hash| u8::from(self.look::<K, W, S>(hash)),
        );
    }
}

/// Keys fetched ahead: three lines each, of 10 to 16 that a core waits for at a time.
pub const AHEAD: usize = 16;

/// The filter `$Class` of geometries, chosen by number of cells per key:
/// `fingerprint_filter! { Class, NUMBER, arity; 3 => 3, Geometry<3>; ... }`.
macro_rules! fingerprint_filter {
    ($Class:ident, $NUMBER:ident, $arity:ident; $($number:literal => $K:literal, $Shape:ty;)+) => {
        /// Cells, the table of shards, and their parameters.
        pub struct $Class {
            cells: crate::cells::Memory,
            table: crate::cells::Memory,
            hasher: crate::key::KeyHasher,
            facts: crate::static_filters::fingerprints::Facts,
        }

        impl $Class {
            fn construct(
                keys: &RecordSet<1>,
                precision: crate::static_filters::fingerprints::Precision,
                $arity: u32,
                hasher: crate::key::KeyHasher,
                job: &Job<'_>,
            ) -> Result<Self> {
                use crate::static_filters::fingerprints;
                let (parts, facts) = match $arity {
                    $($number => fingerprints::build::<$K, $Shape>(keys, precision, job)?,)+
                    _ => return Err(Error::parameter("no such number of cells per key")),
                };
                Ok($Class { cells: parts.cells, table: parts.table, hasher, facts })
            }

            fn bytes(keys: u64, precision: crate::static_filters::fingerprints::Precision, $arity: u32) -> Result<u64> {
                match $arity {
                    $($number => crate::static_filters::fingerprints::bytes::<$K, $Shape>(keys, precision),)+
                    _ => Ok(0),
                }
            }

            #[inline(always)]
            fn view(&self) -> crate::static_filters::fingerprints::View<'_> {
                crate::static_filters::fingerprints::View {
                    table: self.table.words(),
                    cells: self.cells.words(),
                    width: self.facts.width,
                    bits: self.facts.bits,
                }
            }
        }

        impl crate::structure::Filter for $Class {
            crate::structure::memories::memory_methods! { $NUMBER, 0; cells: CELLS, table: SHARDS }

            const AHEAD: usize = crate::static_filters::fingerprints::AHEAD;

            #[inline(always)]
            fn contains_hash(&self, hash: u64) -> bool {
                match self.facts.arity {
                    $($number => self.view().look::<$K, 0, $Shape>(hash),)+
                    _ => false,
                }
            }

            #[inline(always)]
            fn fetch(&self, hash: u64) {
                match self.facts.arity {
                    $($number => self.view().fetch::<$K, $Shape>(hash),)+
                    _ => {}
                }
            }

            fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
                match self.facts.arity {
                    $($number => self.view().look_all::<$K, $Shape>(hashes, found),)+
                    _ => found.fill(0),
                }
            }

            fn capacity(&self) -> u64 {
                self.facts.keys
            }

            fn target_fpr(&self) -> f64 {
                self.facts.target_fpr
            }

            fn num_added(&self) -> u64 {
                self.facts.keys
            }

            fn fpr(&self) -> f64 {
                if self.facts.keys == 0 { 0.0 } else { 0.5f64.powi(self.facts.width as i32) }
            }

            fn fill(&self) -> f64 {
                self.facts.keys as f64 / self.facts.cells.max(1) as f64
            }
        }

        impl crate::structure::Loadable for $Class {
            fn load(
                header: &crate::container::Header,
                hasher: crate::key::KeyHasher,
                memory: crate::structure::Sections<'_>,
            ) -> Result<Self> {
                use crate::container::kind;
                <Self as crate::structure::Declared>::check_header(header, 0, 0)?;
                let facts = Stored::read(header)?.facts();
                let table = memory(kind::SHARDS, 0, crate::static_filters::shards::table_words(facts.bits)?)?;
                let (words, facts) = match facts.arity {
                    $($number => facts.load::<$K, $Shape>(table.words())?,)+
                    arity => return Err(Error::Format(format!("the file has {arity} cells per key, which no filter has"))),
                };
                let cells = memory(kind::CELLS, 0, words)?;
                Ok($Class { cells, table, hasher, facts })
            }
        }
    };
}
pub(crate) use fingerprint_filter;
