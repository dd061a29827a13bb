//! The shape of a cuckoo table, and the smallest that keeps a rate. Its laws are in [`fingerprints`].

use super::buckets::{Lanes, SemiSorted, Slots};
use crate::cells::LINE_WORDS;
use crate::cells::memory::ADDRESSABLE_BYTES;
use crate::error::{Error, Result};
use crate::sizing::{check_reachable, check_sized, fingerprints, format_rate};

/// Narrowest and widest fingerprint.
pub const FINGERPRINT_BITS: std::ops::RangeInclusive<u32> = 4..=32;
/// Narrowest fingerprint of a table that is sized by its rate: narrower ones link too few buckets.
const LEAST_SIZED: u32 = 8;
/// Expected number of overfull pairs of buckets that a table may have at capacity.
const OVERFULL: f64 = 1e-3;
/// A bucket is read as words, the last of which may lie beyond the table.
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
    /// Buckets are stored sorted, a bit per slot shorter.
    pub semi_sort: bool,
}

/// Operations on a bucket, by the rule of the shape.
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
        check_sized(capacity, fpr)?;
        let given = fingerprint_bits.unwrap_or(*FINGERPRINT_BITS.end());
        let widest = CuckooShape { buckets: 1, bucket_size, fingerprint_bits: given, semi_sort }.check()?;
        let shape = CuckooShape { buckets: fingerprints::cuckoo_buckets(capacity, bucket_size, given), ..widest };
        if fingerprint_bits.is_some() {
            return shape.check();
        }
        check_reachable(capacity, fpr)?;
        let items = capacity as f64;
        let narrowest = (LEAST_SIZED..=given)
            .map(|fingerprint_bits| CuckooShape { fingerprint_bits, ..shape })
            .find(|shape| shape.fpr(items) <= fpr && shape.overfull(items) <= OVERFULL);
        let least = shape.fpr(items);
        let shape = narrowest.ok_or_else(|| {
            Error::Parameter(format!(
                "fpr must be at least {least:.1e} with buckets of {bucket_size} (fingerprints have at most 32 bits), \
                 got {}; use BloomFilter for lower rates",
                format_rate(fpr)
            ))
        })?;
        shape.check()
    }

    /// Refuses a shape that no table has.
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
        let bytes = u128::from(self.buckets) * u128::from(self.bucket_bits()) / 8;
        if bytes >= u128::from(ADDRESSABLE_BYTES) {
            return Err(Error::Memory(format!(
                "a table of {} buckets needs {bytes} bytes, beyond any machine; lower the capacity",
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

    /// Bound on the rate with `items` fingerprints in the table, by which it is sized and which files state.
    pub fn fpr(self, items: f64) -> f64 {
        fingerprints::cuckoo(2.0 * items / self.buckets as f64, self.fingerprint_bits)
    }

    /// The rate itself.
    pub(super) fn true_fpr(self, items: f64) -> f64 {
        fingerprints::cuckoo_table(items, self.buckets as f64, self.fingerprint_bits)
    }

    /// Expected number of pairs of buckets with more equal fingerprints than slots, at `items`
    /// distinct keys: each of them would fill the stash.
    fn overfull(self, items: f64) -> f64 {
        fingerprints::cuckoo_overfull(items, self.buckets as f64, self.bucket_size, self.fingerprint_bits)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sized_tables_keep_their_rate_and_no_narrower_one_would() {
        for bucket_size in [1, 2, 4, 8] {
            for fpr in [0.02, 0.01, 0.0019, 1e-4, 1e-6] {
                for capacity in [1, 10, 1000, 1_000_000] {
                    let shape = CuckooShape::for_capacity(capacity, fpr, bucket_size, None, false).unwrap();
                    assert!(shape.fpr(capacity as f64) <= fpr);
                    let narrower = CuckooShape { fingerprint_bits: shape.fingerprint_bits - 1, ..shape };
                    let items = capacity as f64;
                    let needed = narrower.fpr(items) > fpr || narrower.overfull(items) > OVERFULL;
                    assert!(needed || shape.fingerprint_bits == LEAST_SIZED, "{bucket_size} {fpr} {capacity}");
                }
            }
        }
    }

    #[test]
    fn a_table_at_a_rate_of_0_19_percent_takes_at_most_12_8_bits_a_key() {
        for capacity in [100_000, 1_000_000, 10_000_000] {
            let shape = CuckooShape::for_capacity(capacity, 0.0019, 4, None, false).unwrap();
            assert_eq!(shape.fingerprint_bits, 12);
            assert!(shape.words() as f64 * 64.0 / capacity as f64 <= 12.8);
        }
    }

    #[test]
    fn the_published_rates_come_out() {
        let at = |width, load: f64| {
            let shape = CuckooShape { buckets: 1024, bucket_size: 4, fingerprint_bits: width, semi_sort: false };
            shape.fpr(load * 4096.0)
        };
        assert!((at(8, 0.97) - 0.0300).abs() < 1e-4);
        assert!((at(12, 0.97) - 0.0019).abs() < 1e-4);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let refused = |n, p, b, f, semi| CuckooShape::for_capacity(n, p, b, f, semi).is_err();
        assert!(refused(0, 0.01, 4, None, false) && refused(10, 0.0, 4, None, false));
        assert!(refused(10, 0.01, 3, None, false) && refused(10, 0.01, 4, Some(33), false));
        assert!(refused(10, 0.01, 4, Some(3), false) && refused(10, 0.01, 2, None, true));
        assert!(refused(10, 1e-12, 4, None, false) && refused(u64::MAX, 0.01, 4, None, false));
    }
}
