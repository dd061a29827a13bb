//! Python objects whose size the input decides: where memory is short an error, never PyO3's panic.

use std::io::Write;

use fullbloom_core::cells::allocation::short;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::errors::convert;

/// A copy of `bytes` as a Python object.
pub(crate) fn bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if bytes.len() >= LARGE {
        let made = Unwritten::new(py, bytes.len())?;
        let whole = py.detach(|| made.room().write_all(bytes)).is_ok();
        return made.written(py, whole);
    }
    // SAFETY: the thread is attached; copies from a live slice, whose length fits, and returns a new reference to
    // bytes or null.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
        let made = Bound::from_owned_ptr_or_opt(py, made).map(|made| made.cast_into_unchecked());
        made.ok_or_else(|| refused(py, bytes.len()))
    }
}

/// From so many bytes on they are copied without the GIL: 0.1 ms.
pub(crate) const LARGE: usize = 1 << 20;

/// A `bytes` that nobody has seen yet, for a detached thread to write.
pub(crate) struct Unwritten {
    made: Py<PyBytes>,
    start: SendPtr,
    len: usize,
}

/// An address that a detached thread may use.
#[derive(Clone, Copy)]
struct SendPtr(*mut u8);

// SAFETY: an address of memory that one thread writes at a time, see `Unwritten`.
unsafe impl Send for SendPtr {}
// SAFETY: as above.
unsafe impl Sync for SendPtr {}

impl Unwritten {
    /// Room for `len` bytes.
    pub(crate) fn new(py: Python<'_>, len: usize) -> PyResult<Self> {
        let size = ffi::Py_ssize_t::try_from(len).map_err(|_| refused(py, len))?;
        // SAFETY: the thread is attached; a new reference to bytes without content, or null.
        let made = unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyBytes_FromStringAndSize(std::ptr::null(), size)) };
        let made = made.ok_or_else(|| refused(py, len))?;
        // SAFETY: bytes, made above.
        let (made, start) = unsafe { (made.cast_unchecked::<PyBytes>().clone(), ffi::PyBytes_AsString(made.as_ptr())) };
        Ok(Unwritten { made: made.unbind(), start: SendPtr(start.cast()), len })
    }

    /// Writes from the first byte on.
    pub(crate) fn room(&self) -> Room<'_> {
        Room { start: self.start, left: self.len, _bytes: self }
    }

    /// The object, when `whole`: every byte was written.
    pub(crate) fn written(self, py: Python<'_>, whole: bool) -> PyResult<Bound<'_, PyBytes>> {
        if whole { Ok(self.made.into_bound(py)) } else { Err(refused(py, self.len)) }
    }
}

/// A writer into an [`Unwritten`].
pub(crate) struct Room<'a> {
    start: SendPtr,
    left: usize,
    _bytes: &'a Unwritten,
}

impl Write for Room<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let len = bytes.len().min(self.left);
        // SAFETY: `left` bytes from `start` on belong to the object, which lives and which no one else knows; another
        // object than what is copied.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.0, len) };
        self.start.0 = self.start.0.wrapping_add(len);
        self.left -= len;
        Ok(len)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A list of `numbers` as `int`.
pub(crate) fn ints<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyList>> {
    let refused = || refused(py, size_of_val(numbers));
    // SAFETY: the thread is attached; a new reference to a list or null. Nobody else is handed the list
    // before all its places are set.
    let list = unsafe {
        let made = ffi::PyList_New(numbers.len() as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_opt(py, made).ok_or_else(refused)?.cast_into_unchecked::<PyList>()
    };
    for (i, &number) in numbers.iter().enumerate() {
        // SAFETY: a live list, a place within it, and a new reference that the list takes over.
        unsafe {
            let number = ffi::PyLong_FromUnsignedLongLong(number);
            if number.is_null() {
                return Err(refused());
            }
            if ffi::PyList_SetItem(list.as_ptr(), i as ffi::Py_ssize_t, number) != 0 {
                return Err(PyErr::fetch(py));
            }
        }
    }
    Ok(list)
}

/// The house's error in place of the interpreter's, which says nothing.
#[cold]
fn refused(py: Python<'_>, bytes: usize) -> PyErr {
    drop(PyErr::take(py));
    convert(py, short(bytes))
}
