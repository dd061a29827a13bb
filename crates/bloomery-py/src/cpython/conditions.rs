//! What must hold before an object is read.

use pyo3::prelude::*;
use pyo3::types::PyType;

/// Whether this build may read objects at all. Without the GIL they have another header, and lists change
/// while they are read.
pub(super) const READABLE: bool = cfg!(all(
    target_pointer_width = "64",
    target_endian = "little",
    not(any(PyPy, GraalPy, RustPython, Py_GIL_DISABLED))
));

/// Whether `class` states these sizes of its objects.
pub(super) fn has_sizes(class: &Bound<'_, PyType>, basic: usize, item: usize) -> PyResult<bool> {
    let states = |name, size: usize| class.getattr(name)?.eq(size);
    Ok(states("__basicsize__", basic)? && states("__itemsize__", item)?)
}
