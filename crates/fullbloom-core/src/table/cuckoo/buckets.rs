//! Buckets of fingerprints: how b fingerprints of f bits are stored in words, bit by bit, bucket by bucket, LSB first.
//! Fingerprint 0 marks a free slot.
//!
//! | rule | bits per bucket | used if |
//! |---|---|---|
//! | [`Lanes`] | b f, packed | b f <= 64: a bucket is compared as one integer |
//! | [`Slots`] | b f, packed | the rest; the same bits as [`Lanes`] would have |
//! | [`SemiSorted`] | 4 (f - 1) | requested, b = 4 |
//!
//! Semi-sorting (Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo filter: practically better than Bloom", 2014): the
//! four fingerprints of a bucket are a multiset, so that their low nibbles, sorted, take 3876 values: 12 bits instead
//! of 16. A bucket is the 12-bit rank of the sorted nibbles a <= b <= c <= d, C(a,1) + C(b+1,2) + C(c+2,3) + C(d+3,4),
//! and then the four high parts of f - 4 bits in the order of (nibble, high part).

use crate::cells::PackedCells;
use crate::isa::prefetch;

/// Most slots of a bucket.
pub const MOST_SLOTS: u32 = 8;

/// The storage of buckets in words. Bucket numbers must be below that of the table in `words`, whose contents may be
/// any bits.
pub trait Buckets: Copy {
    /// A bucket in registers.
    type Bucket: Copy;
    /// Bits of a bucket.
    fn bits(self) -> u64;
    /// Reads bucket `i`.
    fn load(self, words: &[u64], i: u64) -> Self::Bucket;
    /// Writes bucket `i`.
    fn store(self, words: &mut [u64], i: u64, bucket: Self::Bucket);
    /// True if some slot holds `fp`.
    fn has(self, bucket: Self::Bucket, fp: u64) -> bool;
    /// Number of slots that hold `fp`.
    fn count(self, bucket: Self::Bucket, fp: u64) -> u32;
    /// Puts `to` into the first slot that holds `from`; false if no slot does.
    fn replace(self, bucket: &mut Self::Bucket, from: u64, to: u64) -> bool;
    /// Puts `fp` into slot `slot` and returns its previous contents.
    fn swap(self, bucket: &mut Self::Bucket, slot: u32, fp: u64) -> u64;

    /// Prefetches the cache line of bucket `i`, whose table begins at `base`.
    #[inline(always)]
    fn fetch(self, base: *const u64, i: u64) {
        let bit = i.wrapping_mul(self.bits());
        prefetch(base.wrapping_add((bit >> 6) as usize));
    }
}

/// 64 bits from `bit` on; the word after the last one requested must exist.
#[inline(always)]
fn read(words: &[u64], bit: u64) -> u64 {
    let (word, shift) = ((bit >> 6) as usize, (bit & 63) as u32);
    let (low, high) = (u64::from_le(words[word]), u64::from_le(words[word + 1]));
    // Two shifts, since a shift by 64 is not allowed.
    low >> shift | (high << 1) << (63 - shift)
}

/// Writes the low `width` bits of `value` (which has no others), 1 to 64, from `bit` on.
#[inline(always)]
pub(crate) fn write(words: &mut [u64], bit: u64, width: u32, value: u64) {
    let (word, shift) = ((bit >> 6) as usize, (bit & 63) as u32);
    let mask = u64::MAX >> (64 - width);
    let low = u64::from_le(words[word]);
    words[word] = (low & !(mask << shift) | value << shift).to_le();
    if shift + width > 64 {
        let done = 64 - shift;
        let high = u64::from_le(words[word + 1]);
        words[word + 1] = (high & !(mask >> done) | value >> done).to_le();
    }
}

/// Plain buckets of at most 64 bits: lanes of one integer, all compared at once.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    width: u32,
    bits: u32,
    /// The lowest bit of each lane.
    ones: u64,
    /// The highest bit of each lane.
    highs: u64,
}

