//! [`Held`]: bytes of the budget, taken for what Python holds of a request or an answer.

use parking_lot::Mutex;
use pyo3::prelude::*;

use super::{Service, to_exception};
use crate::budget;

/// Bytes of memory that are taken from the service's budget, until the end of a `with`, or `release`.
#[pyclass(frozen, module = "fullbloom_server")]
pub(crate) struct Held(Mutex<budget::Held>);

#[pymethods]
impl Held {
    /// Takes more bytes; a fault (`overloaded`, `limit`) where there are none.
    fn grow(&self, py: Python<'_>, nbytes: u64) -> PyResult<()> {
        self.0.lock().grow(nbytes).map_err(|fault| to_exception(py, &fault))
    }

    /// Holds exactly so many bytes from here on.
    fn resize(&self, py: Python<'_>, nbytes: u64) -> PyResult<()> {
        self.0.lock().set(nbytes).map_err(|fault| to_exception(py, &fault))
    }

    /// Gives everything back; it may grow again.
    fn release(&self) {
        self.0.lock().release();
    }

    /// Bytes that it holds.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.lock().bytes()
    }

    fn __enter__(held: Py<Self>) -> Py<Self> {
        held
    }

    #[pyo3(signature = (*_why))]
    fn __exit__(&self, _why: &Bound<'_, pyo3::types::PyTuple>) {
        self.release();
    }
}

#[pymethods]
impl Service {
    /// Takes bytes of memory for what is held for a client, as a context manager; a fault `overloaded` where clients hold
    /// too many now, `limit` where there are never so many. It takes no lock and may be called on an event loop.
    fn hold(&self, py: Python<'_>, nbytes: u64) -> PyResult<Held> {
        let held = self.store.budget().take(nbytes).map_err(|fault| to_exception(py, &fault))?;
        Ok(Held(Mutex::new(held)))
    }

    /// Bytes held for clients: now, the most there may be, the most there were, and how often some were refused.
    fn memory(&self) -> (u64, u64, u64, u64) {
        let budget = self.store.budget();
        (budget.held(), budget.most(), budget.highest(), budget.refused())
    }
}
