//! What a filter reports about itself.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fullbloom_core::key::KeyDomains;
use fullbloom_core::structure::Value;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::Service;
use crate::auth::covers;
use crate::fault::Result;
use crate::store::{Entry, FilterStats, Lsn, Store};

/// The version of a filter, and its numbers in that version or a later one. `counted` counts the cells, which reads all
/// of them.
fn read_stats(entry: &Entry, counted: bool) -> (u64, Arc<FilterStats>) {
    (entry.version(), if counted { entry.count_stats() } else { Arc::new(entry.stats()) })
}

/// Why lookups over RESP found nothing: their keys are of a type that was never added.
fn surprise_of(entry: &Entry) -> Option<String> {
    if !entry.has_texts_looked_up() {
        return None;
    }
    entry.peek().hasher().domains_mut().surprise(KeyDomains::TEXT).map(|surprise| surprise.to_string())
}

fn set(dict: &Bound<'_, PyDict>, name: &str, value: &Value) -> PyResult<()> {
    match value {
        Value::Number(number) => dict.set_item(name, number),
        Value::Real(real) => dict.set_item(name, real),
        Value::Text(text) => dict.set_item(name, text),
        Value::Flag(flag) => dict.set_item(name, flag),
        Value::Nothing => dict.set_item(name, dict.py().None()),
    }
}

fn dict<'py>(
    py: Python<'py>,
    entry: &Entry,
    (version, stats): &(u64, Arc<FilterStats>),
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let settings = &entry.settings;
    out.set_item("id", entry.id)?;
    out.set_item("name", entry.name())?;
    out.set_item("kind", &*settings.spec.kind)?;
    out.set_item("class", stats.class)?;
    out.set_item("options", settings.spec.options.as_slice())?;
    out.set_item("seed", settings.spec.seed)?;
    out.set_item("keyed", settings.spec.keyed)?;
    out.set_item("strict", settings.strict)?;
    out.set_item("made_by", settings.flavour.name())?;
    out.set_item("created", entry.created)?;
    out.set_item("expires", entry.expires())?;
    out.set_item("version", version)?;
    out.set_item("capacity", stats.capacity)?;
    out.set_item("target_fpr", stats.target_fpr)?;
    out.set_item("num_added", stats.num_added)?;
    out.set_item("fpr", stats.fpr)?;
    out.set_item("over_capacity", stats.is_over_capacity())?;
    out.set_item("nbytes", stats.nbytes)?;
    out.set_item("fill", stats.fill)?;
    if let Some(surprise) = surprise_of(entry) {
        out.set_item("key_domain_warning", surprise)?;
    }
    out.set_item("estimated", stats.estimated.map(|(keys, _)| keys))?;
    out.set_item("estimated_deviation", stats.estimated.map(|(_, deviation)| deviation))?;
    for (name, count) in entry.counters.values() {
        out.set_item(name, count)?;
    }
    let details = PyDict::new(py);
    stats.details.iter().try_for_each(|(name, value)| set(&details, name, value))?;
    out.set_item("details", details)?;
    Ok(out)
}

impl Service {
    /// Makes a change of one filter as [`Service::change`] does, and returns that filter's info. By then another filter
    /// may have its name.
    pub(super) fn change_entry<'py>(
        &self,
        py: Python<'py>,
        work: impl Send + FnOnce(&Store) -> Result<(Arc<Entry>, Lsn)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let entry = self.change(py, work)?;
        let stats = py.detach(|| read_stats(&entry, true));
        dict(py, &entry, &stats)
    }
}

#[pymethods]
impl Service {
    /// Everything known about a filter. `counted` counts the cells, which reads the whole filter.
    #[pyo3(signature = (name, *, counted=true))]
    fn info<'py>(&self, py: Python<'py>, name: &str, counted: bool) -> PyResult<Bound<'py, PyDict>> {
        let (entry, stats) = self.call(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let stats = read_stats(&entry, counted);
            Ok((entry, stats))
        })?;
        dict(py, &entry, &stats)
    }

    /// [`Service::info`] of the filters with these numbers.
    #[pyo3(signature = (numbers, *, counted=false))]
    fn stats<'py>(&self, py: Python<'py>, numbers: Vec<u64>, counted: bool) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let all = self.call(py, |store| {
            let entries = store.entries_with_ids(&numbers);
            Ok(entries.into_iter().map(|entry| (read_stats(&entry, counted), entry)).collect::<Vec<_>>())
        })?;
        all.into_iter().map(|(stats, entry)| dict(py, &entry, &stats)).collect()
    }

    /// The numbers of the `most` largest filters, the largest first, among those whose names match one of the patterns,
    /// if there are any.
    #[pyo3(signature = (most, patterns=Vec::new()))]
    fn largest(&self, py: Python<'_>, most: usize, patterns: Vec<String>) -> Vec<u64> {
        let store = &self.store;
        py.detach(|| {
            let mut entries = store.filters();
            entries.retain(|entry| covers(&patterns, entry.name().as_bytes()));
            entries.sort_by_key(|entry| Reverse(entry.nbytes()));
            entries.iter().take(most).map(|entry| entry.id).collect()
        })
    }

    /// The number and name of every filter.
    fn filter_names(&self, py: Python<'_>) -> Vec<(u64, String)> {
        let store = &self.store;
        py.detach(|| store.filters().iter().map(|entry| (entry.id, entry.name())).collect())
    }

    /// The filters that were changed or queried since they were last sampled: number and activity.
    fn list_due(&self, py: Python<'_>) -> Vec<(u64, u64)> {
        let store = &self.store;
        py.detach(|| {
            let entries = store.filters();
            let due = entries.iter().filter(|entry| entry.activity() != entry.sampled_activity.load(Ordering::Relaxed));
            due.map(|entry| (entry.id, entry.activity())).collect()
        })
    }

    /// Records that the filters that [`Service::due`] returned were sampled.
    fn mark_sampled(&self, py: Python<'_>, due: Vec<(u64, u64)>) {
        let store = &self.store;
        py.detach(|| {
            for (number, moves) in due {
                for entry in store.entries_with_ids(&[number]) {
                    entry.sampled_activity.store(moves, Ordering::Relaxed);
                }
            }
        });
    }

    /// Changes with every change of the filter.
    fn version(&self, py: Python<'_>, name: &str) -> PyResult<(u64, u64)> {
        self.call(py, |store| store.filter(name.as_bytes()).map(|entry| (entry.id, entry.version())))
    }

    /// True if keys may be sent as hashes of the key rule.
    fn takes_hashes(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.call(py, |store| store.filter(name.as_bytes()).map(|entry| entry.keying.is_own()))
    }

    /// True if each key comes with its owner.
    fn takes_pairs(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.call(py, |store| store.filter(name.as_bytes()).map(|entry| entry.keying.is_pairs()))
    }

    /// The secret of keyed filters with this seed.
    fn secret_of<'py>(&self, py: Python<'py>, seed: u64) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.store.master().secret_of(seed))
    }

    /// Seed, secret (if keyed) and base of a filter's key hash, with which `fullbloom` hashes as the service does.
    fn hashing<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(u64, Option<Bound<'py, PyBytes>>, &'static str)> {
        let (seed, secret, base) = self.call(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            entry.check_hashes()?;
            let spec = &entry.settings.spec;
            let secret = spec.keyed.then(|| store.master().secret_of(spec.seed));
            Ok((spec.seed, secret, entry.read().hasher().base().name()))
        })?;
        Ok((seed, secret.map(|secret| PyBytes::new(py, &secret)), base))
    }
}
