//! [`Geometry`]: how many bits of quotient, remainder and counter a table has, and its law.

use crate::cells::PackedCells;
use crate::error::{Error, Result};
use crate::sizing::{check_reachable, check_sized, fingerprints};

/// Slots of a block, log2; no table is smaller than a block.
pub const LEAST_QUOTIENT_BITS: u32 = 6;
/// 2^40 slots; a table of them takes terabytes.
pub const MOST_QUOTIENT_BITS: u32 = 40;
/// Bits of a slot for its count, if counting is enabled.
pub const COUNTER_BITS: u32 = 8;

/// The numbers that decide the place of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// q: there are 2^q slots.
    pub quotient_bits: u32,
    /// r: bits of a fingerprint that are stored.
    pub remainder_bits: u32,
    /// c: bits of a slot that count copies, 0 or [`COUNTER_BITS`].
    pub counter_bits: u32,
}

impl Geometry {
    /// The smallest table for `capacity` keys at rate `fpr`.
    pub fn for_capacity(capacity: u64, fpr: f64, counting: bool) -> Result<Self> {
        check_sized(capacity, fpr)?;
        check_reachable(capacity, fpr)?;
        let counter_bits = if counting { COUNTER_BITS } else { 0 };
        for quotient_bits in LEAST_QUOTIENT_BITS..=MOST_QUOTIENT_BITS {
            let mut geometry = Geometry { quotient_bits, remainder_bits: 1, counter_bits };
            if geometry.limit() < capacity {
                continue;
            }
            while geometry.fpr(capacity) > fpr {
                if geometry.fingerprint_bits() == 64 {
                    return Err(Error::parameter(format!(
                        "fpr is too low for a capacity of {capacity} keys, which are 64-bit hashes; raise it"
                    )));
                }
                geometry.remainder_bits += 1;
            }
            return Ok(geometry);
        }
        Err(Error::Memory(format!(
            "a quotient filter for {capacity} keys needs more than 2^{MOST_QUOTIENT_BITS} slots; lower the capacity"
        )))
    }

    /// Refuses numbers that no constructor picks.
    pub fn check(self) -> Result<Self> {
        let quotient = (LEAST_QUOTIENT_BITS..=MOST_QUOTIENT_BITS).contains(&self.quotient_bits);
        let remainder = self.remainder_bits >= 1 && self.remainder_bits <= 64 - self.quotient_bits.min(63);
        let counter = self.counter_bits == 0 || self.counter_bits == COUNTER_BITS;
        if quotient && remainder && counter && self.slot_bits() <= 64 {
            return Ok(self);
        }
        Err(Error::parameter(format!(
            "no quotient filter has {} bits of quotient, {} of remainder and {} of counter",
            self.quotient_bits, self.remainder_bits, self.counter_bits
        )))
    }

    /// Number of slots.
    #[inline(always)]
    pub fn slots(self) -> u64 {
        1 << self.quotient_bits
    }

    /// Number of blocks of 64 slots.
    #[inline(always)]
    pub fn blocks(self) -> u64 {
        self.slots() >> 6
    }

    /// Slots that may be filled: 95 %. Beyond that the way to a free slot grows without bound.
    #[inline(always)]
    pub fn limit(self) -> u64 {
        self.slots() * 19 / 20
    }

    /// The farthest free slot that an add may go to from home, with `used` slots in use: 1024 up to a quarter, then
    /// 4096, 16,384 and 65,536. Random keys at load a go past x with probability exp(-x (a - 1 - ln a)) a slot: below
    /// 1e-12 for a whole table of 2^40 slots 95 % full, and up to 75 % also with ten copies of every key.
    #[inline(always)]
    pub fn reach(self, used: u64) -> u64 {
        1024 << (2 * ((used * 4) >> self.quotient_bits)).min(6)
    }

    /// Bits of a slot.
    #[inline(always)]
    pub fn slot_bits(self) -> u32 {
        self.remainder_bits + self.counter_bits
    }

    /// The slots as packed cells.
    pub fn cells(self) -> Result<PackedCells> {
        PackedCells::new(self.slot_bits()).ok_or_else(|| Error::parameter("a slot has 1 to 64 bits"))
    }

    /// f: bits of a fingerprint.
    #[inline(always)]
    pub fn fingerprint_bits(self) -> u32 {
        self.quotient_bits + self.remainder_bits
    }

    /// The fingerprint of a hash: its top bits.
    #[inline(always)]
    pub fn fingerprint(self, hash: u64) -> u64 {
        hash >> (64 - self.fingerprint_bits())
    }

    /// Quotient and remainder of a fingerprint.
    #[inline(always)]
    pub fn split(self, fingerprint: u64) -> (u64, u64) {
        (fingerprint >> self.remainder_bits, fingerprint & self.most_remainder())
    }

    /// The largest remainder.
    #[inline(always)]
    pub fn most_remainder(self) -> u64 {
        u64::MAX >> (64 - self.remainder_bits)
    }

    /// Copies that one slot can represent.
    #[inline(always)]
    pub fn most_copies(self) -> u64 {
        1 << self.counter_bits
    }

    /// The cell of `copies` copies of `remainder`.
    #[inline(always)]
    pub fn cell(self, remainder: u64, copies: u64) -> u64 {
        remainder << self.counter_bits | (copies - 1)
    }

    /// Remainder and copies of a cell.
    #[inline(always)]
    pub fn open(self, cell: u64) -> (u64, u64) {
        (cell >> self.counter_bits, (cell & (self.most_copies() - 1)) + 1)
    }

    /// The rate expected with `items` keys.
    pub fn fpr(self, items: u64) -> f64 {
        fingerprints::quotient(items as f64, self.fingerprint_bits())
    }

    /// Bytes of the arrays, in whole lines.
    pub fn nbytes(self) -> u64 {
        self.words().iter().map(|words| words.next_multiple_of(8) * 8).sum()
    }

    /// Words of the two bit arrays, of the offsets and of the slots.
    pub fn words(self) -> [u64; 3] {
        [2 * self.blocks(), self.blocks().div_ceil(8), self.blocks() * u64::from(self.slot_bits())]
    }
}
