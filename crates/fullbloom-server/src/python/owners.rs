//! Owners of a bank. Clients send them as JSON: one as `{"key": owner}`, several as `{"keys": [owner, ...]}`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::{Service, Versions};
use crate::fault::{Fault, Result};
use crate::json::{self, Hashing};
use crate::store::{Entry, Lsn, Store};

/// The bank of this name, and the hashes of the owners in a body.
fn hash_owners(store: &Store, name: &str, body: &[u8]) -> Result<(Arc<Entry>, Vec<u64>)> {
    let entry = store.filter(name.as_bytes())?;
    let hasher = {
        let filter = entry.read();
        filter.bank()?;
        filter.hasher()
    };
    let body = json::body(body, &Hashing::Own(hasher), (&store.options.limits).into())?;
    Ok((entry, body.words))
}

/// [`hash_owners`] of a body with one owner.
fn hash_owner(store: &Store, name: &str, body: &[u8]) -> Result<(Arc<Entry>, u64)> {
    let (entry, owners) = hash_owners(store, name, body)?;
    match owners.as_slice() {
        [owner] => Ok((entry, *owner)),
        _ => Err(Fault::invalid("give one owner")),
    }
}

#[pymethods]
impl Service {
    /// Up to `most` owners from the hash `start` on, as pairs of hash and number of keys; the hash with which the next
    /// page starts, or None; and the number of all owners.
    #[pyo3(signature = (name, *, start=0, most=1000))]
    #[allow(clippy::type_complexity)] // a page
    fn owners(
        &self,
        py: Python<'_>,
        name: &str,
        start: u64,
        most: usize,
    ) -> PyResult<(Vec<(u64, u64)>, Option<u64>, u64)> {
        let page = self.call(py, |store| store.filter(name.as_bytes())?.owners(start, most))?;
        Ok((page.owners, page.next, page.total))
    }

    /// What is known about an owner; None if the bank does not have it.
    fn owner_info<'py>(&self, py: Python<'py>, name: &str, body: &[u8]) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.call(py, |store| {
            let (entry, owner) = hash_owner(store, name, body)?;
            store.owner_info(&entry, owner)
        })?;
        let Some(info) = found else { return Ok(None) };
        let out = PyDict::new(py);
        out.set_item("num_added", info.num_added)?;
        out.set_item("stages", info.stages)?;
        out.set_item("nbytes", info.nbytes)?;
        out.set_item("fpr", info.fpr)?;
        out.set_item("estimated", info.estimated.map(|(keys, _)| keys))?;
        out.set_item("estimated_deviation", info.estimated.map(|(_, deviation)| deviation))?;
        Ok(Some(out))
    }

    /// The filter of an owner as the bytes of a file; None if the bank does not have the owner.
    fn export_owner<'py>(&self, py: Python<'py>, name: &str, body: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = self.call(py, |store| {
            let (entry, owner) = hash_owner(store, name, body)?;
            store.export_owner(&entry, owner)
        })?;
        Ok(found.map(|(bytes, _held)| PyBytes::new(py, &bytes)))
    }

    /// Removes all keys of owners; returns for each whether it exists.
    #[pyo3(signature = (name, body, *, versions=None))]
    fn clear_owners(&self, py: Python<'_>, name: &str, body: &[u8], versions: Versions) -> PyResult<Vec<bool>> {
        self.change_owners(py, name, body, |store, entry, owners, flags| {
            store.clear_owners(entry.at(versions.as_deref()), owners, flags)
        })
    }

    /// Removes owners; returns for each whether it existed.
    #[pyo3(signature = (name, body, *, versions=None))]
    fn remove_owners(&self, py: Python<'_>, name: &str, body: &[u8], versions: Versions) -> PyResult<Vec<bool>> {
        self.change_owners(py, name, body, |store, entry, owners, flags| {
            store.remove_owners(entry.at(versions.as_deref()), owners, flags)
        })
    }
}

impl Service {
    fn change_owners(
        &self,
        py: Python<'_>,
        name: &str,
        body: &[u8],
        change: impl Send + FnOnce(&Store, &Entry, &[u64], &mut [u8]) -> Result<Lsn>,
    ) -> PyResult<Vec<bool>> {
        self.change(py, |store| {
            let (entry, owners) = hash_owners(store, name, body)?;
            let mut flags = vec![0; owners.len()];
            let lsn = change(store, &entry, &owners, &mut flags)?;
            Ok((flags.iter().map(|&flag| flag == 1).collect(), lsn))
        })
    }
}
