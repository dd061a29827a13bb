//! The service, opened and closed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::port::Port;
use super::to_exception;
use crate::auth::Authenticator;
use crate::fault::{Code, Fault, Result};
use crate::limits::Limits;
use crate::log::Durability;
use crate::store::{Options, Store, now};

/// A store of named filters, and its RESP port.
#[pyclass(frozen, module = "fullbloom_server")]
pub(crate) struct Service {
    pub(super) store: Arc<Store>,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) port: Mutex<Option<Port>>,
    /// When the time was last advanced in filters with a window, by their numbers.
    passed: Mutex<HashMap<u64, f64>>,
}

fn parse_limits(given: Option<&Bound<'_, PyDict>>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    let Some(given) = given else { return Ok(limits) };
    for (name, value) in given.iter() {
        match name.extract::<String>()?.as_str() {
            "filter_bytes" => limits.filter_bytes = value.extract()?,
            "total_bytes" => limits.total_bytes = value.extract()?,
            "filters" => limits.filters = value.extract()?,
            "memory_bytes" => limits.memory_bytes = value.extract()?,
            "request_bytes" => limits.request_bytes = value.extract()?,
            "batch_keys" => limits.batch_keys = value.extract()?,
            "key_bytes" => limits.key_bytes = value.extract()?,
            "connections" => limits.connections = value.extract()?,
            "receive" => limits.receive = Duration::try_from_secs_f64(value.extract()?).unwrap_or(limits.receive),
            other => return Err(to_exception(name.py(), &Fault::invalid(format!("no cap is called {other:?}")))),
        }
    }
    Ok(limits)
}

fn parse_durability(name: &str) -> Result<Durability> {
    Durability::parse(name)
        .ok_or_else(|| Fault::invalid(format!("durability must be always, everysec or off, got {name:?}")))
}

/// How many times the time advances during the length of a window, but at most once per second.
const STEPS: f64 = 64.0;

/// Advances the time in filters with a window of time.
fn advance_windows(store: &Store, passed: &mut HashMap<u64, f64>) -> Result<()> {
    let now = now() as f64 / 1000.0;
    let mut kept = HashMap::new();
    for entry in store.entries() {
        let Some(window) = entry.settings.spec.option("window").and_then(|text| text.parse::<f64>().ok()) else {
            continue;
        };
        let last = passed.get(&entry.id).copied();
        if entry.is_being_read() {
            // It would wait, and lookups behind it: the next tick comes in a second.
            kept.extend(last.map(|last| (entry.id, last)));
        } else if last.is_none_or(|last| now - last >= (window / STEPS).max(1.0)) {
            // A clock that was set ahead by hand waits until the time reaches it.
            match store.advance(&entry, now) {
                Err(fault) if !matches!(fault.code, Code::Invalid | Code::Unsupported) => return Err(fault),
                _ => {}
            }
            kept.insert(entry.id, now);
        } else if let Some(last) = last {
            kept.insert(entry.id, last);
        }
    }
    *passed = kept;
    Ok(())
}

#[pymethods]
impl Service {
    /// Opens the store in `folder`; without a folder nothing is stored.
    #[new]
    #[pyo3(signature = (folder, *, durability="everysec", limits=None, salvage=false, plain=false, checkpoint_bytes=268_435_456))]
    fn new(
        py: Python<'_>,
        folder: Option<PathBuf>,
        durability: &str,
        limits: Option<&Bound<'_, PyDict>>,
        salvage: bool,
        plain: bool,
        checkpoint_bytes: u64,
    ) -> PyResult<Self> {
        let durability = parse_durability(durability).map_err(|fault| to_exception(py, &fault))?;
        let limits = parse_limits(limits)?;
        let options = Options { folder, durability, limits, salvage, plain, checkpoint_bytes };
        let store = py.detach(|| Store::open(options)).map_err(|fault| to_exception(py, &fault))?;
        Ok(Service {
            store: Arc::new(store),
            authenticator: Arc::default(),
            port: Mutex::default(),
            passed: Mutex::default(),
        })
    }

    /// What recovery skipped, with `salvage`.
    #[getter]
    fn skipped(&self) -> Vec<String> {
        self.store.skipped.clone()
    }

    /// The durability mode.
    #[getter]
    fn durability(&self) -> &'static str {
        self.store.durability().name()
    }

    /// Writes what changed since the last checkpoint; returns the number and bytes of the files.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.call(py, |store| store.checkpoint().map(|done| (done.files, done.bytes)))
    }

    /// Periodic tasks: drops expired filters, advances the time in filters with a window, and writes a checkpoint if
    /// one is due. Returns how many filters it dropped.
    fn tick(&self, py: Python<'_>) -> PyResult<usize> {
        let passed = &self.passed;
        self.call(py, |store| {
            let dropped = store.drop_expired()?;
            advance_windows(store, &mut passed.lock())?;
            if store.is_due() {
                store.checkpoint()?;
            }
            Ok(dropped)
        })
    }

    /// Writes a checkpoint and closes the log; changes are refused from now on.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |store| {
            let done = store.checkpoint().map(drop);
            store.log().close();
            done
        })
    }

    /// Why changes are refused at present.
    fn trouble(&self) -> Option<String> {
        self.store.log().trouble()
    }
}
