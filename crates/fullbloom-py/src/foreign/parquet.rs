//! The filters of a Parquet file, from its footer.

use fullbloom_core::foreign::formats;
use fullbloom_core::foreign::parquet::footer;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::OrRaise;
use crate::parameters;
use crate::python_objects::bytes::read_bytes;

/// Bytes of the footer of a Parquet file of `size` bytes that ends with the 8 bytes `tail`.
#[pyfunction]
#[pyo3(signature = (tail: "bytes", size: "int") -> "int")]
pub(crate) fn parquet_footer_len(tail: &Bound<'_, PyAny>, size: &Bound<'_, PyAny>) -> PyResult<u64> {
    let (py, size) = (tail.py(), parameters::parse_whole("size", size, 0)?);
    footer::footer_len(&read_bytes("tail", tail)?, size).or_raise(py)
}

/// The columns of all row groups, or the one of this name: (row group, rows, column, physical type, offset and length of the
/// filter or None, whether it is encrypted).
#[pyfunction]
#[pyo3(signature = (
    footer: "bytes", size: "int", column: "str | None" = None
) -> "list[tuple[int, int, str, str, int | None, int | None, bool]]")]
pub(crate) fn parquet_chunks<'py>(
    footer: &Bound<'py, PyAny>,
    size: &Bound<'_, PyAny>,
    column: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let (py, size) = (footer.py(), parameters::parse_whole("size", size, 0)?);
    let column = column.filter(|name| !name.is_none()).map(|name| parameters::text("column", name)).transpose()?;
    let bytes = read_bytes("footer", footer)?;
    let found = py.detach(|| footer::chunks(&bytes, size, column)).or_raise(py)?;
    let rows = PyList::empty(py);
    for chunk in found {
        let (offset, length, encrypted) = (chunk.offset, chunk.length, chunk.encrypted);
        let row = (chunk.row_group, chunk.num_rows, chunk.column, chunk.physical_type, offset, length, encrypted);
        rows.append(row)?;
    }
    Ok(rows)
}

/// Bytes of the filter that begins with the 32 bytes `head`, with its header.
#[pyfunction]
#[pyo3(signature = (head: "bytes") -> "int")]
pub(crate) fn parquet_filter_len(head: &Bound<'_, PyAny>) -> PyResult<u64> {
    formats::parquet_len(&read_bytes("head", head)?).or_raise(head.py())
}
