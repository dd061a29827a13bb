//! Making, finding, dropping.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;

use super::{Service, Versions};
use crate::auth::covers;
use crate::fault::Result;
use crate::kind::{self, Spec};
use crate::store::{Conflict, RenameOptions, Settings, Store, note_has_name};

/// Refuses a name under which RESP clients keep a note: over HTTP none is seen, and none replaced.
pub(super) fn check_not_note(store: &Store, name: &str) -> Result<()> {
    match store.get(name.as_bytes()) {
        Ok(entry) if entry.is_note() => Err(note_has_name()),
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
            check_not_note(store, name)?;
            let settings = Settings { strict, ..Settings::of(spec) };
            store.create_with_expiry(name.as_bytes(), settings, expires).map(|(entry, lsn)| (entry.id, lsn))
        })
    }

    /// Up to `most` names after `after`, in order, that begin with `prefix` and have the form of one of the patterns; of
    /// any form without one. The names of the catalogue are gone through once.
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

    /// Drops a filter: its number; none where there was none.
    #[pyo3(signature = (name, *, versions=None))]
    fn delete(&self, py: Python<'_>, name: &str, versions: Versions) -> PyResult<Option<u64>> {
        self.change(py, |store| {
            let dropped = store.drop_at(name.as_bytes(), versions.as_deref())?;
            Ok(dropped.map_or((None, store.catalogue_lsn()), |(number, lsn)| (Some(number), lsn)))
        })
    }

    /// Gives a filter another name. One that has it is replaced in the same step if `replace`, else it is a fault. With
    /// `expires`, the filter is dropped at that time from then on, in milliseconds since 1970; 0 never.
    #[pyo3(signature = (old, new, *, replace=false, versions=None, expires=None))]
    fn rename(
        &self,
        py: Python<'_>,
        old: &str,
        new: &str,
        replace: bool,
        versions: Versions,
        expires: Option<u64>,
    ) -> PyResult<()> {
        self.change(py, |store| {
            store.filter(old.as_bytes())?;
            check_not_note(store, new)?;
            let conflict = if replace || old == new { Conflict::ReplaceFilter(None) } else { Conflict::Refuse };
            let expires = expires.map(|at| Some(at).filter(|&at| at != 0));
            let wanted = RenameOptions { to: new.as_bytes(), conflict, versions: versions.as_deref(), expires };
            store.rename_with(old.as_bytes(), &wanted).map(|lsn| ((), lsn))
        })
    }

    /// Says when a filter is dropped, in milliseconds since 1970; None never.
    #[pyo3(signature = (name, at, *, versions=None))]
    fn expire(&self, py: Python<'_>, name: &str, at: Option<u64>, versions: Versions) -> PyResult<()> {
        self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            store.set_expiry(entry.at(versions.as_deref()), at).map(|lsn| ((), lsn))
        })
    }

    /// True of a kind whose filters are keyed where nobody says whether they are.
    fn is_keyed_unasked(&self, kind: &str) -> bool {
        self.store.is_keyed_by_default(kind)
    }

    /// Says which names live on other nodes, and at which address.
    fn set_elsewhere(&self, names: HashMap<String, String>) {
        self.store.set_remote_names(names);
    }
}
