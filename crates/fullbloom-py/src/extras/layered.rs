//! What only `LayeredBloomFilter` has: depths.

use fullbloom_core::structure::Countable;
use pyo3::prelude::*;

use crate::classes::layered::LayeredBloomFilter;
use crate::domains::looked_up;
use crate::keys::batch;
use crate::operations::Ask;

#[pymethods]
impl LayeredBloomFilter {
    /// Leading layers that hold the key: 0 when it was certainly never added, never below
    /// min(times added, layers).
    #[pyo3(signature = (key: "Key", /))]
    fn depth(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = looked_up(&self.lock, &self.hasher, key)?;
        Ok(self.lock.read(key.py(), |f| f.depth_hash(hash)))
    }

    /// One depth a key, in the caller's kind; takes what contains_many takes.
    #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
    fn depth_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&Ask { lock: &self.lock, ask: &Countable::count_hashes }, &self.hasher, keys, true)
    }

    /// Estimated number of keys in each layer, first to last: keys that came at least once, twice, ...
    #[pyo3(signature = () -> "list[float]")]
    fn layer_counts(&self, py: Python<'_>) -> Vec<f64> {
        self.lock.look(py, |f| f.layer_counts())
    }
}
