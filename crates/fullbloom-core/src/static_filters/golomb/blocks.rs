//! [`Blocks`]: the codes of all blocks, and where each begins.

use super::codes::Codes;
use super::offsets::Offsets;
use super::shape::Shape;

/// What look-ups see of a set.
#[derive(Clone, Copy)]
pub struct Blocks<'a> {
    /// How many blocks of how many values.
    pub shape: Shape,
    /// Where they begin, by the line and
    pub offsets: Offsets,
    /// the words beside it.
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
