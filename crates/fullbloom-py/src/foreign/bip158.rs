//! The filters of BIP 158.

use fullbloom_core::foreign::bip158::{self, BlockFilter};
use fullbloom_core::hash::siphash::{SipKey, sip_key};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::errors::{OrRaise, parameter, parameter_type};
use crate::python_objects::bytes::read_bytes;

/// Reads `key=`, the first 16 bytes of a block's hash.
fn read_key(key: &Bound<'_, PyAny>) -> PyResult<SipKey> {
    let bytes = read_bytes("key", key)?;
    let wrong = || parameter(key.py(), format!("key must be 16 bytes, got {}", bytes.len()));
    <&[u8; 16]>::try_from(&bytes[..]).map(sip_key).map_err(|_| wrong())
}

/// Reads a list of `bytes`, which stay alive with the objects.
fn read_elements<'py>(elements: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let refuse = || parameter_type(elements.py(), "elements must be a list of bytes");
    let list = elements.cast::<PyList>().map_err(|_| refuse())?;
    list.iter().map(|item| item.cast_into::<PyBytes>().map_err(|_| refuse())).collect()
}

/// The bytes of a BIP 158 filter of distinct elements.
#[pyfunction]
#[pyo3(signature = (key: "bytes", elements: "list[bytes]") -> "bytes")]
pub(crate) fn bip158_build<'py>(
    key: &Bound<'py, PyAny>,
    elements: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (py, key, elements) = (key.py(), read_key(key)?, read_elements(elements)?);
    let elements: Vec<&[u8]> = elements.iter().map(|element| element.as_bytes()).collect();
    let built = py.detach(|| bip158::build(key, &elements)).or_raise(py)?;
    Ok(PyBytes::new(py, &built))
}

/// The number of elements of a BIP 158 filter, all bytes of which are checked.
#[pyfunction]
#[pyo3(signature = (data: "bytes") -> "int")]
pub(crate) fn bip158_count(data: &Bound<'_, PyAny>) -> PyResult<u64> {
    let (py, bytes) = (data.py(), read_bytes("data", data)?);
    py.detach(|| BlockFilter::read(&bytes).map(|filter| filter.count())).or_raise(py)
}

/// One result per element: True if a BIP 158 filter may have it.
#[pyfunction]
#[pyo3(signature = (data: "bytes", key: "bytes", elements: "list[bytes]") -> "list[bool]")]
pub(crate) fn bip158_matches(
    data: &Bound<'_, PyAny>,
    key: &Bound<'_, PyAny>,
    elements: &Bound<'_, PyAny>,
) -> PyResult<Vec<bool>> {
    let (py, bytes) = (data.py(), read_bytes("data", data)?);
    let (key, elements) = (read_key(key)?, read_elements(elements)?);
    let elements: Vec<&[u8]> = elements.iter().map(|element| element.as_bytes()).collect();
    py.detach(|| BlockFilter::read(&bytes)?.matches(key, &elements)).or_raise(py)
}
