//! `RollingBloomFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::registry::ROLLING;
use bloomery_core::window::RollingBloomFilter as Core;
use pyo3::prelude::*;

use super::aging::{generation_methods, window};
use super::{addable_methods, filter_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// A window over a stream in several generations: the last `capacity` keys are never denied, in less
/// space than AgingBloomFilter takes.
///
/// capacity: keys of the window, repeats counted (a repeat within one generation is free; for the
/// last `capacity` *distinct* keys whatever repeats, use AgingBloomFilter). With window=, keys that
/// come within it. fpr: bound on the rate of false positives, at any time. generations: 2 to 16; g of
/// them hold at most g/(g - 1) times `capacity` keys, one cache line each a look-up. window: seconds
/// for which keys are remembered, instead of a count: time passes by advance(now) only, every
/// generation is made for `capacity` keys, and more of them in one warn (CapacityWarning). seed,
/// secret: as for BloomFilter.
///
/// False negatives: by design for older keys, never within the window. Raises ParameterError,
/// ParameterTypeError, FilterMemoryError. Cost: `generations` neighbouring cache lines a key; about
/// 19 bits a key of capacity at 1 % with 3 generations. Source: Bitcoin Core's CRollingBloomFilter,
/// with lines instead of 2-bit cells; each generation at rate ``1 - (1 - fpr)**(1/g)``.
///
/// >>> from bloomery import RollingBloomFilter
/// >>> f = RollingBloomFilter(1000, fpr=0.001)
/// >>> f.update(range(10_000))
/// >>> all(key in f for key in range(9_000, 10_000)), 0 in f
/// (True, False)
#[pyclass(frozen, module = "bloomery", name = "RollingBloomFilter")]
pub(crate) struct RollingBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(RollingBloomFilter, Core, ROLLING);
addable_methods!(RollingBloomFilter, Core);
plain_methods!(RollingBloomFilter, ROLLING);
generation_methods!(RollingBloomFilter);

#[pymethods]
impl RollingBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, generations: "int" = None,
        window: "float | None" = None, seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, generations=3, window=None, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        generations: Option<&Bound<'_, PyAny>>,
        window: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let generations = generations.map_or(Ok(3), |g| params::whole("generations", g, 1))?;
        let generations = usize::try_from(generations).unwrap_or(usize::MAX);
        let window = self::window(window)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::of(capacity, fpr.0, generations, window, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Number of generations.
    #[getter]
    fn generations(&self, py: Python<'_>) -> usize {
        self.lock.read(py, |f| f.plan().generations)
    }
}
