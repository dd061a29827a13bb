//! Making, finding, dropping.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;

use super::{Service, Versions};
use crate::fault::{Code, Fault, Result};
use crate::kind::{self, Spec};
use crate::store::{Settings, Store};

/// Refuses a name under which RESP clients keep a note: over HTTP none is seen, and none replaced.
pub(super) fn free_of_notes(store: &Store, name: &str) -> Result<()> {
    match store.get(name.as_bytes()) {
        Ok(entry) if entry.is_note() => {
            let text = "the name is that of a note (SET); choose another name, or drop the note with DEL over RESP";
            Err(Fault::new(Code::Exists, text))
        }
        _ => Ok(()),
    }
}

#[pymethods]
impl Service {
    /// Makes an empty filter of a kind, its parameters as texts: its number.
    #[pyo3(signature = (name, kind, options, *, seed, keyed, strict=false, expires=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn create(
        &self,
        py: Python<'_>,
        name: &str,
        kind: &str,
        options: Vec<(String, String)>,
        seed: u64,
        keyed: bool,
        strict: bool,
        expires: Option<u64>,
    ) -> PyResult<u64> {
        let spec = Spec { kind: kind.to_string().into(), options: Arc::new(options), seed, keyed };
        self.change(py, |store| {
            kind::by_name(&spec.kind)?;
            free_of_notes(store, name)?;
            let (entry, mut lsn) = store.create(name.as_bytes(), Settings { strict, ..Settings::of(spec) })?;
            if expires.is_some() {
                lsn = store.expire(&entry, expires)?;
            }
            Ok((entry.id, lsn))
        })
    }

    /// Up to `most` names after `after` that begin with `prefix`, in order.
    #[pyo3(signature = (*, prefix="", after="", most=1000))]
    fn names(&self, py: Python<'_>, prefix: &str, after: &str, most: usize) -> Vec<String> {
        let store = &self.store;
        py.detach(|| {
            let wanted = |name: &String| name.starts_with(prefix) && name.as_str() > after;
            let mut names: Vec<String> = store.filters().iter().map(|entry| entry.name()).filter(wanted).collect();
            names.sort_unstable();
            names.truncate(most);
            names
        })
    }

    /// How many filters there are.
    fn __len__(&self) -> usize {
        self.store.num_filters()
    }

    /// Counts changes of the catalogue.
    #[getter]
    fn epoch(&self) -> u64 {
        self.store.epoch()
    }

    /// Bytes of cells of all filters.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.store.nbytes()
    }

    /// Drops a filter: true where there was one.
    #[pyo3(signature = (name, *, versions=None))]
    fn delete(&self, py: Python<'_>, name: &str, versions: Versions) -> PyResult<bool> {
        let lsn = self.ask(py, |store| {
            let _turn = store.turn.read();
            if store.get(name.as_bytes()).is_ok_and(|entry| entry.is_note()) {
                return Ok(None);
            }
            store.drop_at(name.as_bytes(), versions.as_deref())
        })?;
        match lsn {
            Some(lsn) => self.change(py, |_| Ok((true, lsn))),
            None => Ok(false),
        }
    }

    /// Gives a filter another name; one that has it is dropped if `replace`, else it is a fault.
    #[pyo3(signature = (old, new, *, replace=false, versions=None))]
    fn rename(&self, py: Python<'_>, old: &str, new: &str, replace: bool, versions: Versions) -> PyResult<()> {
        self.change(py, |store| {
            store.filter(old.as_bytes())?;
            free_of_notes(store, new)?;
            if !replace && old != new && store.get(new.as_bytes()).is_ok() {
                return Err(Fault::new(Code::Exists, "item exists"));
            }
            store.rename_at(old.as_bytes(), new.as_bytes(), versions.as_deref()).map(|lsn| ((), lsn))
        })
    }

    /// Says when a filter is dropped, in milliseconds since 1970; None never.
    #[pyo3(signature = (name, at, *, versions=None))]
    fn expire(&self, py: Python<'_>, name: &str, at: Option<u64>, versions: Versions) -> PyResult<()> {
        self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            store.expire(entry.at(versions.as_deref()), at).map(|lsn| ((), lsn))
        })
    }

    /// Says which names live on other nodes, and at which address.
    fn set_elsewhere(&self, names: HashMap<String, String>) {
        self.store.set_elsewhere(names);
    }
}
