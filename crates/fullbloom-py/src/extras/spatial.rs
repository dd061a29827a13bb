//! What only `SpatialBloomFilter` has: labels.

use pyo3::prelude::*;

use super::pairs::pair_methods;
use crate::classes::spatial::SpatialBloomFilter;

pair_methods!(
    SpatialBloomFilter,
    label,
    labels,
    label,
    label_many,
    "The label of a key: 0 when it certainly lies in no area, never below its own."
);

#[pymethods]
impl SpatialBloomFilter {
    /// Number of areas, the largest label.
    #[getter]
    fn areas(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.largest())
    }

    /// Cells that hold each label, label 1 first: O(nbytes).
    #[pyo3(signature = () -> "list[int]")]
    fn label_cells(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.look(py, |f| f.label_cells())
    }

    /// Rate at which a key of no area is given each label now, label 1 first: O(nbytes).
    #[pyo3(signature = () -> "list[float]")]
    fn label_rates(&self, py: Python<'_>) -> Vec<f64> {
        self.lock.look(py, |f| f.label_rates())
    }
}
