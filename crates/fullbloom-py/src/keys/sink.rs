//! What canonical bytes are written to.

use fullbloom_core::key::Domain;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Where canonical bytes go.
pub(super) trait Sink {
    /// Takes the bytes of a key of one piece.
    fn take(&mut self, py: Python<'_>, domain: Domain, bytes: &[u8]) -> PyResult<()>;
    /// Takes a tuple, the `depth`-th of those around and in each other.
    fn tuple(&mut self, tuple: &Bound<'_, PyTuple>, depth: usize) -> PyResult<()>;
    /// Takes a key that `encode_builtin` does not, which lies in `depth` tuples.
    fn other(&mut self, key: &Bound<'_, PyAny>, depth: usize) -> PyResult<()>;
}
