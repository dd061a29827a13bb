//! The numbers that a producer states of an array, checked before anything is read, if the check is cheap.
//!
//! The interface passes addresses without sizes, so a complete check is impossible: these checks catch wrong producers, not
//! malicious ones.

use std::ffi::CStr;

use pyo3::prelude::*;

use super::ffi::{Array, Schema};
use crate::errors::key_type;

/// No library returns memory below: the first page is never mapped.
const FIRST_PAGE: usize = 4096;

/// No process has memory beyond this address, nor as many bytes.
const MOST_BYTES: usize = 1 << 47;

/// The error for a column with such numbers.
pub(super) fn refuse(py: Python<'_>, what: impl std::fmt::Display) -> PyErr {
    key_type(py, format!("the Arrow column states {what}, so that its keys cannot be read; export it again"))
}

/// The format string of a schema.
pub(super) fn format_of(schema: &Schema) -> String {
    if !is_plausible(schema.format) {
        return String::new();
    }
    // SAFETY: the format of a live schema is a NUL-terminated string.
    unsafe { CStr::from_ptr(schema.format) }.to_string_lossy().into_owned()
}

/// An array with plausible numbers.
#[derive(Clone, Copy)]
pub(super) struct Stated<'a> {
    pub(super) py: Python<'a>,
    pub(super) len: usize,
    pub(super) offset: usize,
    pub(super) array: &'a Array,
}

impl<'a> Stated<'a> {
    /// Checks the numbers of `array`.
    pub(super) fn new(py: Python<'a>, array: &'a Array) -> PyResult<Self> {
        let (len, offset) = (usize::try_from(array.length), usize::try_from(array.offset));
        let (Ok(len), Ok(offset)) = (len, offset) else {
            return Err(refuse(py, format!("a length of {} and an offset of {}", array.length, array.offset)));
        };
        if array.null_count < -1 || array.null_count > array.length {
            return Err(refuse(py, format!("{} nulls in {len} rows", array.null_count)));
        }
        let pointers = usize::try_from(array.n_buffers).ok().and_then(|number| number.checked_mul(size_of::<usize>()));
        let is_readable = |bytes: usize| bytes == 0 || is_plausible(array.buffers) && fits(array.buffers, bytes);
        if !pointers.is_some_and(is_readable) {
            return Err(refuse(py, format!("{} buffers at {:?}", array.n_buffers, array.buffers)));
        }
        Ok(Stated { py, len, offset, array })
    }

    /// The number of rows behind an address: those before the offset, too, and one more.
    pub(super) fn end(&self) -> usize {
        // The sum of two numbers below 2^63, plus one.
        self.len + self.offset + 1
    }

    /// Buffer `i`, which has `width` bytes per row, from the row at the offset on; may be null where there are no rows.
    pub(super) fn rows(&self, i: usize, width: usize) -> PyResult<*const u8> {
        let start = self.extent(i, self.end().checked_mul(width))?;
        // Without rows, or with rows without bytes, nothing is read.
        if (start as usize) < FIRST_PAGE && self.len > 0 && width > 0 {
            return Err(refuse(self.py, format!("data at {start:?}")));
        }
        Ok(start.wrapping_add(self.offset * width))
    }

    /// Buffer `i`, which has a bit per row, those before the offset among them; may be null.
    pub(super) fn bits(&self, i: usize) -> PyResult<*const u8> {
        let start = self.extent(i, Some((self.end() - 1).div_ceil(8)))?;
        if !start.is_null() && (start as usize) < FIRST_PAGE && self.len > 0 {
            return Err(refuse(self.py, format!("bits at {start:?}")));
        }
        Ok(start)
    }

    /// Buffer `i`, which has `bytes` bytes; `None` is more than `usize` holds.
    fn extent(&self, i: usize, bytes: Option<usize>) -> PyResult<*const u8> {
        let start = self.buffer(i)?;
        if !bytes.is_some_and(|bytes| fits(start, bytes)) {
            let (len, offset) = (self.len, self.offset);
            return Err(refuse(self.py, format!("{len} rows from row {offset} on in one buffer at {start:?}")));
        }
        Ok(start)
    }

    /// Buffer `i`, null where it is left out.
    pub(super) fn buffer(&self, i: usize) -> PyResult<*const u8> {
        if i as i64 >= self.array.n_buffers {
            return Err(refuse(self.py, format!("{} buffers where its type has more", self.array.n_buffers)));
        }
        // SAFETY: `buffers` has `n_buffers` entries, aligned as checked.
        let start: *const u8 = unsafe { *self.array.buffers.add(i) }.cast();
        // No process has memory in the upper half of all addresses.
        if start as usize > isize::MAX as usize {
            return Err(refuse(self.py, format!("data at {start:?}")));
        }
        Ok(start)
    }
}

/// Whether `bytes` bytes can be at `address`.
pub(super) fn fits<T>(address: *const T, bytes: usize) -> bool {
    bytes < MOST_BYTES && bytes <= isize::MAX as usize - (address as usize).min(isize::MAX as usize)
}

/// Whether an array of pointers can be at `address`.
pub(super) fn is_plausible<T>(address: *const T) -> bool {
    address.is_aligned() && address as usize >= FIRST_PAGE
}
