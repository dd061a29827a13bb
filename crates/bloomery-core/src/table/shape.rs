//! The shape of a cuckoo table: its law, and the smallest table that keeps a promise.
//!
//! A key is compared with the fingerprints of two buckets: at load a (items a slot) with 2 b a of
//! them in the mean, each equal by chance with probability 1 / (2^f - 1):
//!
//! ```text
//! rate = 1 - (1 - 1 / (2^f - 1))^(2 b a)
//! ```
//!
//! Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo filter: practically better than Bloom", 2014.

use super::buckets::{Lanes, SemiSorted, Slots};
use crate::cells::LINE_WORDS;
use crate::cells::memory::ADDRESSABLE_BYTES;
use crate::error::{Error, Result};
use crate::sizing::{check_fpr, check_reachable, shown};

/// Narrowest and widest fingerprint.
pub const FINGERPRINT_BITS: std::ops::RangeInclusive<u32> = 4..=32;
/// Expected number of overfull pairs of buckets that a table may have at capacity.
const OVERFULL: f64 = 1e-3;
/// A bucket is read as words, of which the last may lie beyond the table.
const SPARE_WORDS: u64 = 2;

/// How many buckets, of how many fingerprints, of how many bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooShape {
    /// Buckets, any number.
    pub buckets: u64,
    /// b: 1, 2, 4 or 8.
    pub bucket_size: u32,
    /// f: 4 to 32.
    pub fingerprint_bits: u32,
    /// Buckets are stored sorted, a bit a slot shorter.
    pub semi_sort: bool,
}

/// What to do with a bucket, by the rule of the shape.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    /// Plain, at most 64 bits.
    Lanes(Lanes),
    /// Plain, wider.
    Slots(Slots),
    /// Semi-sorted.
    SemiSorted(SemiSorted),
}

impl CuckooShape {
    /// The smallest table for `capacity` keys at rate `fpr`; with `fingerprint_bits` given, the
    /// table of these whatever its rate.
    pub fn for_capacity(
        capacity: u64,
        fpr: f64,
        bucket_size: u32,
        fingerprint_bits: Option<u32>,
        semi_sort: bool,
    ) -> Result<Self> {
        check_fpr(fpr)?;
        if capacity == 0 {
            return Err(Error::parameter("capacity must be at least 1, got 0"));
        }
        let given = fingerprint_bits.unwrap_or(*FINGERPRINT_BITS.end());
        let widest = CuckooShape { buckets: 1, bucket_size, fingerprint_bits: given, semi_sort }.check()?;
        let shape = CuckooShape { buckets: buckets_for(capacity, bucket_size), ..widest };
        if fingerprint_bits.is_some() {
            return shape.check();
        }
        check_reachable(capacity, fpr)?;
        let items = capacity as f64;
        let narrowest = FINGERPRINT_BITS
            .map(|fingerprint_bits| CuckooShape { fingerprint_bits, ..shape })
            .find(|shape| shape.fpr(items) <= fpr && shape.overfull(items) <= OVERFULL);
        let least = shape.fpr(items);
        let shape = narrowest.ok_or_else(|| {
            Error::Parameter(format!(
                "fpr must be at least {least:.1e} with buckets of {bucket_size} (fingerprints have at most 32 bits), \
                 got {}; use BloomFilter for lower rates",
                shown(fpr)
            ))
        })?;
        shape.check()
    }

    /// Refuses what no table can be.
    pub fn check(self) -> Result<Self> {
        if !matches!(self.bucket_size, 1 | 2 | 4 | 8) {
            return Err(Error::Parameter(format!("bucket_size must be 1, 2, 4 or 8, got {}", self.bucket_size)));
        }
        if !FINGERPRINT_BITS.contains(&self.fingerprint_bits) {
            return Err(Error::Parameter(format!(
                "fingerprint_bits must be between 4 and 32, got {}",
                self.fingerprint_bits
            )));
        }
        if self.semi_sort && self.bucket_size != 4 {
            return Err(Error::Parameter(format!(
                "semi_sort needs a bucket_size of 4, got {}; leave one of them out",
                self.bucket_size
            )));
        }
        if self.buckets == 0 {
            return Err(Error::parameter("a table has at least 1 bucket, got 0"));
        }
        let bits = self.buckets.checked_mul(self.bucket_bits());
        if bits.is_none_or(|bits| bits / 8 >= ADDRESSABLE_BYTES) {
            return Err(Error::Memory(format!(
                "a table of {} buckets is beyond any machine; lower the capacity",
                self.buckets
            )));
        }
        Ok(self)
    }

    /// Bits of a bucket.
    fn bucket_bits(self) -> u64 {
        u64::from(self.bucket_size * (self.fingerprint_bits - u32::from(self.semi_sort)))
    }

    /// Bits of all buckets; the shape has been checked.
    pub fn bits(self) -> u64 {
        self.buckets * self.bucket_bits()
    }

    /// Words of memory; the shape has been checked.
    pub fn words(self) -> u64 {
        (self.bits().div_ceil(64) + SPARE_WORDS).next_multiple_of(LINE_WORDS as u64)
    }

    /// Slots of the table.
    pub fn slots(self) -> u64 {
        self.buckets.saturating_mul(u64::from(self.bucket_size))
    }

    /// Rate with `items` fingerprints in the table.
    pub fn fpr(self, items: f64) -> f64 {
        let compared = 2.0 * items / self.buckets as f64;
        let equal = 1.0 / ((1u64 << self.fingerprint_bits) - 1) as f64;
        -(compared * (-equal).ln_1p()).exp_m1()
    }

    /// Expected number of pairs of buckets with more equal fingerprints than slots, at `items`
    /// distinct keys: each of them would fill the stash.
    fn overfull(self, items: f64) -> f64 {
        let fps = ((1u64 << self.fingerprint_bits) - 1) as f64;
        let groups = self.buckets as f64 / 2.0 * fps;
        let (mean, slots) = (items / groups, 2 * self.bucket_size);
        // Poisson beyond 2b, by its first terms.
        let mut term = (-mean).exp();
        let mut sum = 0.0;
        for i in 1..=slots + 40 {
            term *= mean / f64::from(i);
            sum += if i > slots { term } else { 0.0 };
        }
        groups * sum
    }

    /// The loops of this shape, which has been checked.
    pub fn kernel(self) -> Result<Kernel> {
        let (slots, width) = (self.bucket_size, self.fingerprint_bits);
        let kernel = if self.semi_sort {
            SemiSorted::new(width).map(Kernel::SemiSorted)
        } else {
            Lanes::new(slots, width).map(Kernel::Lanes).or_else(|| Slots::new(slots, width).map(Kernel::Slots))
        };
        kernel.ok_or_else(|| Error::parameter("fingerprint_bits must be between 4 and 32"))
    }
}

/// Buckets for `capacity` keys: a load that the moving of keys reaches, less in small tables, where
/// chance has more of a say.
fn buckets_for(capacity: u64, bucket_size: u32) -> u64 {
    let load = match bucket_size {
        1 => 0.45,
        2 => 0.84,
        4 => 0.95,
        _ => 0.98,
    };
    let slots = capacity as f64 / load;
    ((slots / f64::from(bucket_size)).ceil() as u64).max(2)
}
