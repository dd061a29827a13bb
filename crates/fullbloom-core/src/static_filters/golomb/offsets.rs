//! [`Offsets`]: the first bit of each block, as its distance from a straight line; [`Blocks`]: codes and offsets
//! together.
//!
//! Block i of b begins at base + floor(i slope / 2^16) + cell i, slope = floor(2^16 bits / b). For 10 million keys the
//! cells, which are as wide as the largest, take 16 bits; the offsets themselves 27.

use super::codes::Codes;
use super::shape::Shape;
use crate::cells::bits::is_zero_from;
use crate::cells::{Memory, PackedCells};
use crate::error::{Error, Result};
use crate::isa::prefetch;

/// Bits of a fraction in a slope.
const FRACTION: u32 = 16;
/// Codes have fewer bits: 16 TiB.
pub const MOST_BITS: u64 = 1 << 47;
/// Words before the cells: the base.
const HEAD: usize = 1;

/// The line, and the width of the cells.
#[derive(Clone, Copy, Debug)]
pub struct Offsets {
    /// Bits of all codes.
    pub bits: u64,
    slope: u64,
    cells: PackedCells,
}

impl Offsets {
    /// For `bits` bits of codes in `blocks` blocks, by cells of `width` bits.
    pub fn of(bits: u64, blocks: u64, width: u32) -> Result<Self> {
        let cells = PackedCells::new(width).filter(|_| bits < MOST_BITS).ok_or_else(|| {
            Error::Format(format!("the file has {bits} bits of codes with offsets of {width} bits; it is damaged"))
        })?;
        Ok(Offsets { bits, slope: (bits << FRACTION) / blocks.max(1), cells })
    }

    /// Words of memory.
    pub fn words(self, blocks: u64) -> u64 {
        self.cells.words(blocks.saturating_add(1)).unwrap_or(u64::MAX >> 8).saturating_add(HEAD as u64)
    }

    /// Bits of a cell.
    pub fn width(self) -> u32 {
        self.cells.width()
    }

    #[inline(always)]
    fn on_line(self, block: u64) -> u64 {
        ((u128::from(block) * u128::from(self.slope)) >> FRACTION) as u64
    }

    /// Of the first bits of all blocks, and the end.
    pub fn fit(starts: &[u64]) -> Result<(Self, Memory)> {
        let (bits, blocks) = (starts.last().copied().unwrap_or(0), starts.len().saturating_sub(1) as u64);
        let line =
            Self::of(bits, blocks, 1).map_err(|_| Error::Memory(format!("the codes take {bits} bits, too many")))?;
        let beside = |(block, &start): (u64, &u64)| start as i64 - line.on_line(block) as i64;
        let all = || (0..).zip(starts).map(beside);
        let (base, top) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        let offsets = Self::of(bits, blocks, (64 - top.abs_diff(base).leading_zeros()).max(1))?;
        let mut memory = Memory::zeroed(offsets.words(blocks))?;
        let words = memory.writable()?;
        words[0] = base.cast_unsigned().to_le();
        (0..)
            .zip(all())
            .for_each(|(block, beside)| offsets.cells.set(&mut words[HEAD..], block, beside.abs_diff(base)));
        Ok((offsets, memory))
    }

    /// First bit of a block; for a forged file, some bit.
    #[inline(always)]
    pub fn start(self, words: &[u64], block: u64) -> u64 {
        let (base, cell) = (u64::from_le(words[0]), self.cells.get(&words[HEAD..], block));
        base.wrapping_add(self.on_line(block)).wrapping_add(cell).min(self.bits)
    }

    /// Whether starts rise from 0 to the end, and have the form that [`Offsets::fit`] writes.
    pub fn are_sound(self, words: &[u64], blocks: u64) -> bool {
        let base = u64::from_le(words[0]);
        let cell = |block| self.cells.get(&words[HEAD..], block);
        let exact =
            |block| base.wrapping_add(self.on_line(block)).wrapping_add(cell(block)) == self.start(words, block);
        let all = || (0..=blocks).map(cell);
        let top = all().max().unwrap_or(0);
        self.start(words, 0) == 0
            && self.start(words, blocks) == self.bits
            && (0..=blocks).all(exact)
            && all().min() == Some(0)
            && (64 - top.leading_zeros()).max(1) == self.width()
            && is_zero_from(&words[HEAD..], (blocks + 1) * u64::from(self.width()))
    }

    /// Prefetches a block's cell.
    #[inline(always)]
    pub fn fetch(self, words: &[u64], block: u64) {
        prefetch(words.as_ptr().wrapping_add(HEAD + ((block * u64::from(self.cells.width())) >> 6) as usize));
    }
}

/// The parts of a set that lookups read.
#[derive(Clone, Copy)]
pub struct Blocks<'a> {
    /// How many blocks of how many values.
    pub shape: Shape,
    /// The line of the starts of blocks.
    pub offsets: Offsets,
    /// The words of the starts' distances from the line.
    pub starts: &'a [u64],
    /// The bytes of all codes.
    pub codes: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// First bit of a block, and the end.
    #[inline(always)]
    pub fn span(self, block: u64) -> [u64; 2] {
        [block, block + 1].map(|block| self.offsets.start(self.starts, block))
    }

    /// The codes in a span.
    #[inline(always)]
    pub fn read(self, [start, end]: [u64; 2]) -> Codes<'a> {
        Codes::new(self.codes, self.shape.rice_bits, start, end)
    }

    /// The codes of a block.
    #[inline(always)]
    pub fn block(self, block: u64) -> Codes<'a> {
        self.read(self.span(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::hash;

    #[test]
    fn every_start_comes_back() {
        let even: Vec<u64> = (0..1000).map(|i| i * 1038 + hash(i) % 300).collect();
        let skewed: Vec<u64> = (0..500).map(|i| if i < 400 { 0 } else { 1 << 40 }).collect();
        for starts in [vec![0, 0], vec![0, 77], vec![0, 5, 5, 5, 5000], even, skewed] {
            let (offsets, memory) = Offsets::fit(&starts).unwrap();
            let back: Vec<u64> = (0..starts.len() as u64).map(|i| offsets.start(memory.words(), i)).collect();
            assert_eq!(back, starts);
        }
        assert!(Offsets::fit(&[0, MOST_BITS]).is_err() && Offsets::of(5, 1, 0).is_err());
    }
}
