//! From core errors to the exceptions of `bloomery.errors`, where the tree is defined.

use bloomery_core::Error;
use bloomery_core::error::shown;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// A class of `bloomery.errors` by name.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let module = MODULE.get_or_try_init(py, || py.import("bloomery.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into()?)
}

/// An exception of `bloomery.errors` by name.
fn raise(py: Python<'_>, name: &str, message: String) -> PyErr {
    match class(py, name) {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    }
}

/// A parameter out of range.
pub(crate) fn parameter(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "ParameterError", message.into())
}

/// A parameter of the wrong type.
pub(crate) fn parameter_type(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "ParameterTypeError", message.into())
}

/// A secret that nobody has, or that was handed out before.
pub(crate) fn secret(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "SecretError", message.into())
}

/// A key of a type that has no canonical bytes.
pub(crate) fn key_type(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "KeyTypeError", message.into())
}

/// `error` of the key at `position` in a batch, counted from 0: a key that is none is named by its place.
#[cold]
pub(crate) fn at(py: Python<'_>, position: usize, error: PyErr) -> PyErr {
    match class(py, "KeyTypeError") {
        Ok(class) if error.is_instance(py, &class) => {
            key_type(py, format!("item {position} of the batch (the first is 0): {}", error.value(py)))
        }
        _ => error,
    }
}

/// `error`, but the house's where the interpreter or a library could not get memory.
#[cold]
pub(crate) fn in_tree(py: Python<'_>, error: PyErr) -> PyErr {
    let root = match class(py, "BloomeryError") {
        Ok(root) => root,
        Err(error) => return error,
    };
    if !error.is_instance_of::<PyMemoryError>(py) || error.matches(py, root).unwrap_or(true) {
        return error;
    }
    let said = error.value(py).to_string();
    let why = if said.is_empty() { said } else { format!(" ({said})") };
    let remedy = "give it in smaller parts";
    raise(py, "FilterMemoryError", format!("the input needs more bytes of memory than can be had{why}; {remedy}"))
}

/// The exception for a core error.
pub(crate) fn convert(py: Python<'_>, error: Error) -> PyErr {
    match error {
        Error::Parameter(m) => raise(py, "ParameterError", m),
        Error::Memory(m) => raise(py, "FilterMemoryError", m),
        Error::Incompatible(m) => raise(py, "IncompatibleFilters", m),
        Error::Format(m) => raise(py, "FormatError", m),
        Error::ReadOnly(m) => raise(py, "ReadOnlyFilter", m),
        Error::Capacity(m) => raise(py, "FilterFull", m),
        Error::Io(e, path) => match e.raw_os_error() {
            // (errno, text, filename) makes Python choose FileNotFoundError and its kin.
            Some(errno) => {
                let text = py
                    .import("os")
                    .and_then(|os| os.call_method1("strerror", (errno,)))
                    .map_or_else(|_| e.to_string(), |text| text.to_string());
                PyErr::new::<pyo3::exceptions::PyOSError, _>((errno, text, path))
            }
            None => PyErr::new::<pyo3::exceptions::PyOSError, _>(format!("{}: {e}", shown(path))),
        },
    }
}

/// `map_err` for results of the core.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for bloomery_core::Result<T> {
    #[inline(always)]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| convert(py, error))
    }
}

/// Warns that a filter holds more keys than it was sized for; raises if warnings are errors.
#[cold]
pub(crate) fn warn_overfull(py: Python<'_>, count: u64, capacity: u64) -> PyResult<()> {
    let message = format!(
        "the filter now holds {count} keys, its capacity is {capacity}: its false-positive rate is above the \
         target from here on; use a larger capacity, or ScalableBloomFilter"
    );
    let category = py.import("bloomery.errors")?.getattr("CapacityWarning")?;
    let warn = py.import("warnings")?.getattr("warn")?;
    warn.call1((message, category))?;
    Ok(())
}
