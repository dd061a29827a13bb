//! [`FingerprintLayout`]: how the cells of a format are laid out.

use super::shape::{Family, Shape};

/// See the head of this file.
pub struct FingerprintLayout {
    /// Which cells a key has.
    pub family: Family,
    /// Bits of a cell, 8 or 16.
    pub width: u32,
    /// Bytes behind the cells, which the program counts but never writes: zeros.
    pub tail: usize,
}

impl FingerprintLayout {
    /// The seed and the shape that the first bytes of `len` state; or which field is wrong.
    pub(in crate::foreign) fn parse(&self, head: &[u8], len: u64) -> Result<(u64, Shape), String> {
        let (seed, shape) = self.family.parse(head)?;
        let (cells, head_len) = (shape.num_cells(), self.family.head_len() as u64);
        let wanted = self.nbytes(shape) + self.tail as u64;
        let present = len.saturating_sub(head_len);
        if wanted != present {
            return Err(format!("it states {cells} cells, {wanted} bytes, and {present} bytes follow its header"));
        }
        Ok((seed, shape))
    }

    /// Bytes of the cells of a filter of this shape.
    pub(super) fn nbytes(&self, shape: Shape) -> u64 {
        shape.num_cells() * u64::from(self.width / 8)
    }
}
