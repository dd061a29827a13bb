//! [`FilterCascade`]: which of two sets a key is in, where it is in one of them.
//!
//! Larisch et al., "CRLite", 2017. The first level is a Bloom filter of the smaller set; the second one of those keys of
//! the other set that the first takes; the third one of those of the first set that the second takes; until nothing is
//! mistaken. A key is of the smaller set if the levels that take it, counted up to the first that does not, are odd in
//! number. Rates of `sqrt(1/2) r / s`, then 1/2 a level, leave about `1.44 r log2(s / r) + 4.2 r` bits.
//!
//! Levels lie one after the other, bit by bit, in one section; the table has a word for each ([`level`]). Of another kind the
//! first of them are separate filters ([`parts`]), whose parameters and sections stand in the file at their number,
//! counted from 1. One that was kept from another version has a run of bits beside it, for the keys that it does not take; the
//! rows of these come first. [`delta`]: what turns one version into another.

use crate::cells::Memory;
use crate::cells::bits::{count_ones, is_zero_from};
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::isa::prefetch;
use crate::key::KeyHasher;
use crate::registry::CASCADE;
use crate::structure::declaration::structure;
use crate::structure::records::SortedRecords;
use crate::structure::{Declared, Filter, Job, Loadable, Sections};

mod build;
pub mod delta;
mod difference;
mod level;
pub mod parts;
#[cfg(test)]
mod tests;

pub use build::{Plan, Shapes, common};
pub use parts::LevelKind;

use build::Levels;
use level::{Level, MOST_LEVELS, later, numbers};
use parts::Part;

structure! {
    /// Separates two sets exactly, in a closed world: it knows nothing about keys that are in neither set.
    class FilterCascade;
    parameters {}
    /// build(included, excluded) creates it from all keys that will ever be looked up, such as the certificates that are
    /// revoked and those that are not. includes() is True for every key of the first set and False for every key of the
    /// second; for any other key the result means nothing, so there is no `in`. verify() looks up all keys.
    ///
    /// Cost: about 1.44 r log2(s/r) + 4.2 r bits, r keys of the smaller set, s of the larger: 9.0 bits for each of r where
    /// s is ten times as many; about 0.03 us per key to build; a few cache lines per lookup. Raises ParameterError for sets that
    /// overlap, KeyTypeError, FilterMemoryError. Source: Larisch et al., CRLite, IEEE S&P 2017.
    ///
    /// >>> from fullbloom import FilterCascade
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
        pub num_bits: u64 = |f| f.packed_bits() + f.parts.iter().map(|part| 8 * part.nbytes()).sum::<u64>();
        /// The structure of levels, by its name in the registry.
        pub kind: &'static str = |f| f.kind.name();
        /// The layout of levels of kind "bloom", "auto" where they lie among the bits of all; also for other kinds.
        pub layout: Option<&'static str> = |f| f.kind.layout();
        /// True when the levels live in a file.
        pub mapped: bool = |f| f.bits.is_mapped();
    }
}

/// Which of two sets a key is in.
pub struct FilterCascade {
    included: u64,
    excluded: u64,
    levels: u32,
    kind: LevelKind,
    /// The first levels, where they are separate filters.
    parts: Vec<Part>,
    /// Of these, from the first on, those with a run of bits beside them.
    later: usize,
    table: Memory,
    bits: Memory,
    hasher: KeyHasher,
}

impl FilterCascade {
    /// Tells `included` from `excluded`, which have no hash in [`common`].
    pub fn build(
        included: &SortedRecords<1>,
        excluded: &SortedRecords<1>,
        plan: Plan<'_>,
        job: &Job<'_>,
    ) -> Result<Self> {
        let (smaller, larger) =
            if included.len() <= excluded.len() { (included, excluded) } else { (excluded, included) };
        let levels = Levels::of(smaller, larger, plan, job)?;
        Ok(FilterCascade {
            included: included.len(),
            excluded: excluded.len(),
            levels: levels.len() as u32,
            later: levels.later,
            kind: plan.kind,
            table: of_words(&levels.rows, u64::to_le)?,
            bits: of_words(&levels.words, |word| word)?,
            parts: levels.parts,
            hasher: plan.hasher,
        })
    }

