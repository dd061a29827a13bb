//! [`Layer`]: one ribbon, the place of its blocks and the lookup of a key.
//!
//! ```text
//! block of 64 slots: a word a column     start = fastrange(p, 64 blocks)
//! the first `split` blocks have `low` columns, the others low + 1
//! coefficients = mix(p) | 1 from slot `start` on; result = its product with an odd number, upper half
//! ```
//!
//! A column holds one bit of each slot; a key is present if in every column the parity of the bits under its
//! coefficients is its result bit. Its bits are in two neighbouring blocks, 2 (low + 1) words.

use crate::hash::splitmix;
use crate::scheme::fastrange;
use crate::sizing::ribbon::WIDTH;

/// Spreads products over the upper bits: 2^64 over the golden ratio, odd.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Slots whose keys share a threshold.
pub const BUCKET: u64 = 128;

/// Keys that begin at least this far into their bucket are here; those before are passed on. Two bits choose.
pub const THRESHOLDS: [u8; 4] = [0, 20, 52, 128];

/// Thresholds a word.
const CODES: u64 = 32;

/// How many columns blocks have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Columns of all blocks.
    pub low: u32,
    /// The share of blocks with no more columns, of 2^32.
    pub share: u32,
}

impl Columns {
    /// Columns of a block, on average.
    pub fn mean(self) -> f64 {
        f64::from(self.low) + 1.0 - f64::from(self.share) / 2f64.powi(32)
    }
}

/// A ribbon of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its first word; thresholds come first.
    pub first: u64,
    /// Blocks in which keys begin; one more follows, into which they reach.
    pub blocks: u64,
    /// True if it has thresholds.
    pub passes: bool,
}

/// An equation.
pub struct Equation {
    /// The slot of the first coefficient.
    pub start: u64,
    /// The coefficients; the first is 1.
    pub coefficients: u64,
    /// The result bits, more than the columns.
    pub results: u32,
}

/// The equation of a word that spreads over all `starts`.
#[inline(always)]
pub fn equation(position: u64, starts: u64) -> Equation {
    let mixed = splitmix::mix(position);
    let results = (mixed.wrapping_mul(ODD) >> 32) as u32;
    Equation { start: fastrange(position, starts), coefficients: mixed | 1, results }
}

/// The position of a hash in ribbon `number` of a shard: the first leaves keys in order, so that neighbours are
/// processed one after the other; the others mix.
#[inline(always)]
pub fn position(hash: u64, bits: u32, number: u64) -> u64 {
    match number {
        0 => hash << bits,
        _ => splitmix::mix(hash.wrapping_add(number.wrapping_mul(ODD))),
    }
}

impl Layer {
    /// The number of slots in which keys may begin.
    #[inline(always)]
    pub fn starts(self) -> u64 {
        WIDTH * self.blocks
    }

    /// Blocks without the last column.
    #[inline(always)]
    pub fn split(self, columns: Columns) -> u64 {
        (u64::from(columns.share) * self.blocks) >> 32
    }

    /// Words of thresholds.
    #[inline(always)]
    pub fn code_words(self) -> u64 {
        if self.passes { self.blocks.div_ceil(BUCKET / WIDTH * CODES) } else { 0 }
    }

    /// Words of thresholds and columns.
    pub fn words(self, columns: Columns) -> u64 {
        if self.blocks == 0 { 0 } else { self.code_words() + self.place(self.blocks + 1, columns).0 }
    }

    /// The first word of a block, counted from the first of all blocks, and its number of columns.
    #[inline(always)]
    pub fn place(self, block: u64, columns: Columns) -> (u64, u64) {
        let (low, split) = (u64::from(columns.low), self.split(columns));
        (low * block + block.saturating_sub(split), low + u64::from(block >= split))
    }

    /// The number of the threshold of a start.
    #[inline(always)]
    fn code(self, words: &[u64], start: u64) -> usize {
        let bucket = start / BUCKET;
        let word = u64::from_le(words[(self.first + bucket / CODES) as usize]);
        ((word >> (2 * (bucket % CODES))) & 3) as usize
    }

    /// Sets the number of the threshold of a bucket that had none; `words` are those of this ribbon.
    pub fn set_code(self, words: &mut [u64], bucket: u64, code: usize) {
        let word = &mut words[(bucket / CODES) as usize];
        *word |= ((code as u64) << (2 * (bucket % CODES))).to_le();
    }

    /// The share of starts whose keys are passed on; reads all thresholds, 20 kB for ten million keys.
    pub fn estimate_passed(self, words: &[u64]) -> f64 {
        let starts = if self.passes { self.starts() } else { 0 };
        let before = |start| u64::from(THRESHOLDS[self.code(words, start)]).min(starts - start);
        (0..starts).step_by(BUCKET as usize).map(before).sum::<u64>() as f64 / starts.max(1) as f64
    }

    /// Whether the key of this position is present; `None` if it was passed on.
    #[inline(always)]
    pub fn look(self, words: &[u64], columns: Columns, position: u64) -> Option<bool> {
        let Equation { start, coefficients, results } = equation(position, self.starts());
        if self.passes && start % BUCKET < THRESHOLDS[self.code(words, start)].into() {
            return None;
        }
        let (at, has) = self.place(start / WIDTH, columns);
        let near = (self.first + self.code_words() + at) as usize;
        let far = near + has as usize;
        let (left, right) = (coefficients << (start % WIDTH), coefficients >> 1 >> (63 - start % WIDTH));
        // Always the same number of words, which the processor predicts; those after the last column do not count.
        let most = columns.low as usize + 1;
        let (near, far, mut wrong) = (&words[near..near + most], &words[far..far + most], 0u64);
        for (i, (near, far)) in near.chunks(8).zip(far.chunks(8)).enumerate() {
            // A byte a column with the column's parity, then the parities of all bytes.
            let columns = near.iter().zip(far).enumerate();
            let bytes = columns.fold(0, |bytes, (j, (near, far))| {
                bytes | byte((u64::from_le(*near) & left) ^ (u64::from_le(*far) & right)) << (8 * j)
            });
            wrong |= (parities(bytes) ^ u64::from(results >> (8 * i) & 0xff)) << (8 * i);
        }
        Some(wrong & ((1 << has) - 1) == 0)
    }

    /// The first word of the key of this position, and the end of its last.
    #[inline(always)]
    pub fn span(self, columns: Columns, position: u64) -> (u64, u64) {
        let (at, has) = self.place(fastrange(position, self.starts()) / WIDTH, columns);
        let near = self.first + self.code_words() + at;
        (near, near + 2 * has)
    }
}

/// A byte with the parity of a word.
#[inline(always)]
fn byte(word: u64) -> u64 {
    let folded = word ^ word >> 32;
    let folded = folded ^ folded >> 16;
    (folded ^ folded >> 8) & 0xff
}

/// The parities of the eight bytes of a word, a bit each.
#[inline(always)]
fn parities(bytes: u64) -> u64 {
    let folded = bytes ^ bytes >> 4;
    let folded = folded ^ folded >> 2;
    let folded = (folded ^ folded >> 1) & 0x0101_0101_0101_0101;
    folded.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// 1 when the number of set bits is odd.
#[inline(always)]
pub fn parity(word: u64) -> u32 {
    let folded = byte(word);
    let folded = folded ^ folded >> 4;
    (0x6996 >> (folded & 15) & 1) as u32
}
