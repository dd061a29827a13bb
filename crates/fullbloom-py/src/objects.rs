//! Python objects whose size the input decides: where memory is short an error, never PyO3's panic.

use std::io::Write;

use fullbloom_core::cells::allocation::short;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::errors::convert;
use crate::turns;

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

/// A list of `numbers` as `int`. Other threads may run between two portions: 3M numbers took 120 ms at once.
pub(crate) fn ints<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyList>> {
    let refused = || refused(py, size_of_val(numbers));
    // Filled from the start: a thread that runs meanwhile may find the list through the garbage collector.
    let none = PyList::new(py, [py.None()])?;
    let list = none.as_sequence().repeat(numbers.len()).map_err(|_| refused())?;
    let list: Bound<'py, PyList> = list.cast_into()?;
    for (portion, numbers) in numbers.chunks(turns::OBJECTS_A_TURN).enumerate() {
        if portion > 0 {
            turns::breathe(py)?;
        }
        for (i, &number) in numbers.iter().enumerate() {
            let index = (portion * turns::OBJECTS_A_TURN + i) as ffi::Py_ssize_t;
            // SAFETY: a live list, and an attached thread; the set steals a new reference, and fails if somebody found
            // the list through the collector and shortened it.
            unsafe {
                let number = ffi::PyLong_FromUnsignedLongLong(number);
                if number.is_null() {
                    return Err(refused());
                }
                if ffi::PyList_SetItem(list.as_ptr(), index, number) != 0 {
                    return Err(PyErr::fetch(py));
                }
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
