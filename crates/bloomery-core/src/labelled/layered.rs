//! [`LayeredBloomFilter`]: layers of equal size; adding puts a key into the first that lacks it.
//!
//! Zhiwang, Jungang and Jian, "A multi-layer Bloom filter for duplicated URL detection", 2010. The
//! depth of a key, the number of leading layers that hold it, is at least the number of times it
//! was added (up to the number of layers) and exceeds it by one with the rate of the next layer.
//! All layers are lines side by side ([`crate::scheme::planes`]), each sized for `capacity` keys at
//! rate `fpr`, since nothing says how many keys come twice.

use crate::cells::Memory;
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry::LAYERED;
use crate::scheme::Scheme;
use crate::scheme::planes::{MAX_PLANES, Planes};
use crate::sizing::lanes::Lanes;
use crate::sizing::{Law, blocked};
use crate::structure::load::{self, Load, load_answers, load_takes};
use crate::structure::{Addable, Countable, Estimating, Filter, Loadable, Sizable, Value};

/// Layers of a filter with default parameters.
pub const LAYERS: usize = 4;
/// Parameters beside those of [`Load`].
const PARAMS: usize = 3;

/// Tells how often a key was added, up to the number of layers.
pub struct LayeredBloomFilter {
    load: Load,
    planes: Planes,
    lines: u64,
    memory: Memory,
    hasher: KeyHasher,
}

impl LayeredBloomFilter {
    /// An empty filter of `layers` layers, each for `capacity` keys at rate `fpr`.
    pub fn new(capacity: u64, fpr: f64, layers: usize, hasher: KeyHasher) -> Result<Self> {
        if !(1..=MAX_PLANES).contains(&layers) {
            return Err(Error::Parameter(format!("layers must be between 1 and {MAX_PLANES}, got {layers}")));
        }
        let (lines, per_column) = blocked::smallest_lines(capacity, fpr)?;
        let planes = Planes::new(layers, per_column).ok_or_else(|| Error::parameter("layers do not fit"))?;
        let words = planes.words(lines).unwrap_or(u64::MAX);
        let load = Load::new(capacity, fpr)?;
        Ok(LayeredBloomFilter { load, planes, lines, memory: Memory::zeroed(words)?, hasher })
    }

    /// Number of layers.
    pub fn layers(&self) -> usize {
        self.planes.planes()
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
        (0..self.layers()).map(|layer| self.items(layer)).collect()
    }

    fn law(&self) -> Lanes {
        blocked::law(self.lines, self.planes.num_hashes() / 4)
    }

    fn items(&self, layer: usize) -> f64 {
        self.law().items(self.planes.ones(self.memory.words(), layer) as f64 / (self.lines as f64 * 512.0))
    }

    #[inline(always)]
    fn deepen(&mut self, hashes: &[u64], mut tell: impl FnMut(usize, bool)) -> Result<()> {
        let mut new = 0;
        let words = self.memory.words_mut().ok_or_else(Error::read_only)?;
        self.planes.deepen(words, hashes, |i, depth| {
            new += u64::from(depth == 0);
            tell(i, depth == 0);
        });
        self.load.added = self.load.added.saturating_add(new);
        Ok(())
    }
}

impl Sizable for LayeredBloomFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        Self::new(capacity, fpr, LAYERS, hasher)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        Ok(blocked::smallest_lines(capacity, fpr)?.0.saturating_mul(64 * LAYERS as u64))
    }
}

impl Estimating for LayeredBloomFilter {
    /// From the bits of the first layer, which holds every key.
    fn approx_count(&self) -> (f64, f64) {
        let items = self.items(0);
        (items, self.law().items_sd(items))
    }
}

impl Countable for LayeredBloomFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        self.depth_hash(hash)
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        assert!(hashes.len() == counts.len());
        self.planes.depths(self.memory.words(), hashes, |i, depth| counts[i] = depth as u64);
    }
}

