//! [`BloomFilter`]: a shape, its memory, its hash, and the number of keys it has seen.
//!
//! Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970.

use std::path::Path;

use super::kernel::Kernel;
use super::shape::Shape;
use crate::cells::{LINE_WORDS, Memory, bits};
use crate::container::file::Writer;
use crate::container::{self, Container};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::scheme::lines::OneLine;
use crate::sizing::check_fpr;
use crate::structure::batch::useful_threads;
use crate::structure::{Addable, Estimating, Filter, HashSource, Mergeable, Sizable, Value};

/// An approximate set: never says no wrongly, says yes wrongly at a known rate.
pub struct BloomFilter {
    pub(super) shape: Shape,
    pub(super) kernel: Kernel,
    /// Single looks of the layouts whose keys have one line.
    one_line: Option<OneLine>,
    pub(super) memory: Memory,
    /// Words in use, `shape.words()`.
    words: usize,
    pub(super) hasher: KeyHasher,
    pub(super) capacity: u64,
    pub(super) target_fpr: f64,
    pub(super) count: u64,
    pub(super) strict: bool,
    pub(super) warned: bool,
    /// The file behind a filter opened for writing in place.
    pub(super) writer: Option<Writer>,
    /// The file was let go of: no more writing through its mapping.
    pub(super) closed: bool,
}

#[cold]
fn refuse_writing(closed: bool) -> Error {
    Error::ReadOnly(match closed {
        true => "the filter is closed; open its file again".into(),
        false => "the filter is mapped read-only; open it with mode=\"r+\" or take a copy()".into(),
    })
}

/// [`Filter::look`] of layouts without lines: a call of its own, for the registers.
#[inline(never)]
extern "C" fn look_at_probes(filter: &BloomFilter, hash: u64) -> i32 {
    i32::from(filter.contains_hash(hash))
}

impl BloomFilter {
    /// An empty filter of `shape`.
    pub fn new(shape: Shape, capacity: u64, target_fpr: f64, hasher: KeyHasher, strict: bool) -> Result<Self> {
        let memory = Memory::zeroed(shape.words())?;
        Self::with_memory(shape, capacity, target_fpr, hasher, strict, memory)
    }

    /// A filter over existing memory, which must be as long as the shape asks.
    pub(super) fn with_memory(
        shape: Shape,
        capacity: u64,
        target_fpr: f64,
        hasher: KeyHasher,
        strict: bool,
        memory: Memory,
    ) -> Result<Self> {
        check_fpr(target_fpr)?;
        if capacity == 0 {
            return Err(Error::parameter("capacity must be at least 1, got 0"));
        }
        let kernel = Kernel::new(&shape.check()?);
        Ok(BloomFilter {
            one_line: kernel.one_line(shape.words() as usize),
            kernel,
            shape,
            words: shape.words() as usize,
            memory,
            hasher,
            capacity,
            target_fpr,
            count: 0,
            strict,
            warned: false,
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
        match self.memory.words_mut() {
            Some(all) if !closed => Ok(&mut all[..words]),
            _ => Err(refuse_writing(closed)),
        }
    }

    /// Bits, probes, layout and scheme.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// True when adding past capacity is refused.
    pub fn strict(&self) -> bool {
        self.strict
    }

    /// True when the bits live in a file.
    pub fn is_mapped(&self) -> bool {
        self.memory.is_mapped()
    }

    /// Number of set bits.
    pub fn ones(&self) -> u64 {
        bits::count_ones(self.words())
    }

    /// After bits came from elsewhere, the count is what the bits say.
    pub(super) fn recount(&mut self) {
        self.count = self.approx_count().0.round().min(u64::MAX as f64) as u64;
    }

    fn refuse_overfull(&self) -> Error {
        Error::Capacity(format!(
            "the filter holds {} keys, its capacity is {}; build a larger one or pass strict=False",
            self.count, self.capacity
        ))
    }

    fn add_strictly(&mut self, hash: u64) -> Result<bool> {
        if self.count >= self.capacity && !self.contains_hash(hash) {
            return Err(self.refuse_overfull());
        }
        let kernel = self.kernel;
        let new = kernel.add(self.words_mut()?, hash);
        self.count += u64::from(new);
        Ok(new)
    }

    fn crowded(&self, coming: usize) -> bool {
        self.strict && self.count.saturating_add(coming as u64) > self.capacity
    }
}

impl Sizable for BloomFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        BloomFilter::new(Shape::auto(capacity, fpr)?, capacity, fpr, hasher, false)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        Ok(Shape::auto(capacity, fpr)?.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }
}

impl Estimating for BloomFilter {
    /// From the share of set bits (Swamidass and Baldi, 2007); infinite when all bits are set.
    fn approx_count(&self) -> (f64, f64) {
        let law = self.shape.law();
        let items = law.items(self.fill());
        (items, law.items_sd(items))
    }
}

impl Filter for BloomFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
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

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    fn num_added(&self) -> u64 {
        self.count
    }

