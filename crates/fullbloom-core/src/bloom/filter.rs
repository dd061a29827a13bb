//! [`BloomFilter`]: a shape, its memory, its hash, and the number of keys it has seen.
//!
//! Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970.

use std::ops::Range;
use std::path::Path;

use super::kernel::Kernel;
use super::shape::{BaseHash, Layout, Scheme, Shape, with_base_hash};
use super::surplus::Surplus;
use crate::cells::{LINE_WORDS, Memory, bits};
use crate::container::file::Writer;
use crate::container::{self, Container, Header, Section, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::BLOOM;
use crate::scheme::lines::OneLine;
use crate::scheme::positions::has_bits_past;
use crate::sizing::Law;
use crate::sizing::narrow::Narrow;
use crate::sizing::whole::{distinct_among, new_among};
use crate::structure::cell_stats::{CellCounts, CellStats, SET};
use crate::structure::declaration::{choice, one_of, structure};
use crate::structure::load::{Load, load_answers};
use crate::structure::{Declared, Filter, Loadable, Mergeable, Positioned, Sections};

structure! {
    /// An approximate set of keys: never misses a key that was added, and wrongly finds others at a
    /// rate of at most `fpr` while it holds at most `capacity` keys.
    class BloomFilter;
    parameters {
        /// expected number of distinct keys.
        capacity: "int";
        /// rate of false positives at capacity.
        fpr: "float" = 0.01;
        *;
        /// "blocked" (one cache line per key), "classic" (least space), "split" (Parquet's block),
        /// "partitioned", "two-block" (two cache lines per key), or "auto": blocked while it costs at most 1.2 times the
        /// space of classic.
        layout: "str" = "auto";
        /// how a hash becomes positions; the layout's own by default.
        scheme: "str | None" = None;
        /// the base hash of the key rule, for interchange: "xxh3", "xxh64", "murmur3-32", "murmur3-128", "fnv1a",
        /// "sha1", "md5", "sha256".
        hash: "str" = "xxh3";
        /// refuse keys past capacity with FilterFull instead of warning once.
        strict: "bool" = false;
    }
    /// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated.
    /// Cost: 10.1, 15.6 and 22.0 bits per key at 1, 0.1 and 0.01 % (classic: 9.6, 14.4, 19.2).
    /// Source: Bloom, CACM 13(7), 1970; rate (1 - (1 - 1/m)^(kn))^k, by layout in fullbloom.theory.
    ///
    /// >>> from fullbloom import BloomFilter
    /// >>> seen = BloomFilter(1_000_000, fpr=0.001)
    /// >>> seen.add("https://example.org/")
    /// True
    /// >>> "https://example.org/" in seen
    /// True
    fields {
        /// Keys the filter was sized for.
        capacity: u64 = |f| f.load.capacity, CAPACITY;
        /// Requested rate at capacity.
        target_fpr: f64 = |f| f.load.target_fpr, FPR;
        /// The layout's name.
        pub layout: Layout = |f| f.shape.layout, LAYOUT merged;
        /// The scheme's name.
        pub scheme: Scheme = |f| f.shape.scheme, SCHEME merged;
        /// The base hash's name; a filter with a secret has that of SipHash-1-3 instead.
        pub hash: BaseHash = |f| f.hasher.base();
        /// m, the number of bits.
        pub num_bits: u64 = |f| f.shape.num_bits, NUM_BITS merged;
        /// k, the number of bits a key sets.
        pub num_hashes: u32 = |f| f.shape.num_hashes, NUM_HASHES merged;
        /// Keys that were new when added.
        num_added: u64 = |f| f.load.added, COUNT;
        /// True when keys past capacity are refused.
        pub strict: bool = |f| f.strict, STRICT;
        /// True when the bits are in a mapped file.
        pub mapped: bool = |f| f.memory.is_mapped();
    }
}

/// An approximate set: no false negatives, and false positives at a known rate.
pub struct BloomFilter {
    pub(super) shape: Shape,
    pub(super) kernel: Kernel,
    /// Single lookups, for layouts with one line per key: one jump through a pointer takes 71 ns at 100 million keys, matching
    /// on layout and instruction set 95, because three lines are fetched at a time.
    one_line: Option<OneLine>,
    pub(super) memory: Memory,
    /// Words in use, `shape.words()`.
    words: usize,
    hasher: KeyHasher,
    pub(super) load: Load,
    /// Bits that no key has set.
    pub(super) surplus: Surplus,
    pub(super) strict: bool,
    /// The file of a filter opened for writing in place.
    pub(super) writer: Option<Writer>,
    /// The file was released: no more writing through its mapping.
    pub(super) closed: bool,
}

/// [`Filter::look`] of layouts without lines: a separate call, for the registers.
#[inline(never)]
extern "C" fn look_at_probes(filter: &BloomFilter, hash: u64) -> i32 {
    i32::from(filter.contains_hash(hash))
}

impl BloomFilter {
    /// An empty filter for `capacity` keys at rate `fpr`.
    pub fn construct(
        capacity: u64,
        fpr: f64,
        layout: &str,
        scheme: Option<&str>,
        hash: &str,
        strict: bool,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let hasher = with_base_hash(hasher, hash)?;
        Self::new(Shape::from_names(layout, scheme, hasher.base(), capacity, fpr)?, capacity, fpr, hasher, strict)
    }

    /// Bytes of bits of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, layout: &str, scheme: Option<&str>, hash: &str, _: bool) -> Result<u64> {
        let base = one_of("hash", hash, BaseHash::NAMES)?;
        Ok(Shape::from_names(layout, scheme, base, capacity, fpr)?.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }

    /// An empty filter of bits, probes, layout ("auto" means classic) and scheme. Without a capacity it is sized for
    /// the keys that set half of its bits, the optimum.
    pub fn with_shape(
        num_bits: u64,
        num_hashes: u64,
        capacity: Option<u64>,
        layout: &str,
        (scheme, hash): (Option<&str>, &str),
        strict: bool,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let hasher = with_base_hash(hasher, hash)?;
        let layout = choice("layout", layout, Layout::NAMES)?.unwrap_or(Layout::Classic);
        let shape = Shape::explicit(layout, Shape::scheme_named(scheme)?, num_bits, num_hashes)?;
        let law = shape.law();
        let capacity = capacity.unwrap_or_else(|| (law.items(0.5).round() as u64).max(1));
        let fpr = shape.stated_fpr(capacity as f64).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
        Self::new(shape, capacity, fpr, hasher, strict)
    }

    /// An empty filter of `shape`.
    pub fn new(shape: Shape, capacity: u64, target_fpr: f64, hasher: KeyHasher, strict: bool) -> Result<Self> {
        let load = Load::new(capacity, target_fpr)?;
        Self::with_memory(shape, load, hasher, strict, Memory::zeroed(shape.words())?)
    }

    /// A filter over existing memory of the length that the shape needs.
    fn with_memory(shape: Shape, load: Load, hasher: KeyHasher, strict: bool, memory: Memory) -> Result<Self> {
        let kernel = Kernel::new(&shape.check()?);
        Ok(BloomFilter {
            one_line: kernel.one_line(shape.words() as usize),
            kernel,
            shape,
            words: shape.words() as usize,
            memory,
            hasher,
            load,
            surplus: Surplus::NONE,
            strict,
            writer: None,
            closed: false,
        })
    }

    /// The words in use.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        &self.memory.words()[..self.words]
    }

    #[inline(always)]
    pub(super) fn words_mut(&mut self) -> Result<&mut [u64]> {
        let (words, closed) = (self.words, self.closed);
        if closed || self.memory.is_read_only() {
            return Err(refuse_writing(closed, self.memory.is_inherited()));
        }
        Ok(&mut self.memory.writable()?[..words])
    }

    /// The law of the shape, under hashes as wide as the filter's.
    pub(super) fn law(&self) -> Box<dyn Law> {
        let (law, bits) = (self.shape.law(), self.hasher.base().bits());
        if bits < 64 { Box::new(Narrow { law, bits }) } else { law }
    }

    /// Bits, probes, layout and scheme.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of set bits.
    pub fn ones(&self) -> u64 {
        bits::count_ones(self.words())
    }

    /// Estimated number of keys with its standard deviation, from the share of set bits (Swamidass and Baldi,
    /// 2007) less the surplus; infinite when all bits are set.
    pub fn approx_count(&self) -> (f64, f64) {
        self.surplus.estimate(self.law().as_ref(), self.fill()).with_deviation()
    }

    fn stats_of_ones(&self, ones: u64) -> CellStats {
        let (law, fill) = (self.law(), ones as f64 / self.shape.num_bits as f64);
        let estimated = self.surplus.estimate(law.as_ref(), fill).with_deviation();
        CellStats { fill, fpr: law.fpr_of_fill(fill), estimated: Some(estimated), ..CellStats::default() }
    }

    /// Estimated number of keys that were new when they were added.
    pub(super) fn new_when_added(&self) -> f64 {
        let law = self.law();
        new_among(self.approx_count().0, |items| law.fpr(items))
    }
}