impl Lanes {
    /// Buckets of `slots` fingerprints of `width` bits; `None` beyond 64 bits.
    pub fn new(slots: u32, width: u32) -> Option<Self> {
        let bits = slots * width;
        let ones = (0..slots).map(|i| 1u64.checked_shl(i * width).unwrap_or(0)).sum::<u64>();
        (bits <= 64).then(|| Lanes { width, bits, ones, highs: ones << (width - 1) })
    }

    /// Highest bit of each zero lane of `lanes`: always right for the lowest such lane; lanes above it may be wrong by
    /// a borrow.
    #[inline(always)]
    fn lowest_zero(self, lanes: u64) -> u64 {
        lanes.wrapping_sub(self.ones) & !lanes & self.highs
    }
}

impl Buckets for Lanes {
    type Bucket = u64;

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.bits)
    }

    #[inline(always)]
    fn load(self, words: &[u64], i: u64) -> u64 {
        read(words, i * u64::from(self.bits)) & (u64::MAX >> (64 - self.bits))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64], i: u64, bucket: u64) {
        write(words, i * u64::from(self.bits), self.bits, bucket);
    }

    #[inline(always)]
    fn has(self, bucket: u64, fp: u64) -> bool {
        self.lowest_zero(bucket ^ fp.wrapping_mul(self.ones)) != 0
    }

    #[inline(always)]
    fn count(self, bucket: u64, fp: u64) -> u32 {
        // Without carries between lanes: a lane is zero when neither its low bits plus all ones nor
        // itself has the highest bit.
        let lanes = bucket ^ fp.wrapping_mul(self.ones);
        let lows = self.highs - self.ones;
        (!(((lanes & lows) + lows) | lanes) & self.highs).count_ones()
    }

    #[inline(always)]
    fn replace(self, bucket: &mut u64, from: u64, to: u64) -> bool {
        let zero = self.lowest_zero(*bucket ^ from.wrapping_mul(self.ones));
        if zero == 0 {
            return false;
        }
        *bucket ^= (from ^ to) << (zero.trailing_zeros() + 1 - self.width);
        true
    }

    #[inline(always)]
    fn swap(self, bucket: &mut u64, slot: u32, fp: u64) -> u64 {
        let shift = slot * self.width;
        let old = *bucket >> shift & (u64::MAX >> (64 - self.width));
        *bucket ^= (old ^ fp) << shift;
        old
    }
}

/// The slots of a bucket, one by one.
type Array = [u32; MOST_SLOTS as usize];

#[inline(always)]
fn replace(slots: &mut [u32], from: u64, to: u64) -> bool {
    let found = slots.iter_mut().find(|slot| u64::from(**slot) == from);
    found.map(|slot| *slot = to as u32).is_some()
}

#[inline(always)]
fn count(slots: &[u32], fp: u64) -> u32 {
    slots.iter().map(|&slot| u32::from(u64::from(slot) == fp)).sum()
}

/// Plain buckets of any width.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    slots: u32,
    cells: PackedCells,
}

impl Slots {
    /// Buckets of `slots` (at most [`MOST_SLOTS`]) fingerprints of `width` bits (at most 32).
    pub fn new(slots: u32, width: u32) -> Option<Self> {
        (slots <= MOST_SLOTS && width <= 32).then_some(())?;
        PackedCells::new(width).map(|cells| Slots { slots, cells })
    }
}

