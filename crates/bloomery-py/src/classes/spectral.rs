//! `SpectralFilter`.

use bloomery_core::counting::SpectralFilter as Core;
use bloomery_core::counting::spectral::{COUNTER_BITS, MODES, Mode, Shape};
use bloomery_core::key::KeyHasher;
use bloomery_core::registry::SPECTRAL;
use pyo3::prelude::*;

use super::{addable_methods, countable_methods, estimating_methods, filter_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::{OrRaise, parameter, parameter_type};
use crate::params;

/// How often each key came, or a little more: counts are never too low.
///
/// capacity: expected number of distinct keys. fpr: rate at which absent keys seem to be there, and
/// a bound on the share of wrong counts, at capacity. mode: how keys are added.
/// "minimal-increase" adds to the least of a key's counters only, "recurring-minimum" counts keys
/// apart, exactly from then on, when their counters look like an overestimate; both halve the share
/// of wrong counts. "minimum-selection" adds to every counter.
/// counter_bits: 8, 16, 32 or 64. seed, secret: as for BloomFilter.
///
/// No key that was added is ever denied, no count is below the truth, in any mode. Keys cannot be
/// removed, for that would break it; CountingBloomFilter is minimum selection with removal.
/// num_added is the number of additions, repeated keys included; the warning past capacity goes by
/// distinct keys.
///
/// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated; add
/// raises FilterFull, and changes nothing, when a counter would pass its maximum.
/// Cost: 9.6 counters a key at 1 %; "recurring-minimum" 8 bytes more.
/// Source: Cohen, Matias, SIGMOD 2003; share of wrong counts (1 - e^(-kn/m))^k by minimum selection.
///
/// >>> from bloomery import SpectralFilter
/// >>> f = SpectralFilter(1000)
/// >>> f.update(["a", "b", "a"])
/// >>> f.count("a"), f.count_many(["b", "c"])
/// (2, [1, 0])
#[pyclass(frozen, module = "bloomery", name = "SpectralFilter")]
pub(crate) struct SpectralFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(SpectralFilter, Core, SPECTRAL);
addable_methods!(SpectralFilter, Core);
countable_methods!(SpectralFilter);
estimating_methods!(SpectralFilter);
plain_methods!(SpectralFilter, SPECTRAL);

fn mode_named(value: &Bound<'_, PyAny>) -> PyResult<Mode> {
    let py = value.py();
    let Ok(name) = value.extract::<String>() else {
        return Err(parameter_type(py, format!("mode must be a str, got {}", value.get_type().name()?)));
    };
    Mode::from_name(&name).ok_or_else(|| {
        let names: Vec<&str> = MODES.iter().map(|(_, name)| *name).collect();
        parameter(py, format!("mode must be one of {}, got {name:?}", names.join(", ")))
    })
}

#[pymethods]
impl SpectralFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, mode: "str" = None, counter_bits: "int" = None,
        seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, mode='minimal-increase', counter_bits=32, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        mode: Option<&Bound<'_, PyAny>>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let mode = mode.map_or(Ok(Mode::MinimalIncrease), mode_named)?;
        let bits = counter_bits.map_or(Ok(u64::from(COUNTER_BITS)), |bits| params::whole("counter_bits", bits, 1))?;
        let bits = u32::try_from(bits).unwrap_or(u32::MAX);
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let shape = Shape::for_capacity(bits, capacity, fpr.0).or_raise(py)?;
        py.detach(|| Core::new(shape, mode, capacity, fpr.0, hasher)).or_raise(py).map(Self::wrap)
    }

    /// How keys are added.
    #[getter]
    fn mode(&self, py: Python<'_>) -> &'static str {
        self.lock.read(py, |f| f.mode().name())
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

    /// Keys that are counted apart ("recurring-minimum" only): O(capacity).
    #[getter]
    fn num_apart(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Core::num_apart)
    }

    /// True when the counters live in a file.
    #[getter]
    fn mapped(&self, py: Python<'_>) -> bool {
        self.lock.read(py, Core::is_mapped)
    }
}
