//! [`LayeredBloomFilter`]: layers of equal size; adding puts a key into the first that lacks it.
//!
//! Zhiwang, Jungang and Jian, "A multi-layer Bloom filter for duplicated URL detection", 2010. The depth of a key, the
//! number of leading layers that hold it, is at least the number of times it was added (up to the number of layers) and
//! exceeds it by one with the rate of the next layer, by r with the rate at which r layers hold the key: more than the
//! r-th power of one ([`blocked::layers`]), since layers share the loads of lines. The lines of all layers are
//! interleaved ([`crate::scheme::planes`]), and each layer is sized for `capacity` keys at rate `fpr`, since the number
//! of repeated keys is unknown.

use std::ops::Range;

use crate::cells::Memory;
use crate::container::{Header, kind};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::LAYERED;
use crate::scheme::Scheme;
use crate::scheme::planes::{MAX_PLANES, Planes};
use crate::sizing::lanes::Lanes;
use crate::sizing::{Law, blocked};
use crate::structure::declaration::structure;
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::memories::{clear_method, memory_methods};
use crate::structure::{Addable, CellCounts, CellStats, Countable, Filter, Loadable, Sections};

structure! {
    /// Layers of Bloom filters that count repeats: adding puts a key into the first layer that lacks it,
    /// and its depth is the number of leading layers that hold it.
    class LayeredBloomFilter;
    parameters {
        /// distinct keys.
        capacity: "int";
        /// rate of `in` at capacity, and of one more in a depth; two more are more frequent than its square
        /// (theory.layered_overcount).
        fpr: "float" = 0.01;
        *;
        /// 1 to 64, the largest count reported.
        layers: "int" = 4;
    }
    /// False negatives: never; a depth is at least min(times added, layers). Raises ParameterError,
    /// ParameterTypeError, FilterMemoryError; warns CapacityWarning past capacity. Cost: one cache line
    /// for each layer that holds the key, and one more; 10 bits per key and layer at 1 %. Source: Zhiwang,
    /// Jungang, Jian, ICACTE 2010; every layer a blocked filter.
    ///
    /// >>> from fullbloom import LayeredBloomFilter
    /// >>> f = LayeredBloomFilter(1000)
    /// >>> f.update(["a", "b", "a", "a"])
    /// >>> f.depth("a"), f.depth("b"), f.depth("c")
    /// (3, 1, 0)
    fields {
        /// Number of layers.
        pub layers: usize = |f| f.planes.planes(), PLANES;
        /// Lines of 64 bytes in a layer.
        lines: u64 = |f| f.lines, LINES;
        /// Number of bits, of all layers.
        pub num_bits: u64 = |f| f.memory.len_bytes() as u64 * 8;
        /// k, bits of a key in a layer.
        pub num_hashes: u32 = |f| f.planes.num_hashes(), NUM_HASHES;
    }
}

/// Counts how often a key was added, up to the number of layers.
pub struct LayeredBloomFilter {
    load: Load,
    planes: Planes,
    lines: u64,
    memory: Memory,
    hasher: KeyHasher,
}

impl LayeredBloomFilter {
    /// An empty filter of `layers` layers, each for `capacity` keys at rate `fpr`.
    pub fn construct(capacity: u64, fpr: f64, layers: u64, hasher: KeyHasher) -> Result<Self> {
        let (planes, lines) = Self::size_for(capacity, fpr, layers)?;
        let memory = Memory::zeroed(planes.words(lines).unwrap_or(u64::MAX))?;
        Ok(LayeredBloomFilter { load: Load::new(capacity, fpr)?, planes, lines, memory, hasher })
    }

    /// Bytes of cells of such a filter.
    pub fn cell_bytes(capacity: u64, fpr: f64, layers: u64) -> Result<u64> {
        let (planes, lines) = Self::size_for(capacity, fpr, layers)?;
        Ok(lines.saturating_mul(64 * planes.planes() as u64))
    }

    fn size_for(capacity: u64, fpr: f64, layers: u64) -> Result<(Planes, u64)> {
        if !(1..=MAX_PLANES as u64).contains(&layers) {
            return Err(Error::Parameter(format!("layers must be between 1 and {MAX_PLANES}, got {layers}")));
        }
        let (lines, per_column) = blocked::smallest_lines(capacity, fpr)?;
        let planes = Planes::new(layers as usize, per_column).ok_or_else(|| Error::parameter("layers do not fit"))?;
        Ok((planes, lines))
    }

    /// Leading layers that hold the key.
    #[inline(always)]
    pub fn depth_hash(&self, hash: u64) -> u64 {
        let mut answer = 0;
        self.planes.depths(self.memory.words(), &[hash], |_, depth| answer = depth as u64);
        answer
    }

    /// Model number of distinct keys in each layer, first to last, from their bits.
    pub fn layer_counts(&self) -> Vec<f64> {
        (0..self.layers()).map(|layer| self.law().items(self.fill_of(layer))).collect()
    }

    fn law(&self) -> Lanes {
        blocked::law(self.lines, self.planes.num_hashes() / 4)
    }

    /// Share of set bits in a layer.
    fn fill_of(&self, layer: usize) -> f64 {
        self.planes.ones(self.memory.words(), layer) as f64 / (self.lines as f64 * 512.0)
    }

