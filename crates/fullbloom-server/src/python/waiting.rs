//! Waiting for others: for tasks over a whole filter, without a thread, and for the disk, in one.

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Service;
use crate::store;

/// A client that waits for a filter, until the end of a `with` block.
#[pyclass(frozen, module = "fullbloom_server")]
pub(crate) struct Waiting(Mutex<Option<store::Waiting>>);

#[pymethods]
impl Waiting {
    /// True as long as a change would wait. Takes no lock of the filter, so an event loop may call it.
    fn goes_on(&self) -> bool {
        self.0.lock().as_ref().is_some_and(store::Waiting::goes_on)
    }

    fn __enter__(waiting: Py<Self>) -> Py<Self> {
        waiting
    }

    #[pyo3(signature = (*_why))]
    fn __exit__(&self, _why: &Bound<'_, PyTuple>) {
        drop(self.0.lock().take());
    }
}

#[pymethods]
impl Service {
    /// A context manager for a client that waits for the tasks that read a whole filter; None if there is no such task.
    fn wait_for_filter(&self, name: &str) -> Option<Waiting> {
        let entry = self.store.filter(name.as_bytes()).ok().filter(|entry| entry.is_being_read())?;
        Some(Waiting(Mutex::new(Some(store::Waiting::new(entry)))))
    }

    /// Waits until all changes made so far are as durable as the mode promises.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |store| store.log().wait_blocking(store.log().next() - 1))
    }
}
