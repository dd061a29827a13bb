//! [`SharedReservation`]: memory that Python holds for a request or a response.

use parking_lot::Mutex;
use pyo3::prelude::*;

use super::{Service, to_exception};
use crate::budget;

/// Memory charged to the service's budget until the end of a `with` block, or `release`.
#[pyclass(frozen, module = "fullbloom_server")]
pub(crate) struct SharedReservation(Mutex<budget::Reservation>);

#[pymethods]
impl SharedReservation {
    /// Charges more bytes; a fault (`overloaded`, `limit`) if they are not available.
    fn grow(&self, py: Python<'_>, nbytes: u64) -> PyResult<()> {
        self.0.lock().grow(nbytes).map_err(|fault| to_exception(py, &fault))
    }

    /// Charges exactly this many bytes from now on.
    fn resize(&self, py: Python<'_>, nbytes: u64) -> PyResult<()> {
        self.0.lock().set(nbytes).map_err(|fault| to_exception(py, &fault))
    }

    /// Returns all bytes; it may grow again.
    fn release(&self) {
        self.0.lock().release();
    }

    /// The number of bytes charged.
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
    /// Charges memory held for a client, as a context manager. Faults: `overloaded` if clients hold too much now,
    /// `limit` if the budget is smaller than that. Takes no lock, so an event loop may call it.
    fn hold(&self, py: Python<'_>, nbytes: u64) -> PyResult<SharedReservation> {
        let held = self.store.budget().take(nbytes).map_err(|fault| to_exception(py, &fault))?;
        Ok(SharedReservation(Mutex::new(held)))
    }

    /// The bytes held for clients: now, the limit, the maximum so far, and how often a request was refused.
    fn memory(&self) -> (u64, u64, u64, u64) {
        let budget = self.store.budget();
        (budget.used(), budget.most(), budget.peak(), budget.refusals())
    }
}