    #[inline(always)]
    fn deepen(&mut self, hashes: &[u64], mut tell: impl FnMut(usize, bool)) -> Result<()> {
        let mut new = 0;
        let words = self.memory.writable()?;
        self.planes.deepen(words, hashes, |i, depth| {
            new += u64::from(depth == 0);
            tell(i, depth == 0);
        });
        self.load.added = self.load.added.saturating_add(new);
        Ok(())
    }
}

impl Countable for LayeredBloomFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        self.depth_hash(hash)
    }

    fn most_counted(&self) -> u64 {
        self.layers() as u64
    }

    /// A key that is in all layers changes nothing.
    fn note_surplus(&mut self, _: u64, _: bool) -> bool {
        true
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        assert!(hashes.len() == counts.len());
        self.planes.depths(self.memory.words(), hashes, |i, depth| counts[i] = depth as u64);
    }
}

impl Filter for LayeredBloomFilter {
    memory_methods! {
        LAYERED, Scheme::Columns as u16, load; memory: PLANES;
        |a, b| (a.planes, a.lines, a.load.capacity) == (b.planes, b.lines, b.load.capacity)
            && a.load.target_fpr == b.load.target_fpr
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.depth_hash(hash) > 0
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        assert!(hashes.len() == found.len());
        self.planes.depths(self.memory.words(), hashes, |i, depth| found[i] = u8::from(depth > 0));
    }

    load_answers!(added);

    /// Rate of the first layer, which `in` reads.
    fn fpr(&self) -> f64 {
        self.law().fpr_of_fill(self.fill_of(0))
    }

    fn occupancy(&self) -> Option<(Box<dyn Law>, f64)> {
        Some((Box::new(self.law()), self.fill_of(0)))
    }

    fn fill(&self) -> f64 {
        crate::cells::bits::count_ones(self.memory.words()) as f64 / (self.memory.len_bytes() as f64 * 8.0)
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![self.planes.slot_words()])
    }

    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        self.planes.each_ones(self.memory.words(), words, |plane, ones| counts.add(plane, ones));
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let ones: u64 = (0..self.planes.planes()).map(|layer| counts.get(layer)).sum();
        let first = CellStats::by_law(&self.law(), counts.get(0) as f64 / (self.lines as f64 * 512.0));
        CellStats { fill: ones as f64 / (self.memory.len_bytes() as f64 * 8.0), ..first }
    }

    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        self.planes.writes(self.memory.words(), hashes, word);
        true
    }

    /// From the bits of the first layer, which holds every key.
    fn estimate_count(&self) -> Option<(f64, f64)> {
        Some(self.law().estimate(self.fill_of(0)))
    }
}

impl Addable for LayeredBloomFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let mut new = false;
        self.deepen(&[hash], |_, fresh| new = fresh)?;
        Ok(new)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        match new {
            None => self.deepen(hashes, |_, _| {}),
            Some(new) => self.deepen(hashes, |i, fresh| new[i] = u8::from(fresh)),
        }
    }

    load_takes!(memory);

    clear_method!(memory);
}

impl Loadable for LayeredBloomFilter {
    fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
        let damaged = || Error::format("the file holds impossible layers; it is damaged");
        let (Stored { layers, lines, num_hashes }, load) = Stored::with_load(header, Scheme::Columns as u16)?;
        let planes = Planes::new(layers, num_hashes / 4).filter(|_| num_hashes.is_multiple_of(4));
        let planes = planes.ok_or_else(damaged)?;
        let words = planes.words(lines).filter(|&words| words > 0).ok_or_else(damaged)?;
        Ok(LayeredBloomFilter { load, planes, lines, memory: memory(kind::PLANES, 0, words)?, hasher })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::conformance::adding;
    use crate::structure::testing::hash;

    #[test]
    fn depth_is_never_below_the_count_and_seldom_above() {
        for layers in [1, 2, 4, 9] {
            let make = || LayeredBloomFilter::construct(3000, 0.01, layers, KeyHasher::seeded(0)).unwrap();
            let mut filter = make();
            let mut counts = vec![0u64; 3000];
            let keys: Vec<u64> = (0..9000).map(|i| hash(1 << 40 | i) % 3000).collect();
            keys.iter().for_each(|&key| counts[key as usize] += 1);
            let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
            filter.add_hashes(&hashes, None).unwrap();
            let mut over = 0;
            for (key, &count) in counts.iter().enumerate() {
                let depth = filter.depth_hash(hash(key as u64));
                assert!(depth >= count.min(layers));
                over += usize::from(depth > count.min(layers));
            }
            assert!(over < 80, "{layers}: {over}");
            adding(&make, 3000);
        }
    }

    #[test]
    fn a_false_answer_of_one_layer_is_not_repeated_in_the_next() {
        // Every key is in both layers; a key in neither that the first reports must pass the second, too.
        let mut filter = LayeredBloomFilter::construct(20_000, 0.1, 2, KeyHasher::seeded(0)).unwrap();
        let keys: Vec<u64> = (0..20_000).map(hash).collect();
        filter.add_hashes(&keys, None).unwrap();
        filter.add_hashes(&keys, None).unwrap();
        let mut depths = vec![0; 100_000];
        let absent: Vec<u64> = (0..100_000).map(|i| hash(1 << 40 | i)).collect();
        filter.count_hashes(&absent, &mut depths);
        let at_least = |depth| depths.iter().filter(|&&d| d >= depth).count() as f64;
        assert!((at_least(1) / 1e5 - 0.1).abs() < 0.01);
        assert!((at_least(2) / at_least(1) - 0.1).abs() < 0.03, "{}", at_least(2) / at_least(1));
    }
}
