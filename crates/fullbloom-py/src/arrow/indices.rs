//! The indices of a dictionary column.

use pyo3::prelude::*;

use super::stated::{Stated, refuse};
use crate::column::read;

/// The number of the value of each row, in 1, 2, 4 or 8 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Indices {
    base: *const u8,
    class: u8,
}

// SAFETY: a read-only view of memory that its chunk keeps alive, as `Column` is.
unsafe impl Sync for Indices {}
// SAFETY: as above.
unsafe impl Send for Indices {}

impl Indices {
    /// The indices of a column whose format is `format`.
    pub(super) fn of(stated: &Stated<'_>, format: &str) -> PyResult<Self> {
        let (class, width) = match *format.as_bytes() {
            [class @ (b'c' | b'C')] => (class, 1),
            [class @ (b's' | b'S')] => (class, 2),
            [class @ (b'i' | b'I')] => (class, 4),
            [class @ (b'l' | b'L')] => (class, 8),
            _ => return Err(refuse(stated.py, format!("dictionary indices of format {format:?}"))),
        };
        Ok(Indices { base: stated.rows(1, width)?, class })
    }

    /// The index of row `i`, which must exist; an enormous one if it is negative.
    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> usize {
        // SAFETY: the column has an index of this width for every row.
        unsafe {
            match self.class {
                b'c' => read::<i8>(self.base.add(i)) as usize,
                b'C' => read::<u8>(self.base.add(i)) as usize,
                b's' => read::<i16>(self.base.add(2 * i)) as usize,
                b'S' => read::<u16>(self.base.add(2 * i)) as usize,
                b'i' => read::<i32>(self.base.add(4 * i)) as usize,
                b'I' => read::<u32>(self.base.add(4 * i)) as usize,
                b'l' => read::<i64>(self.base.add(8 * i)) as usize,
                _ => read::<u64>(self.base.add(8 * i)) as usize,
            }
        }
    }
}
