//! What chains of stages have in common, and what only one of them has.

use fullbloom_core::chain::{DynamicCuckooFilter as Dynamic, Kind};
use pyo3::prelude::*;

use crate::classes::dynamic_cuckoo::DynamicCuckooFilter;
use crate::classes::scalable::ScalableBloomFilter;
use crate::errors::OrRaise;

/// Queries of the stages, one by one.
macro_rules! stage_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            /// Keys of each stage, oldest first; a new one opens when all others are full.
            #[getter]
            fn stage_capacities(&self, py: Python<'_>) -> Vec<u64> {
                self.lock.read(py, |filter| filter.stage_capacities())
            }

            /// One info() dict per stage, oldest first.
            #[pyo3(signature = () -> "list[dict[str, Any]]")]
            fn stage_info<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, pyo3::types::PyDict>>> {
                let (class, stages) = self.lock.look(py, |filter| filter.stage_info());
                stages.iter().map(|info| crate::classes::shared::info(class, info, py)).collect()
            }
        }
    };
}
stage_methods!(ScalableBloomFilter);
stage_methods!(DynamicCuckooFilter);

#[pymethods]
impl ScalableBloomFilter {
    /// The values of `kind`.
    #[staticmethod]
    #[pyo3(signature = () -> "list[str]")]
    fn kinds() -> Vec<&'static str> {
        Kind::rows().map(|row| row.name).collect()
    }
}

#[pymethods]
impl DynamicCuckooFilter {
    /// Moves keys of the newest stages into free slots of earlier ones, as long as whole stages become
    /// empty by it, and frees the memory of dropped ones; returns the number of stages freed.
    ///
    /// No key is lost and no answer changes. Raises ReadOnlyFilter. Cost: one pass over each stage
    /// freed, and an add for each of its keys.
    ///
    /// >>> from fullbloom import DynamicCuckooFilter
    /// >>> f = DynamicCuckooFilter(1000)
    /// >>> f.update(range(3000))
    /// >>> f.discard_many(range(0, 3000, 2)).count(True), f.stages
    /// (1500, 3)
    /// >>> f.compact(), f.stages, 2999 in f
    /// (1, 2, True)
    #[pyo3(signature = () -> "int")]
    fn compact(&self, py: Python<'_>) -> PyResult<usize> {
        self.lock.change(py, Dynamic::compact).or_raise(py)
    }
}