impl Filter for LayeredBloomFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
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

    /// Rate of the first layer, which `in` asks.
    fn fpr(&self) -> f64 {
        let items = self.items(0);
        if items.is_finite() { self.law().fpr(items) } else { 1.0 }
    }

    fn fill(&self) -> f64 {
        crate::cells::bits::count_ones(self.memory.words()) as f64 / (self.memory.len_bytes() as f64 * 8.0)
    }

    fn nbytes(&self) -> u64 {
        self.memory.len_bytes() as u64
    }

    fn estimated(&self) -> Option<(f64, f64)> {
        Some(self.approx_count())
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        let (approx, sd) = self.approx_count();
        vec![
            ("capacity", Value::Number(self.load.capacity)),
            ("target_fpr", Value::Real(self.load.target_fpr)),
            ("num_added", Value::Number(self.load.added)),
            ("approx_count", Value::Real(approx)),
            ("approx_count_sd", Value::Real(sd)),
            ("fpr", Value::Real(self.fpr())),
            ("fill", Value::Real(self.fill())),
            ("layers", Value::Number(self.layers() as u64)),
            ("num_bits", Value::Number(self.memory.len_bytes() as u64 * 8)),
            ("num_hashes", Value::Number(u64::from(self.planes.num_hashes()))),
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("nbytes", Value::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(LAYERED, Scheme::Columns as u16, &self.hasher);
        self.load.describe(&mut header, 0);
        header.set(tag::PLANES, 0, self.layers() as u64);
        header.set(tag::LINES, 0, self.lines);
        header.set(tag::NUM_HASHES, 0, u64::from(self.planes.num_hashes()));
        Container { header, sections: vec![Section { kind: kind::PLANES, index: 0, bytes: self.memory.bytes() }] }
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(LayeredBloomFilter { memory: self.memory.try_clone()?, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        (self.planes, self.lines, self.load.capacity) == (other.planes, other.lines, other.load.capacity)
            && self.load.target_fpr == other.load.target_fpr
            && self.hasher.seed() == other.hasher.seed()
            && self.hasher.secret_fingerprint() == other.hasher.secret_fingerprint()
            && self.memory.words() == other.memory.words()
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

    fn clear(&mut self) -> Result<()> {
        self.memory.words_mut().ok_or_else(Error::read_only)?.fill(0);
        self.load.clear();
        Ok(())
    }
}

impl Loadable for LayeredBloomFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        let load = Load::restore(header, 0)?;
        let damaged = || Error::format("the file holds impossible layers; it is damaged");
        let layers = usize::try_from(header.get(tag::PLANES, 0)?).map_err(|_| damaged())?;
        let num_hashes = u32::try_from(header.get(tag::NUM_HASHES, 0)?).map_err(|_| damaged())?;
        let planes = Planes::new(layers, num_hashes / 4).filter(|_| num_hashes.is_multiple_of(4));
        let planes = planes.ok_or_else(damaged)?;
        let lines = header.get(tag::LINES, 0)?;
        let words = planes.words(lines).filter(|&words| words > 0).ok_or_else(damaged)?;
        if header.params.len() != load::PARAMS + PARAMS {
            return Err(Error::format("the file holds parameters that no LayeredBloomFilter has; it is damaged"));
        }
        if header.scheme != Scheme::Columns as u16 {
            return Err(Error::format("the file names a scheme that layers do not use; use a newer release"));
        }
        Ok(LayeredBloomFilter { load, planes, lines, memory: memory(kind::PLANES, 0, words)?, hasher })
    }
}

#[cfg(test)]
mod tests {
    use super::super::valued::tests::{hash, reload};
    use super::*;

    #[test]
    fn depth_is_never_below_the_count_and_seldom_above() {
        for layers in [1, 2, 4, 9] {
            let make = || LayeredBloomFilter::new(3000, 0.01, layers, KeyHasher::seeded(0)).unwrap();
            let (mut filter, mut single) = (make(), make());
            let mut counts = vec![0usize; 3000];
            let keys: Vec<u64> = (0..9000).map(|i| hash(1 << 40 | i) % 3000).collect();
            keys.iter().for_each(|&key| counts[key as usize] += 1);
            let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
            let mut new = vec![0; hashes.len()];
            filter.add_hashes(&hashes, Some(&mut new)).unwrap();
            let told: Vec<u8> = hashes.iter().map(|&h| u8::from(single.add_hash(h).unwrap())).collect();
            assert!(new == told && single.same_as(&filter) && single.num_added() == filter.num_added());
            let mut over = 0;
            for (key, &count) in counts.iter().enumerate() {
                let depth = filter.depth_hash(hash(key as u64)) as usize;
                assert!(depth >= count.min(layers));
                over += usize::from(depth > count.min(layers));
            }
            assert!(over < 80, "{layers}: {over}");
            assert!(reload(&filter, LayeredBloomFilter::load).same_as(&filter));
        }
    }

    #[test]
    fn a_false_answer_of_one_layer_is_not_repeated_in_the_next() {
        // Every key is in both layers; a key in neither that the first reports must pass the second, too.
        let mut filter = LayeredBloomFilter::new(20_000, 0.1, 2, KeyHasher::seeded(0)).unwrap();
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
