//! `LayeredBloomFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::labelled::{LayeredBloomFilter as Core, layered};
use bloomery_core::registry::LAYERED;
use pyo3::prelude::*;

use super::{addable_methods, countable_methods, estimating_methods, filter_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// Layers of Bloom filters that count repeats: adding puts a key into the first layer that lacks it,
/// and its depth is the number of leading layers that hold it.
///
/// capacity: distinct keys. fpr: rate of `in` at capacity, and of one more in a depth. layers: 1 to
/// 64, the largest count told. seed, secret: as for BloomFilter.
///
/// False negatives: never; a depth is at least min(times added, layers). Raises ParameterError,
/// ParameterTypeError, FilterMemoryError; warns CapacityWarning past capacity. Cost: one cache line
/// for each layer that holds the key and one more; 10 bits a key and layer at 1 %. Source: Zhiwang,
/// Jungang, Jian, ICACTE 2010; every layer a blocked filter.
///
/// >>> from bloomery import LayeredBloomFilter
/// >>> f = LayeredBloomFilter(1000)
/// >>> f.update(["a", "b", "a", "a"])
/// >>> f.depth("a"), f.depth("b"), f.depth("c")
/// (3, 1, 0)
#[pyclass(frozen, module = "bloomery", name = "LayeredBloomFilter")]
pub(crate) struct LayeredBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(LayeredBloomFilter, Core, LAYERED);
addable_methods!(LayeredBloomFilter, Core);
countable_methods!(LayeredBloomFilter);
estimating_methods!(LayeredBloomFilter);
plain_methods!(LayeredBloomFilter, LAYERED);

#[pymethods]
impl LayeredBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, layers: "int" = None, seed: "int" = None,
        secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, layers=4, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        layers: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let layers = layers.map_or(Ok(layered::LAYERS as u64), |layers| params::whole("layers", layers, 1))?;
        let layers = usize::try_from(layers).unwrap_or(usize::MAX);
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::new(capacity, fpr.0, layers, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Leading layers that hold the key: 0 when it was certainly never added, never below
    /// min(times added, layers).
    #[pyo3(signature = (key: "object", /))]
    fn depth(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
        Ok(self.lock.read(key.py(), |f| f.depth_hash(hash)))
    }

    /// One depth a key, in the caller's kind; takes what contains_many takes.
    #[pyo3(signature = (keys: "object") -> "Any")]
    fn depth_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = crate::operations::Count { lock: &self.lock };
        crate::keys::batch::run(&count, &self.hasher, keys, true)
    }

    /// Number of layers.
    #[getter]
    fn layers(&self, py: Python<'_>) -> usize {
        self.lock.read(py, Core::layers)
    }

    /// Estimated number of keys in each layer, first to last: keys that came at least once, twice, ...
    #[pyo3(signature = () -> "list[float]")]
    fn layer_counts(&self, py: Python<'_>) -> Vec<f64> {
        self.lock.read(py, Core::layer_counts)
    }
}
