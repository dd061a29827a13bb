//! Which rows of a column are nulls.

use std::ops::Range;

use pyo3::prelude::*;

use super::indices::Indices;
use super::stated::{Stated, refuse};
use crate::column::slice;
use crate::locking::slices;

/// The nulls of a column; what it points to belongs to the chunk.
pub(crate) enum Nulls {
    /// Without nulls.
    None,
    /// Every row is null.
    All,
    /// A bit per row, from bit `first` on, 0 for a null.
    Bits { bits: *const u8, first: usize },
    /// A byte per row, 0 for a null.
    Marks(Vec<u8>),
    /// Rows of a dictionary: null themselves, or pointing at a null among the values.
    Values { rows: Box<Nulls>, indices: Indices, values: Box<Nulls> },
    /// Rows of a struct: null in itself or in any of its fields, in which the rows begin at `offset`.
    Rows { own: Box<Nulls>, fields: Vec<Nulls>, offset: usize },
}

// SAFETY: a read-only view of memory that its chunk keeps alive, as `Column` is.
unsafe impl Sync for Nulls {}
// SAFETY: as above.
unsafe impl Send for Nulls {}

impl Nulls {
    /// The nulls that the array states. Its count of nulls is not trusted.
    pub(super) fn of(format: &str, stated: &Stated<'_>) -> PyResult<Self> {
        if format == "n" {
            return Ok(if stated.len == 0 { Nulls::None } else { Nulls::All });
        }
        let bits = stated.bits(0)?;
        if bits.is_null() {
            if stated.array.null_count > 0 {
                return Err(refuse(stated.py, format!("{} nulls without a bitmap", stated.array.null_count)));
            }
            return Ok(Nulls::None);
        }
        let bits = Nulls::Bits { bits, first: stated.offset };
        Ok(if bits.any(stated.py, stated.len)? { bits } else { Nulls::None })
    }

    /// The nulls of `len` rows of a dictionary, which are null themselves or point at a null among the `values`.
    pub(super) fn with_values(self, py: Python<'_>, indices: Indices, values: Nulls, len: usize) -> PyResult<Self> {
        if matches!(values, Nulls::None) {
            return Ok(self);
        }
        let rows = Nulls::Values { rows: Box::new(self), indices, values: Box::new(values) };
        Ok(if rows.any(py, len)? { rows } else { Nulls::None })
    }

    /// Refuses `indices` of the valid rows beyond the `distinct` values of the dictionary.
    pub(super) fn check_indices(&self, stated: &Stated<'_>, indices: &Indices, distinct: usize) -> PyResult<()> {
        let (py, len) = (stated.py, stated.len);
        // A null may have any index.
        let is_outside = |i: usize| indices.get(i) >= distinct && self.is_valid(i);
        match slices::find_first(py, len, |mut rows| rows.find(|&i| is_outside(i)))? {
            None => Ok(()),
            Some(i) => {
                Err(refuse(py, format!("index {} into a dictionary of {distinct} values", indices.get(i) as isize)))
            }
        }
    }

    /// Whether row `i`, which must exist, is not null.
    #[inline(always)]
    pub(super) fn is_valid(&self, i: usize) -> bool {
        match self {
            Nulls::None => true,
            Nulls::All => false,
            // SAFETY: the bitmap has a bit for every row.
            Nulls::Bits { bits, first } => unsafe { bit(*bits, first + i) == 1 },
            Nulls::Marks(marks) => marks[i] != 0,
            Nulls::Values { rows, indices, values } => rows.is_valid(i) && values.is_valid(indices.get(i)),
            Nulls::Rows { own, fields, offset } => {
                own.is_valid(i) && fields.iter().all(|field| field.is_valid(offset + i))
            }
        }
    }

    /// Whether any of the first `len` rows is null.
    pub(super) fn any(&self, py: Python<'_>, len: usize) -> PyResult<bool> {
        match self {
            // A struct of columns without nulls, as most are, is not searched.
            Nulls::Rows { own, fields, .. } if fields.iter().all(|field| matches!(field, Nulls::None)) => {
                own.any(py, len)
            }
            Nulls::None => Ok(false),
            Nulls::All => Ok(len > 0),
            _ => {
                let any = |rows: Range<usize>| self.any_of(rows.clone()).then_some(rows.start);
                Ok(slices::find_first(py, len, any)?.is_some())
            }
        }
    }

    /// Whether any of these rows is null.
    fn any_of(&self, rows: Range<usize>) -> bool {
        match self {
            Nulls::Bits { bits, first } => {
                let (first, len) = (first + rows.start, rows.len());
                // Whole bytes are compared together, the bits before and after them one by one.
                let head = (first.wrapping_neg() & 7).min(len);
                let whole = (len - head) / 8;
                // SAFETY: the bitmap has a bit for every row, so that these bytes are all its own.
                let bytes = unsafe { slice(bits.wrapping_add((first + head) / 8), whole) };
                let ends = (0..head).chain(head + 8 * whole..len);
                bytes.iter().any(|&byte| byte != 0xff) || { ends }.any(|i| !self.is_valid(rows.start + i))
            }
            _ => !{ rows }.all(|i| self.is_valid(i)),
        }
    }

    /// Writes a 0 for each null and a 1 for each other row from `start` on.
    pub(crate) fn mark(&self, start: usize, out: &mut [u8]) {
        match self {
            Nulls::None => out.fill(1),
            Nulls::All => out.fill(0),
            Nulls::Marks(marks) => out.copy_from_slice(&marks[start..start + out.len()]),
            Nulls::Bits { bits, first } => {
                // SAFETY: the bitmap has a bit for every row.
                out.iter_mut().enumerate().for_each(|(i, out)| *out = unsafe { bit(*bits, first + start + i) });
            }
            Nulls::Values { .. } | Nulls::Rows { .. } => {
                out.iter_mut().enumerate().for_each(|(i, out)| *out = u8::from(self.is_valid(start + i)));
            }
        }
    }
}

/// Bit `i` of a bitmap.
///
/// # Safety
/// `bits` must be readable up to that bit.
#[inline(always)]
unsafe fn bit(bits: *const u8, i: usize) -> u8 {
    // SAFETY: the caller's promise.
    unsafe { *bits.add(i >> 3) >> (i & 7) & 1 }
}
