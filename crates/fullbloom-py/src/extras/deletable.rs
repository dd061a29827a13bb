//! What only `DeletableBloomFilter` has: a shape given outright.

use fullbloom_core::counting::DeletableBloomFilter as Core;
use fullbloom_core::scheme::positions::Positions;
use pyo3::prelude::*;

use crate::classes::deletable::DeletableBloomFilter;
use crate::errors::OrRaise;
use crate::params;

#[pymethods]
impl DeletableBloomFilter {
    /// A filter of a given shape: bits (rounded up to a multiple of regions) and probes a key.
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
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = num_bits.py();
        let (num_bits, num_hashes) = (params::whole("num_bits", num_bits, 1)?, params::num_hashes(num_hashes)?);
        let regions = regions.map(|regions| params::whole("regions", regions, 1)).transpose()?;
        let capacity = capacity.map(|capacity| params::whole("capacity", capacity, 1)).transpose()?;
        let hasher = params::hasher(seed, secret)?;
        let positions = Positions { num_bits, num_hashes };
        py.detach(|| Core::with_shape(positions, regions, capacity, hasher)).or_raise(py).map(Self::wrap)
    }
}