impl Filter for BloomFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn hasher_mut(&mut self) -> &mut KeyHasher {
        &mut self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.kernel.contains(self.words(), hash)
    }

    #[inline(always)]
    fn look(&self, hash: u64) -> i32 {
        match &self.one_line {
            Some(one_line) => one_line.look(self.memory.words(), hash),
            None => look_at_probes(self, hash),
        }
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        self.kernel.contains_all(self.words(), hashes, found);
    }

    load_answers!(added);

    fn fpr(&self) -> f64 {
        self.law().fpr_of_fill(self.fill())
    }

    fn occupancy(&self) -> Option<(Box<dyn Law>, f64)> {
        Some((self.law(), self.fill()))
    }

    fn fill(&self) -> f64 {
        self.ones() as f64 / self.shape.num_bits as f64
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![1])
    }

    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        // Of whole lines, as the section: what follows the bits is zero.
        counts.add(SET, bits::count_ones(&self.memory.words()[words]));
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        self.stats_of_ones(counts.get(SET))
    }

    fn law_of_bits(&self) -> Option<(Box<dyn Law>, u64)> {
        Some((self.law(), self.shape.num_bits))
    }

    fn fpr_by_count(&self) -> Option<f64> {
        let law = self.law();
        let items = self.surplus.add_to(distinct_among(self.load.added as f64, |items| law.fpr(items)));
        Some(if items.is_finite() { law.fpr(items) } else { 1.0 })
    }

    fn nbytes(&self) -> u64 {
        self.memory.len_bytes() as u64
    }

    fn estimate_count(&self) -> Option<(f64, f64)> {
        Some(self.approx_count())
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(BLOOM, self.shape.scheme as u16, &self.hasher);
        self.describe(&mut header);
        self.surplus.describe(&mut header);
        Container { header, sections: vec![Section::of(kind::BITS, &self.memory)] }
    }

    fn save(&self, path: &Path) -> Result<()> {
        // Replacing the file that is written in place would leave the writer with the old one.
        if self.writer.as_ref().is_some_and(|writer| writer.holds(path)) {
            return self.flush();
        }
        container::save(&self.container(), path)
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        let words = self.words().len();
        for &hash in hashes {
            self.kernel.positions(words, hash).into_iter().for_each(|position| word(0, (position >> 6) as usize));
        }
        true
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(BloomFilter { memory: self.memory.try_clone()?, writer: None, closed: false, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.check_compatible(other).is_ok() && self.words() == other.words()
    }
}

impl Positioned for BloomFilter {
    fn positions(&self, hash: u64) -> Vec<u64> {
        let mut positions = self.kernel.positions(self.words().len(), hash);
        let mut first = std::collections::HashSet::new();
        positions.retain(|&position| first.insert(position));
        positions
    }
}

impl Loadable for BloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let Stored { layout, scheme, num_bits, num_hashes, strict, .. } = Stored::read(header)?;
        let shape = Shape { layout, scheme, num_bits, num_hashes }.check().map_err(Error::as_format)?;
        let (load, surplus) = (Load::restore(header, 0)?, Surplus::restore(header)?);
        Self::check_header(header, Surplus::params(header), header.scheme)?;
        if header.scheme != scheme as u16 {
            return Err(Error::format("the file's two scheme numbers differ; it is damaged"));
        }
        let memory = memory(kind::BITS, 0, shape.words())?;
        if has_bits_past(memory.words(), num_bits) {
            return Err(Error::format("the file has bits set beyond its num_bits; it is damaged"));
        }
        let mut filter = Self::with_memory(shape, load, hasher, strict, memory).map_err(Error::as_format)?;
        filter.surplus = surplus;
        if header.unclean {
            // The count was not written; half of all numbers, as for one that a file says.
            filter.load.added = (filter.new_when_added().round() as u64).min(u64::MAX >> 1);
        }
        Ok(filter)
    }
}

