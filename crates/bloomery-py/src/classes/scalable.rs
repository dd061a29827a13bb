//! `ScalableBloomFilter`.

use bloomery_core::bloom::ScalableBloomFilter as Core;
use bloomery_core::bloom::scalable::Plan;
use bloomery_core::filter::Filter;
use bloomery_core::key::KeyHasher;
use bloomery_core::registry::SCALABLE;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::{addable_methods, estimating_methods, filter_methods, plain_methods, shared};
use crate::errors::OrRaise;
use crate::gate::Gate;
use crate::params;

/// A Bloom filter that grows: a chain of filters whose rates add up to at most `fpr`, however many
/// keys come.
///
/// initial_capacity: keys of the first stage. fpr: bound on the rate of the whole. growth: factor
/// between the capacities of successive stages. tightening: factor between their rates; the first
/// stage has fpr * (1 - tightening). layout: of every stage; "auto" chooses for each.
/// seed, secret: as for BloomFilter.
///
/// Raises ParameterError, ParameterTypeError, FilterMemoryError. Cost: a lookup asks the stages,
/// newest first; about log2(n / initial_capacity) of them.
/// Source: Almeida, Baquero, Preguica, Hutchison, IPL 101(6), 2007; 1 - prod(1 - p_i) <= fpr.
///
/// >>> from bloomery import ScalableBloomFilter
/// >>> f = ScalableBloomFilter(100, fpr=0.001)
/// >>> f.update(range(10_000))
/// >>> f.stages, 9_999 in f
/// (7, True)
#[pyclass(frozen, module = "bloomery", name = "ScalableBloomFilter")]
pub(crate) struct ScalableBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) gate: Gate<Core>,
}

filter_methods!(ScalableBloomFilter, Core, SCALABLE, "ScalableBloomFilter");
addable_methods!(ScalableBloomFilter, Core, "ScalableBloomFilter");
estimating_methods!(ScalableBloomFilter);
plain_methods!(ScalableBloomFilter, SCALABLE, "ScalableBloomFilter");

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(signature = (
        initial_capacity: "int" = None, fpr: "float" = params::Fpr(0.01), *, growth: "float" = None,
        tightening: "float" = None, layout: "str" = params::LayoutChoice(None), seed: "int" = None,
        secret: "bytes | bool | None" = None
    ))]
    #[pyo3(
        text_signature = "(initial_capacity=10000, fpr=0.01, *, growth=2.0, tightening=0.5, layout='auto', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn new(
        py: Python<'_>,
        initial_capacity: Option<&Bound<'_, PyAny>>,
        fpr: params::Fpr,
        growth: Option<&Bound<'_, PyAny>>,
        tightening: Option<&Bound<'_, PyAny>>,
        layout: params::LayoutChoice,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let plan = Plan {
            initial_capacity: initial_capacity.map_or(Ok(10_000), |n| params::whole("initial_capacity", n, 1))?,
            fpr: fpr.0,
            growth: growth.map_or(Ok(2.0), |s| params::real("growth", s))?,
            tightening: tightening.map_or(Ok(0.5), |r| params::real("tightening", r))?,
            choice: layout.0,
        };
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::new(plan, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Keys of the first stage.
    #[getter]
    fn initial_capacity(&self, py: Python<'_>) -> u64 {
        self.gate.read(py, |f| f.plan().initial_capacity)
    }

    /// Factor between the capacities of successive stages.
    #[getter]
    fn growth(&self, py: Python<'_>) -> f64 {
        self.gate.read(py, |f| f.plan().growth)
    }

    /// Factor between the rates of successive stages.
    #[getter]
    fn tightening(&self, py: Python<'_>) -> f64 {
        self.gate.read(py, |f| f.plan().tightening)
    }

    /// The layout's name, "auto" when each stage has its own.
    #[getter]
    fn layout(&self, py: Python<'_>) -> &'static str {
        self.gate.read(py, |f| f.plan().choice.map_or("auto", |layout| layout.name()))
    }

    /// Number of stages.
    #[getter]
    fn stages(&self, py: Python<'_>) -> usize {
        self.gate.read(py, |f| f.stages().len())
    }

    /// Keys of each stage, oldest first; a new one opens when the last is full.
    #[getter]
    fn stage_capacities(&self, py: Python<'_>) -> Vec<u64> {
        self.gate.read(py, |f| f.stages().iter().map(Filter::capacity).collect())
    }

    /// One info() dict a stage, oldest first.
    #[pyo3(signature = () -> "list[dict[str, Any]]")]
    fn stage_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let stages: Vec<_> = self.gate.read(py, |f| f.stages().iter().map(Filter::facts).collect());
        let dicts: Vec<Bound<'py, PyDict>> =
            stages.iter().map(|facts| shared::info("BloomFilter", facts, py)).collect::<PyResult<_>>()?;
        PyList::new(py, dicts)
    }
}
