//! `SpatialBloomFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::labelled::{SpatialBloomFilter as Core, spatial};
use bloomery_core::registry::SPATIAL;
use pyo3::prelude::*;

use super::pairs::pair_methods;
use super::{estimating_methods, filter_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// A Bloom filter that tells in which of several areas a key lies; where cells collide the higher
/// label wins, so that errors go upward only.
///
/// capacity: distinct keys of all areas together. fpr: rate at capacity at which a key of no area is
/// given one. areas: labels 1 to areas, at most 65535; give the areas that matter most the highest.
/// seed, secret: as for BloomFilter.
///
/// False negatives: never, and no label below the key's own (the highest added with it). Raises
/// ParameterError, ParameterTypeError, FilterMemoryError; warns CapacityWarning past capacity. Cost:
/// a cell of log2(areas + 1) bits for each bit of a Bloom filter: 77 bits a key at 1 % and 255 areas;
/// num_hashes cache lines a key. Source: Palmieri, Calderoni, Maio, Inscrypt 2014;
/// ``(1 - (1 - 1/m)**(k * keys_above))**k``.
///
/// >>> from bloomery import SpatialBloomFilter
/// >>> f = SpatialBloomFilter(1000, areas=3)
/// >>> f.update(["park", "square", "harbour"], [1, 2, 3])
/// >>> f.label("square"), f.label("desert")
/// (2, 0)
#[pyclass(frozen, module = "bloomery", name = "SpatialBloomFilter")]
pub(crate) struct SpatialBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(SpatialBloomFilter, Core, SPATIAL);
pair_methods!(
    SpatialBloomFilter,
    label,
    labels,
    label,
    label_many,
    "The label of a key: 0 when it certainly lies in no area, never below its own.",
    "Takes the larger label cell by cell: the filter of the pairs of both, bit for bit."
);
estimating_methods!(SpatialBloomFilter);
plain_methods!(SpatialBloomFilter, SPATIAL);

#[pymethods]
impl SpatialBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, areas: "int" = None, seed: "int" = None,
        secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, areas=255, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        areas: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let areas = areas.map_or(Ok(spatial::AREAS), |areas| params::whole("areas", areas, 1))?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::new(capacity, fpr.0, areas, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Number of areas, the largest label.
    #[getter]
    fn areas(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Core::largest)
    }

    /// Cells that hold each label, label 1 first: O(nbytes).
    #[pyo3(signature = () -> "list[int]")]
    fn label_cells(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.read(py, Core::label_cells)
    }

    /// Rate at which a key of no area is given each label now, label 1 first: O(nbytes).
    #[pyo3(signature = () -> "list[float]")]
    fn label_rates(&self, py: Python<'_>) -> Vec<f64> {
        self.lock.read(py, Core::label_rates)
    }
}
