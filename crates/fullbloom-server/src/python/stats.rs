//! What a filter tells of itself.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use fullbloom_core::structure::Value;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::Service;
use crate::auth::covers;
use crate::kind::Kind;
use crate::store::Entry;

/// What is asked of a filter under its lock.
struct Told {
    shown: Vec<(&'static str, Value)>,
    fpr: f64,
    fill: Option<f64>,
    nbytes: u64,
    added: u64,
    capacity: u64,
    target: f64,
    over: bool,
    estimated: Option<(f64, f64)>,
    class: &'static str,
}

/// Asks a filter; counting its cells reads all of them.
fn tell(entry: &Entry, counted: bool) -> Told {
    if counted { entry.over(|filter| told(filter, true)) } else { told(entry.look().as_ref(), false) }
}

fn told(filter: &dyn Kind, counted: bool) -> Told {
    Told {
        shown: if counted { filter.info() } else { Vec::new() },
        fpr: filter.fpr(),
        fill: counted.then(|| filter.fill()),
        nbytes: filter.nbytes(),
        added: filter.num_added(),
        capacity: filter.capacity(),
        target: filter.target_fpr(),
        over: filter.is_over(),
        estimated: if counted { filter.estimated() } else { None },
        class: filter.variant().class,
    }
}

fn set(dict: &Bound<'_, PyDict>, name: &str, value: Value) -> PyResult<()> {
    match value {
        Value::Number(number) => dict.set_item(name, number),
        Value::Real(real) => dict.set_item(name, real),
        Value::Text(text) => dict.set_item(name, text),
        Value::Flag(flag) => dict.set_item(name, flag),
        Value::Nothing => dict.set_item(name, dict.py().None()),
    }
}

fn dict<'py>(py: Python<'py>, entry: &Entry, told: Told) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let settings = &entry.settings;
    out.set_item("id", entry.id)?;
    out.set_item("name", entry.name())?;
    out.set_item("kind", &*settings.spec.kind)?;
    out.set_item("class", told.class)?;
    out.set_item("options", settings.spec.options.as_slice())?;
    out.set_item("seed", settings.spec.seed)?;
    out.set_item("keyed", settings.spec.keyed)?;
    out.set_item("strict", settings.strict)?;
    out.set_item("made_by", settings.flavour.name())?;
    out.set_item("created", entry.created)?;
    out.set_item("expires", entry.expires())?;
    out.set_item("version", entry.version())?;
    out.set_item("capacity", told.capacity)?;
    out.set_item("target_fpr", told.target)?;
    out.set_item("num_added", told.added)?;
    out.set_item("fpr", told.fpr)?;
    out.set_item("over_capacity", told.over)?;
    out.set_item("nbytes", told.nbytes)?;
    out.set_item("fill", told.fill)?;
    out.set_item("estimated", told.estimated.map(|(keys, _)| keys))?;
    out.set_item("estimated_deviation", told.estimated.map(|(_, deviation)| deviation))?;
    let counters = &entry.counters;
    for (name, counter) in [
        ("hits", &counters.hits),
        ("misses", &counters.misses),
        ("adds", &counters.adds),
        ("new", &counters.new),
        ("removed", &counters.removed),
    ] {
        out.set_item(name, counter.load(Ordering::Relaxed))?;
    }
    let shown = PyDict::new(py);
    told.shown.into_iter().try_for_each(|(name, value)| set(&shown, name, value))?;
    out.set_item("details", shown)?;
    Ok(out)
}

#[pymethods]
impl Service {
    /// All that is known of a filter. With `counted`, cells are counted: it reads the whole filter.
    #[pyo3(signature = (name, *, counted=true))]
    fn info<'py>(&self, py: Python<'py>, name: &str, counted: bool) -> PyResult<Bound<'py, PyDict>> {
        let (entry, told) = self.ask(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let told = tell(&entry, counted);
            Ok((entry, told))
        })?;
        dict(py, &entry, told)
    }

    /// [`Service::info`] of the filters of some numbers.
    #[pyo3(signature = (numbers, *, counted=false))]
    fn stats<'py>(&self, py: Python<'py>, numbers: Vec<u64>, counted: bool) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let all = self.ask(py, |store| {
            let entries = store.numbered(&numbers);
            Ok(entries.into_iter().map(|entry| (tell(&entry, counted), entry)).collect::<Vec<_>>())
        })?;
        all.into_iter().map(|(told, entry)| dict(py, &entry, told)).collect()
    }

    /// Numbers of the `most` filters with the most bytes, the largest first, among those whose names have the form of one
    /// of the patterns; of all without any.
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

    /// Number and name of every filter.
    fn held(&self, py: Python<'_>) -> Vec<(u64, String)> {
        let store = &self.store;
        py.detach(|| store.filters().iter().map(|entry| (entry.id, entry.name())).collect())
    }

    /// Numbers of the filters that were changed or asked since they were [`Service::sampled`], each with what tells.
    fn due(&self, py: Python<'_>) -> Vec<(u64, u64)> {
        let store = &self.store;
        py.detach(|| {
            let entries = store.filters();
            let due = entries.iter().filter(|entry| entry.moves() != entry.sampled.load(Ordering::Relaxed));
            due.map(|entry| (entry.id, entry.moves())).collect()
        })
    }

    /// Notes that what [`Service::due`] told of was sampled.
    fn sampled(&self, py: Python<'_>, due: Vec<(u64, u64)>) {
        let store = &self.store;
        py.detach(|| {
            for (number, moves) in due {
                for entry in store.numbered(&[number]) {
                    entry.sampled.store(moves, Ordering::Relaxed);
                }
            }
        });
    }

    /// Changes with every change of the filter.
    fn version(&self, py: Python<'_>, name: &str) -> PyResult<(u64, u64)> {
        self.ask(py, |store| store.filter(name.as_bytes()).map(|entry| (entry.id, entry.version())))
    }

    /// True where keys may come as hashes of the key rule.
    fn takes_hashes(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.ask(py, |store| store.filter(name.as_bytes()).map(|entry| entry.text.is_own()))
    }

    /// The secret of keyed filters of a seed.
    fn secret_of<'py>(&self, py: Python<'py>, seed: u64) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.store.master().secret_of(seed))
    }

    /// Seed, secret where it has one, and base of a filter's key hash: with them `fullbloom` hashes as the service does.
    fn hashing<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(u64, Option<Bound<'py, PyBytes>>, &'static str)> {
        let (seed, secret, base) = self.ask(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            entry.check_hashes()?;
            let spec = &entry.settings.spec;
            let secret = spec.keyed.then(|| store.master().secret_of(spec.seed));
            Ok((spec.seed, secret, entry.look().hasher().base().name()))
        })?;
        Ok((seed, secret.map(|secret| PyBytes::new(py, &secret)), base))
    }
}
