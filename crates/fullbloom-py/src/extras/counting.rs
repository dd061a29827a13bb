//! What only `CountingBloomFilter` has: queries for a number of occurrences; and only `DeletableBloomFilter`: a shape
//! given outright.

use fullbloom_core::counting::{CountingBloomFilter as Core, DeletableBloomFilter as Deletable};
use fullbloom_core::scheme::positions::Positions;
use pyo3::prelude::*;

use crate::classes::counting::CountingBloomFilter;
use crate::classes::deletable::DeletableBloomFilter;
use crate::errors::OrRaise;
use crate::keys::batch;
use crate::operations::Ask;
use crate::operations::warnings::hash_lookup;
use crate::parameters;

/// Reads `at_least=`.
fn read_least(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    value.map_or(Ok(1), |value| parameters::parse_whole("at_least", value, 1))
}

/// The arguments of `with_shape`.
mod arguments {
    crate::parameters::readers!(
        num_counters: "int"; num_hashes: "int"; capacity: "int | None"; counter_bits: "int"; threshold: "int"; layout: "str";
    );
}

#[pymethods]
impl CountingBloomFilter {
    /// A filter of a given shape: counters (rounded up to what the layout needs) and probes per key.
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
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (hasher, cells) = (parameters::create_hasher(seed, secret)?, (counter_bits, threshold));
        let created = py.detach(|| Core::with_shape(num_counters, num_hashes, capacity, cells, layout, hasher));
        created.or_raise(py).map(Self::wrap)
    }

    /// True when the key seems to have been added `at_least` times more than removed, False when it
    /// certainly was not. Beyond the counters' maximum the result is that for the maximum.
    #[pyo3(signature = (key: "Key", /, *, at_least: "int" = None))]
    #[pyo3(text_signature = "($self, key, /, *, at_least=1)")]
    fn contains(&self, key: &Bound<'_, PyAny>, at_least: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let least = read_least(at_least)?;
        let hash = hash_lookup(&self.lock, &self.hasher, key)?;
        Ok(self.lock.read(key.py(), |f| f.reaches(hash, least)))
    }

    /// As contains, for many keys; takes and returns what contains_many does.
    #[pyo3(signature = (keys: "Keys", at_least: "int") -> "Answers[bool]")]
    fn contains_many_at_least<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        at_least: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let least = read_least(Some(at_least))?;
        let reach = |f: &Core, hashes: &[u64], found: &mut [u8]| f.reach_hashes(hashes, least, found);
        batch::run(&Ask { lock: &self.lock, ask: &reach }, &self.hasher, keys, true)
    }

    /// Rate at which contains(key, at_least=...) is wrong now for keys never added, if no key came
    /// twice. Counts the counters in use: O(nbytes).
    #[pyo3(signature = (at_least: "int"))]
    fn fpr_at_least(&self, at_least: &Bound<'_, PyAny>) -> PyResult<f64> {
        let least = read_least(Some(at_least))?;
        Ok(self.lock.look(at_least.py(), |f| f.fpr_at_least(least)))
    }
}

#[pymethods]
impl DeletableBloomFilter {
    /// A filter of a given shape: bits (rounded up to a multiple of regions) and probes per key.
    ///
    /// capacity: keys after which to warn; by default where half of the bits are set.
    ///
    /// >>> from fullbloom import DeletableBloomFilter
    /// >>> DeletableBloomFilter.with_shape(1000, 7, regions=64).num_bits
    /// 1024
    #[staticmethod]
    #[pyo3(signature = (
        num_bits: "int", num_hashes: "int", *, regions: "int | None" = None, capacity: "int | None" = None,
        seed: "int" = 0, secret: "bytes | bool | None" = None
    ))]
    fn with_shape(
        num_bits: &Bound<'_, PyAny>,
        num_hashes: &Bound<'_, PyAny>,
        regions: Option<&Bound<'_, PyAny>>,
        capacity: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = num_bits.py();
        let (num_bits, num_hashes) =
            (parameters::parse_whole("num_bits", num_bits, 1)?, parameters::num_hashes(num_hashes)?);
        let regions = regions.map(|regions| parameters::parse_whole("regions", regions, 1)).transpose()?;
        let capacity = capacity.map(|capacity| parameters::parse_whole("capacity", capacity, 1)).transpose()?;
        let hasher = parameters::create_hasher(seed, secret)?;
        let positions = Positions { num_bits, num_hashes };
        py.detach(|| Deletable::with_shape(positions, regions, capacity, hasher)).or_raise(py).map(Self::wrap)
    }
}
