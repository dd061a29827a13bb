//! Keys from Python: one at a time, from lists and iterables, from buffers and Arrow columns.
//!
//! Every path ends in [`fullbloom_core::key::KeyHasher`], so all agree on every key; for filters of other programs, in
//! the same canonical bytes.
//!
//! * [`batch`]: many keys; [`buffer`]: those of the buffer protocol; [`ready`]: ready hashes;
//! * [`scalar`]: one key; `encoding`, `moments`: its canonical bytes, which go to a [`Sink`];
//! * `refusals`: errors for objects that are not keys.

use fullbloom_core::key::Domain;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod encoding;
mod moments;
pub(crate) mod ready;
pub(crate) mod refusals;
pub(crate) mod scalar;

/// Where canonical bytes go.
trait Sink {
    /// Takes the bytes of a key of one piece.
    fn take(&mut self, py: Python<'_>, domain: Domain, bytes: &[u8]) -> PyResult<()>;
    /// Takes a tuple at nesting level `depth`.
    fn tuple(&mut self, tuple: &Bound<'_, PyTuple>, depth: usize) -> PyResult<()>;
    /// Takes a key that `encode_builtin` does not, nested in `depth` tuples.
    fn other(&mut self, key: &Bound<'_, PyAny>, depth: usize) -> PyResult<()>;
}
