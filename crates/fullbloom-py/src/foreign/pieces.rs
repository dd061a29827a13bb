//! The pieces of a dump, to Python and from it.

use std::sync::Mutex;

use fullbloom_core::foreign::redisbloom::dump::{Dumpable, Loader};
use pyo3::prelude::*;

use crate::errors::{OrRaise, parameter_type};
use crate::python_objects::bytes::read_bytes;

/// The pieces of a dump, one after the other.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct DumpPieces {
    filter: Py<PyAny>,
    next: Mutex<Option<i64>>,
}

impl DumpPieces {
    /// Those of a filter.
    pub(super) fn of(filter: Py<PyAny>) -> Self {
        DumpPieces { filter, next: Mutex::new(Some(0)) }
    }
}

#[pymethods]
impl DumpPieces {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let taken = self.next.lock().map_or(None, |mut next| next.take());
        let Some(number) = taken else { return Ok(None) };
        let piece = self.filter.bind(py).call_method1("scan_dump", (number,))?;
        let (next, _): (i64, Bound<'_, PyAny>) = piece.extract()?;
        if next == 0 {
            return Ok(None);
        }
        if let Ok(mut at) = self.next.lock() {
            *at = Some(next);
        }
        Ok(Some(piece))
    }
}

/// The filter in pieces from Python, each of which is released before the next one is taken.
pub(super) fn load_pieces<T: Dumpable + Send>(pieces: &Bound<'_, PyAny>, max_bytes: u64) -> PyResult<T> {
    let (py, mut loader) = (pieces.py(), Loader::<T>::new(max_bytes));
    let items = pieces.try_iter().map_err(|_| {
        parameter_type(py, "pieces must be an iterable of pairs of a number and bytes, as SCANDUMP answers")
    })?;
    for item in items {
        let item = item?;
        let pair: PyResult<(i64, Bound<'_, PyAny>)> = item.extract();
        let (number, data) =
            pair.map_err(|_| parameter_type(py, "pieces must be pairs of a number and bytes, as SCANDUMP answers"))?;
        let bytes = read_bytes("a piece", &data)?;
        py.detach(|| loader.push(number, &bytes)).or_raise(py)?;
    }
    loader.finish().or_raise(py)
}
