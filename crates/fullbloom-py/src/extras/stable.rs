//! What only `StableBloomFilter` has.

use pyo3::prelude::*;

use crate::classes::stable::StableBloomFilter;
use crate::params;

#[pymethods]
impl StableBloomFilter {
    /// Model chance that a key is still found after `age` other keys, on a stream in its stable state.
    #[pyo3(signature = (age: "float"))]
    fn recall(&self, age: &Bound<'_, PyAny>) -> PyResult<f64> {
        let (py, keys) = (age.py(), params::real("age", age)?);
        if keys.is_nan() || keys < 0.0 {
            return Err(crate::errors::parameter(py, format!("age must be at least 0, got {keys}")));
        }
        Ok(self.lock.read(py, |f| f.shape().recall(keys)))
    }
}