    /// The kind of levels.
    pub fn level_kind(&self) -> LevelKind {
        self.kind
    }

    /// What another version of the sets can keep.
    pub fn shapes(&self) -> Result<Shapes> {
        let parts = self.parts.iter().map(Part::copy).collect::<Result<_>>()?;
        Ok(Shapes { kind: self.kind, parts, later: self.later, rows: self.rows().collect() })
    }

    /// True when the first level is over the excluded keys.
    #[inline(always)]
    fn is_negated(&self) -> bool {
        self.included > self.excluded
    }

    /// The runs of bits, those beside filters first.
    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = Level> {
        let number = self.levels as usize - self.parts.len() + self.later;
        self.table.words().iter().take(number).map(|&row| Level::of(u64::from_le(row)))
    }

    /// Bits of these.
    fn packed_bits(&self) -> u64 {
        self.rows().map(|level| level.num_bits).sum()
    }

    /// First bit and shape of a run of this number.
    fn run(&self, number: usize) -> Option<(u64, Level)> {
        let mut start = 0;
        numbers(self.later, self.parts.len()).zip(self.rows()).find_map(|(own, row)| {
            start += row.num_bits;
            (own == number).then_some((start - row.num_bits, row))
        })
    }

    /// How many levels take the key before one does not.
    #[inline(always)]
    fn depth(&self, hash: u64) -> usize {
        let (words, mut start, mut rows) = (self.bits.words(), 0, self.rows());
        for (i, part) in self.parts.iter().enumerate() {
            let row = if i < self.later { rows.next() } else { None };
            if !part.takes(i, hash) && !row.is_some_and(|row| row.takes(later(i), start, words, hash)) {
                return i;
            }
            start += row.map_or(0, |row| row.num_bits);
        }
        for (i, level) in (self.parts.len()..).zip(rows) {
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
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn hasher_mut(&mut self) -> &mut KeyHasher {
        &mut self.hasher
    }

    fn nbytes(&self) -> u64 {
        let packed = self.table.len_bytes() + self.bits.len_bytes();
        self.parts.iter().map(Part::nbytes).sum::<u64>() + packed as u64
    }

    fn try_clone(&self) -> Result<Self> {
        let parts = self.parts.iter().map(Part::copy).collect::<Result<_>>()?;
        Ok(FilterCascade { table: self.table.try_clone()?, bits: self.bits.try_clone()?, parts, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.differences(other).check().is_ok()
            && (self.included, self.excluded, self.kind) == (other.included, other.excluded, other.kind)
            && self.later == other.later
            && self.table.words() == other.table.words()
            && self.bits.words() == other.bits.words()
            && self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(|(part, other)| part.equals(other))
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(CASCADE, 0, &self.hasher);
        self.describe(&mut header);
        self.kind.describe(&mut header, self.parts.len());
        if self.later > 0 {
            header.set(tag::LATER, 0, self.later as u64);
        }
        let mut sections = vec![Section::of(kind::LEVELS, &self.table), Section::of(kind::BITS, &self.bits)];
        for (i, part) in (1..).zip(&self.parts) {
            let part = part.container();
            header.nest(i, &part.header);
            sections.extend(part.sections.into_iter().map(|section| Section { index: i.into(), ..section }));
            // Parts of one kind have one scheme; a Bloom filter's has one in its own parameters.
            header.scheme = if header.get(tag::SCHEME, i).is_ok() { 0 } else { part.header.scheme };
        }
        Container { header, sections }
    }

    /// Keys fetched ahead, each with the probes of the first level: three to five where s is ten times r.
    const AHEAD: usize = 4;

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        if let Some(first) = self.parts.first() {
            first.fetch(hash);
        } else if let Some(first) = self.rows().next() {
            for bit in first.bits(0, 0, hash) {
                prefetch(self.bits.words().as_ptr().wrapping_add((bit >> 6) as usize));
            }
        }
    }

    /// For a key of its world: whether it is included.
    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        (self.depth(hash) % 2 == 1) != self.is_negated()
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

    /// Share of used cells, by the bytes of levels.
    fn fill(&self) -> f64 {
        let used = self.parts.iter().map(|part| part.fill() * 8.0 * part.nbytes() as f64).sum::<f64>();
        (used + count_ones(self.bits.words()) as f64) / self.num_bits().max(1) as f64
    }
}

impl Loadable for FilterCascade {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let whole = Header { scheme: 0, ..header.part(0) };
        let (kind, filters, more) = LevelKind::restore(&whole)?;
        let later = whole.get(tag::LATER, 0).ok();
        Self::check_header(&whole, more + usize::from(later.is_some()), 0)?;
        let Stored { num_included: included, num_excluded: excluded, num_levels: levels } = Stored::read(&whole)?;
        if levels as usize > MOST_LEVELS || (levels == 0) != (included.min(excluded) == 0) {
            return Err(Error::Format(format!(
                "the file states {levels} levels for {included} and {excluded} keys; it is damaged"
            )));
        }
        if filters > u64::from(levels) || (filters == 0) != (kind == LevelKind::Packed || levels == 0) {
            return Err(Error::Format(format!(
                "the file says that {filters} of {levels} levels are separate filters; it is damaged"
            )));
        }
        if later.is_some_and(|later| later == 0 || later > filters) {
            return Err(Error::Format(format!(
                "the file says that {} of {filters} filters have bits beside them; it is damaged",
                later.unwrap_or(0)
            )));
        }
        let later = later.unwrap_or(0) as usize;
        let parts = load_parts(header, kind, filters as u16, whole.params.len(), hasher, memory)?;
        let packed = u64::from(levels) - filters + later as u64;
        let table = memory(kind::LEVELS, 0, packed.max(1))?;
        let wrong = || Error::format("the file's level table is invalid; it is damaged");
        let (rows, rest) = table.words().split_at_checked(packed as usize).ok_or_else(wrong)?;
        let bits = rows.iter().try_fold(0u64, |sum, &row| Some(sum + Level::from_row(u64::from_le(row))?.num_bits));
        let bits = bits.filter(|_| rest.iter().all(|&word| word == 0)).ok_or_else(wrong)?;
        let bits = memory(kind::BITS, 0, bits.div_ceil(64).max(1))?;
        Ok(FilterCascade { included, excluded, levels, kind, parts, later, table, bits, hasher })
    }

    /// Bits after the last level belong to no level.
    fn check_cells(&self) -> Result<()> {
        self.parts.iter().try_for_each(Part::check_cells)?;
        if !is_zero_from(self.bits.words(), self.packed_bits()) {
            return Err(Error::format("the file has bits after its last level; it is damaged"));
        }
        Ok(())
    }
}

/// The levels that are separate filters; `whole` is the number of parameters of the whole.
fn load_parts(
    header: &Header,
    kind: LevelKind,
    number: u16,
    whole: usize,
    hasher: KeyHasher,
    memory: Sections<'_>,
) -> Result<Vec<Part>> {
    let (mut params, mut parts) = (whole, Vec::new());
    for i in 1..=number {
        let mut part = header.part(i);
        params += part.params.len();
        part.variant = kind.variant();
        if let Ok(scheme) = part.get(tag::SCHEME, 0) {
            part.scheme = u16::try_from(scheme).unwrap_or(u16::MAX);
        }
        let mut section = |kind, _, words| memory(kind, i.into(), words);
        parts.push(Part::load(&part, hasher, &mut section)?);
    }
    let named = parts.iter().any(|part| part.container().header.names_hash());
    if params != header.params.len() || named || number == 0 && header.scheme != 0 {
        return Err(Error::format("the file holds parameters that belong to no level; it is damaged"));
    }
    Ok(parts)
}
