//! [`ForeignScalableFilter`]: a Bloom filter that grows.

use fullbloom_core::container::REDISBLOOM;
use fullbloom_core::foreign::redisbloom::bloom::Chain;

use super::*;

dump_class! {
    /// A Bloom filter of RedisBloom (BF.*) in this process, bit for bit: it answers, grows and is dumped as there.
    ///
    /// capacity, fpr, expansion: as for BF.RESERVE. scaling: False for NONSCALING, which raises FilterFull when it is full. Keys
    /// are str, as UTF-8, and bytes; redis-py sends an int as its decimal digits, so pass str(number). Raises ParameterError,
    /// FilterMemoryError.
    ///
    /// >>> from fullbloom import ForeignScalableFilter
    /// >>> seen = ForeignScalableFilter(100, 0.01)
    /// >>> seen.add("x"), "x" in seen, "y" in seen
    /// (True, True, False)
    /// >>> [(number, len(piece)) for number, piece in seen.chunks()]
    /// [(1, 73), (145, 144)]
    ForeignScalableFilter, Chain, REDISBLOOM, Layers, {
        #[new]
        #[pyo3(signature = (
            capacity: "int", fpr: "float" = parameters::Fpr(0.01), *, expansion: "int" = None, scaling: "bool" = None
        ))]
        #[pyo3(text_signature = "(capacity, fpr=0.01, *, expansion=2, scaling=True)")]
        fn new(
            py: Python<'_>,
            capacity: &Bound<'_, PyAny>,
            fpr: parameters::Fpr,
            expansion: Option<&Bound<'_, PyAny>>,
            scaling: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let capacity = parameters::parse_whole("capacity", capacity, 1)?;
            let expansion = read_number("expansion", expansion, 2, MOST_EXPANSION)?.into();
            let scaling = scaling.map_or(Ok(true), |scaling| parameters::flag("scaling", scaling))?;
            py.detach(|| Chain::construct(capacity, fpr.0, expansion, scaling && expansion > 0))
                .or_raise(py)
                .map(Self::wrap)
        }

        /// Estimated number of keys, and its standard deviation, from the set bits: O(nbytes). num_added is the program's count.
        #[pyo3(signature = () -> "tuple[float, float]")]
        fn approx_count(&self, py: Python<'_>) -> (f64, f64) {
            self.lock.look(py, Chain::approx_count)
        }

        /// Merges another filter whose layers have the same shapes, as far as both have them: bitwise or, layer by layer.
        ///
        /// It finds the keys of both; num_added is estimated from the bits. Raises IncompatibleFilters, naming the fields
        /// in which the two differ; then nothing changed. Raises FilterMemoryError.
        #[pyo3(signature = (other: "Self"))]
        fn merge(
            &self,
            py: Python<'_>,
            #[pyo3(from_py_with = parameters::other::<ForeignScalableFilter>)] other: Py<Self>,
        ) -> PyResult<()> {
            self.take_in(py, other.get())
        }

        fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
            let union = self.copy(py)?;
            union.take_in(py, other)?;
            Ok(union)
        }

        fn __ior__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
            self.take_in(py, other)
        }

        /// Keys that all layers are sized for.
        #[getter]
        fn capacity(&self, py: Python<'_>) -> u64 {
            self.lock.read(py, Chain::capacity)
        }

        /// The factor between the capacities of two layers, or None if it does not grow.
        #[getter]
        fn expansion(&self, py: Python<'_>) -> Option<u32> {
            self.lock.read(py, Chain::expansion)
        }
    }
}

impl ForeignScalableFilter {
    /// Merges `other`; one with itself does not change.
    fn take_in(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        if std::ptr::eq(&self.lock, &other.lock) {
            return Ok(());
        }
        self.lock.change_from(&other.lock, py, Chain::merge).or_raise(py)
    }

    fn describe(&self, py: Python<'_>, info: &Bound<'_, PyDict>) -> PyResult<()> {
        info.set_item("capacity", self.capacity(py))?;
        info.set_item("expansion", self.expansion(py))?;
        let (items, deviation) = self.approx_count(py);
        info.set_item("approx_count", items)?;
        info.set_item("approx_count_sd", deviation)
    }
}
