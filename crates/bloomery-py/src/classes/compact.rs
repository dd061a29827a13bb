//! `CompactApproximator`.

use bloomery_core::key::KeyHasher;
use bloomery_core::labelled::valued::Lattice;
use bloomery_core::labelled::{CompactApproximator as Core, compact};
use bloomery_core::registry::COMPACT;
use pyo3::prelude::*;

use super::pairs::pair_methods;
use super::{estimating_methods, filter_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::{OrRaise, parameter};
use crate::params;

/// An approximate map from keys to small numbers: what it answers is never below the truth in the
/// order of its lattice.
///
/// capacity: distinct keys. fpr: rate at capacity at which a key never added has a value. lattice:
/// "max" answers an upper bound of the largest value added with the key, "min" a lower bound of the
/// smallest, "or" a superset of the bits. value_bits: 1 to 32. seed, secret: as for BloomFilter.
///
/// Values: 1 to 2**value_bits - 1; for "min" 0 to 2**value_bits - 2. get() of a key never added
/// answers the bottom, which cannot be added: 0, and 2**value_bits - 1 for "min".
/// False negatives: never. Raises ParameterError, ParameterTypeError, FilterMemoryError; warns
/// CapacityWarning past capacity. Cost: value_bits for each bit of a Bloom filter, 77 bits a key at
/// 1 % and 8 bits; num_hashes cache lines a key. Source: Boldi, Vigna, Science of Computer
/// Programming 54(1), 2005; above v ``(1 - (1 - 1/m)**(k * keys_above_v))**k``.
///
/// >>> from bloomery import CompactApproximator
/// >>> last = CompactApproximator(1000)
/// >>> last.update("abracadabra", range(1, 12))
/// Traceback (most recent call last):
///     ...
/// bloomery.errors.KeyTypeError: a batch takes many keys, got one str; use add(), in, or [key]
/// >>> last.update(list("abracadabra"), range(1, 12))
/// >>> last.get("a"), last.get("c"), last.get("z")
/// (11, 5, 0)
#[pyclass(frozen, module = "bloomery", name = "CompactApproximator")]
pub(crate) struct CompactApproximator {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(CompactApproximator, Core, COMPACT);
pair_methods!(
    CompactApproximator,
    value,
    values,
    get,
    get_many,
    "The value of a key: never below the join of those added with it; the bottom when there was none.",
    "Joins cell by cell: the approximator of the pairs of both, bit for bit."
);
estimating_methods!(CompactApproximator);
plain_methods!(CompactApproximator, COMPACT);

#[pymethods]
impl CompactApproximator {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, lattice: "str" = "max", value_bits: "int" = None,
        seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, lattice='max', value_bits=8, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        lattice: &str,
        value_bits: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let lattice = Lattice::from_name(lattice)
            .ok_or_else(|| parameter(py, format!("lattice must be max, min or or, got {lattice:?}")))?;
        let bits = value_bits.map_or(Ok(compact::VALUE_BITS.into()), |bits| params::whole("value_bits", bits, 1))?;
        let bits = u32::try_from(bits).unwrap_or(u32::MAX);
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::new(capacity, fpr.0, lattice, bits, hasher)).or_raise(py).map(Self::wrap)
    }

    /// How cells are joined: max, min or or.
    #[getter]
    fn lattice(&self, py: Python<'_>) -> &'static str {
        self.lock.read(py, |filter| filter.lattice().name())
    }
}
