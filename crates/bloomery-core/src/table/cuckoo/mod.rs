//! [`CuckooFilter`]: a table of fingerprints that moves what it holds until there is room.
//!
//! Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo filter: practically better than Bloom", 2014.
//! Any number of buckets: see [`self::places`] for the rule.
//!
//! Every add stores a fingerprint, also that of a key which seems to be there: two keys may share
//! fingerprint and buckets, and with one copy for both, removing one would deny the other. So the
//! table is a multiset, and holds at most 2b equal fingerprints.
//!
//! A fingerprint that finds no room within 500 moves ([`self::moves`]) waits in the stash: no key is ever lost.
//! With the stash taken, adds are refused until a removal has made room. Which slot a move empties
//! follows from the hash of the key alone, so that equal operations give equal bytes.

pub mod buckets;
pub mod moves;
pub mod places;
pub mod shape;
pub(crate) mod stored;

pub use self::shape::CuckooShape;

use self::buckets::Buckets;
use self::moves::{Refused, Stash, Table, count, has};
use self::places::{Places, Spot};
use self::shape::Kernel;
use crate::cells::Memory;
use crate::container::Container;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::structure::differences::Differences;
use crate::structure::load::{Load, load_answers, load_takes};
use crate::structure::{Addable, Countable, Filter, Mergeable, Removable, Sizable, Value};

/// An approximate multiset with removal.
pub struct CuckooFilter {
    pub(crate) shape: CuckooShape,
    kernel: Kernel,
    places: Places,
    pub(crate) memory: Memory,
    pub(crate) stash: Stash,
    pub(crate) hasher: KeyHasher,
    pub(crate) load: Load,
}

#[rustfmt::skip] // one arm a line
/// Runs `$work` with the bucket rule of `$kernel` as `$rule`.
macro_rules! dispatch {
    ($kernel:expr, $rule:ident => $work:expr) => {
        match $kernel {
            Kernel::Lanes($rule) => $work,
            Kernel::Slots($rule) => $work,
            Kernel::SemiSorted($rule) => $work,
        }
    };
}

impl CuckooFilter {
    /// An empty filter of `shape`.
    pub fn new(shape: CuckooShape, capacity: u64, target_fpr: f64, hasher: KeyHasher) -> Result<Self> {
        let load = Load::new(capacity, target_fpr)?;
        Self::with_memory(shape, load, hasher, Memory::zeroed(shape.check()?.words())?)
    }

    pub(crate) fn with_memory(shape: CuckooShape, load: Load, hasher: KeyHasher, memory: Memory) -> Result<Self> {
        Ok(CuckooFilter {
            kernel: shape.check()?.kernel()?,
            places: Places::new(shape.buckets, shape.fingerprint_bits),
            stash: Stash::default(),
            shape,
            memory,
            hasher,
            load,
        })
    }

    /// Buckets and fingerprints.
    pub fn shape(&self) -> &CuckooShape {
        &self.shape
    }

    /// True when the stash is taken: adds are refused until a key is removed.
    pub fn is_full(&self) -> bool {
        self.stash.fp != 0
    }

    /// Fingerprints held, counted; with the one in the stash.
    fn items(&self) -> u64 {
        let words = self.memory.words();
        let free: u64 = dispatch!(self.kernel, rule => {
            (0..self.shape.buckets).map(|i| u64::from(rule.count(rule.load(words, i), 0))).sum()
        });
        self.shape.slots() - free + u64::from(self.is_full())
    }

    fn refusal(&self, why: Refused) -> Error {
        match why {
            Refused::ReadOnly => Error::read_only(),
            Refused::Full => Error::Capacity(format!(
                "the filter is full: {} keys in {} slots; remove keys or build one with a larger capacity (or a \
                 DynamicCuckooFilter, which grows)",
                self.load.added,
                self.shape.slots()
            )),
            Refused::Copies => Error::Capacity(format!(
                "the filter holds {} copies of this key, as many as its two buckets have slots; it cannot be added \
                 again before it is removed (ask `in` first to store each key once)",
                2 * self.shape.bucket_size
            )),
        }
    }

    /// True when a fingerprint equal to that of `spot` is stored.
    #[inline(always)]
    pub(crate) fn holds(&self, spot: Spot) -> bool {
        dispatch!(self.kernel, rule => has(rule, self.memory.words(), self.stash, spot))
    }

    /// Number of fingerprints equal to that of `spot`.
    pub(crate) fn copies(&self, spot: Spot) -> u64 {
        dispatch!(self.kernel, rule => count(rule, self.memory.words(), self.stash, spot))
    }

