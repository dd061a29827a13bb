//! Parameters from Python: wrong types and wild values become errors that name them.

use fullbloom_core::bloom::Layout;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::declaration::choice;
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::errors::{OrRaise, parameter, parameter_type};

/// `value` for an error: as Python writes it, where it does.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    if let Ok(text) = value.repr() {
        return text.to_string();
    }
    // Python writes no int of more than 4300 digits.
    let bits = value.cast::<PyInt>().ok().and_then(|int| int.call_method0("bit_length").ok());
    let class = value.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
    bits.map_or_else(|| format!("a {class} that has no repr"), |bits| format!("an int of {bits} bits"))
}

fn is_whole(value: &Bound<'_, PyAny>) -> bool {
    !value.is_instance_of::<PyBool>()
        && (value.is_instance_of::<PyInt>() || value.hasattr("__index__").unwrap_or(false))
}

/// A whole number of at least `least`.
pub(crate) fn whole(name: &str, value: &Bound<'_, PyAny>, least: u64) -> PyResult<u64> {
    let py = value.py();
    if !is_whole(value) {
        let remedy = if value.is_instance_of::<PyFloat>() { " (write int(...) around it)" } else { "" };
        return Err(parameter_type(py, format!("{name} must be a whole number{remedy}, got {}", shown(value))));
    }
    match value.extract::<u64>() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(parameter(py, format!("{name} must be between {least} and 2**64 - 1, got {}", shown(value)))),
    }
}

/// A number of probes.
pub(crate) fn num_hashes(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let number = whole("num_hashes", value, 1)?;
    u32::try_from(number)
        .map_err(|_| parameter(value.py(), format!("num_hashes must be between 1 and 64, got {number}")))
}

/// A real number; the core checks its range.
pub(crate) fn real(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let py = value.py();
    let number = if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyString>() {
        None
    } else {
        value.extract::<f64>().ok()
    };
    number.ok_or_else(|| parameter_type(py, format!("{name} must be a number, got {}", shown(value))))
}

/// True or False, and nothing that merely behaves so.
pub(crate) fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    match value.cast::<PyBool>() {
        Ok(flag) => Ok(flag.is_true()),
        Err(_) => Err(parameter_type(py, format!("{name} must be True or False, got {}", shown(value)))),
    }
}

/// A text, such as the name of a choice.
pub(crate) fn text<'a>(name: &str, value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
    match value.cast::<PyString>() {
        Ok(text) => text.to_str(),
        Err(_) => Err(parameter_type(value.py(), format!("{name} must be a str, got {}", shown(value)))),
    }
}

/// `mode=` of open, not yet read.
pub(crate) fn mode<'a>(value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
    text("mode", value)
}

/// `verify=` of open, not yet read.
pub(crate) fn verify<'a>(value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
    text("verify", value)
}

/// Another filter of class `T`.
pub(crate) fn other<T: PyClass>(value: &Bound<'_, PyAny>) -> PyResult<Py<T>> {
    value.cast::<T>().map(|filter| filter.clone().unbind()).map_err(|_| {
        let py = value.py();
        let names = py.get_type::<T>().name().and_then(|wanted| Ok((wanted, value.get_type().name()?)));
        match names {
            Ok((wanted, class)) => parameter_type(py, format!("other must be a {wanted}, got {class}")),
            Err(error) => error,
        }
    })
}

/// The `fpr=` argument: an explicit None is an error, not the default.
pub(crate) struct Fpr(pub(crate) f64);

impl<'py> FromPyObject<'_, 'py> for Fpr {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        real("fpr", &value).map(Fpr)
    }
}

/// The `kind=` argument of freeze.
pub(crate) struct Kind(pub(crate) String);

impl Kind {
    /// Its default.
    pub(crate) fn auto() -> Self {
        Kind("auto".into())
    }
}

impl<'py> FromPyObject<'_, 'py> for Kind {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        text("kind", &value).map(|kind| Kind(kind.into()))
    }
}

/// A seed: any 64-bit whole number.
pub(crate) fn seed(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole("seed", value, 0)
}

/// Threads: 1 and up.
pub(crate) fn threads(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    whole("threads", value, 1).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// A layout by name; `None` for `auto`.
pub(crate) fn layout(value: &Bound<'_, PyAny>) -> PyResult<Option<Layout>> {
    choice("layout", text("layout", value)?, Layout::NAMES).or_raise(value.py())
}

/// The 16 bytes of a secret that the caller has; `None` and `False` for none. The value never appears in a message.
pub(crate) fn secret(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<[u8; 16]>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
    let py = value.py();
    if let Ok(flag) = value.cast::<PyBool>() {
        if !flag.is_true() {
            return Ok(None);
        }
        let remedy = "True draws another one when a filter is made, and take_secret() hands that out";
        return Err(parameter_type(py, format!("secret must be the 16 bytes that were used; {remedy}")));
    }
    let Ok(bytes) = value.cast::<PyBytes>() else {
        let class = value.get_type().name()?;
        return Err(parameter_type(py, format!("secret must be 16 bytes, True or None, got {class}")));
    };
    <[u8; 16]>::try_from(bytes.as_bytes())
        .map(Some)
        .map_err(|_| parameter(py, format!("secret must be 16 bytes long, got {} bytes", bytes.as_bytes().len())))
}

/// The key hasher of a new filter, for which `True` draws a secret from the system.
pub(crate) fn hasher(seed: u64, value: Option<&Bound<'_, PyAny>>) -> PyResult<KeyHasher> {
    let Some(value) = value.filter(|value| value.cast::<PyBool>().is_ok_and(|flag| flag.is_true())) else {
        return given_hasher(seed, value);
    };
    let drawn = value.py().import("secrets")?.call_method1("token_bytes", (16,))?;
    let drawn = secret(Some(&drawn))?;
    Ok(drawn.map_or_else(|| KeyHasher::seeded(seed), |secret| KeyHasher::drawn(seed, &secret)))
}

/// The key hasher for a seed and a secret that the caller has.
pub(crate) fn given_hasher(seed: u64, value: Option<&Bound<'_, PyAny>>) -> PyResult<KeyHasher> {
    Ok(match secret(value)? {
        None => KeyHasher::seeded(seed),
        Some(secret) => KeyHasher::keyed(seed, &secret),
    })
}