/// The error for writing to a read-only filter.
#[cold]
fn refuse_writing(closed: bool, inherited: bool) -> Error {
    Error::ReadOnly(match (closed, inherited) {
        (true, _) => "the filter is closed; open its file again".into(),
        (_, true) => "the filter was opened with mode=\"r+\" by a parent process, which alone writes to the file; \
                      take a copy(), or open the file here when the parent has closed it"
            .into(),
        _ => "the filter is mapped read-only; open it with mode=\"r+\" or take a copy()".into(),
    })
}

impl BloomFilter {
    /// Writes `bytes` over the cells from byte `start` on, a multiple of 8; bits after the last one must be 0.
    pub fn write_cells(&mut self, start: u64, bytes: &[u8]) -> Result<()> {
        let (num_bits, fits) = (self.shape.num_bits, self.shape.num_bits.div_ceil(8));
        if !start.is_multiple_of(8) || start.checked_add(bytes.len() as u64).is_none_or(|end| end > fits) {
            return Err(Error::format(format!(
                "{} bytes from byte {start} on do not lie within the {fits} bytes of cells",
                bytes.len()
            )));
        }
        let words = self.words_mut()?;
        for (word, piece) in words[(start / 8) as usize..].iter_mut().zip(bytes.chunks(8)) {
            let mut whole = word.to_ne_bytes();
            whole[..piece.len()].copy_from_slice(piece);
            *word = u64::from_ne_bytes(whole);
        }
        if has_bits_past(words, num_bits) {
            return Err(Error::format(
                "the cells have bits set beyond num_bits; they are of another filter or damaged",
            ));
        }
        Ok(())
    }

    /// Takes all cells from the words of another filter of this shape, to which `added` new keys were added.
    pub fn copy_cells(&mut self, words: &[u64], added: u64) -> Result<()> {
        let own = self.words_mut()?;
        if own.len() != words.len() {
            return Err(Error::format("the number of cells differs from the filter's"));
        }
        own.copy_from_slice(words);
        self.load.added = added;
        Ok(())
    }

    /// Estimates the number of keys from the cells, which were supplied without one: those that were new when they were
    /// added.
    pub fn recount(&mut self) {
        let count = self.new_when_added();
        self.load.added = if count.is_finite() { count.round() as u64 } else { self.load.capacity };
    }
}
