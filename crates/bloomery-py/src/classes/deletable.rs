//! `DeletableBloomFilter`.

use bloomery_core::counting::DeletableBloomFilter as Core;
use bloomery_core::counting::deletable::Regions;
use bloomery_core::key::KeyHasher;
use bloomery_core::registry::DELETABLE;
use bloomery_core::scheme::positions::Positions;
use bloomery_core::sizing::Law;
use bloomery_core::structure::Removable;
use pyo3::prelude::*;

use super::{addable_methods, estimating_methods, filter_methods, mergeable_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::operations::Remove;
use crate::params;

/// A Bloom filter from which most keys can be removed: it remembers, a bit a region, where keys met.
///
/// capacity: expected number of distinct keys. fpr: rate of false positives at capacity.
/// regions: how many equal parts the bits form, from 1 to num_bits; a bit is cleared only where no
/// two keys ever met in its region. More regions, more keys can be removed: by default one for 4
/// bits, which lets 90 % go at capacity. seed, secret: as for BloomFilter.
///
/// False negatives: never, unless a key is removed that was not added. remove() answers False for a
/// key that stays, or was not there. Flags are never taken back, so what can be removed only falls;
/// adding a key again flags all its regions, and it can then not be removed.
/// Raises ParameterError, ParameterTypeError, FilterMemoryError. Cost: BloomFilter's classic layout
/// and a bit a region, 12.0, 18.0 and 24.0 bits a key at 1, 0.1 and 0.01 %.
/// Source: Rothenberg, Macapuna, Verdi, Magalhaes, IEEE Communications Letters 14(6), 2010; the share
/// that can be removed: bloomery.theory.deletability (the published form is too high).
///
/// >>> from bloomery import DeletableBloomFilter
/// >>> open_orders = DeletableBloomFilter(1000)
/// >>> open_orders.update(["a-17", "b-4"])
/// >>> open_orders.remove("a-17"), open_orders.remove("c-9")
/// (True, False)
/// >>> "a-17" in open_orders, "b-4" in open_orders
/// (False, True)
#[pyclass(frozen, module = "bloomery", name = "DeletableBloomFilter")]
pub(crate) struct DeletableBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(DeletableBloomFilter, Core, DELETABLE);
addable_methods!(DeletableBloomFilter, Core);
estimating_methods!(DeletableBloomFilter);
mergeable_methods!(
    DeletableBloomFilter,
    "The union, in place: bitwise or. Where both have a bit set, keys met: its region is flagged."
);
plain_methods!(DeletableBloomFilter, DELETABLE);

/// `regions=`, where it was given.
fn regions_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    value.filter(|value| !value.is_none()).map(|value| params::whole("regions", value, 1)).transpose()
}

#[pymethods]
impl DeletableBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, regions: "int | None" = None, seed: "int" = None,
        secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, regions=None, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        regions: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let regions = regions_of(regions)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let positions = Positions::for_capacity(capacity, fpr.0).or_raise(py)?;
        let regions = Regions::new(positions, regions).or_raise(py)?;
        py.detach(|| Core::new(regions, capacity, fpr.0, hasher)).or_raise(py).map(Self::wrap)
    }

    /// A filter of a given shape: bits (rounded up to a multiple of regions) and probes a key.
    ///
    /// capacity: keys after which to warn; by default where half of the bits are set.
    ///
    /// >>> from bloomery import DeletableBloomFilter
    /// >>> DeletableBloomFilter.with_shape(1000, 7, regions=64).num_bits
    /// 1024
    #[staticmethod]
    #[pyo3(signature = (
        num_bits: "int", num_hashes: "int", *, regions: "int | None" = None, capacity: "int | None" = None,
        seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(num_bits, num_hashes, *, regions=None, capacity=None, seed=0, secret=None)")]
    fn with_shape(
        num_bits: &Bound<'_, PyAny>,
        num_hashes: &Bound<'_, PyAny>,
        regions: Option<&Bound<'_, PyAny>>,
        capacity: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = num_bits.py();
        let num_bits = params::whole("num_bits", num_bits, 1)?;
        let num_hashes = params::num_hashes(num_hashes)?;
        let regions = Regions::new(Positions { num_bits, num_hashes }, regions_of(regions)?).or_raise(py)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let law = regions.positions.law();
        let capacity = match capacity {
            Some(capacity) => params::whole("capacity", capacity, 1)?,
            None => (law.items(0.5).round() as u64).max(1),
        };
        let fpr = law.fpr(capacity as f64).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
        py.detach(|| Core::new(regions, capacity, fpr, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Removes a key; True when it is gone. False: it was certainly absent, or all its bits lie where
    /// keys have met, and nothing changed. Removing a key that only seems to be there harms others.
    #[pyo3(signature = (key: "object", /))]
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = crate::keys::scalar::hash_key(&self.hasher, key)?;
        let py = key.py();
        self.lock.write(py, |f| f.remove_hash(hash)).or_raise(py)
    }

    /// Removes many keys and answers, for each, as remove does, in the caller's kind; takes what
    /// contains_many takes, skips nulls.
    #[pyo3(signature = (keys: "object") -> "Any")]
    fn remove_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        crate::keys::batch::run(&Remove { lock: &self.lock }, &self.hasher, keys, true)
    }

    /// m.
    #[getter]
    fn num_bits(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.regions().positions.num_bits)
    }

    /// k.
    #[getter]
    fn num_hashes(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.regions().positions.num_hashes)
    }

    /// Number of regions.
    #[getter]
    fn regions(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.regions().count)
    }

    /// Share of the regions in which keys have met: O(regions).
    #[getter]
    fn collided(&self, py: Python<'_>) -> f64 {
        self.lock.read(py, Core::collided)
    }

    /// Estimated share of the keys that can be removed now, from the cells: O(nbytes).
    #[getter]
    fn deletability(&self, py: Python<'_>) -> f64 {
        self.lock.read(py, Core::deletability)
    }
}
