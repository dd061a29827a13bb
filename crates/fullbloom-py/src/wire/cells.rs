//! What [`WireCells`] can do.

use std::sync::Arc;

use fullbloom_core::Error;
use fullbloom_core::bloom::{BloomFilter as CoreFilter, Layout, Shape, with_base_hash};
use fullbloom_core::structure::declaration::choice;
use fullbloom_core::wire::Cells;
use fullbloom_core::wire::plain::Batch;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::keys::{WireBatch, WireKeys, collect_hashes, read_hashes};
use super::{WireCells, arguments};
use crate::classes::bloom::BloomFilter;
use crate::errors::{OrRaise, parameter};
use crate::keys::scalar::hash_key;
use crate::parameters;
use crate::python_objects::bytes::{self, read_bytes};

#[pymethods]
impl WireCells {
    #[new]
    #[pyo3(signature = (
        num_bits: "int", num_hashes: "int", *, layout: "str" = "blocked", scheme: "str | None" = None, hash: "str" = "xxh3",
        shards: "int" = 1, seed: "int" = 0, secret: "bytes | None" = None, native: "bool" = false
    ))]
    #[allow(clippy::too_many_arguments)] // one a parameter
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::num_bits)] num_bits: u64,
        #[pyo3(from_py_with = arguments::num_hashes)] num_hashes: u64,
        #[pyo3(from_py_with = arguments::layout)] layout: &str,
        #[pyo3(from_py_with = arguments::scheme)] scheme: Option<&str>,
        #[pyo3(from_py_with = arguments::hash)] hash: &str,
        #[pyo3(from_py_with = arguments::shards)] shards: u64,
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = arguments::native)] native: bool,
    ) -> PyResult<Self> {
        let hasher = with_base_hash(parameters::read_hasher(seed, secret)?, hash).or_raise(py)?;
        let create = || {
            let layout = choice("layout", layout, Layout::NAMES)?;
            let layout = layout.ok_or_else(|| Error::parameter("layout must be a specific one, got 'auto'"))?;
            let shape = Shape::explicit(layout, Shape::scheme_named(scheme)?, num_bits, num_hashes)?;
            let cells = if native { Cells::native(shape, hasher)? } else { Cells::new(shape, hasher, shards)? };
            Ok(WireCells { core: Arc::new(cells) })
        };
        create().or_raise(py)
    }

    /// m.
    #[getter]
    fn num_bits(&self) -> u64 {
        self.core.shape().num_bits
    }

    /// k.
    #[getter]
    fn num_hashes(&self) -> u32 {
        self.core.shape().num_hashes
    }

    /// The scheme's name.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.core.shape().scheme.name()
    }

    /// Number of strings.
    #[getter]
    fn shards(&self) -> u64 {
        self.core.shards()
    }

    /// True when the strings have the bytes of the filter in memory.
    #[getter]
    fn has_lines(&self) -> bool {
        self.core.has_lines()
    }

    /// Bytes of a line, in which a key is looked up; of all cells if there are no lines.
    #[getter]
    fn line_bytes(&self) -> u64 {
        self.core.unit()
    }

    /// A number that identifies the secret without revealing it; 0 without a secret.
    #[getter]
    fn secret_fingerprint(&self) -> u64 {
        self.core.hasher().secret_fingerprint()
    }

    /// The first byte of a shard in the filter, and its number of bytes, without its owner tag.
    #[pyo3(signature = (shard: "int") -> "tuple[int, int]")]
    fn range(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::shard)] shard: u64) -> PyResult<(u64, u64)> {
        if shard >= self.core.shards() {
            return Err(parameter(py, format!("shard must be below {}, got {shard}", self.core.shards())));
        }
        Ok(self.core.range(shard))
    }

    /// Rate at `ones` set bits.
    #[pyo3(signature = (ones: "int") -> "float")]
    fn fpr(&self, #[pyo3(from_py_with = arguments::ones)] ones: u64) -> f64 {
        self.core.fpr(ones)
    }

    /// Estimated number of keys at `ones` set bits, with its standard deviation.
    #[pyo3(signature = (ones: "int") -> "tuple[float, float]")]
    fn approx_count(&self, #[pyo3(from_py_with = arguments::ones)] ones: u64) -> (f64, f64) {
        self.core.approx_count(ones)
    }

    /// Share of set bits.
    #[pyo3(signature = (ones: "int") -> "float")]
    fn fill(&self, #[pyo3(from_py_with = arguments::ones)] ones: u64) -> f64 {
        self.core.fill(ones)
    }

    /// The hashes of keys of any kind that contains_many() takes, to look up or add; nulls are not keys.
    #[pyo3(signature = (keys: "Keys", *, adding: "bool" = false) -> "WireKeys")]
    fn keys(
        &self,
        keys: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::adding)] adding: bool,
    ) -> PyResult<WireKeys> {
        let hashes = collect_hashes(self.core.hasher(), keys)?;
        WireKeys::new(&self.core, hashes, adding).or_raise(keys.py())
    }

    /// As keys(), of ready hashes: 8 bytes each, in native byte order.
    #[pyo3(signature = (hashes: "bytes", *, adding: "bool" = false) -> "WireKeys")]
    fn hashed(
        &self,
        hashes: &Bound<'_, PyBytes>,
        #[pyo3(from_py_with = arguments::adding)] adding: bool,
    ) -> PyResult<WireKeys> {
        WireKeys::new(&self.core, read_hashes(hashes), adding).or_raise(hashes.py())
    }

    /// No key, and the owner tag of every shard.
    #[pyo3(signature = () -> "WireBatch")]
    fn marks(&self, py: Python<'_>) -> WireBatch {
        WireBatch::new(py.detach(|| Batch::marks(&self.core)), 0)
    }

    /// One key, to look up or add.
    #[pyo3(signature = (key: "Key", *, adding: "bool" = false) -> "WireBatch")]
    fn one(
        &self,
        key: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::adding)] adding: bool,
    ) -> PyResult<WireBatch> {
        let hash = hash_key(self.core.hasher(), key)?;
        let core = Batch::new(&self.core, vec![hash], adding).or_raise(key.py())?;
        Ok(WireBatch::new(core, 0))
    }

    /// An empty filter in memory of this shape and hash.
    #[pyo3(signature = (capacity: "int", fpr: "float", *, strict: "bool" = false) -> "BloomFilter")]
    fn memory(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::capacity)] capacity: u64,
        fpr: parameters::Fpr,
        #[pyo3(from_py_with = arguments::strict)] strict: bool,
    ) -> PyResult<BloomFilter> {
        let (shape, hasher) = (*self.core.shape(), *self.core.hasher());
        py.detach(|| CoreFilter::new(shape, capacity, fpr.0, hasher, strict)).or_raise(py).map(BloomFilter::wrap)
    }

    /// Writes bytes of strings over the cells of a filter from memory(), from a byte of the filter on.
    #[pyo3(signature = (filter: "BloomFilter", start: "int", data: "bytes") -> "None")]
    fn write(
        &self,
        filter: &Bound<'_, BloomFilter>,
        #[pyo3(from_py_with = arguments::start)] start: u64,
        data: &Bound<'_, PyBytes>,
    ) -> PyResult<()> {
        let (py, mut bytes) = (data.py(), data.as_bytes().to_vec());
        self.core.turn(&mut bytes);
        filter.get().lock.detach(py, |session| session.write(|filter| filter.write_cells(start, &bytes))).or_raise(py)
    }

    /// Sets the number of keys of a filter to the estimate from its cells.
    #[pyo3(signature = (filter: "BloomFilter") -> "None")]
    fn recount(&self, filter: &Bound<'_, BloomFilter>) {
        filter.get().lock.detach(filter.py(), |session| session.write(CoreFilter::recount));
    }

    /// The bytes of cells in the order in which strings store them.
    #[pyo3(signature = (data: "bytes | memoryview") -> "bytes")]
    fn reorder<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = read_bytes("data", data)?.into_owned();
        self.core.turn(&mut bytes);
        bytes::create(data.py(), &bytes)
    }
}
