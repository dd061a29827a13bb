//! `CuckooFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::registry::CUCKOO;
use bloomery_core::table::{CuckooFilter as Core, CuckooShape};
use pyo3::prelude::*;

use super::{addable_methods, countable_methods, filter_methods, mergeable_methods, plain_methods, removable_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// An approximate multiset of keys that takes keys out again: a table of fingerprints, two buckets a
/// key.
///
/// capacity: expected number of keys, repetitions included. fpr: rate of false positives at capacity.
/// bucket_size: fingerprints a bucket, 1, 2, 4 or 8; 4 takes the least space for most rates, 1 may be
/// full early by chance. fingerprint_bits: 4 to 32; given, it decides the rate in the place of fpr, and
/// target_fpr tells which. semi_sort: store buckets of 4 sorted, a bit a key less for 3 times the time.
/// seed, secret: as for BloomFilter.
///
/// Every add stores one more fingerprint, also for a key that seems to be there, so that removing is
/// exact: as many removals as adds. A key can be added at most 2 * bucket_size times; ask `in` first to
/// store each key once. Never denies a key that was added, unless keys were removed that never were.
/// Raises FilterFull when a key finds no room (from about 97 % of the slots on; filters sized by
/// capacity hold it); every key added before is still found, and removing some makes room. To grow, see
/// DynamicCuckooFilter.
/// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated.
/// Cost: 10.5, 13.7 and 17.9 bits a key at 1, 0.1 and 0.01 %; 13 ns a lookup, 41 ns an add in batches
/// of 10 million keys, filled to 95 %.
/// Source: Fan, Andersen, Kaminsky, Mitzenmacher, CoNEXT 2014; 1 - (1 - 1/(2^f - 1))^(2 b load).
///
/// >>> from bloomery import CuckooFilter
/// >>> sessions = CuckooFilter(1_000_000, fpr=0.001)
/// >>> sessions.add("ada"), sessions.add("ada"), sessions.count("ada")
/// (True, False, 2)
/// >>> sessions.remove("ada"); sessions.remove("ada"); "ada" in sessions
/// False
#[pyclass(frozen, module = "bloomery", name = "CuckooFilter")]
pub(crate) struct CuckooFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(CuckooFilter, Core, CUCKOO);
addable_methods!(CuckooFilter, Core);
removable_methods!(CuckooFilter);
countable_methods!(CuckooFilter);
mergeable_methods!(
    CuckooFilter,
    "Adds all keys of another filter, in place. Raises FilterFull when they do not fit; then nothing changed."
);
plain_methods!(CuckooFilter, CUCKOO);

/// `bucket_size=` and `fingerprint_bits=`, of which the core knows the limits.
pub(super) fn bucket_of(
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
impl CuckooFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, bucket_size: "int" = None,
        fingerprint_bits: "int | None" = None, semi_sort: "bool" = false, seed: "int" = None,
        secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, bucket_size=4, fingerprint_bits=None, semi_sort=False, seed=0, \
                             secret=None)")]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        bucket_size: Option<&Bound<'_, PyAny>>,
        fingerprint_bits: Option<&Bound<'_, PyAny>>,
        semi_sort: bool,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let (bucket_size, bits) = bucket_of(bucket_size, fingerprint_bits)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let shape = CuckooShape::for_capacity(capacity, fpr.0, bucket_size, bits, semi_sort).or_raise(py)?;
        let target = if bits.is_some() { shape.fpr(capacity as f64) } else { fpr.0 };
        py.detach(|| Core::new(shape, capacity, target, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Buckets of the table.
    #[getter]
    fn num_buckets(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.shape().buckets)
    }

    /// Fingerprints a bucket.
    #[getter]
    fn bucket_size(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().bucket_size)
    }

    /// Bits of a fingerprint.
    #[getter]
    fn fingerprint_bits(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().fingerprint_bits)
    }

    /// True when buckets are stored sorted, a bit a key shorter.
    #[getter]
    fn semi_sort(&self, py: Python<'_>) -> bool {
        self.lock.read(py, |f| f.shape().semi_sort)
    }

    /// True when adds are refused until a key is removed.
    #[getter]
    fn full(&self, py: Python<'_>) -> bool {
        self.lock.read(py, Core::is_full)
    }
}
