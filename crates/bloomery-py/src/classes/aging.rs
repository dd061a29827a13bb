//! `AgingBloomFilter`, and what it shares with `RollingBloomFilter`.

use bloomery_core::key::KeyHasher;
use bloomery_core::registry::AGING;
use bloomery_core::window::AgingBloomFilter as Core;
use pyo3::prelude::*;

use super::{addable_methods, filter_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::OrRaise;
use crate::params;

/// A window over a stream: the last `capacity` distinct keys are never denied, older ones are
/// forgotten after at most twice as many.
///
/// capacity: keys of the window; with window=, keys that come within it. fpr: bound on the rate of
/// false positives, at any time. refresh: a known key counts as seen anew; False is the plain double
/// buffer, where a key is remembered for the `capacity` new keys after it was told new itself (one
/// that was falsely known is not written, and not promised). window: seconds for which keys are remembered, instead of a count: time passes by advance(now) only, and
/// more than `capacity` keys in a window warn (CapacityWarning) and raise the rate. seed, secret: as
/// for BloomFilter.
///
/// False negatives: by design for older keys, never within the window. Raises ParameterError,
/// ParameterTypeError, FilterMemoryError. Cost: two neighbouring cache lines a key; about 23 bits a
/// key of capacity at 1 %. Source: Yoon, IEEE TKDE 22(1), 2010; two buffers at rate
/// ``1 - sqrt(1 - fpr)`` each.
///
/// >>> from bloomery import AgingBloomFilter
/// >>> f = AgingBloomFilter(1000, fpr=0.001)
/// >>> f.update(range(10_000))
/// >>> all(key in f for key in range(9_000, 10_000)), 0 in f
/// (True, False)
#[pyclass(frozen, module = "bloomery", name = "AgingBloomFilter")]
pub(crate) struct AgingBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(AgingBloomFilter, Core, AGING);
addable_methods!(AgingBloomFilter, Core);
plain_methods!(AgingBloomFilter, AGING);

/// Methods of windows made of generations.
macro_rules! generation_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "Lets time pass until `now`, in seconds of any clock; returns how many generations expired.\n\n",
                "For a filter built with window=. A key is remembered for at least `window` seconds after the\n",
                "advance before its add; keys added before the first advance count as added at it. Raises\n",
                "ParameterError when now goes back, or without window=; ReadOnlyFilter.\n\n",
                ">>> from bloomery import ", stringify!($Class), "\n",
                ">>> f = ", stringify!($Class), "(1000, window=60.0)\n",
                ">>> f.advance(0.0), f.add(\"a\"), f.advance(59.0) >= 0, \"a\" in f\n(0, True, True, True)\n",
                ">>> f.advance(200.0) > 0, \"a\" in f\n(True, False)")]
            #[pyo3(signature = (now: "float"))]
            fn advance(&self, now: &Bound<'_, PyAny>) -> PyResult<u64> {
                let (py, now) = (now.py(), crate::params::real("now", now)?);
                crate::errors::OrRaise::or_raise(self.lock.write(py, |f| f.advance(now)), py)
            }

            /// Latest time given to advance(), or None.
            #[getter]
            fn now(&self, py: Python<'_>) -> Option<f64> {
                self.lock.read(py, |f| f.now())
            }

            /// Seconds for which keys are remembered, or None for a window counted in keys.
            #[getter]
            fn window(&self, py: Python<'_>) -> Option<f64> {
                self.lock.read(py, |f| f.plan().window)
            }

            /// Keys written to each generation that is held, oldest first; the last one takes new keys.
            #[pyo3(signature = () -> "list[int]")]
            fn generation_counts(&self, py: Python<'_>) -> Vec<u64> {
                self.lock.read(py, |f| f.generation_counts())
            }
        }
    };
}

generation_methods!(AgingBloomFilter);

/// The `window=` argument.
pub(crate) fn window(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<f64>> {
    value.filter(|value| !value.is_none()).map(|value| params::real("window", value)).transpose()
}

#[pymethods]
impl AgingBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, refresh: "bool" = true,
        window: "float | None" = None, seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, refresh=True, window=None, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        refresh: bool,
        window: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let window = self::window(window)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::of(capacity, fpr.0, refresh, window, hasher)).or_raise(py).map(Self::wrap)
    }

    /// True when a known key counts as seen anew.
    #[getter]
    fn refresh(&self, py: Python<'_>) -> bool {
        self.lock.read(py, |f| f.plan().refresh)
    }
}

pub(crate) use generation_methods;
