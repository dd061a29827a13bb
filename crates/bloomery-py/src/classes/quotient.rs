//! `QuotientFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::registry::QUOTIENT;
use bloomery_core::table::QuotientFilter as Core;
use pyo3::prelude::*;

use super::{addable_methods, countable_methods, filter_methods, mergeable_methods, plain_methods, removable_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// A sorted table of fingerprints: keys can be removed and counted, tables merged and grown without
/// their keys.
///
/// capacity: expected number of distinct keys. fpr: rate of false positives at capacity. The number
/// of slots is a power of two of which 95 % may be filled; the remainder stored in a slot has the
/// bits that the rate needs. Every add stores one fingerprint, so that repeated keys take slots as
/// others do. counting: let up to 256 copies of a fingerprint share a slot, for 8 bits a slot more.
/// seed: 64-bit seed of the key hash. secret: 16 bytes, or True to draw them, for a hash that
/// outsiders cannot predict.
///
/// False negatives: never, unless a key that was not added is removed and takes the fingerprint of
/// one that was. count is never under the truth. Raises ParameterError, ParameterTypeError,
/// FilterMemoryError, before anything is allocated; add raises FilterFull when no slot may be filled,
/// and earlier keys stay found. num_added tells distinct fingerprints.
/// Cost: slots / keys * (r + 2.125) bits a key with r = log2(load / fpr): 9.6 at 1 % when 95 % full,
/// twice that just past a power of two; 25 ns a lookup, 35 (half full) to 80 ns (95 % full) an add.
/// Source: Bender et al., PVLDB 5(11), 2012, laid out as by Pandey et al., SIGMOD 2017; rate
/// 1 - (1 - 2^-(q+r))^n, about 1 - exp(-load / 2^r).
///
/// >>> from bloomery import QuotientFilter
/// >>> f = QuotientFilter(1000, counting=True)
/// >>> f.update(["a", "b", "b"])
/// >>> f.remove("a")
/// >>> "a" in f, f.count("b")
/// (False, 2)
#[pyclass(frozen, module = "bloomery", name = "QuotientFilter")]
pub(crate) struct QuotientFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(QuotientFilter, Core, QUOTIENT);
addable_methods!(QuotientFilter, Core);
removable_methods!(QuotientFilter);
countable_methods!(QuotientFilter);
mergeable_methods!(
    QuotientFilter,
    "Takes in every copy of every fingerprint of `other`, whose slots may be more or fewer; FilterFull if they do not fit."
);
plain_methods!(QuotientFilter, QUOTIENT);

#[pymethods]
impl QuotientFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, counting: "bool" = false, seed: "int" = None,
        secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, counting=False, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        counting: bool,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::new(capacity, fpr.0, counting, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Doubles the slots, and with them the capacity, without the keys: one bit of every remainder
    /// moves to the quotient, and no answer changes.
    ///
    /// The rate at the new capacity is about twice that at the old one; target_fpr follows. Raises
    /// FilterFull when remainders have no bit left to give, FilterMemoryError, ReadOnlyFilter; then
    /// nothing has changed. Cost: one pass over the table.
    ///
    /// >>> from bloomery import QuotientFilter
    /// >>> f = QuotientFilter(1000)
    /// >>> f.update(range(1000))
    /// >>> f.grow()
    /// >>> f.capacity, 999 in f
    /// (2000, True)
    #[pyo3(signature = () -> "None")]
    fn grow(&self, py: Python<'_>) -> PyResult<()> {
        let grown = self.lock.detach(py, |session| session.write(Core::grow));
        grown.or_raise(py)
    }

    /// True when copies of a fingerprint share slots.
    #[getter]
    fn counting(&self, py: Python<'_>) -> bool {
        self.lock.read(py, |f| f.geometry().counter_bits > 0)
    }

    /// Number of slots, a power of two.
    #[getter]
    fn num_slots(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.geometry().slots())
    }

    /// Slots in use; 95 % of them may be.
    #[getter]
    fn used_slots(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Core::used)
    }

    /// Bits of the fingerprint that say where it is at home.
    #[getter]
    fn quotient_bits(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.geometry().quotient_bits)
    }

    /// Bits of the fingerprint that a slot holds.
    #[getter]
    fn remainder_bits(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.geometry().remainder_bits)
    }
}
