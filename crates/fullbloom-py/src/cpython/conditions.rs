//! The conditions for reading an object in place.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Whether this build may read objects in place. Without the GIL they have another header, and lists change
/// while they are read.
pub(super) const READABLE: bool = cfg!(all(
    target_pointer_width = "64",
    target_endian = "little",
    not(any(PyPy, GraalPy, RustPython, Py_GIL_DISABLED))
));

/// Refuses to work in any interpreter except the main one: threads are attached by calls that know only that one, and
/// would wait for each other forever.
pub(crate) fn require_main_interpreter(_: Python<'_>) -> PyResult<()> {
    // SAFETY: an attached thread has an interpreter; both calls are of the stable ABI.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if id == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(format!(
        "fullbloom works in the main interpreter of a process only, this one is subinterpreter {id}; import it there, or \
         use a process of its own (mod_wsgi: WSGIApplicationGroup %{{GLOBAL}})"
    )))
}

/// Whether `class` states these sizes of its objects.
pub(super) fn has_sizes(class: &Bound<'_, PyType>, basic: usize, item: usize) -> PyResult<bool> {
    let states = |name, size: usize| class.getattr(name)?.eq(size);
    Ok(states("__basicsize__", basic)? && states("__itemsize__", item)?)
}
