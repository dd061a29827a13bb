//! `DLeftCountingFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::registry::D_LEFT;
use bloomery_core::table::DLeftCountingFilter as Core;
use bloomery_core::table::d_left::shape::Shape;
use bloomery_core::table::d_left::{DEFAULT_CELLS, DEFAULT_SUBTABLES};
use pyo3::prelude::*;

use super::{addable_methods, countable_methods, filter_methods, mergeable_methods, plain_methods, removable_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// A counting filter of fingerprints in d sub-tables: removes and counts exactly, in two fifths of
/// the space of a counting Bloom filter.
///
/// capacity: expected number of distinct keys with up to 3 copies each; 4 to 12 copies take two cells,
/// 13 to 39 three, a million 13. fpr: rate of false positives at capacity.
/// subtables: d, 2 to 8; a key has one bucket in each and goes to the least loaded. cells: w, 6 to
/// 64, cells of a bucket; 8 is the published design, 12 packs tighter. seed, secret: as for
/// BloomFilter.
///
/// False negatives: never, unless a key is removed that was not added; one that only seems to be
/// there then takes a copy from a key with the same fingerprint. count() is exact but for such keys,
/// whose counts add up: never too low.
/// Raises ParameterError, ParameterTypeError, FilterMemoryError; FilterFull when all buckets of a key
/// are full, which changes nothing: remove keys and go on. It was not seen up to capacity in
/// simulations with 3 or more sub-tables and at most 3 copies a key; with 2, for one key in 10^7.
/// Cost: 16.8, 21.6 and 25.2 bits a key at 1, 0.1 and 0.01 %; d cache misses a key.
/// Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, ESA 2006; rate 1 - (1 - 1/(B R))^n, about
/// d * load * 2^-r.
///
/// >>> from bloomery import DLeftCountingFilter
/// >>> stock = DLeftCountingFilter(1000)
/// >>> stock.update(["apple", "apple", "pear"])
/// >>> stock.remove("apple")
/// >>> stock.count("apple"), "pear" in stock
/// (1, True)
#[pyclass(frozen, module = "bloomery", name = "DLeftCountingFilter")]
pub(crate) struct DLeftCountingFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(DLeftCountingFilter, Core, D_LEFT);
addable_methods!(DLeftCountingFilter, Core);
removable_methods!(DLeftCountingFilter);
countable_methods!(DLeftCountingFilter);
mergeable_methods!(
    DLeftCountingFilter,
    "Adds the other's keys with their counts. FilterFull when they do not fit; then nothing changed."
);
plain_methods!(DLeftCountingFilter, D_LEFT);

/// A small number; the core checks its range.
fn small(name: &str, value: Option<&Bound<'_, PyAny>>, default: u32) -> PyResult<u32> {
    value.map_or(Ok(default), |value| params::small(name, value))
}

#[pymethods]
impl DLeftCountingFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, subtables: "int" = None, cells: "int" = None,
        seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, subtables=4, cells=12, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        subtables: Option<&Bound<'_, PyAny>>,
        cells: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let subtables = small("subtables", subtables, DEFAULT_SUBTABLES)?;
        let cells = small("cells", cells, DEFAULT_CELLS)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let shape = Shape::for_capacity(capacity, fpr.0, subtables, cells).or_raise(py)?;
        py.detach(|| Core::new(shape, capacity, fpr.0, hasher)).or_raise(py).map(Self::wrap)
    }

    /// d, the buckets a key may go to.
    #[getter]
    fn subtables(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().subtables)
    }

    /// w, the cells of a bucket.
    #[getter]
    fn cells(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().cells)
    }

    /// B, the buckets of a sub-table.
    #[getter]
    fn buckets(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.shape().buckets)
    }

    /// r, the bits of a stored remainder; a cell has two more for its count.
    #[getter]
    fn remainder_bits(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().remainder_bits)
    }

    /// Number of buckets with 0, 1, ... w cells in use, counted: O(nbytes).
    #[pyo3(signature = () -> "list[int]")]
    fn bucket_loads(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.read(py, Core::bucket_loads)
    }
}
