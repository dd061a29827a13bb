//! `DynamicCuckooFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::registry::DYNAMIC_CUCKOO;
use bloomery_core::structure::{Declared, Filter};
use bloomery_core::table::DynamicCuckooFilter as Core;
use bloomery_core::table::dynamic_cuckoo::Plan;
use bloomery_core::table::dynamic_cuckoo::plan::DEFAULT_STAGES;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::shared;
use super::{addable_methods, countable_methods, filter_methods, mergeable_methods, plain_methods, removable_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// A cuckoo filter that grows: stages of one shape, opened as keys come, with removal and counts.
///
/// capacity: number of keys of one stage, repetitions included; the attribute is that of the stages in
/// use. fpr: bound on the rate of the whole with max_stages full stages. max_stages: 1 to 1024; four
/// times as many take two bits a key more. bucket_size, fingerprint_bits, seed, secret: as for
/// CuckooFilter; fingerprint_bits, given, decides the rate in the place of fpr.
///
/// Every add stores one more fingerprint in the first stage that has room, so that removing is exact,
/// in any order: a copy may be taken out of any stage. Removal drops the newest stages as they become
/// empty (the memory of one is kept for the next); compact() moves keys together. Never denies a key that was added, unless keys were removed
/// that never were. Warns CapacityWarning past capacity * max_stages keys; raises FilterFull when no
/// stage takes the key, and then nothing has changed. Copies of one key beyond 2 * bucket_size open
/// further stages: ask `in` first to store each key once.
/// Raises ParameterError, ParameterTypeError, FilterMemoryError; opening a stage allocates it.
/// Cost: 14.7 and 17.9 bits a key at 1 and 0.1 % with 16 stages, the last one partly filled; a lookup of
/// an absent key asks every stage, at about 12 ns each in batches.
/// Source: Chen, Liao, Jin, Wu, ICNP 2017; 1 - (1 - 1/(2^f - 1))^(2 b load stages).
///
/// >>> from bloomery import DynamicCuckooFilter
/// >>> online = DynamicCuckooFilter(1000, fpr=0.001)
/// >>> online.update(range(2500))
/// >>> online.stages, 2499 in online
/// (3, True)
/// >>> online.discard_many(range(1000, 2500)).count(True), online.stages
/// (1500, 1)
#[pyclass(frozen, module = "bloomery", name = "DynamicCuckooFilter")]
pub(crate) struct DynamicCuckooFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(DynamicCuckooFilter, Core, DYNAMIC_CUCKOO);
addable_methods!(DynamicCuckooFilter, Core);
removable_methods!(DynamicCuckooFilter);
countable_methods!(DynamicCuckooFilter);
mergeable_methods!(
    DynamicCuckooFilter,
    "Adds all keys of another filter, in place; the numbers of stages may differ, the shape of a stage may not. Raises \
     FilterFull when they do not fit; then nothing changed."
);
plain_methods!(DynamicCuckooFilter, DYNAMIC_CUCKOO);

/// `bucket_size=` and `fingerprint_bits=`, of which the core knows the limits.
fn bucket_of(
    bucket_size: Option<&Bound<'_, PyAny>>,
    fingerprint_bits: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u32, Option<u32>)> {
    let bits = fingerprint_bits.filter(|value| !value.is_none());
    Ok((
        bucket_size.map_or(Ok(4), |value| params::small("bucket_size", value))?,
        bits.map(|value| params::small("fingerprint_bits", value)).transpose()?,
    ))
}

#[pymethods]
impl DynamicCuckooFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, max_stages: "int" = None, bucket_size: "int" = None,
        fingerprint_bits: "int | None" = None, seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, max_stages=16, bucket_size=4, fingerprint_bits=None, seed=0, \
                             secret=None)")]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        max_stages: Option<&Bound<'_, PyAny>>,
        bucket_size: Option<&Bound<'_, PyAny>>,
        fingerprint_bits: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let max_stages = max_stages.map_or(Ok(DEFAULT_STAGES), |value| params::whole("max_stages", value, 1))?;
        let (bucket_size, bits) = bucket_of(bucket_size, fingerprint_bits)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let plan = Plan::for_capacity(capacity, fpr.0, max_stages, bucket_size, bits).or_raise(py)?;
        py.detach(|| Core::new(plan, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Moves keys of the newest stages into the room of earlier ones, as long as whole stages become
    /// free by it, and gives back the memory kept of dropped ones; the number of stages freed.
    ///
    /// No key is lost and no answer changes. Raises ReadOnlyFilter. Cost: one pass over each stage
    /// freed, and an add for each of its keys.
    ///
    /// >>> from bloomery import DynamicCuckooFilter
    /// >>> f = DynamicCuckooFilter(1000)
    /// >>> f.update(range(3000))
    /// >>> f.discard_many(range(0, 3000, 2)).count(True), f.stages
    /// (1500, 3)
    /// >>> f.compact(), f.stages, 2999 in f
    /// (1, 2, True)
    #[pyo3(signature = () -> "int")]
    fn compact(&self, py: Python<'_>) -> PyResult<usize> {
        self.lock.detach(py, |session| session.write(Core::compact)).or_raise(py)
    }

    /// Most stages there may be.
    #[getter]
    fn max_stages(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.plan().max_stages)
    }

    /// Number of stages.
    #[getter]
    fn stages(&self, py: Python<'_>) -> usize {
        self.lock.read(py, |f| f.stages().len())
    }

    /// Keys of each stage, oldest first: all alike. A new one opens when all others are full.
    #[getter]
    fn stage_capacities(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.read(py, |f| f.stages().iter().map(Filter::capacity).collect())
    }

    /// One info() dict a stage, oldest first.
    #[pyo3(signature = () -> "list[dict[str, Any]]")]
    fn stage_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let stages: Vec<_> = self.lock.look(py, |f| f.stages().iter().map(Declared::info).collect());
        let dicts: Vec<Bound<'py, PyDict>> =
            stages.iter().map(|facts| shared::info("CuckooFilter", facts, py)).collect::<PyResult<_>>()?;
        PyList::new(py, dicts)
    }

    /// Buckets of a stage.
    #[getter]
    fn num_buckets(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.plan().shape.buckets)
    }

    /// Fingerprints a bucket.
    #[getter]
    fn bucket_size(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.plan().shape.bucket_size)
    }

    /// Bits of a fingerprint.
    #[getter]
    fn fingerprint_bits(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.plan().shape.fingerprint_bits)
    }

    /// True when adds are refused until a key is removed.
    #[getter]
    fn full(&self, py: Python<'_>) -> bool {
        self.lock.read(py, Core::is_full)
    }
}
