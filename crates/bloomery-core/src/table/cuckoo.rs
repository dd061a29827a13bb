//! [`CuckooFilter`]: a table of fingerprints that moves what it holds until there is room.
//!
//! Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo filter: practically better than Bloom", 2014.
//! Any number of buckets: see [`super::places`] for the rule.
//!
//! Every add stores a fingerprint, also that of a key which seems to be there: two keys may share
//! fingerprint and buckets, and with one copy for both, removing one would deny the other. So the
//! table is a multiset, and holds at most 2b equal fingerprints.
//!
//! A fingerprint that finds no room within 500 moves ([`super::moves`]) waits in the stash: no key is ever lost.
//! With the stash taken, adds are refused until a removal has made room. Which slot a move empties
//! follows from the hash of the key alone, so that equal operations give equal bytes.

use super::buckets::Buckets;
use super::moves::{Refused, Stash, Table, count, has};
use super::places::Places;
use super::shape::{CuckooShape, Kernel};
use crate::cells::Memory;
use crate::compat::Differences;
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::filter::{Addable, Countable, Fact, Filter, Loadable, Mergeable, Removable, Sizable};
use crate::key::KeyHasher;
use crate::load::{self, Load, load_answers, load_takes};
use crate::registry::CUCKOO;
use crate::sizing::check_fpr;

/// An approximate multiset with removal.
pub struct CuckooFilter {
    shape: CuckooShape,
    kernel: Kernel,
    places: Places,
    memory: Memory,
    stash: Stash,
    hasher: KeyHasher,
    load: Load,
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

