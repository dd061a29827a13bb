//! Python objects whose size the input decides: where memory is short an error, never PyO3's panic.

use bloomery_core::cells::allocation::short;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::errors::convert;

/// A copy of `bytes` as a Python object.
pub(crate) fn bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: the thread is attached; copies from a live slice, whose length fits, and returns a new reference to
    // bytes or null.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t);
        let made = Bound::from_owned_ptr_or_opt(py, made).map(|made| made.cast_into_unchecked());
        made.ok_or_else(|| refused(py, bytes.len()))
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
