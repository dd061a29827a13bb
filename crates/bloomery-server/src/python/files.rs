//! Filters as bytes, merged, copied, backed up.

use std::path::PathBuf;

use bloomery_core::container::{Parsed, Verify};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::names::free_of_notes;
use super::{Service, Versions};
use crate::fault::{Code, Fault, Result};
use crate::kind::{self, Kind, Spec};
use crate::store::{Settings, Store};

/// A filter as the bytes of a file.
fn bytes_of(filter: &dyn Kind) -> Result<Vec<u8>> {
    let container = filter.container();
    let head = container.head()?;
    let mut out = Vec::with_capacity(container.nbytes());
    container.write_with(&head, &mut out).map_err(|error| Fault::new(Code::Io, error.to_string()))?;
    Ok(out)
}

/// The filter in the bytes of a file, and what is known of its making.
fn read(store: &Store, bytes: &[u8]) -> Result<(Settings, Box<dyn Kind>)> {
    let header = Parsed::new(bytes, Verify::Header)?.header;
    let keyed = header.secret_fingerprint != 0;
    let secret = keyed.then(|| store.master().secret_of(header.seed));
    let filter = kind::load(bytes, secret, store.options.limits.filter_bytes).map_err(|error| {
        let fault = error;
        if keyed && fault.code != Code::Format {
            Fault::new(
                Code::Format,
                format!("{}; a keyed filter comes back only to the service that keyed it", fault.text),
            )
        } else {
            fault
        }
    })?;
    let spec = Spec { kind: filter.variant().name.into(), seed: header.seed, keyed, ..Spec::default() };
    Ok((Settings::of(spec), filter))
}

#[pymethods]
impl Service {
    /// A filter as the bytes of a file, which `bloomery.open` and `restore` read.
    fn dump<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.ask(py, |store| bytes_of(store.filter(name.as_bytes())?.look().as_ref()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Puts the filter in the bytes of a file under a name, in place of one that has it if `replace`: its number.
    #[pyo3(signature = (name, bytes, *, replace=false, versions=None))]
    fn restore(&self, py: Python<'_>, name: &str, bytes: &[u8], replace: bool, versions: Versions) -> PyResult<u64> {
        self.change(py, |store| {
            free_of_notes(store, name)?;
            let (settings, filter) = read(store, bytes)?;
            let versions = versions.as_deref();
            store.restore_at(name.as_bytes(), settings, filter, replace, versions).map(|(entry, lsn)| (entry.id, lsn))
        })
    }

    /// Takes the keys of `source` into a filter.
    #[pyo3(signature = (name, source, *, versions=None))]
    fn merge(&self, py: Python<'_>, name: &str, source: &str, versions: Versions) -> PyResult<()> {
        self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            // A copy: two locks at once, in any order, could wait for each other.
            let other = store.filter(source.as_bytes())?.look().duplicate()?;
            store.merge(entry.at(versions.as_deref()), other.as_ref()).map(|lsn| ((), lsn))
        })
    }

    /// Puts a copy of a filter, in one of `versions` if any are given, under a name: its number.
    #[pyo3(signature = (name, source, *, replace=false, versions=None))]
    fn clone(&self, py: Python<'_>, name: &str, source: &str, replace: bool, versions: Versions) -> PyResult<u64> {
        self.change(py, |store| {
            free_of_notes(store, name)?;
            let entry = store.filter(source.as_bytes())?;
            let copy = {
                let filter = entry.look();
                entry.at(versions.as_deref()).check()?;
                filter.duplicate()?
            };
            let settings = entry.settings.clone();
            store.restore(name.as_bytes(), settings, copy, replace).map(|(entry, lsn)| (entry.id, lsn))
        })
    }

    /// Copies a checkpoint of now into an empty folder, from which a service starts: files and bytes of them.
    fn backup(&self, py: Python<'_>, folder: PathBuf) -> PyResult<(u64, u64)> {
        self.ask(py, |store| store.backup(&folder).map(|done| (done.files, done.bytes)))
    }
}