    /// Stores a fingerprint, in slots that `turn` decides; true when no equal one was there.
    #[inline(always)]
    pub(crate) fn store(&mut self, spot: Spot, turn: u64) -> std::result::Result<bool, Refused> {
        let (places, bucket_size) = (self.places, self.shape.bucket_size);
        let words = self.memory.words_mut().ok_or(Refused::ReadOnly)?;
        let new = dispatch!(self.kernel, rule => {
            Table { rule, places, words, stash: &mut self.stash, bucket_size }.add(spot, turn)
        })?;
        self.load.count(true);
        Ok(new)
    }

    /// Stores the fingerprints of `hashes` in order, up to the first that is refused; `tell` hears of
    /// each that was stored and whether no equal one was there.
    pub(crate) fn store_each(
        &mut self,
        hashes: &[u64],
        mut tell: impl FnMut(usize, bool),
    ) -> std::result::Result<(), Refused> {
        let (places, bucket_size, load) = (self.places, self.shape.bucket_size, &mut self.load);
        let base = self.memory.words().as_ptr();
        let words = self.memory.words_mut().ok_or(Refused::ReadOnly)?;
        dispatch!(self.kernel, rule => {
            let mut table = Table { rule, places, words, stash: &mut self.stash, bucket_size };
            places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                let new = table.add(spot, hashes[i])?;
                load.count(true);
                tell(i, new);
                Ok(())
            })
        })
    }

    /// Visits every fingerprint, the one in the stash last, up to the first error: where it may lie,
    /// and a turn by which to store it in another table.
    pub(crate) fn visit<E>(
        &self,
        mut visit: impl FnMut(Spot, u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let words = self.memory.words();
        dispatch!(self.kernel, rule => {
            for at in 0..self.shape.buckets {
                let mut bucket = rule.load(words, at);
                for slot in 0..self.shape.bucket_size {
                    match rule.swap(&mut bucket, slot, 0) {
                        0 => {}
                        fp => visit(self.places.at(fp, at), turn(fp, at, slot))?,
                    }
                }
            }
        });
        match self.stash {
            Stash { fp: 0, .. } => Ok(()),
            Stash { fp, bucket } => visit(self.places.at(fp, bucket), turn(fp, bucket, 0)),
        }
    }

    /// Offers every fingerprint to `take`, the one in the stash first, and gives up those that it
    /// takes; true when nothing is left. With the stash refused it ends, as a table with room does
    /// not leave its stash taken.
    pub(crate) fn hand_over(&mut self, mut take: impl FnMut(Spot, u64) -> bool) -> bool {
        let (places, load) = (self.places, &mut self.load);
        let Some(words) = self.memory.words_mut() else { return false };
        let Stash { fp, bucket } = self.stash;
        if fp != 0 {
            if !take(places.at(fp, bucket), turn(fp, bucket, 0)) {
                return false;
            }
            self.stash = Stash::default();
            load.uncount(true);
        }
        let mut empty = true;
        dispatch!(self.kernel, rule => {
            for at in 0..self.shape.buckets {
                for slot in 0..self.shape.bucket_size {
                    let mut bucket = rule.load(words, at);
                    let fp = rule.swap(&mut bucket, slot, 0);
                    if fp != 0 && take(places.at(fp, at), turn(fp, at, slot)) {
                        rule.store(words, at, bucket);
                        load.uncount(true);
                    } else {
                        empty &= fp == 0;
                    }
                }
            }
        });
        empty
    }
}

/// Decides which slots are emptied when a fingerprint found in a table is stored in another.
#[inline(always)]
fn turn(fp: u64, bucket: u64, slot: u32) -> u64 {
    fp << 32 ^ bucket << 3 ^ u64::from(slot)
}

