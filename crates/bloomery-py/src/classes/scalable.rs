//! `ScalableBloomFilter`.

use bloomery_core::growing::INITIAL_CAPACITY;
use bloomery_core::key::KeyHasher;
use bloomery_core::registry::SCALABLE;
use bloomery_core::stages::{Kind, Plan, ScalableBloomFilter as Core};
use bloomery_core::structure::Filter;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::{addable_methods, estimating_methods, filter_methods, plain_methods, shared};
use crate::biased_lock::BiasedLock;
use crate::errors::{OrRaise, parameter_type};
use crate::params;

/// The `kind=` argument.
struct KindName(&'static str);

/// Its default.
const BLOOM: KindName = KindName("bloom");

impl<'py> FromPyObject<'_, 'py> for KindName {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let Ok(name) = value.extract::<String>() else {
            return Err(parameter_type(py, format!("kind must be a str, got {}", value.repr()?)));
        };
        Kind::new(&name, None).or_raise(py).map(|kind| KindName(kind.row().name))
    }
}

/// A Bloom filter that grows: a chain of filters whose rates add up to at most `fpr`, however many
/// keys come.
///
/// initial_capacity: keys of the first stage. fpr: bound on the rate of the whole. kind: the structure of
/// every stage, by its name in the registry: "bloom", "counting", "variable-increment", "spectral",
/// "d-left", "deletable", "retouched", "layered", "cuckoo", "quotient" or "prefix". growth: factor between the
/// capacities of successive stages. tightening: factor between their rates; the first stage has
/// fpr * (1 - tightening). layout: of every stage of kind "bloom"; "auto" chooses for each. seed, secret:
/// as for BloomFilter.
///
/// A key is stored once, in one stage, and not removed: to find the stage it was added to, a key would
/// have to be told from a false positive of another. DynamicCuckooFilter grows and removes.
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
/// >>> ScalableBloomFilter(100, kind="cuckoo").stage_capacities
/// [100]
#[pyclass(frozen, module = "bloomery", name = "ScalableBloomFilter")]
pub(crate) struct ScalableBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(ScalableBloomFilter, Core, SCALABLE);
addable_methods!(ScalableBloomFilter, Core);
estimating_methods!(ScalableBloomFilter);
plain_methods!(ScalableBloomFilter, SCALABLE);

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(signature = (
        initial_capacity: "int" = None, fpr: "float" = params::Fpr(0.01), *, kind: "str" = BLOOM,
        growth: "float" = None, tightening: "float" = None, layout: "str" = params::LayoutChoice(None),
        seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(
        text_signature = "(initial_capacity=10000, fpr=0.01, *, kind='bloom', growth=2.0, tightening=0.5, layout='auto', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn new(
        py: Python<'_>,
        initial_capacity: Option<&Bound<'_, PyAny>>,
        fpr: params::Fpr,
        kind: KindName,
        growth: Option<&Bound<'_, PyAny>>,
        tightening: Option<&Bound<'_, PyAny>>,
        layout: params::LayoutChoice,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let plan = Plan {
            initial_capacity: initial_capacity
                .map_or(Ok(INITIAL_CAPACITY), |n| params::whole("initial_capacity", n, 1))?,
            fpr: fpr.0,
            growth: growth.map_or(Ok(2.0), |s| params::real("growth", s))?,
            tightening: tightening.map_or(Ok(0.5), |r| params::real("tightening", r))?,
            kind: Kind::new(kind.0, layout.0).or_raise(py)?,
        };
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        py.detach(|| Core::new(plan, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Keys of the first stage.
    #[getter]
    fn initial_capacity(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.plan().initial_capacity)
    }

    /// Factor between the capacities of successive stages.
    #[getter]
    fn growth(&self, py: Python<'_>) -> f64 {
        self.lock.read(py, |f| f.plan().growth)
    }

    /// Factor between the rates of successive stages.
    #[getter]
    fn tightening(&self, py: Python<'_>) -> f64 {
        self.lock.read(py, |f| f.plan().tightening)
    }

    /// What `kind` may be.
    #[staticmethod]
    #[pyo3(signature = () -> "list[str]")]
    fn kinds() -> Vec<&'static str> {
        Kind::names().collect()
    }

    /// The structure of every stage, by its name in the registry.
    #[getter]
    fn kind(&self, py: Python<'_>) -> &'static str {
        self.lock.read(py, |f| f.plan().kind.row().name)
    }

    /// The layout of every stage of kind "bloom", "auto" when each has its own; also for other kinds.
    #[getter]
    fn layout(&self, py: Python<'_>) -> &'static str {
        self.lock.read(py, |f| f.plan().kind.layout().map_or("auto", |layout| layout.name()))
    }

    /// Number of stages.
    #[getter]
    fn stages(&self, py: Python<'_>) -> usize {
        self.lock.read(py, |f| f.stages().len())
    }

    /// Keys of each stage, oldest first; a new one opens when the last is full.
    #[getter]
    fn stage_capacities(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.read(py, |f| f.stages().iter().map(Filter::capacity).collect())
    }

    /// One info() dict a stage, oldest first.
    #[pyo3(signature = () -> "list[dict[str, Any]]")]
    fn stage_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (class, stages) = self.lock.read(py, |f| {
            let facts: Vec<_> = f.stages().iter().map(Filter::facts).collect();
            (f.plan().kind.row().class, facts)
        });
        let dicts: Vec<Bound<'py, PyDict>> =
            stages.iter().map(|facts| shared::info(class, facts, py)).collect::<PyResult<_>>()?;
        PyList::new(py, dicts)
    }
}