    fn with_memory(shape: CuckooShape, load: Load, hasher: KeyHasher, memory: Memory) -> Result<Self> {
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

    fn refusal(&self, why: &Refused) -> Error {
        match why {
            Refused::Full => Error::Capacity(format!(
                "the filter is full: {} keys in {} slots; remove keys or build one with a larger capacity",
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

    /// Adds `hashes` through `tell`, up to the first that is refused; the second number tells how
    /// many were stored.
    fn add_each(&mut self, hashes: &[u64], mut tell: impl FnMut(usize, bool)) -> Result<()> {
        let (places, bucket_size, load) = (self.places, self.shape.bucket_size, &mut self.load);
        let base = self.memory.words().as_ptr();
        let words = self.memory.words_mut().ok_or_else(Error::read_only)?;
        let mut refused = None;
        let stopped = dispatch!(self.kernel, rule => {
            let mut table = Table { rule, places, words, stash: &mut self.stash, bucket_size };
            places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| match table.add(spot, hashes[i]) {
                Ok(new) => {
                    load.count(true);
                    tell(i, new);
                    Ok(())
                }
                Err(why) => {
                    refused = Some(why);
                    Err(Error::read_only())
                }
            })
        });
        match refused {
            Some(why) => Err(self.refusal(&why)),
            None => stopped,
        }
    }
}

impl Filter for CuckooFilter {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        let spot = self.places.of(hash);
        dispatch!(self.kernel, rule => has(rule, self.memory.words(), self.stash, spot))
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        let (words, stash) = (self.memory.words(), self.stash);
        let found = &mut found[..hashes.len()];
        let base = words.as_ptr();
        let _ = dispatch!(self.kernel, rule => {
            self.places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                found[i] = u8::from(has(rule, words, stash, spot));
                Ok(())
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

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        vec![
            ("capacity", Fact::Number(self.load.capacity)),
            ("target_fpr", Fact::Real(self.load.target_fpr)),
            ("num_added", Fact::Number(self.load.added)),
            ("fpr", Fact::Real(self.fpr())),
            ("fill", Fact::Real(self.fill())),
            ("num_buckets", Fact::Number(self.shape.buckets)),
            ("bucket_size", Fact::Number(u64::from(self.shape.bucket_size))),
            ("fingerprint_bits", Fact::Number(u64::from(self.shape.fingerprint_bits))),
            ("semi_sort", Fact::Flag(self.shape.semi_sort)),
            ("full", Fact::Flag(self.is_full())),
            ("seed", Fact::Number(self.hasher.seed())),
            ("keyed", Fact::Flag(self.hasher.is_keyed())),
            ("mapped", Fact::Flag(self.memory.is_mapped())),
            ("nbytes", Fact::Number(self.nbytes())),
        ]
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(CUCKOO, 0, &self.hasher);
        self.load.describe(&mut header, 0);
        header.set(tag::NUM_BUCKETS, 0, self.shape.buckets);
        header.set(tag::BUCKET_SIZE, 0, u64::from(self.shape.bucket_size));
        header.set(tag::FINGERPRINT_BITS, 0, u64::from(self.shape.fingerprint_bits));
        header.set(tag::SEMI_SORT, 0, u64::from(self.shape.semi_sort));
        header.set(tag::STASH_FINGERPRINT, 0, self.stash.fp);
        header.set(tag::STASH_BUCKET, 0, self.stash.bucket);
        Container { header, sections: vec![Section { kind: kind::FINGERPRINTS, index: 0, bytes: self.memory.bytes() }] }
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
        let (places, bucket_size) = (self.places, self.shape.bucket_size);
        let words = self.memory.words_mut().ok_or_else(Error::read_only)?;
        let added = dispatch!(self.kernel, rule => {
            Table { rule, places, words, stash: &mut self.stash, bucket_size }.add(places.of(hash), hash)
        });
        match added {
            Ok(new) => {
                self.load.count(true);
                Ok(new)
            }
            Err(why) => Err(self.refusal(&why)),
        }
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        match new {
            None => self.add_each(hashes, |_, _| {}),
            Some(new) => self.add_each(hashes, |i, fresh| new[i] = u8::from(fresh)),
        }
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
                load.added = load.added.saturating_sub(u64::from(was_there));
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
        let spot = self.places.of(hash);
        dispatch!(self.kernel, rule => count(rule, self.memory.words(), self.stash, spot))
    }

    fn count_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        let (words, stash) = (self.memory.words(), self.stash);
        let counts = &mut counts[..hashes.len()];
        let base = words.as_ptr();
        let _ = dispatch!(self.kernel, rule => {
            self.places.each(hashes, |bucket| rule.fetch(base, bucket), |i, spot| {
                counts[i] = count(rule, words, stash, spot);
                Ok(())
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
        let (mut memory, mut stash, places) = (self.memory.try_clone()?, self.stash, self.places);
        let bucket_size = self.shape.bucket_size;
        let theirs = other.memory.words();
        let words = memory.words_mut().ok_or_else(Error::read_only)?;
        let merged = dispatch!(self.kernel, rule => {
            let mut table = Table { rule, places, words, stash: &mut stash, bucket_size };
            let mut add = |fp: u64, at: u64, slot: u32| match fp {
                0 => Ok(true),
                fp => table.add(places.at(fp, at), fp << 32 ^ at << 3 ^ u64::from(slot)),
            };
            let slots = (0..self.shape.buckets).flat_map(|at| (0..bucket_size).map(move |slot| (at, slot)));
            let mut slots = slots.map(|(at, slot)| (rule.swap(&mut rule.load(theirs, at), slot, 0), at, slot));
            slots
                .try_for_each(|(fp, at, slot)| add(fp, at, slot).map(drop))
                .and_then(|()| add(other.stash.fp, other.stash.bucket, 0).map(drop))
        });
        merged.map_err(|_| {
            Error::Capacity(format!(
                "{} and {} keys do not fit together into {} slots; build filters with a larger capacity",
                self.load.added,
                other.load.added,
                self.shape.slots()
            ))
        })?;
        self.memory = memory;
        self.stash = stash;
        self.load.added = self.load.added.saturating_add(other.load.added);
        Ok(())
    }
}

/// Parameters of a file, besides those of [`Load`].
const PARAMS: usize = 6;

impl Loadable for CuckooFilter {
    fn load(
        header: &Header,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
        secret: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let hasher = header.hasher(secret)?;
        let small = |tag: u16| header.get(tag, 0).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let semi_sort = small(tag::SEMI_SORT)?;
        let shape = CuckooShape {
            buckets: header.get(tag::NUM_BUCKETS, 0)?,
            bucket_size: small(tag::BUCKET_SIZE)?,
            fingerprint_bits: small(tag::FINGERPRINT_BITS)?,
            semi_sort: semi_sort == 1,
        };
        let shape = shape.check().map_err(Error::as_format)?;
        let load = Load::restore(header, 0)?;
        let stash = Stash { fp: header.get(tag::STASH_FINGERPRINT, 0)?, bucket: header.get(tag::STASH_BUCKET, 0)? };
        check_fpr(load.target_fpr).map_err(Error::as_format)?;
        if header.params.len() != load::PARAMS + PARAMS || header.scheme != 0 || semi_sort > 1 {
            return Err(Error::format("the file holds parameters that no CuckooFilter has; it is damaged"));
        }
        if stash.fp >> shape.fingerprint_bits != 0
            || stash.bucket >= shape.buckets
            || (stash.fp == 0 && stash.bucket != 0)
        {
            return Err(Error::format("the file's stash lies outside of its table; it is damaged"));
        }
        let memory = memory(kind::FINGERPRINTS, 0, shape.words())?;
        if has_bits_past(memory.words(), shape.bits()) {
            return Err(Error::format("the file has bits set beyond its buckets; it is damaged"));
        }
        Ok(CuckooFilter { stash, ..Self::with_memory(shape, load, hasher, memory)? })
    }
}

/// True when a bit from number `bits` on is set; at most a few words lie there.
fn has_bits_past(words: &[u64], bits: u64) -> bool {
    let (last, used) = ((bits / 64) as usize, bits % 64);
    let partial = words.get(last).is_some_and(|word| u64::from_le(*word) >> used != 0);
    partial || words.iter().skip(last + 1).any(|&word| word != 0)
}

#[cfg(test)]
#[path = "cuckoo_tests.rs"]
mod tests;
