//! `StableBloomFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::registry::STABLE;
use bloomery_core::window::StableBloomFilter as Core;
use pyo3::prelude::*;

use super::{addable_methods, filter_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// A Bloom filter for streams without end: cells decay while keys come, so that its rate stays at
/// `fpr` for ever and old keys are forgotten gradually.
///
/// capacity: half-life of a key, in keys: one that `capacity` other keys followed is still found with
/// a chance of one half. fpr: rate of false positives in the long run. cell_bits: 1, 2, 4 or 8; a
/// cell holds up to 2**cell_bits - 1. num_hashes: cells of a key; by default about 2 log10(1/fpr).
/// seed, secret: as for BloomFilter; the seed also drives the decay, so that the same keys in the
/// same order give the same bytes.
///
/// False negatives: by design; only the latest key is certain to be found, see recall(). Use
/// AgingBloomFilter where the last keys must be. Raises ParameterError, ParameterTypeError,
/// FilterMemoryError. Cost: about 41 bits a key of capacity at 1 %; num_hashes cache lines and the
/// decay a key. Source: Deng, Rafiei, SIGMOD 2006; m from the half-life, and P from fpr by
/// ``(1 - (1 / (1 + 1 / (P (1/K - 1/m))))**Max)**K``, the variation of the fill included.
///
/// >>> from bloomery import StableBloomFilter
/// >>> f = StableBloomFilter(1000, fpr=0.01)
/// >>> f.update(range(100_000))
/// >>> 99_999 in f, f.recall(1000) >= 0.5
/// (True, True)
#[pyclass(frozen, module = "bloomery", name = "StableBloomFilter")]
pub(crate) struct StableBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(StableBloomFilter, Core, STABLE, "StableBloomFilter");
addable_methods!(StableBloomFilter, Core, "StableBloomFilter");
plain_methods!(StableBloomFilter, STABLE, "StableBloomFilter");

#[pymethods]
impl StableBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, cell_bits: "int" = None,
        num_hashes: "int | None" = None, seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, cell_bits=2, num_hashes=None, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        cell_bits: Option<&Bound<'_, PyAny>>,
        num_hashes: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let cell_bits = cell_bits.map_or(Ok(2), |bits| params::whole("cell_bits", bits, 1))?;
        let cell_bits = u32::try_from(cell_bits).unwrap_or(u32::MAX);
        let num_hashes = num_hashes.map(params::num_hashes).transpose()?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::new(capacity, fpr.0, cell_bits, num_hashes, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Model chance that a key is still found after `age` other keys, on a stream in its stable state.
    #[pyo3(signature = (age: "float"))]
    fn recall(&self, age: &Bound<'_, PyAny>) -> PyResult<f64> {
        let (py, keys) = (age.py(), params::real("age", age)?);
        if keys.is_nan() || keys < 0.0 {
            return Err(crate::errors::parameter(py, format!("age must be at least 0, got {keys}")));
        }
        Ok(self.lock.read(py, |f| f.shape().recall(keys)))
    }

    /// Number of cells, m.
    #[getter]
    fn num_cells(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.shape().num_cells)
    }

    /// Bits of a cell.
    #[getter]
    fn cell_bits(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().cell_bits)
    }

    /// Cells of a key, K.
    #[getter]
    fn num_hashes(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().num_hashes)
    }

    /// Cells decremented by each key, P.
    #[getter]
    fn decrements(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.shape().decrements)
    }

    /// Keys added since the filter was empty, repeats counted.
    #[getter]
    fn seen(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Core::ticks)
    }
}