impl Buckets for Slots {
    type Bucket = Array;

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.slots * self.cells.width())
    }

    #[inline(always)]
    fn load(self, words: &[u64], i: u64) -> Array {
        let (mut bucket, first) = ([0; MOST_SLOTS as usize], i * u64::from(self.slots));
        for (slot, cell) in bucket[..self.slots as usize].iter_mut().zip(first..) {
            *slot = self.cells.get(words, cell) as u32;
        }
        bucket
    }

    #[inline(always)]
    fn store(self, words: &mut [u64], i: u64, bucket: Array) {
        let first = i * u64::from(self.slots);
        for (&slot, cell) in bucket[..self.slots as usize].iter().zip(first..) {
            self.cells.set(words, cell, u64::from(slot));
        }
    }

    #[inline(always)]
    fn has(self, bucket: Array, fp: u64) -> bool {
        self.count(bucket, fp) != 0
    }

    #[inline(always)]
    fn count(self, bucket: Array, fp: u64) -> u32 {
        count(&bucket[..self.slots as usize], fp)
    }

    #[inline(always)]
    fn replace(self, bucket: &mut Array, from: u64, to: u64) -> bool {
        replace(&mut bucket[..self.slots as usize], from, to)
    }

    #[inline(always)]
    fn swap(self, bucket: &mut Array, slot: u32, fp: u64) -> u64 {
        u64::from(std::mem::replace(&mut bucket[slot as usize], fp as u32))
    }
}

/// C(n, k) for the ranks of sorted nibbles.
const fn choose(n: u32, k: u32) -> u32 {
    let (mut i, mut product) = (0, 1);
    while i < k {
        product = product * (n - i) / (i + 1);
        i += 1;
    }
    product
}

/// Rank of four nibbles in ascending order.
#[inline(always)]
const fn rank(n: [u32; 4]) -> u32 {
    n[0] + (n[1] + 1) * n[1] / 2 + (n[2] + 2) * (n[2] + 1) * n[2] / 6 + (n[3] + 3) * (n[3] + 2) * (n[3] + 1) * n[3] / 24
}

/// The four nibbles of each rank; 0 for the codes that are no rank.
static NIBBLES: [[u8; 4]; 4096] = nibbles();

const fn nibbles() -> [[u8; 4]; 4096] {
    let mut table = [[0; 4]; 4096];
    let mut d = 0;
    while d < 16 {
        let mut c = 0;
        while c <= d {
            let mut b = 0;
            while b <= c {
                let mut a = 0;
                while a <= b {
                    let code = choose(a, 1) + choose(b + 1, 2) + choose(c + 2, 3) + choose(d + 3, 4);
                    table[code as usize] = [a as u8, b as u8, c as u8, d as u8];
                    a += 1;
                }
                b += 1;
            }
            c += 1;
        }
        d += 1;
    }
    table
}

/// Bits of the rank.
const RANK_BITS: u32 = 12;

/// Buckets of four fingerprints, one bit per slot saved.
#[derive(Clone, Copy, Debug)]
pub struct SemiSorted {
    /// Bits of a high part, f - 4.
    high: u32,
}

impl SemiSorted {
    /// Buckets of four fingerprints of `width` bits, 4 to 32.
    pub fn new(width: u32) -> Option<Self> {
        (4..=32).contains(&width).then(|| SemiSorted { high: width - 4 })
    }
}