    fn fpr(&self) -> f64 {
        let law = self.shape.law();
        let items = law.items(self.fill());
        if items.is_finite() { law.fpr(items) } else { 1.0 }
    }

    fn fill(&self) -> f64 {
        self.ones() as f64 / self.shape.num_bits as f64
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
            ("capacity", Value::Number(self.capacity)),
            ("target_fpr", Value::Real(self.target_fpr)),
            ("num_added", Value::Number(self.count)),
            ("approx_count", Value::Real(approx)),
            ("approx_count_sd", Value::Real(sd)),
            ("fpr", Value::Real(self.fpr())),
            ("fill", Value::Real(self.fill())),
            ("num_bits", Value::Number(self.shape.num_bits)),
            ("num_hashes", Value::Number(u64::from(self.shape.num_hashes))),
            ("layout", Value::Text(self.shape.layout.name().into())),
            ("scheme", Value::Text(self.shape.scheme.name().into())),
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("strict", Value::Flag(self.strict)),
            ("mapped", Value::Flag(self.memory.is_mapped())),
            ("nbytes", Value::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        super::stored::container(self)
    }

    fn save(&self, path: &Path) -> Result<()> {
        // Replacing the file that is written in place would leave the writer with the old one.
        if self.writer.as_ref().is_some_and(|writer| writer.holds(path)) {
            return self.flush();
        }
        container::save(&super::stored::container(self), path)
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(BloomFilter {
            shape: self.shape,
            kernel: self.kernel,
            one_line: self.one_line,
            words: self.words,
            memory: self.memory.try_clone()?,
            hasher: self.hasher,
            capacity: self.capacity,
            target_fpr: self.target_fpr,
            count: self.count,
            strict: self.strict,
            warned: self.warned,
            writer: None,
            closed: false,
        })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.check_compatible(other).is_ok() && self.words() == other.words()
    }
}

impl Addable for BloomFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        if self.strict {
            return self.add_strictly(hash);
        }
        let kernel = self.kernel;
        let new = kernel.add(self.words_mut()?, hash);
        self.count += u64::from(new);
        Ok(new)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        if self.crowded(hashes.len()) {
            let mut new = new;
            for (i, &hash) in hashes.iter().enumerate() {
                let fresh = self.add_strictly(hash)?;
                if let Some(new) = new.as_deref_mut() {
                    new[i] = u8::from(fresh);
                }
            }
            return Ok(());
        }
        let kernel = self.kernel;
        let count = kernel.add_all(self.words_mut()?, hashes, new);
        self.count += count;
        Ok(())
    }

    fn add_source(&mut self, source: &dyn HashSource, threads: usize, new: Option<&mut [u8]>) -> Result<()> {
        self.expect_adds(source.len());
        let kernel = self.kernel;
        let threads = useful_threads(threads, source.len());
        if threads == 1 || self.crowded(source.len()) {
            return self.add_in_turn(source, new);
        }
        let count = kernel.add_threads(self.words_mut()?, source, threads, new);
        self.count += count;
        Ok(())
    }

    fn expect_adds(&mut self, adds: usize) {
        self.memory.expect_writes(adds);
    }

    #[inline(always)]
    fn is_read_only(&self) -> bool {
        self.closed || self.memory.is_read_only()
    }

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        (self.count < self.capacity || (self.warned && !self.strict)) && !self.is_read_only()
    }

    #[inline(always)]
    fn add_quietly(&mut self, hash: u64) -> Option<bool> {
        if self.count >= self.capacity && (self.strict || !self.warned) {
            return None;
        }
        let kernel = self.kernel;
        let new = kernel.add(self.words_mut().ok()?, hash);
        self.count += u64::from(new);
        Some(new)
    }

    #[inline(always)]
    fn newly_overfull(&mut self) -> bool {
        let newly = self.count > self.capacity && !self.warned;
        self.warned |= newly;
        newly
    }

    fn clear(&mut self) -> Result<()> {
        self.words_mut()?.fill(0);
        self.count = 0;
        self.warned = false;
        Ok(())
    }
}
