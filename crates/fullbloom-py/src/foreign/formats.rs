//! The table of formats, and the format of bytes.

use fullbloom_core::foreign::{fingerprints, formats};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::files;
use crate::errors::OrRaise;
use crate::files::path as read_path;
use crate::python_objects::bytes::read_bytes;

/// The name of the format of bytes, or of the file at a path; None if they fit none.
#[pyfunction]
#[pyo3(signature = (source: "bytes | bytearray | memoryview | str | os.PathLike[str]") -> "str | None")]
pub(crate) fn detect_foreign(source: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let py = source.py();
    let is_path = source.is_instance_of::<PyString>() || source.hasattr("__fspath__")?;
    if is_path {
        let path = read_path(source)?;
        return py.detach(|| files::detect_name(&path)).or_raise(py);
    }
    let bytes = read_bytes("source", source)?;
    Ok(files::name_of(&bytes[..bytes.len().min(formats::Head::MOST)], bytes.len() as u64))
}

/// One dict per format of other programs: name, title, rule, types of keys, and how it was checked.
#[pyfunction]
#[pyo3(signature = () -> "list[dict[str, Any]]")]
pub(crate) fn foreign_formats(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for format in formats::ALL {
        let row = PyDict::new(py);
        row.set_item("number", format.number)?;
        row.set_item("name", format.name)?;
        row.set_item("title", format.title)?;
        row.set_item("rule", format.rule_in_words)?;
        row.set_item("key_types", format.key_types.iter().map(|of| of.name()).collect::<Vec<_>>())?;
        row.set_item("key_type_name", format.key_type_name)?;
        row.set_item("seeded", format.is_seeded)?;
        row.set_item("class", "ForeignFilter")?;
        row.set_item("verified", format.verified)?;
        row.set_item("limits", format.limits)?;
        rows.append(row)?;
    }
    for format in fingerprints::rows::ALL {
        let row = PyDict::new(py);
        row.set_item("number", format.number)?;
        row.set_item("name", format.name)?;
        row.set_item("title", format.title)?;
        row.set_item("rule", format.rule_in_words)?;
        row.set_item("key_types", format.keys().types.iter().map(|of| of.name()).collect::<Vec<_>>())?;
        row.set_item("key_type_name", format.keys().called)?;
        row.set_item("seeded", false)?;
        row.set_item("class", "ForeignStaticFilter")?;
        row.set_item("verified", format.verified)?;
        row.set_item("limits", format.limits)?;
        rows.append(row)?;
    }
    Ok(rows)
}
