//! From core errors to the exceptions of `fullbloom.errors`, where the tree is defined.

use fullbloom_core::Error;
use fullbloom_core::error::display_name;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// A class of `fullbloom.errors` by name.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let module = MODULE.get_or_try_init(py, || py.import("fullbloom.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into()?)
}

/// An exception of `fullbloom.errors` by name.
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

/// A secret that was not taken, or that was taken before.
pub(crate) fn secret(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "SecretError", message.into())
}

/// A key of a type that has no canonical bytes.
pub(crate) fn key_type(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "KeyTypeError", message.into())
}

/// A method that a class does not have.
#[cold]
pub(crate) fn absent_method(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "MissingOperation", message.into())
}

/// `error` of the item at `position` in a batch, counted from 0: an item that is not a key is named by its position.
#[cold]
pub(crate) fn at(py: Python<'_>, position: usize, error: PyErr) -> PyErr {
    match class(py, "KeyTypeError") {
        Ok(class) if error.is_instance(py, &class) => {
            key_type(py, format!("item {position} of the batch (the first is 0): {}", error.value(py)))
        }
        _ => error,
    }
}

/// `error`, replaced by ours if the interpreter or a library could not allocate memory.
#[cold]
pub(crate) fn in_tree(py: Python<'_>, error: PyErr) -> PyErr {
    let root = match class(py, "FullbloomError") {
        Ok(root) => root,
        Err(error) => return error,
    };
    if !error.is_instance_of::<PyMemoryError>(py) || error.matches(py, root).unwrap_or(true) {
        return error;
    }
    let said = error.value(py).to_string();
    let why = if said.is_empty() { said } else { format!(" ({said})") };
    let remedy = "give it in smaller parts";
    raise(py, "FilterMemoryError", format!("the input needs more bytes of memory than are available{why}; {remedy}"))
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
            None => PyErr::new::<pyo3::exceptions::PyOSError, _>(format!("{}: {e}", display_name(path))),
        },
    }
}

/// `map_err` for results of the core.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for fullbloom_core::Result<T> {
    #[inline(always)]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| convert(py, error))
    }
}

/// How full a filter is that holds more keys than it was sized for.
pub(crate) struct Overfull {
    pub(crate) count: u64,
    pub(crate) capacity: u64,
    pub(crate) fpr: f64,
    pub(crate) target_fpr: f64,
}

impl Overfull {
    /// The present rate and the target: at a filter's capacity the rate may still be within the target.
    fn rates(&self) -> String {
        let (fpr, target) = distinguish(self.fpr, self.target_fpr);
        if self.fpr > self.target_fpr {
            format!("{fpr}, above the target of {target}")
        } else {
            format!("{fpr}, within the target of {target}, and rises with each new key")
        }
    }
}

/// Two rates in three digits, or in as many as they need to differ.
fn distinguish(one: f64, other: f64) -> (String, String) {
    let shown = |rate: f64, digits: usize| {
        let rounded: f64 = format!("{rate:.digits$e}").parse().unwrap_or(rate);
        format!("{rounded:?}")
    };
    let digits = (2..17).find(|&digits| one == other || shown(one, digits) != shown(other, digits)).unwrap_or(17);
    (shown(one, digits), shown(other, digits))
}

/// Warns that a filter holds more keys than it was sized for; raises if warnings are errors.
#[cold]
pub(crate) fn warn_overfull(py: Python<'_>, of: &Overfull) -> PyResult<()> {
    let message = format!(
        "the filter now holds {} keys, its capacity is {}: its false-positive rate is {}; use a larger capacity, or \
         ScalableBloomFilter",
        of.count,
        of.capacity,
        of.rates()
    );
    let category = py.import("fullbloom.errors")?.getattr("CapacityWarning")?;
    let warn = py.import("warnings")?.getattr("warn")?;
    warn.call1((message, category))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_written_in_digits_that_differ() {
        let said = |fpr, target_fpr| Overfull { count: 2, capacity: 1, fpr, target_fpr }.rates();
        assert_eq!(said(0.0123456, 0.01), "0.0123, above the target of 0.01");
        assert_eq!(said(0.00991, 0.01), "0.00991, within the target of 0.01, and rises with each new key");
        assert_eq!(said(0.0100004, 0.01), "0.0100004, above the target of 0.01");
        assert_eq!(said(1e-9, 1e-9), "1e-9, within the target of 1e-9, and rises with each new key");
        assert_eq!(said(0.5, 0.0), "0.5, above the target of 0.0");
    }
}
