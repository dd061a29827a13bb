//! [`WireCounters`]: the shape and the hash of a counting filter that a server holds.

use std::sync::Arc;

use fullbloom_core::cells::LINE_BYTES;
use fullbloom_core::counting::{Layout, Shape};
use fullbloom_core::wire::Counters;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments;
use super::counted::WireCounterKeys;
use super::keys::{collect_hashes, read_hashes};
use crate::errors::{OrRaise, parameter};
use crate::keys::scalar::hash_key;
use crate::parameters;
use crate::python_objects::bytes;

/// The counters of a counting filter as strings of a server, in shards.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireCounters {
    core: Arc<Counters>,
}

#[pymethods]
impl WireCounters {
    #[new]
    #[pyo3(signature = (
        num_counters: "int", num_hashes: "int", counter_bits: "int", *, shards: "int" = 1, seed: "int" = 0,
        secret: "bytes | None" = None
    ))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::num_counters)] num_counters: u64,
        #[pyo3(from_py_with = arguments::num_hashes)] num_hashes: u64,
        #[pyo3(from_py_with = arguments::counter_bits)] counter_bits: u64,
        #[pyo3(from_py_with = arguments::shards)] shards: u64,
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let narrow = |value| u32::try_from(value).unwrap_or(u32::MAX);
        let (counter_bits, num_hashes) = (narrow(counter_bits), narrow(num_hashes));
        let shape = Shape { layout: Layout::Blocked, counter_bits, num_cells: num_counters, num_hashes, threshold: 1 };
        let core = Counters::new(shape, parameters::read_hasher(seed, secret)?, shards).or_raise(py)?;
        Ok(WireCounters { core: Arc::new(core) })
    }

    /// Number of strings.
    #[getter]
    fn shards(&self) -> u64 {
        self.core.shards()
    }

    /// The counters' maximum.
    #[getter]
    fn most(&self) -> u8 {
        self.core.most()
    }

    /// The first byte of a shard in the filter, and its number of bytes, without its owner tag.
    #[pyo3(signature = (shard: "int") -> "tuple[int, int]")]
    fn range(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::shard)] shard: u64) -> PyResult<(u64, u64)> {
        if shard >= self.core.shards() {
            return Err(parameter(py, format!("shard must be below {}, got {shard}", self.core.shards())));
        }
        Ok(self.core.range(shard))
    }

    /// Estimated number of keys, its standard deviation, and the rate, from the counters of whole lines of 64 bytes.
    #[pyo3(signature = (sample: "bytes") -> "tuple[float, float, float]")]
    fn estimate(&self, sample: &Bound<'_, PyBytes>) -> PyResult<(f64, f64, f64)> {
        let bytes = sample.as_bytes();
        if bytes.is_empty() || !bytes.len().is_multiple_of(LINE_BYTES) {
            let message = format!("sample must be one line of {LINE_BYTES} bytes or more, got {} bytes", bytes.len());
            return Err(parameter(sample.py(), message));
        }
        Ok(self.core.estimate(bytes))
    }

    /// The hash of one key, 8 bytes.
    #[pyo3(signature = (key: "Key") -> "bytes")]
    fn hash<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let hash = hash_key(self.core.hasher(), key)?;
        bytes::create(key.py(), &hash.to_ne_bytes())
    }

    /// The hashes of keys of any kind that contains_many() takes; nulls are not keys.
    #[pyo3(signature = (keys: "Keys") -> "WireCounterKeys")]
    fn keys(&self, keys: &Bound<'_, PyAny>) -> PyResult<WireCounterKeys> {
        let hashes = collect_hashes(self.core.hasher(), keys)?;
        WireCounterKeys::new(&self.core, hashes).or_raise(keys.py())
    }

    /// As keys(), of ready hashes: 8 bytes each, in native byte order.
    #[pyo3(signature = (hashes: "bytes") -> "WireCounterKeys")]
    fn hashed(&self, hashes: &Bound<'_, PyBytes>) -> PyResult<WireCounterKeys> {
        WireCounterKeys::new(&self.core, read_hashes(hashes)).or_raise(hashes.py())
    }
}
