//! [`Encoder`] and [`Codes`]: the places of a block by their gaps, in Rice codes.
//!
//! The last P bits of gap - 1 (of the first place itself) are at the end of the block, first code last; the rest of it
//! is at the beginning, in unary: that many zeros, then a 1. So unary bits and remainders meet where the codes end, and
//! the position of a 1 gives the sum of all zeros before it.

use super::shape::Shape;
use crate::cells::allocation::reserve;
use crate::error::Result;

/// The output of an [`Encoder`].
pub struct Encoded {
    /// The bits of all blocks, one after the other.
    pub words: Vec<u64>,
    /// First bit of each block, and the end.
    pub starts: Vec<u64>,
    /// Number of values.
    pub values: u64,
}

/// Codes values in ascending order.
pub struct Encoder {
    shape: Shape,
    encoded: Encoded,
    /// Gaps less 1 of the current block.
    rests: Vec<u64>,
    /// The place after the last one.
    next: u64,
    /// End of the finished blocks.
    end: u64,
}

impl Encoder {
    /// With memory for `words` words of codes.
    pub fn new(shape: Shape, words: usize) -> Result<Self> {
        let mut encoded = Encoded { words: Vec::new(), starts: Vec::new(), values: 0 };
        reserve(&mut encoded.starts, usize::try_from(shape.blocks).unwrap_or(usize::MAX).saturating_add(1))?;
        reserve(&mut encoded.words, words)?;
        encoded.starts.push(0);
        Ok(Encoder { shape, encoded, rests: Vec::new(), next: 0, end: 0 })
    }

    /// Adds the next value, unless it repeats the last.
    #[inline(always)]
    pub fn push(&mut self, (block, place): (u64, u64)) -> Result<()> {
        while self.encoded.starts.len() as u64 <= block {
            self.close()?;
        }
        if place >= self.next {
            reserve(&mut self.rests, 1)?;
            self.rests.push(place - self.next);
            self.next = place + 1;
        }
        Ok(())
    }

    /// Writes the current block.
    fn close(&mut self) -> Result<()> {
        let (width, count) = (u64::from(self.shape.rice_bits), self.rests.len() as u64);
        let zeros: u64 = self.rests.iter().map(|rest| rest >> width).sum();
        let start = self.end;
        self.end += zeros + count * (width + 1);
        // One word more: a remainder is written together with the next word.
        let words = (self.end / 64) as usize + 2;
        let held = self.encoded.words.len();
        reserve(&mut self.encoded.words, words.saturating_sub(held))?;
        self.encoded.words.resize(words, 0);
        let (mut front, mut back) = (start, self.end);
        for rest in self.rests.drain(..) {
            front += rest >> width;
            self.encoded.words[(front >> 6) as usize] |= 1 << (front & 63);
            front += 1;
            back -= width;
            let (remainder, shift) = (rest & !(u64::MAX << width), back & 63);
            self.encoded.words[(back >> 6) as usize] |= remainder << shift;
            self.encoded.words[(back >> 6) as usize + 1] |= remainder >> 1 >> (63 - shift);
        }
        self.encoded.values += count;
        self.next = 0;
        self.encoded.starts.push(self.end);
        Ok(())
    }

    /// All of it.
    pub fn finish(mut self) -> Result<Encoded> {
        while self.encoded.starts.len() as u64 <= self.shape.blocks {
            self.close()?;
        }
        Ok(self.encoded)
    }
}

/// A reader of the codes of one block.
#[derive(Clone, Copy)]
pub struct Codes<'a> {
    bytes: &'a [u8],
    width: u32,
    /// First bit.
    start: u64,
    /// The word that holds the next bit in unary, and its bits that were not read.
    word: (u64, u64),
    /// End of the remainders that were not read.
    back: u64,
    /// Codes that were read.
    count: u64,
    /// Sum of their remainders.
    sum: u64,
    /// The place of the last one, and 1; 0 before the first.
    pub passed: u64,
}

/// The 64 bits from byte `at` on; a forged file may not have them.
#[inline(always)]
fn read(bytes: &[u8], at: u64) -> u64 {
    bytes.get(at as usize..).and_then(|bytes| bytes.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

impl<'a> Codes<'a> {
    /// The codes in the bits `start..end`.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], width: u32, start: u64, end: u64) -> Self {
        let word = read(bytes, (start >> 6) * 8) & (u64::MAX << (start & 63));
        Codes { bytes, width, start, word: (start >> 6, word), back: end, count: 0, sum: 0, passed: 0 }
    }

    /// Reads the next code; false at the end.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        while self.word.1 == 0 {
            self.word.0 += 1;
            if self.word.0 << 6 >= self.back {
                return false;
            }
            self.word.1 = read(self.bytes, self.word.0 * 8);
        }
        let front = (self.word.0 << 6) + u64::from(self.word.1.trailing_zeros());
        let width = u64::from(self.width);
        if front + width >= self.back {
            return false;
        }
        self.word.1 &= self.word.1 - 1;
        self.add_remainder();
        let zeros = front - self.start - self.count;
        self.count += 1;
        self.passed = (zeros << width).wrapping_add(self.sum).wrapping_add(self.count);
        true
    }

    #[inline(always)]
    fn add_remainder(&mut self) {
        self.back -= u64::from(self.width);
        let remainder = read(self.bytes, self.back >> 3) >> (self.back & 7) & !(u64::MAX << self.width);
        self.sum = self.sum.wrapping_add(remainder);
    }

    /// Skips codes whose unary bits alone show that they lie before `place`, three in four of those that do: a 1 that
    /// is bit i means a place below (i + 1) 2^P, since remainders add up to less than 2^P - 1 for each 1.
    #[inline(always)]
    fn skip(&mut self, place: u64) {
        let limit = (self.start + (place >> self.width)).min(self.back);
        let mut ones = 0;
        while self.word.0 < limit >> 6 {
            ones += u64::from(self.word.1.count_ones());
            self.word.0 += 1;
            self.word.1 = read(self.bytes, self.word.0 * 8);
        }
        if self.word.0 == limit >> 6 {
            let below = self.word.1 & !(u64::MAX << (limit & 63));
            ones += u64::from(below.count_ones());
            self.word.1 ^= below;
        }
        // A forged file may have more of them than remainders.
        ones = ones.min((self.back - self.start.min(self.back)) / u64::from(self.width).max(1));
        (0..ones).for_each(|_| self.add_remainder());
        self.count += ones;
    }

    /// Whether a place, not before the last one looked up, is present.
    #[inline(always)]
    pub fn find(&mut self, place: u64) -> bool {
        if self.passed <= place {
            self.skip(place);
        }
        while self.passed <= place {
            if !self.step() {
                return false;
            }
        }
        self.passed == place + 1
    }

    /// True after the last code, where unary bits and remainders meet.
    pub fn is_spent(&self) -> bool {
        let zeros = self.passed.wrapping_sub(self.sum).wrapping_sub(self.count) >> self.width;
        self.start + self.count + zeros == self.back
    }
}
