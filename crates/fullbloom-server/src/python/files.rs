//! Filters as files: dump, restore, merge, clone, back up.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::catalogue::check_not_note;
use super::{Service, Versions, to_exception};
use crate::fault::{Code, Fault, Result};
use crate::kind::Kind;
use crate::store::{Conflict, Settings, Snapshot, Store};

/// The file of a filter at one moment, read in pieces while the filter changes. Its memory is charged to the budget
/// until it is closed, and shared with others who read the same file.
#[pyclass(frozen, module = "fullbloom_server")]
pub(crate) struct Dump(Mutex<Option<Arc<Snapshot>>>);

#[pymethods]
impl Dump {
    /// The length of the file, in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.lock().as_ref().map_or(0, |file| file.nbytes())
    }

    /// Up to `most` bytes from `start` on; none at the end. The first call computes the checksums of the whole file.
    fn read<'py>(&self, py: Python<'py>, start: u64, most: u64) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.0.lock().clone();
        let bytes = py.detach(|| {
            let mut bytes = Vec::new();
            if let Some(file) = file {
                let range = start.min(file.nbytes())..file.nbytes().min(start.saturating_add(most));
                bytes.reserve_exact((range.end - range.start) as usize);
                file.append(range, &mut bytes)?;
            }
            Ok(bytes)
        });
        Ok(PyBytes::new(py, &bytes.map_err(|fault: Fault| to_exception(py, &fault))?))
    }

    /// Frees its memory.
    fn close(&self, py: Python<'_>) {
        let file = self.0.lock().take();
        py.detach(|| drop(file));
    }

    fn __enter__(dump: Py<Self>) -> Py<Self> {
        dump
    }

    #[pyo3(signature = (*_why))]
    fn __exit__(&self, py: Python<'_>, _why: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// The filter in the bytes of a file, and its settings.
fn read(store: &Store, bytes: &[u8]) -> Result<(Settings, Box<dyn Kind>)> {
    let (spec, filter) = store.read_filter(bytes)?;
    let filter = filter.map_err(|fault| match fault.code {
        Code::Format => fault,
        _ if spec.keyed => {
            let text = format!("{}; a keyed filter can only be restored by the service that keyed it", fault.text);
            Fault::new(Code::Format, text)
        }
        _ => fault,
    })?;
    Ok((Settings::of(spec), filter))
}

#[pymethods]
impl Service {
    /// The filter as the bytes of a file, which `fullbloom.open` and `restore` read.
    fn dump<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.call(py, |store| {
            let file = store.filter(name.as_bytes())?.snapshot(store.budget())?;
            let mut bytes = Vec::with_capacity(file.nbytes() as usize);
            file.append(0..file.nbytes(), &mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// [`Service::dump`] in pieces, so that large files are sent without a second copy.
    fn open_dump(&self, py: Python<'_>, name: &str) -> PyResult<Dump> {
        let file = self.call(py, |store| store.filter(name.as_bytes())?.snapshot(store.budget()))?;
        Ok(Dump(Mutex::new(Some(file))))
    }

    /// Restores a filter from the bytes of a file under a name, replacing a filter of that name if `replace`; returns
    /// its info.
    #[pyo3(signature = (name, bytes, *, replace=false, versions=None))]
    fn restore<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        bytes: &[u8],
        replace: bool,
        versions: Versions,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.change_entry(py, |store| {
            check_not_note(store, name)?;
            // Until the filter is counted with all others.
            let _held = store.budget().take(bytes.len() as u64)?;
            let (settings, filter) = read(store, bytes)?;
            let conflict = if replace { Conflict::ReplaceFilter(versions.as_deref()) } else { Conflict::Refuse };
            store.restore_with(name.as_bytes(), settings, filter, conflict)
        })
    }

    /// Merges the keys of `source` into a filter; returns its info.
    #[pyo3(signature = (name, source, *, versions=None))]
    fn merge<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        source: &str,
        versions: Versions,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.change_entry(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let source = store.filter(source.as_bytes())?;
            let lsn = store.merge(entry.at(versions.as_deref()), &source)?;
            Ok((entry, lsn))
        })
    }

    /// Copies a filter, in one of `versions` if any are given, to another name; returns the info of the copy.
    #[pyo3(signature = (name, source, *, replace=false, versions=None))]
    fn clone<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        source: &str,
        replace: bool,
        versions: Versions,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.change_entry(py, |store| {
            check_not_note(store, name)?;
            let entry = store.filter(source.as_bytes())?;
            let _held = store.budget().take(entry.nbytes())?;
            let copy = entry.duplicate(|version| entry.at(versions.as_deref()).check_version(version))?;
            let settings = entry.settings.clone();
            let conflict = if replace { Conflict::ReplaceFilter(None) } else { Conflict::Refuse };
            store.restore_with(name.as_bytes(), settings, copy, conflict)
        })
    }

    /// Writes a checkpoint and copies it into an empty folder, from which a service can start; returns the number and
    /// bytes of its files.
    fn backup(&self, py: Python<'_>, folder: PathBuf) -> PyResult<(u64, u64)> {
        self.call(py, |store| store.backup(&folder).map(|done| (done.files, done.bytes)))
    }
}
