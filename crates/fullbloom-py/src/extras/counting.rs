//! What only `CountingBloomFilter` has: questions about a number of occurrences.

use fullbloom_core::counting::CountingBloomFilter as Core;
use pyo3::prelude::*;

use crate::classes::counting::CountingBloomFilter;
use crate::domains::looked_up;
use crate::errors::OrRaise;
use crate::keys::batch;
use crate::operations::Ask;
use crate::params;

/// Checks `at_least=`.
fn least(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    value.map_or(Ok(1), |value| params::whole("at_least", value, 1))
}

/// The arguments of `with_shape`.
mod arguments {
    crate::classes::declared::readers!(
        num_counters: "int"; num_hashes: "int"; capacity: "int | None"; counter_bits: "int"; threshold: "int"; layout: "str";
    );
}

#[pymethods]
impl CountingBloomFilter {
    /// A filter of a given shape: counters (rounded up to what the layout needs) and probes a key.
    ///
    /// capacity: keys after which to warn; by default where half of the counters are set, the optimum m ln 2 / k. The
    /// others as in the constructor. Raises ParameterError for a shape that the layout does not have (blocked: 4 or 8
    /// probes, counters of 2, 4, 8 or 16 bits), FilterMemoryError.
    ///
    /// >>> from fullbloom import CountingBloomFilter
    /// >>> CountingBloomFilter.with_shape(1024, 7).num_counters
    /// 1024
    #[staticmethod]
    #[pyo3(signature = (
        num_counters: "int", num_hashes: "int", *, capacity: "int | None" = None, counter_bits: "int" = 4,
        threshold: "int" = 1, layout: "str" = "classic", seed: "int" = 0, secret: "bytes | bool | None" = None
    ))]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn with_shape(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::num_counters)] num_counters: u64,
        #[pyo3(from_py_with = arguments::num_hashes)] num_hashes: u64,
        #[pyo3(from_py_with = arguments::capacity)] capacity: Option<u64>,
        #[pyo3(from_py_with = arguments::counter_bits)] counter_bits: u64,
        #[pyo3(from_py_with = arguments::threshold)] threshold: u64,
        #[pyo3(from_py_with = arguments::layout)] layout: &str,
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (hasher, cells) = (params::hasher(seed, secret)?, (counter_bits, threshold));
        let made = py.detach(|| Core::with_shape(num_counters, num_hashes, capacity, cells, layout, hasher));
        made.or_raise(py).map(Self::wrap)
    }

    /// True when the key seems to have been added `at_least` times more than removed, False when it
    /// certainly was not. Beyond the counters' maximum the answer is that for the maximum.
    #[pyo3(signature = (key: "Key", /, *, at_least: "int" = None))]
    #[pyo3(text_signature = "($self, key, /, *, at_least=1)")]
    fn contains(&self, key: &Bound<'_, PyAny>, at_least: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let least = least(at_least)?;
        let hash = looked_up(&self.lock, &self.hasher, key)?;
        Ok(self.lock.read(key.py(), |f| f.reaches(hash, least)))
    }

    /// As contains, for many keys; takes and answers what contains_many does.
    #[pyo3(signature = (keys: "Keys", at_least: "int") -> "Answers[bool]")]
    fn contains_many_at_least<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        at_least: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let least = least(Some(at_least))?;
        let reach = |f: &Core, hashes: &[u64], found: &mut [u8]| f.reach_hashes(hashes, least, found);
        batch::run(&Ask { lock: &self.lock, ask: &reach }, &self.hasher, keys, true)
    }

    /// Rate at which contains(key, at_least=...) is wrong now for keys never added, if no key came
    /// twice. Counts the counters in use: O(nbytes).
    #[pyo3(signature = (at_least: "int"))]
    fn fpr_at_least(&self, at_least: &Bound<'_, PyAny>) -> PyResult<f64> {
        let least = least(Some(at_least))?;
        Ok(self.lock.look(at_least.py(), |f| f.fpr_at_least(least)))
    }
}