impl Buckets for SemiSorted {
    type Bucket = [u32; 4];

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(RANK_BITS + 4 * self.high)
    }

    #[inline(always)]
    fn load(self, words: &[u64], i: u64) -> [u32; 4] {
        let bit = i * self.bits();
        let code = read(words, bit) & ((1 << RANK_BITS) - 1);
        let low = NIBBLES[code as usize];
        // High parts in two pairs: a pair has at most 56 bits.
        let mask = (1u64 << self.high) - 1;
        let first = read(words, bit + u64::from(RANK_BITS));
        let last = read(words, bit + u64::from(RANK_BITS + 2 * self.high));
        let highs = [first & mask, first >> self.high & mask, last & mask, last >> self.high & mask];
        std::array::from_fn(|j| (highs[j] as u32) << 4 | u32::from(low[j]))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64], i: u64, mut bucket: [u32; 4]) {
        bucket.sort_unstable_by_key(|fp| fp.rotate_right(4));
        let (bit, pair) = (i * self.bits(), 2 * self.high);
        write(words, bit, RANK_BITS, u64::from(rank(bucket.map(|fp| fp & 15))));
        if pair > 0 {
            let highs = bucket.map(|fp| u64::from(fp >> 4));
            write(words, bit + u64::from(RANK_BITS), pair, highs[0] | highs[1] << self.high);
            write(words, bit + u64::from(RANK_BITS + pair), pair, highs[2] | highs[3] << self.high);
        }
    }

    #[inline(always)]
    fn has(self, bucket: [u32; 4], fp: u64) -> bool {
        count(&bucket, fp) != 0
    }

    #[inline(always)]
    fn count(self, bucket: [u32; 4], fp: u64) -> u32 {
        count(&bucket, fp)
    }

    #[inline(always)]
    fn replace(self, bucket: &mut [u32; 4], from: u64, to: u64) -> bool {
        replace(bucket, from, to)
    }

    #[inline(always)]
    fn swap(self, bucket: &mut [u32; 4], slot: u32, fp: u64) -> u64 {
        u64::from(std::mem::replace(&mut bucket[slot as usize], fp as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random operations on a row of buckets against plain vectors (sorted: order is the rule's own).
    fn agrees_with_vectors<B: Buckets>(rule: B, slots: u32, width: u32) {
        let number = 40u64;
        let mut words = vec![0u64; (number * rule.bits()).div_ceil(64) as usize + 2];
        let mut model = vec![vec![0u64; slots as usize]; number as usize];
        let mut x = u64::from(slots * 100 + width);
        for _ in 0..6000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (i, values) = ((x >> 40) % number, (1u64 << width.min(5)) - 1);
            let fp = ((x >> 20) & values) << (width - width.min(5)) | x >> 63;
            let mut bucket = rule.load(&words, i);
            let held = &mut model[i as usize];
            assert_eq!(rule.has(bucket, fp), held.contains(&fp), "b {slots} f {width}");
            assert_eq!(rule.count(bucket, fp) as usize, held.iter().filter(|&&v| v == fp).count());
            match (x >> 33) % 3 {
                0 => {
                    let free = held.iter().position(|&v| v == 0);
                    assert_eq!(rule.replace(&mut bucket, 0, fp), free.is_some());
                    free.into_iter().for_each(|j| held[j] = fp);
                }
                1 => {
                    let there = held.iter().position(|&v| v == fp);
                    assert_eq!(rule.replace(&mut bucket, fp, 0), there.is_some());
                    there.into_iter().for_each(|j| held[j] = 0);
                }
                _ => {
                    let old = rule.swap(&mut bucket, (x >> 50) as u32 % slots, fp);
                    let there = held.iter().position(|&v| v == old).expect("what was handed out was there");
                    held[there] = fp;
                }
            }
            rule.store(&mut words, i, bucket);
        }
    }

    #[test]
    fn buckets_of_every_size_hold_what_plain_vectors_hold() {
        for width in 4..=32 {
            for slots in [1, 2, 4, 8] {
                agrees_with_vectors(Slots::new(slots, width).unwrap(), slots, width);
                if let Some(lanes) = Lanes::new(slots, width) {
                    agrees_with_vectors(lanes, slots, width);
                }
            }
            agrees_with_vectors(SemiSorted::new(width).unwrap(), 4, width);
        }
    }

    #[test]
    fn lanes_and_slots_write_the_same_bits() {
        let (lanes, slots) = (Lanes::new(4, 12).unwrap(), Slots::new(4, 12).unwrap());
        let (mut a, mut b) = ([0u64; 4], [0u64; 4]);
        lanes.store(&mut a, 3, 0x123_456_789_abc);
        slots.store(&mut b, 3, [0xabc, 0x789, 0x456, 0x123, 0, 0, 0, 0]);
        assert_eq!(a, b);
    }

    #[test]
    fn every_sorted_quadruple_has_its_own_rank() {
        assert_eq!(rank([15, 15, 15, 15]), 3875);
        let ranks = (0..3876).filter(|&code| rank(NIBBLES[code as usize].map(u32::from)) == code).count();
        assert_eq!(ranks, 3876);
    }
}
