//! `VariableIncrementFilter`.

use bloomery_core::counting::VariableIncrementFilter as Core;
use bloomery_core::counting::variable_increment::{INCREMENTS, Shape};
use bloomery_core::key::KeyHasher;
use bloomery_core::registry::VARIABLE_INCREMENT;
use pyo3::prelude::*;

use super::{addable_methods, estimating_methods, filter_methods};
use super::{mergeable_methods, plain_methods, removable_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// A counting filter whose keys add different amounts to their counters: keys can be removed, in
/// less space than CountingBloomFilter needs at low rates.
///
/// capacity: expected number of distinct keys. fpr: rate of false positives at capacity.
/// increments: L = 2, 4 or 8; each probe of a key adds an amount from L to 2L - 1, and a counter that
/// cannot be a sum with that amount in it denies the key. counter_bits: width of a counter, at most
/// 16 and at least 2 + log2 L; by default 5 + log2 L. A counter that reaches its maximum admits every
/// key and stays there for ever. seed, secret: as for BloomFilter.
///
/// No key is denied that was added more often than removed, as long as only keys were removed that
/// had been added: removing a key that merely seems to be there takes from the counters of others.
/// num_added is the number of additions less that of removals, repeated keys included; the warning
/// past capacity goes by distinct keys. merge() adds the counters of another filter.
///
/// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated;
/// remove() raises KeyError for a key that was certainly never added, and changes nothing.
/// Cost: 28.8 bits a key at 1 %, 43.2 at 0.1 % (CountingBloomFilter, classic: 38.3 and 57.5); k cache lines.
/// Source: Rottenstreich, Kanizo, Keslassy, IEEE/ACM ToN 22(4), 2014; rate (1 - B(0) - (L-1)/L B(1)
/// - (L^2-1)/(6 L^2) B(2))^k, B(i) the probability that i of kn throws over m cells fall into one.
///
/// >>> from bloomery import VariableIncrementFilter
/// >>> f = VariableIncrementFilter(1000, 0.001)
/// >>> f.update(["a", "b"])
/// >>> f.remove("b")
/// >>> "a" in f, "b" in f
/// (True, False)
#[pyclass(frozen, module = "bloomery", name = "VariableIncrementFilter")]
pub(crate) struct VariableIncrementFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(VariableIncrementFilter, Core, VARIABLE_INCREMENT);
addable_methods!(VariableIncrementFilter, Core);
removable_methods!(VariableIncrementFilter);
mergeable_methods!(
    VariableIncrementFilter,
    "The filter of both multisets, in place: counters add, up to their maximum."
);
estimating_methods!(VariableIncrementFilter);
plain_methods!(VariableIncrementFilter, VARIABLE_INCREMENT);

#[pymethods]
impl VariableIncrementFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, increments: "int" = None,
        counter_bits: "int | None" = None, seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, increments=4, counter_bits=None, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        increments: Option<&Bound<'_, PyAny>>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let increments = increments.map_or(Ok(INCREMENTS), |l| params::whole("increments", l, 1))?;
        let bits = match counter_bits {
            Some(bits) => u32::try_from(params::whole("counter_bits", bits, 1)?).unwrap_or(u32::MAX),
            None => Shape::default_bits(increments),
        };
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let shape = Shape::for_capacity(increments, bits, capacity, fpr.0).or_raise(py)?;
        py.detach(|| Core::new(shape, capacity, fpr.0, hasher)).or_raise(py).map(Self::wrap)
    }

    /// m, the number of counters.
    #[getter]
    fn num_counters(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.shape().num_cells)
    }

    /// Bits of a counter.
    #[getter]
    fn counter_bits(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().counter_bits)
    }

    /// k, the number of counters of a key.
    #[getter]
    fn num_hashes(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().num_hashes)
    }

    /// L: increments are L to 2L - 1.
    #[getter]
    fn increments(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.shape().increments)
    }

    /// True when the counters live in a file.
    #[getter]
    fn mapped(&self, py: Python<'_>) -> bool {
        self.lock.read(py, Core::is_mapped)
    }
}
