//! Ctrl-C inside a callback, where Python prints and drops it.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// A `sys.unraisablehook` after which Ctrl-C is raised again, outside of the callback that dropped it.
///
/// A callback of a weak reference or a finalizer cannot raise, and each import has one. This is native because Python
/// code would raise the new interrupt in itself, where it would be dropped, too.
#[pyfunction]
#[pyo3(signature = (unraisable: "Any"))]
pub(crate) fn repeat_interrupt(unraisable: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = unraisable.py();
    if unraisable.getattr("exc_value")?.is_instance_of::<PyKeyboardInterrupt>() {
        py.import("_thread")?.call_method0("interrupt_main")?;
    } else {
        py.import("sys")?.call_method1("__unraisablehook__", (unraisable,))?;
    }
    Ok(())
}