impl Filter for CuckooFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.holds(self.places.of(hash))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        let (words, stash) = (self.memory.words(), self.stash);
        let found = &mut found[..hashes.len()];
        let base = words.as_ptr();
        let _ = dispatch!(self.kernel, rule => {
            self.places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                found[i] = u8::from(has(rule, words, stash, spot));
                Ok::<(), Refused>(())
            })
        });
    }

    load_answers!(added);

    fn fpr(&self) -> f64 {
        self.shape.fpr(self.items() as f64)
    }

    fn fill(&self) -> f64 {
        (self.items() - u64::from(self.is_full())) as f64 / self.shape.slots() as f64
    }

    fn nbytes(&self) -> u64 {
        self.memory.len_bytes() as u64
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("capacity", Value::Number(self.load.capacity)),
            ("target_fpr", Value::Real(self.load.target_fpr)),
            ("num_added", Value::Number(self.load.added)),
            ("fpr", Value::Real(self.fpr())),
            ("fill", Value::Real(self.fill())),
            ("num_buckets", Value::Number(self.shape.buckets)),
            ("bucket_size", Value::Number(u64::from(self.shape.bucket_size))),
            ("fingerprint_bits", Value::Number(u64::from(self.shape.fingerprint_bits))),
            ("semi_sort", Value::Flag(self.shape.semi_sort)),
            ("full", Value::Flag(self.is_full())),
            ("seed", Value::Number(self.hasher.seed())),
            ("keyed", Value::Flag(self.hasher.is_keyed())),
            ("mapped", Value::Flag(self.memory.is_mapped())),
            ("nbytes", Value::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        stored::container(self)
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(CuckooFilter { memory: self.memory.try_clone()?, ..*self })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.check_compatible(other).is_ok() && self.stash == other.stash && self.memory.words() == other.memory.words()
    }
}

impl Sizable for CuckooFilter {
    fn for_capacity(capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        Self::new(CuckooShape::for_capacity(capacity, fpr, 4, None, false)?, capacity, fpr, hasher)
    }

    fn nbytes_for(capacity: u64, fpr: f64) -> Result<u64> {
        Ok(CuckooShape::for_capacity(capacity, fpr, 4, None, false)?.words() * 8)
    }
}

impl Addable for CuckooFilter {
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        self.store(self.places.of(hash), hash).map_err(|why| self.refusal(why))
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        let added = match new {
            None => self.store_each(hashes, |_, _| {}),
            Some(new) => self.store_each(hashes, |i, fresh| new[i] = u8::from(fresh)),
        };
        added.map_err(|why| self.refusal(why))
    }

    load_takes!(full, memory);

    fn clear(&mut self) -> Result<()> {
        self.memory.words_mut().ok_or_else(Error::read_only)?.fill(0);
        self.stash = Stash::default();
        self.load.clear();
        Ok(())
    }
}

impl Removable for CuckooFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        let mut removed = [0];
        self.remove_hashes(&[hash], Some(&mut removed))?;
        Ok(removed[0] == 1)
    }

    fn remove_hashes(&mut self, hashes: &[u64], mut removed: Option<&mut [u8]>) -> Result<()> {
        let (places, bucket_size, load) = (self.places, self.shape.bucket_size, &mut self.load);
        let base = self.memory.words().as_ptr();
        let words = self.memory.words_mut().ok_or_else(Error::read_only)?;
        dispatch!(self.kernel, rule => {
            let mut table = Table { rule, places, words, stash: &mut self.stash, bucket_size };
            places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                let was_there = table.remove(spot);
                load.uncount(was_there);
                if let Some(removed) = removed.as_deref_mut() {
                    removed[i] = u8::from(was_there);
                }
                Ok(())
            })
        })
    }
}

impl Countable for CuckooFilter {
    fn count_hash(&self, hash: u64) -> u64 {
        self.copies(self.places.of(hash))
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        let (words, stash) = (self.memory.words(), self.stash);
        let counts = &mut counts[..hashes.len()];
        let base = words.as_ptr();
        let _ = dispatch!(self.kernel, rule => {
            self.places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                counts[i] = count(rule, words, stash, spot);
                Ok::<(), Refused>(())
            })
        });
    }
}

impl Mergeable for CuckooFilter {
    fn check_compatible(&self, other: &Self) -> Result<()> {
        let (a, b) = (&self.shape, &other.shape);
        Differences::of(&self.hasher, &other.hasher)
            .field("num_buckets", a.buckets, b.buckets)
            .field("bucket_size", a.bucket_size, b.bucket_size)
            .field("fingerprint_bits", a.fingerprint_bits, b.fingerprint_bits)
            .field("semi_sort", a.semi_sort, b.semi_sort)
            .check()
    }

    /// The union of two multisets: every fingerprint of `other` is stored again, as its bucket says
    /// where it may lie. `Error::Capacity` when they do not all fit.
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_compatible(other)?;
        if self.memory.is_read_only() {
            return Err(Error::read_only());
        }
        let mut merged = self.try_clone()?;
        other.visit(|spot, turn| merged.store(spot, turn).map(drop)).map_err(|_| {
            Error::Capacity(format!(
                "{} and {} keys do not fit together into {} slots; build filters with a larger capacity",
                self.load.added,
                other.load.added,
                self.shape.slots()
            ))
        })?;
        *self = merged;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
