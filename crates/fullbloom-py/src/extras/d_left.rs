//! What only `DLeftCountingFilter` has.

use fullbloom_core::table::DLeftCountingFilter as Core;
use pyo3::prelude::*;

use crate::classes::d_left::DLeftCountingFilter;

#[pymethods]
impl DLeftCountingFilter {
    /// Number of buckets with 0, 1, ... w cells in use, counted: O(nbytes).
    #[pyo3(signature = () -> "list[int]")]
    fn bucket_loads(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.look(py, Core::bucket_loads)
    }
}
