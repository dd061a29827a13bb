//! Create, find, list and drop filters.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{Service, Versions};
use crate::auth::covers;
use crate::fault::Result;
use crate::kind::{self, Spec};
use crate::store::{Conflict, RenameOptions, Settings, Store, note_has_name};

/// Refuses the name of a note: HTTP neither shows nor replaces notes.
pub(super) fn check_not_note(store: &Store, name: &str) -> Result<()> {
    match store.get(name.as_bytes()) {
        Ok(entry) if entry.is_note() => Err(note_has_name()),
        _ => Ok(()),
    }
}

/// Kinds that have no row in the package's registry, in its form.
#[pyfunction]
pub(super) fn more_kinds(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let (row, out) = (&kind::bank::ROW, PyDict::new(py));
    out.set_item("name", row.name)?;
    out.set_item("class", row.class)?;
    out.set_item("adds", row.adds)?;
    out.set_item("capabilities", row.capabilities)?;
    out.set_item("parameters", kind::bank::PARAMETERS)?;
    out.set_item("false_negatives", "never")?;
    Ok(vec![out])
}

#[pymethods]
impl Service {
    /// Creates an empty filter of a kind, with its parameters as texts; returns its info.
    #[pyo3(signature = (name, kind, options, *, seed, keyed, strict=false, expires=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn create<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        kind: &str,
        options: Vec<(String, String)>,
        seed: u64,
        keyed: bool,
        strict: bool,
        expires: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let spec = Spec { kind: kind.to_string().into(), options: Arc::new(options), seed, keyed };
        self.change_entry(py, |store| {
            kind::by_name(&spec.kind)?;
            check_not_note(store, name)?;
            let settings = Settings { strict, ..Settings::of(spec) };
            store.create_with_expiry(name.as_bytes(), settings, expires)
        })
    }

    /// Up to `most` names after `after`, in order, that begin with `prefix` and match one of the patterns, if there are
    /// any. Goes through the catalogue once.
    #[pyo3(signature = (*, prefix="", after="", most=1000, patterns=Vec::new()))]
    fn names(&self, py: Python<'_>, prefix: &str, after: &str, most: usize, patterns: Vec<String>) -> Vec<String> {
        let store = &self.store;
        py.detach(|| {
            let wanted =
                |name: &String| name.starts_with(prefix) && name.as_str() > after && covers(&patterns, name.as_bytes());
            let mut names: Vec<String> = store.filters().iter().map(|entry| entry.name()).filter(wanted).collect();
            if names.len() > most {
                names.select_nth_unstable(most);
                names.truncate(most);
            }
            names.sort_unstable();
            names
        })
    }

    /// The number of filters.
    fn __len__(&self) -> usize {
        self.store.num_filters()
    }

    /// Changes with every change of the catalogue.
    #[getter]
    fn epoch(&self) -> u64 {
        self.store.epoch()
    }

    /// The bytes of cells of all filters.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.store.nbytes()
    }

    /// Drops a filter; returns its number, or None if it did not exist.
    #[pyo3(signature = (name, *, versions=None))]
    fn delete(&self, py: Python<'_>, name: &str, versions: Versions) -> PyResult<Option<u64>> {
        self.change(py, |store| {
            let dropped = store.drop_at(name.as_bytes(), versions.as_deref())?;
            Ok(dropped.map_or((None, store.catalogue_lsn()), |(number, lsn)| (Some(number), lsn)))
        })
    }

    /// Renames a filter. If the new name is taken, `replace` replaces its filter in the same step; otherwise that is a
    /// fault. With `expires`, the filter expires at that time, in milliseconds since 1970; 0 means never. Returns the
    /// filter's info.
    #[pyo3(signature = (old, new, *, replace=false, versions=None, expires=None))]
    fn rename<'py>(
        &self,
        py: Python<'py>,
        old: &str,
        new: &str,
        replace: bool,
        versions: Versions,
        expires: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.change_entry(py, |store| {
            let entry = store.filter(old.as_bytes())?;
            check_not_note(store, new)?;
            let conflict = if replace || old == new { Conflict::ReplaceFilter(None) } else { Conflict::Refuse };
            let expires = expires.map(|at| Some(at).filter(|&at| at != 0));
            let wanted = RenameOptions { to: new.as_bytes(), conflict, versions: versions.as_deref(), expires };
            store.rename_current(&entry, &wanted).map(|lsn| (entry, lsn))
        })
    }

    /// Sets when a filter expires, in milliseconds since 1970; None means never. Returns the filter's info.
    #[pyo3(signature = (name, at, *, versions=None))]
    fn expire<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        at: Option<u64>,
        versions: Versions,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.change_entry(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let lsn = store.set_expiry(entry.at(versions.as_deref()), at)?;
            Ok((entry, lsn))
        })
    }

    /// True if filters of this kind are keyed by default.
    fn is_keyed_by_default(&self, kind: &str) -> bool {
        self.store.is_keyed_by_default(kind)
    }

    /// Sets which names belong to other nodes, with their addresses.
    fn set_remote_names(&self, names: HashMap<String, String>) {
        self.store.set_remote_names(names);
    }
}
