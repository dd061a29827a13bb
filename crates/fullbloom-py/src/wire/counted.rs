//! [`WireCounterKeys`] and [`WireCounterBatch`]: the hashes of many keys of a counting filter, those that are sent together,
//! and their results.

use std::sync::{Arc, Mutex};

use fullbloom_core::Result;
use fullbloom_core::cells::allocation::zeroed;
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::wire::counted::Batch;
use fullbloom_core::wire::counters::Verb;
use fullbloom_core::wire::{Counters, Shard};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments;
use super::exchange::{Talk, WireExchange};
use super::keys::{copy_part, return_answers};
use crate::errors::OrRaise;
use crate::python_objects::bytes;

/// The hashes of many keys, and their results as they arrive.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireCounterKeys {
    counters: Arc<Counters>,
    hashes: Vec<u64>,
    answers: Mutex<Vec<u8>>,
}

impl WireCounterKeys {
    /// Without results yet.
    pub(super) fn new(counters: &Arc<Counters>, hashes: Vec<u64>) -> Result<Self> {
        let answers = Mutex::new(zeroed(hashes.len())?);
        Ok(WireCounterKeys { counters: Arc::clone(counters), hashes, answers })
    }
}

#[pymethods]
impl WireCounterKeys {
    fn __len__(&self) -> usize {
        self.hashes.len()
    }

    /// Some of them, to send together: to count, or to add.
    #[pyo3(signature = (start: "int", stop: "int", *, adding: "bool" = false) -> "WireCounterBatch")]
    fn batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::start)] start: u64,
        #[pyo3(from_py_with = arguments::stop)] stop: u64,
        #[pyo3(from_py_with = arguments::adding)] adding: bool,
    ) -> PyResult<WireCounterBatch> {
        let (start, hashes) = copy_part(&self.hashes, start, stop);
        let verb = if adding { Verb::Add } else { Verb::Count };
        let core = py.detach(|| Batch::new(&self.counters, hashes, verb)).or_raise(py)?;
        Ok(WireCounterBatch { core: Mutex::new(core), start })
    }

    /// Stores the results of a batch.
    #[pyo3(signature = (batch: "WireCounterBatch") -> "None")]
    fn take(&self, py: Python<'_>, batch: &Bound<'_, WireCounterBatch>) -> PyResult<()> {
        let batch = batch.get();
        let counts = lock(&batch.core).answers().or_raise(py)?;
        let mut answers = lock(&self.answers);
        for (answer, count) in answers.iter_mut().skip(batch.start).zip(counts) {
            *answer = count;
        }
        Ok(())
    }

    /// For each key, in the same container type as the keys: whether it was new, or was found. The keys must be those of the
    /// hashes.
    #[pyo3(signature = (keys: "Keys") -> "Answers[bool]")]
    fn answers<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let found: Vec<u8> = lock(&self.answers).iter().map(|&count| u8::from(count > 0)).collect();
        return_answers(self.counters.hasher(), keys, &found)
    }

    /// For each key, in the same container type as the keys: its count.
    #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
    fn counts<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let counts: Vec<u64> = lock(&self.answers).iter().map(|&count| count.into()).collect();
        return_answers(self.counters.hasher(), keys, &counts)
    }

    /// The results, one byte per key.
    #[getter]
    fn results<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes::create(py, &lock(&self.answers))
    }
}

/// Hashes that are sent together, by shard.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct WireCounterBatch {
    core: Mutex<Batch>,
    start: usize,
}

#[pymethods]
impl WireCounterBatch {
    fn __len__(&self) -> usize {
        lock(&self.core).len()
    }

    /// The batch to send next: after a count, the removal of the keys found; after such a removal, the additions that undo
    /// part of it.
    fn then(&self, py: Python<'_>) -> PyResult<WireCounterBatch> {
        let core = lock(&self.core).then().or_raise(py)?;
        Ok(WireCounterBatch { core: Mutex::new(core), start: self.start })
    }

    /// The shards that contain its keys, ascending.
    #[getter]
    fn shards(&self) -> Vec<u64> {
        lock(&self.core).shards().collect()
    }

    /// The commands for some of its shards, (number, name of the string, a name on the same node), without keys whose reply has
    /// arrived. With `asking` each command follows an ASKING.
    #[pyo3(signature = (shards: "list[tuple[int, bytes, bytes]]", *, asking: "bool" = false) -> "WireExchange")]
    fn exchange(
        &self,
        py: Python<'_>,
        shards: Vec<(u64, Vec<u8>, Vec<u8>)>,
        #[pyo3(from_py_with = arguments::asking)] asking: bool,
    ) -> PyResult<WireExchange> {
        let shards = shards.into_iter().map(|(number, key, beside)| Shard { number, key, beside }).collect();
        // Locked inside: no thread waits for a lock while attached.
        let exchange = py.detach(|| lock(&self.core).exchange(shards, asking)).or_raise(py)?;
        Ok(WireExchange::new(Talk::Counters(exchange)))
    }

    /// Stores the results of an exchange.
    #[pyo3(signature = (exchange: "WireExchange") -> "None")]
    fn take(&self, exchange: &Bound<'_, WireExchange>) {
        if let Talk::Counters(exchange) = &*lock(&exchange.get().core) {
            lock(&self.core).take(exchange);
        }
    }

    /// The hashes, 8 bytes each: of the keys that were found, or new; with `all`, of all keys.
    #[pyo3(signature = (*, all: "bool") -> "bytes")]
    fn hashes<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::all)] all: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes: Vec<u8> = lock(&self.core).hashes(all).flat_map(u64::to_ne_bytes).collect();
        bytes::create(py, &bytes)
    }
}
