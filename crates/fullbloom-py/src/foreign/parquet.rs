//! The filters of a Parquet file, from its footer.

use std::sync::{Mutex, PoisonError};

use fullbloom_core::foreign::formats;
use fullbloom_core::foreign::parquet::footer::{self, Chunks};
use pyo3::prelude::*;

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

/// Row group, rows, column, physical type, offset and length of the filter or None, whether it is encrypted.
type Row = (usize, u64, String, &'static str, Option<u64>, Option<u64>, bool);

/// The columns of all row groups of a Parquet file, or the one with a name, each created as the iterator reaches it.
///
/// An item is (row group, rows, column, physical type, offset and length of the filter or None, whether it is encrypted).
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct ParquetChunks {
    chunks: Mutex<Chunks>,
    end: u64,
}

#[pymethods]
impl ParquetChunks {
    /// Those of a file of `size` bytes with this footer, all of which is checked.
    #[new]
    #[pyo3(signature = (footer: "bytes", size: "int", column: "str | None" = None))]
    fn new(footer: &Bound<'_, PyAny>, size: &Bound<'_, PyAny>, column: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let (py, size) = (footer.py(), parameters::parse_whole("size", size, 0)?);
        let column = column.filter(|name| !name.is_none()).map(|name| parameters::text("column", name)).transpose()?;
        let column = column.map(str::to_owned);
        let bytes = read_bytes("footer", footer)?.to_vec();
        let chunks = py.detach(|| Chunks::new(bytes, size, column)).or_raise(py)?;
        Ok(ParquetChunks { end: chunks.end, chunks: Mutex::new(chunks) })
    }

    /// First byte of the footer in the file: filters end before it.
    #[getter]
    fn end(&self) -> u64 {
        self.end
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Row> {
        // Of a footer of megabytes, most of which are other columns.
        let chunk = py.detach(|| self.chunks.lock().unwrap_or_else(PoisonError::into_inner).next())?;
        let (offset, length, encrypted) = (chunk.offset, chunk.length, chunk.encrypted);
        Some((chunk.row_group, chunk.num_rows, chunk.column, chunk.physical_type, offset, length, encrypted))
    }
}

/// Bytes of the filter that begins with the 32 bytes `head`, with its header.
#[pyfunction]
#[pyo3(signature = (head: "bytes") -> "int")]
pub(crate) fn parquet_filter_len(head: &Bound<'_, PyAny>) -> PyResult<u64> {
    formats::parquet_len(&read_bytes("head", head)?).or_raise(head.py())
}
